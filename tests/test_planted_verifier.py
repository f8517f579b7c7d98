"""A verifier that only this file and the registry know: every room takes it through what it supports."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from mdsd_core.decoding.tensor_rules import runs_on_tensors, verify
from mdsd_core.schemes import DistinctConditioned, TopThenSampled, WithoutReplacement, WithReplacement
from mdsd_core.transport.subset import optimal_acceptance
from mdsd_core.verifiers import UnsupportedScheme, Verifier, interface, verifier, verifiers_for
from mdsd_core.verifiers.interface import VerificationPlan, register
from mdsd_core.verifiers.node import Node
from mdsd_core.verifiers.residual import residual
from mdsd_study.analysis.acceptance_given_token import accepted_share
from mdsd_study.analysis.compare_settings import Contexts, compare_settings
from tests.core.verifiers.cases import enumerated
from tests.core.verifiers.test_losslessness import test_output_law_is_lossless_and_acceptance_exact as check_lossless
from tests.core.verifiers.test_losslessness import test_verify_follows_output_law as check_verify
from tests.decoding.test_losslessness import TREES, check_law
from tests.instances import random_pairs


@dataclass(frozen=True, eq=False)
class FirstPlan(VerificationPlan):
    node: Node

    def verify(self, drafts, rng):
        node = self.node
        row, sampled = node.rows(drafts)
        for x in sampled[:1]:
            if rng.random() * (node.w[x] / node.total) < node.p[x]:
                return node.emit(x, row)
        left = residual(node.p, node.w, 1.0 / node.total) if sampled else node.p
        return node.emit(node.draw_from(left, sampled[:1], rng), row)

    def output_law(self, drafts):
        node, law = self.node, np.zeros_like(self.node.p)
        _, sampled = node.rows(drafts)
        if not sampled:
            return node.p.copy()
        x, q = sampled[0], node.w / node.total
        law[x] = min(1.0, node.p[x] / q[x])
        return law + (1.0 - law[x]) * node.law_of_draw(np.maximum(node.p - q, 0.0), [x])


class First(Verifier):
    """Judge the first sampled draft only, by Leviathan's rule."""

    name = "first"

    def supports(self, scheme):
        return scheme.draws("independent") or scheme.draws("sequential")

    def prepare(self, p, q, scheme):
        return FirstPlan(Node.of(*self.checked(p, q, scheme), scheme))

    def acceptance(self, p, q, scheme):
        plan = self.prepare(p, q, scheme)
        return float(enumerated(plan, scheme, plan.node.q)[1])


@pytest.fixture(autouse=True)
def planted(monkeypatch):
    """The one line of the registry."""
    monkeypatch.setattr(interface, "_REGISTRY", dict(interface._REGISTRY))
    register(First)


SCHEMES = [WithReplacement(2), WithoutReplacement(2), TopThenSampled(1, 2), TopThenSampled(1, 2, True)]


def test_the_registry_knows_it_for_what_it_supports():
    assert all("first" in verifiers_for(scheme) for scheme in SCHEMES)
    with pytest.raises(UnsupportedScheme, match="'first' is not lossless"):
        verifier("first").prepare([0.5, 0.5], [0.5, 0.5], DistinctConditioned(2))


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_lossless_by_enumeration_and_below_the_bound(scheme):
    check_lossless(verifier("first"), scheme)
    check_verify(verifier("first"), scheme)
    for p, q in random_pairs(2, 20, (3, 4, 5)):
        assert verifier("first").acceptance(p, q, scheme) <= optimal_acceptance(p, q, scheme).rate + 1e-12


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_the_study_and_batches_take_it(scheme):
    for p, q in random_pairs(3, 5, (4,)):
        shares = [accepted_share("first", p, q, scheme, y) if p[y] > 0 else 0.0 for y in range(p.size)]
        assert float(p @ shares) == pytest.approx(verifier("first").acceptance(p, q, scheme), abs=1e-12)
        drafts = scheme.sample(q, np.random.default_rng(0))
        assert not runs_on_tensors("first", scheme)
        rows = (torch.from_numpy(x)[None] for x in (p, q, drafts))
        verdict = verify("first", *rows, scheme, [np.random.default_rng(1)])
        token = verifier("first").prepare(p, q, scheme).verify(drafts, np.random.default_rng(1)).token
        assert verdict.tokens.tolist() == [token]


def test_it_is_compared_with_the_others():
    contexts = Contexts.of_rows(np.array([[0.5, 0.3, 0.2]]), np.array([[0.2, 0.3, 0.5]]))
    rows = {s.scheme: s.acceptance.mean for s in compare_settings(contexts, [2]) if s.verifier == "first"}
    assert rows["with_replacement"] == verifier("first").acceptance(*contexts.pairs[0], WithReplacement(2))
    assert "distinct" not in rows


@pytest.mark.parametrize("scheme", ["with_replacement", "without_replacement", "greedy"])
def test_the_loop_takes_it(scheme):
    check_law(TREES["2"], scheme, "first", "node", 1, 0.0, 0.0)
