"""How often a rule goes on at a given token of the target: the numbers that expected rounds are made of.

For a token y that the target emits at a node, the *accepted share* is ``P(the verifier emits y, and y is drafted) /
p_y``, and the *selected share* ``r_y / p_y``, r the law of the draft that the optimal plan selects.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mdsd_core.distributions import check_pair
from mdsd_core.schemes import Scheme
from mdsd_core.transport.marginal import optimal_marginal
from mdsd_core.verifiers import UnsupportedScheme, Verifier, verifier
from mdsd_core.verifiers.node import Node

#: Histories of rejections that stand for all of them, at RRS without replacement from three drafts on.
HISTORIES = 8


def accepted_share(
    rule: str | Verifier,
    p: ArrayLike,
    q: ArrayLike,
    scheme: Scheme,
    token: int,
    *,
    rng: np.random.Generator | None = None,
    histories: int = HISTORIES,
) -> float:
    """P(the verifier emits `token`, and it is one of the drafts) / p(token): how often its rounds go on there.

    Parameters
    ----------
    rule : str or Verifier
        Every verifier of the library, by name or itself. ``"optimal"`` is taken at its exact optimum.
    p, q : array_like, shape (V,)
        Target and draft distribution.
    scheme : Scheme
        The law of the drafts.
    token : int
        A token with ``p > 0``.
    rng : numpy.random.Generator, optional
        For RRS without replacement with three drafts or more, where histories of rejections are sampled.
    histories : int
        How many.

    Returns
    -------
    float
        In [0, 1]. Exact; for RRS without replacement from three drafts on an *unbiased estimate*, so that products over
        positions and sums over texts are unbiased too.

    Raises
    ------
    UnsupportedScheme
        If the rule is not lossless for the scheme.
    ValueError
        If the target never emits the token.

    Notes
    -----
    All rules but token matching emit a token either as an accepted draft or from a residual that holds no rejected
    draft, so the share is what the residual leaves: ``min(1, l q_y/p_y)`` for RRS with the level l of its last residual
    and for K-SEQ with ``l = rho``, ``min(1, r_y/p_y)`` for the optimal rule. O(V), a sort for the optimal rule.

    Examples
    --------
    >>> from mdsd_core.schemes import WithReplacement
    >>> shares = [accepted_share("rrs", [0.6, 0.4], [0.2, 0.8], WithReplacement(2), y) for y in (0, 1)]
    >>> round(0.6 * shares[0] + 0.4 * shares[1], 12)  # summed over the target's tokens: the acceptance
    0.68
    """
    p, q = check_pair(p, q)
    rule = verifier(rule) if isinstance(rule, str) else rule
    if not rule.supports(scheme):
        raise UnsupportedScheme(f"verifier {rule.name!r} is not lossless for drafts of {scheme!r}")
    _check_token(p, token)
    node = Node.of(p, q, scheme)
    if token in node.fixed:
        return 1.0
    if node.sampled == 0:
        return 0.0
    return min(1.0, rule.accepted_share(node, token, rng, histories))


def selected_share(p: ArrayLike, q: ArrayLike, scheme: Scheme, token: int) -> float:
    """``r_y / p_y``: how often the optimal plan selects `token`, against the target's probability; may exceed 1.

    r is optimal at every scale on the whole vocabulary, as the path rule of the decoding loop takes it.

    >>> from mdsd_core.schemes import WithReplacement
    >>> round(selected_share([0.8, 0.2], [0.5, 0.5], WithReplacement(2), 1), 12)  # r = (.75, .25)
    1.25
    """
    p, q = check_pair(p, q)
    _check_token(p, token)
    return float(optimal_marginal(p, q, scheme).r[token] / p[token])


def _check_token(p: NDArray[np.float64], token: int) -> None:
    if not 0 <= token < p.size or not p[token] > 0.0:
        raise ValueError(f"token must have a positive target probability, got token {token}")
