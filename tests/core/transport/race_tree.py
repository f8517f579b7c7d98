"""The law of the winner of a finished plan for sequential drafts, by an algorithm of its own.

A plan is a path of F from 0 to 1 in ascending order of keys; a move of token x adds its increase of Qhat to the mass of
x (the chapter on the nest). Here Qhat is a race integral over a *product tree*: its leaves are the factors of the
tokens, ``b (1 + eps q) + z a F``, and a move recomputes the products from one leaf to the root. Nothing is shared with
the library but the definition of the law: other nodes, no groups, no series, no chain.
"""

from math import lgamma

import numpy as np


def race_marginal(plan, q, n, per_octave):
    """r, shape [V], with `per_octave` nodes in each octave of time."""
    q = q / q.sum()
    rest = np.sort(q)[:-n].sum()
    first = (np.log(1e-17) + lgamma(n + 2)) / (n + 1)
    h = np.log(2.0) / per_octave
    t = np.exp(np.arange(first, np.log(60.0 / rest), h))
    gone, left = -np.expm1(-np.outer(q, t)), np.exp(-np.outer(q, t))

    size = 1 << (len(q) - 1).bit_length()
    tree = np.zeros((2 * size, 2, n + 1, t.size))  # plain part, then eps-part
    tree[size:, 0, 0] = 1.0
    leaves = slice(size, size + len(q))
    tree[leaves, 0, 0] = left
    tree[leaves, 1, 0] = q[:, None] * left
    for i in range(size - 1, 0, -1):
        multiply(tree[2 * i], tree[2 * i + 1], tree[i])

    row = np.repeat(np.arange(plan.start.size - 1), np.diff(plan.start))
    token = np.argsort(np.where(plan.row >= 0, plan.row, np.iinfo(np.int32).max))[row]
    r, before = np.zeros(len(q)), 0.0
    for i in np.argsort(plan.key):
        x = token[i]
        tree[size + x, 0, 1] = plan.cumulative[i] * gone[x]
        node = (size + x) // 2
        while node:
            multiply(tree[2 * node], tree[2 * node + 1], tree[node])
            node //= 2
        after = h * float(t @ tree[1, 1, n])
        r[x] += after - before
        before = after
    return r


def multiply(A, B, out):
    """The product of two dual polynomials, cut at the degree of `out`."""
    out[:] = 0.0
    for i in range(A.shape[1]):
        if A[0, i].any() or A[1, i].any():
            k = A.shape[1] - i
            out[0, i:] += A[0, i] * B[0, :k]
            out[1, i:] += A[0, i] * B[1, :k] + A[1, i] * B[0, :k]
