"""States: which drafts have arrived, as polynomials at the nodes of a quadrature.

Let R hold each token x independently with probability F_x, its *inclusion*: the probability that x draws a segment
below a given key. All that a nest needs of the law of the drafts S is ``Qhat(F) = P(S inside R)`` and its derivatives.
For the laws of this library it has the form

    Qhat(F) = sum_j weight_j [z^n] eps-part of  prod_x (left_x (1 + eps rate_x) + z gone_x F_x (1 + eps bonus_x))

at nodes t_j, with ``eps^2 = 0``, ``left_x = exp(-survival_x t_j)`` and ``gone_x = 1 - left_x``. In the exponential
race (token x arrives at an Exp(q_x) time, the first n arrivals are drafted) the plain coefficient of z^m says
"exactly m tokens have arrived by t, all of them in R", and the eps-part multiplies by the rate of those that have not
arrived.

A *state* is such a product over some of the tokens: an array [2, n + 1, J] of its coefficients of z^0..z^n at the J
nodes, the plain part P first, then the eps-part D. Every entry is >= 0: nothing cancels.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mdsd_core._jit import inner_kernel

Floats = NDArray[np.float64]


class Law(NamedTuple):
    """What the kernels know of the law of the drafts.

    Attributes
    ----------
    drafts : int
        n, the degree of the states.
    race : float
        1 if a token that has not arrived has the rate `survival` (the exponential race), 0 if it has none.
    start : float
        The eps-part of no token at all: 0, or 1 for a law without rates, whose D repeats P.
    doubling : int
        ``time[j + doubling] = 2 time[j]``.
    time, weight : ndarray, shape [J]
        Nodes and weights.
    powers : ndarray, shape [degree + 1, J]
        Powers of ``time`` times unit, the weight that a series takes as 1.
    degree, spread : int
        The shape of a series; see :mod:`mdsd_core.transport.nest.series`.
    """

    drafts: int
    race: float
    start: float
    doubling: int
    time: Floats
    weight: Floats
    powers: Floats
    degree: int
    spread: int


class Tokens(NamedTuple):
    """The tokens in ascending order of p/w ("rank order"), arrays of shape [m].

    Attributes
    ----------
    size : ndarray
        The weight of the token in the unit of a series; above 1/2 it is too large for one and stands *alone*.
    survival : ndarray
        ``exp(-survival t)`` is the factor of "not arrived by t": a rate. Sums of it over ranks are called mass here.
    bonus : ndarray
        The eps-part that an arrived token brings, relative to its plain part.
    slope : ndarray
        `bonus` less the rate of the token before it arrives.
    """

    size: Floats
    survival: Floats
    bonus: Floats
    slope: Floats


class Scratch(NamedTuple):
    """Arrays that any kernel may overwrite: nothing in them outlasts a call, but for the walker.

    Attributes
    ----------
    gone, left, weight, outer, portion : ndarray, shape [J]
        One number a node each: arrivals, their complements, and weights of integrals.
    rows, factor : ndarray, shape [2, J] and [2, degree + 1, J]
        Moments and coefficients at the nodes, plain part first.
    pair, step, table : ndarray, shape [degree + 1, spread + 1, 4]
        A pair of series, what the token in hand adds to them, and a pair of tables
        (:mod:`mdsd_core.transport.nest.series`).
    walker : ndarray, shape [degree + 1, spread + 1, 4]
        A series that stays between calls; see :func:`mdsd_core.transport.nest.chain.walk`.
    """

    gone: Floats
    left: Floats
    weight: Floats
    outer: Floats
    portion: Floats
    rows: Floats
    factor: Floats
    pair: Floats
    step: Floats
    table: Floats
    walker: Floats


def new_states(law: Law, *shape: int) -> Floats:
    """An array for one state, or for as many as `shape` says; not yet written."""
    return np.empty((*shape, 2, law.drafts + 1, law.time.size))


def new_scratch(law: Law) -> Scratch:
    """Scratch arrays for a law."""
    J = law.time.size
    gone, left, weight, outer, portion = np.empty((5, J))
    pair, step, table, walker = np.zeros((4, law.degree + 1, law.spread + 1, 4))
    rows, factor = np.empty((2, J)), np.empty((2, law.degree + 1, J))
    return Scratch(gone, left, weight, outer, portion, rows, factor, pair, step, table, walker)


@inner_kernel
def alone(x, tokens):
    """True for a token that is treated by itself, at every node."""
    return tokens.size[x] > 0.5


@inner_kernel
def copy_state(source, out):
    """``out = source`` for arrays of three axes."""
    for a in range(source.shape[0]):
        for b in range(source.shape[1]):
            for c in range(source.shape[2]):
                out[a, b, c] = source[a, b, c]


@inner_kernel
def set_empty(state, start):
    """The state of no token, with eps-part `start`."""
    for m in range(state.shape[1]):
        for j in range(state.shape[2]):
            state[0, m, j] = 1.0 if m == 0 else 0.0
            state[1, m, j] = start if m == 0 else 0.0


@inner_kernel
def fill_arrivals(survival, law, gone, left):
    """``gone = 1 - exp(-survival t)`` and ``left = exp(-survival t)`` at all nodes, each to full relative accuracy.

    By doubling: from t to 2t, ``gone (2 - gone)``; and ``left^2``, or ``1 - gone`` while that is the more accurate.
    """
    first = min(law.doubling, law.time.size)
    for j in range(first):
        gone[j] = -np.expm1(-survival * law.time[j])
        left[j] = np.exp(-survival * law.time[j])
    for j in range(first, law.time.size):
        half = j - first
        gone[j] = gone[half] * (2.0 - gone[half])
        left[j] = left[half] * left[half] if left[half] < 0.75 else 1.0 - gone[j]


@inner_kernel
def multiply_token(state, share, rate, bonus, gone, left):
    """Multiply a state by the factor of one token, whose arrivals are `gone` and `left`, at inclusion `share`."""
    for m in range(state.shape[1] - 1, 0, -1):
        for j in range(gone.size):
            arrived = share * gone[j]
            P, below = state[0, m, j], state[0, m - 1, j]
            state[1, m, j] = (state[1, m, j] + rate * P) * left[j] + arrived * (state[1, m - 1, j] + bonus * below)
            state[0, m, j] = P * left[j] + arrived * below
    for j in range(gone.size):
        state[1, 0, j] = (state[1, 0, j] + rate * state[0, 0, j]) * left[j]
        state[0, 0, j] *= left[j]


@inner_kernel
def coefficient(A, B, top, rate, weight):
    """``sum_j weight_j [z^top] eps-part of A B (1 + eps rate)``."""
    total = 0.0
    for i in range(top + 1):
        for j in range(weight.size):
            low, high = A[0, i, j], B[0, top - i, j]
            total += weight[j] * (low * B[1, top - i, j] + (A[1, i, j] + rate * low) * high)
    return total


@inner_kernel
def multiply_row(row, factor):
    """``row *= factor``."""
    for j in range(row.size):
        row[j] *= factor[j]


@inner_kernel
def fill_weight(survival, law, gone, left, weight):
    """The weights of an integral in which tokens of this `survival` in all have not arrived."""
    fill_arrivals(survival, law, gone, left)
    for j in range(law.time.size):
        weight[j] = law.weight[j] * left[j]


@inner_kernel
def fill_derivative_weight(x, survival, tokens, law, gone, left, weight):
    """The weights of the derivative of such an integral with respect to the inclusion of token x."""
    fill_weight(survival, law, gone, left, weight)
    fill_arrivals(tokens.survival[x], law, gone, left)
    multiply_row(weight, gone)
