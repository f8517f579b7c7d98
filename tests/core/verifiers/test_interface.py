"""The registry, what supports what, and the messages."""

import inspect

import numpy as np
import pytest

import mdsd_core.verifiers
from mdsd_core.schemes import (
    Deterministic,
    DistinctConditioned,
    SpecHubPairs,
    TopThenSampled,
    WithoutReplacement,
    WithReplacement,
    greedy,
)
from mdsd_core.verifiers import UnsupportedScheme, Verifier, verifier, verifiers_for
from mdsd_core.verifiers.interface import register
from tests.core.verifiers.cases import combinations, label, schemes

NAMES = {"deterministic", "greedy", "kseq", "optimal", "rrs", "rrs_without", "spechub", "token_matching"}

#: Scheme -> the rules (token matching apart, which takes everything) that must take its drafts, and no other one may.
SUPPORT = {
    WithReplacement(3): {"rrs", "kseq", "optimal"},
    WithoutReplacement(3): {"rrs_without", "optimal"},
    DistinctConditioned(3): {"optimal"},
    TopThenSampled(1, 2, replacement=True): {"rrs", "kseq", "optimal"},
    TopThenSampled(1, 2): {"rrs_without", "optimal"},
    greedy(3): {"greedy", "rrs", "rrs_without", "kseq", "optimal"},
    SpecHubPairs(): {"spechub", "optimal"},
    Deterministic(3): {"deterministic", "optimal"},
}


@pytest.mark.parametrize("scheme", SUPPORT, ids=label)
def test_support(scheme):
    assert set(verifiers_for(scheme)) == SUPPORT[scheme] | {"token_matching"}
    for name in NAMES:
        able = verifier(name).supports(scheme)
        assert able == (name in verifiers_for(scheme))
        for work in (verifier(name).prepare, verifier(name).acceptance):
            if not able:
                with pytest.raises(UnsupportedScheme) as caught:
                    work([0.5, 0.3, 0.1, 0.1], [0.25] * 4, scheme)
                message = str(caught.value)
                assert repr(scheme) in message
                assert name in message
                for other in verifiers_for(scheme):
                    assert other in message


def test_registry():
    for name in NAMES:
        assert verifier(name).name == name
    with pytest.raises(KeyError, match="token_matching"):
        verifier("rss")
    kept = verifier("rrs")
    register(type(kept))  # a module loaded again
    assert verifier("greedy").rule == "rrs"
    with pytest.raises(ValueError, match="two verifiers"):
        register(type("Other", (type(kept),), {}))
    assert type(verifier("rrs")) is type(kept)


def test_public_names_are_those_of_the_registry():
    rules = [
        value
        for value in (getattr(mdsd_core.verifiers, name) for name in mdsd_core.verifiers.__all__)
        if inspect.isclass(value) and issubclass(value, Verifier) and value is not Verifier
    ]
    assert {rule.name for rule in rules} >= NAMES - {"greedy"}  # another name of a rule


@pytest.mark.parametrize(("rule", "scheme"), combinations((2,)), ids=label)
def test_relabelling_the_tokens_changes_nothing(rule, scheme):
    rng = np.random.default_rng(1)
    p, q = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    order = rng.permutation(6)  # new id -> old id
    place = np.argsort(order)
    plain, moved = rule.prepare(p, q, scheme), rule.prepare(p[order], q[order], scheme)
    assert rule.acceptance(p, q, scheme) == pytest.approx(rule.acceptance(p[order], q[order], scheme), abs=1e-14)
    for drafts in scheme.enumerate(q)[0]:
        law = moved.output_law(place[drafts])
        np.testing.assert_allclose(law, plain.output_law(drafts)[order], atol=1e-13)


def test_every_scheme_has_a_verifier():
    for n in (1, 2, 3):
        for scheme in schemes(n):
            assert "token_matching" in verifiers_for(scheme)
