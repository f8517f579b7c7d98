"""Multi-draft speculative decoding: optimal acceptance rates, exact verifiers, a decoding loop."""

__version__ = "0.1.0"
