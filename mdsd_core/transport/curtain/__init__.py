"""The exact optimal plan for independent drafts, read off the left curtain of two laws."""
