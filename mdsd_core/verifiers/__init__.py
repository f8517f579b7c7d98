"""Verifiers: rules that turn drafts into one token of the target's law."""

from mdsd_core.randomness import UniformSource
from mdsd_core.verifiers.deterministic import DeterministicChildren
from mdsd_core.verifiers.interface import (
    Estimate,
    UnsupportedScheme,
    VerificationPlan,
    Verifier,
    verifier,
    verifiers_for,
)
from mdsd_core.verifiers.kseq import KSeq
from mdsd_core.verifiers.node import Verdict
from mdsd_core.verifiers.optimal import Optimal
from mdsd_core.verifiers.recursive_rejection.with_replacement import RecursiveRejection
from mdsd_core.verifiers.recursive_rejection.without_replacement import RecursiveRejectionWithout
from mdsd_core.verifiers.spechub import SpecHub
from mdsd_core.verifiers.token_matching import TokenMatching

__all__ = [
    "DeterministicChildren",
    "Estimate",
    "KSeq",
    "Optimal",
    "RecursiveRejection",
    "RecursiveRejectionWithout",
    "SpecHub",
    "TokenMatching",
    "UniformSource",
    "UnsupportedScheme",
    "Verdict",
    "VerificationPlan",
    "Verifier",
    "verifier",
    "verifiers_for",
]
