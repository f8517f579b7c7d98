"""The optimal transport of one step: what the best verifier could accept, and plans that attain it."""
