"""Draft trees: shapes, drafted trees, and the rules by which a verifier walks them. No model, no torch."""
