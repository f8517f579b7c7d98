"""The verifiers on batches of nodes: torch tensors [B, V], on the CPU or a GPU."""

from mdsd_core.decoding.tensor_rules.interface import (
    BatchedVerdict,
    draw_uniforms,
    output_law,
    runs_on_tensors,
    uniforms_for,
    verify,
)
from mdsd_core.decoding.tensor_rules.softmax import probabilities

__all__ = [
    "BatchedVerdict",
    "draw_uniforms",
    "output_law",
    "probabilities",
    "runs_on_tensors",
    "uniforms_for",
    "verify",
]
