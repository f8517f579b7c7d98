"""The verifiers on batches of nodes: torch tensors [B, V]."""

from mdsd_core.decoding.tensor_rules.interface import (
    BatchedVerdict,
    draw_uniforms,
    runs_on_tensors,
    uniforms_for,
    verify,
)
from mdsd_core.decoding.tensor_rules.softmax import probabilities

__all__ = [
    "BatchedVerdict",
    "draw_uniforms",
    "probabilities",
    "runs_on_tensors",
    "uniforms_for",
    "verify",
]
