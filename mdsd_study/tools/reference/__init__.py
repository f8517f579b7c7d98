"""How results are compared with ``reference/``, and how that is written."""
