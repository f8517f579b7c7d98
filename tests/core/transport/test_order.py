"""The order by p/w: exact, ties by id, whatever the sort of the machine does."""

import math
from fractions import Fraction

import numpy as np
import pytest

from mdsd_core.transport import order as order_module
from mdsd_core.transport.order import ratio_order
from tests.instances import adversarial_pairs, dirichlet_pair, random_pairs, softmax_pair


def stable_order(p, w):
    tokens = np.flatnonzero(w)
    with np.errstate(over="ignore", under="ignore"):
        ratio = p[tokens] / w[tokens]
    if np.isfinite(ratio).all() and not ((ratio < 2.3e-308) & (p[tokens] > 0)).any():
        return tokens[np.argsort(ratio, kind="stable")]

    def key(x):
        """The ratio rounded to double precision, with an unlimited exponent."""
        (a, i), (b, j) = math.frexp(p[x]), math.frexp(w[x])
        mantissa, shift = math.frexp(a / b)
        return Fraction(mantissa) * Fraction(2) ** (i - j + shift)

    return np.array(sorted(tokens.tolist(), key=key))


def pairs():
    rng = np.random.default_rng(0)
    yield from adversarial_pairs().values()
    yield from random_pairs(1, 300)
    for V in (1000, 50_000):
        p, q = softmax_pair(rng, V)
        yield p, q
        yield p, p * (1 + 1e-12 * rng.normal(size=V))  # ratios that differ in their last bits only
        yield np.round(p, 4), np.round(q, 4)  # many ties, many zeros
        yield dirichlet_pair(rng, V, 0.01)
    tiny = 10.0 ** -rng.uniform(0, 320, 3000)
    yield tiny[:1500], tiny[1500:]


def test_order_is_the_stable_order_of_the_ratio():
    for p, w in pairs():
        p0, w0 = p.copy(), w.copy()
        result = ratio_order(p, w)
        np.testing.assert_array_equal(result.tokens, stable_order(p, w))
        np.testing.assert_array_equal(result.p, p[result.tokens])
        np.testing.assert_array_equal(result.w, w[result.tokens])
        assert (p == p0).all()
        assert (w == w0).all()


@pytest.mark.parametrize("patience", [0, 10**9])
def test_both_ways_of_repair_agree(monkeypatch, patience):
    """Nearly equal ratios are put right by insertion, and by a full sort where there are too many."""
    rng = np.random.default_rng(4)
    p = rng.random(2000)
    w = p * (1 + 1e-12 * rng.normal(size=2000))
    monkeypatch.setattr(order_module, "_PATIENCE", patience)
    np.testing.assert_array_equal(ratio_order(p, w).tokens, stable_order(p, w))


def test_nothing_to_sort():
    assert ratio_order(np.ones(3), np.zeros(3)).tokens.size == 0


def test_ratios_beyond_the_largest_double_still_have_an_order():
    w = np.array([1e-310, 1.0, 5e-324, 3e-310])
    p = np.array([0.5, 0.2, 0.1, 0.2])
    assert ratio_order(p, w).tokens.tolist() == [1, 3, 0, 2]
    assert ratio_order(w, p).tokens.tolist() == [2, 0, 3, 1]
