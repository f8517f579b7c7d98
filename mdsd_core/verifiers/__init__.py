"""Verifiers: rules that turn drafts into one token of the target's law."""
