"""The schemes and pairs that all tests of verifiers share."""

import numpy as np

from mdsd_core.schemes import (
    Deterministic,
    DistinctConditioned,
    SpecHubPairs,
    TopThenSampled,
    WithoutReplacement,
    WithReplacement,
    odds,
)
from mdsd_core.verifiers import Verifier, verifier, verifiers_for
from tests.instances import adversarial_pairs, fewer, random_pairs


def schemes(n):
    """Every scheme with n drafts."""
    mixed = [TopThenSampled(m, n - m, replacement) for m in range(1, n) for replacement in {False, n - m > 1}]
    pairs = [SpecHubPairs()] if n == 2 else []
    return [
        WithReplacement(n),
        WithoutReplacement(n),
        DistinctConditioned(n),
        DistinctConditioned(n, odds),
        Deterministic(n),
        *mixed,
        *pairs,
    ]


def combinations(ns=(1, 2, 3, 4)):
    """Every (rule, scheme) that is claimed lossless."""
    return [(verifier(name), scheme) for n in ns for scheme in schemes(n) for name in verifiers_for(scheme)]


def label(value):
    return value.name if isinstance(value, Verifier) else str(value).replace("DistinctConditioned", "Conditioned")


_FIXED = list(adversarial_pairs().values())

#: All adversarial pairs and random ones with V = 1..6, fewer of the sizes that are dear to enumerate.
ALL_PAIRS = [
    *_FIXED,
    *random_pairs(41, 180, (1, 2, 3)),
    *random_pairs(42, 80, (4,)),
    *random_pairs(43, 15, (5,)),
    *random_pairs(44, 5, (6,)),
]

#: The same; without compiled kernels a few of the random ones.
PAIRS = [*_FIXED, *fewer(ALL_PAIRS[len(_FIXED) :], 14)]


def enumerated(plan, scheme, q):
    """The law of the emitted token and the acceptance, by enumeration of all drafts."""
    tuples, weights = scheme.enumerate(q)
    given = np.array([plan.output_law(drafts) for drafts in tuples])
    drafted = np.zeros((len(tuples), q.size + 1), dtype=bool)
    np.put_along_axis(drafted, tuples, True, axis=1)  # padding, -1, goes to the extra column
    return weights @ given, weights @ (given * drafted[:, : q.size]).sum(axis=1)
