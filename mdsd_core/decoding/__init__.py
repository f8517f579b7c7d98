"""The decoding loop: draft trees on real language models, any scheme, any verifier."""
