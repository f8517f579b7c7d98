"""Drafts drawn one after the other without replacement: a race of exponentials."""
