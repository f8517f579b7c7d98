"""Recursive rejection sampling (RRS), with and without replacement."""
