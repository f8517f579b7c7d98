"""Two laws that are both called "without replacement", and what confusing them does to the bound."""

from dataclasses import dataclass

from numpy.typing import ArrayLike

from mdsd_core.schemes import DistinctConditioned, WithoutReplacement
from mdsd_core.transport.subset import optimal_acceptance


@dataclass(frozen=True)
class WithoutReplacementGap:
    """The optimal acceptance rate of one step under the two laws.

    Attributes
    ----------
    sequential : float
        The bound for drafts as samplers draw them: one after the other, without the tokens drawn before.
    generating_function : float
        The value of the generating-function formula, which is the bound for independent drafts *conditioned on being
        different*.

    Examples
    --------
    >>> round(WithoutReplacementGap(0.75, 0.5).difference, 12)
    -0.25
    """

    sequential: float
    generating_function: float

    @property
    def difference(self) -> float:
        """What the formula overstates (or, negative, understates) the bound of sequential drafts by."""
        return self.generating_function - self.sequential


def without_replacement_gap(p: ArrayLike, q: ArrayLike, n: int) -> WithoutReplacementGap:
    """Measure how far the generating-function value is from the bound of drafts sampled sequentially.

    Parameters
    ----------
    p, q : array_like, shape (V,)
        Target and draft distribution.
    n : int
        The number of drafts.

    Returns
    -------
    WithoutReplacementGap

    Notes
    -----
    The formula, ``Q(H) = [t^n] prod_{x in H} (1 + q_x t) / [t^n] prod_x (1 + q_x t)`` (a rendering of Hu
    et al., arXiv 2502.18779), is exact for :class:`~mdsd_core.schemes.DistinctConditioned`. Set against verifiers of
    sequential drafts it is no bound: it lies below what some of them accept, or above what any of them could. The two
    agree for n = 1 and where q is uniform on its support.

    Examples
    --------
    >>> gap = without_replacement_gap([1.0, 0.0, 0.0], [0.8, 0.1, 0.1], 2)
    >>> round(gap.sequential, 6), round(gap.generating_function, 6)
    (0.977778, 0.941176)
    """
    return WithoutReplacementGap(
        optimal_acceptance(p, q, WithoutReplacement(n)).rate, optimal_acceptance(p, q, DistinctConditioned(n)).rate
    )
