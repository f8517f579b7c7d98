"""Verifiers: rules that turn drafts into one token of the target's law."""

from mdsd_core.verifiers.interface import (
    Estimate,
    UnsupportedScheme,
    Verdict,
    VerificationPlan,
    Verifier,
    verifier,
    verifiers_for,
)
from mdsd_core.verifiers.recursive_rejection import RecursiveRejection

__all__ = [
    "Estimate",
    "RecursiveRejection",
    "UnsupportedScheme",
    "Verdict",
    "VerificationPlan",
    "Verifier",
    "verifier",
    "verifiers_for",
]
