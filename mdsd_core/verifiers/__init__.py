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
from mdsd_core.verifiers.recursive_rejection_without import RecursiveRejectionWithout

__all__ = [
    "Estimate",
    "RecursiveRejection",
    "RecursiveRejectionWithout",
    "UnsupportedScheme",
    "Verdict",
    "VerificationPlan",
    "Verifier",
    "verifier",
    "verifiers_for",
]
