"""Claims, the values that they are judged by, and their verdicts."""
