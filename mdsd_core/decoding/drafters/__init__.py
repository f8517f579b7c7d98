"""Where drafts come from: a draft model, the text itself, counts of n-grams."""
