"""The optimal plan of any scheme: by the curtain for independent drafts, by the nest for those without replacement."""

import numpy as np
from numpy.typing import ArrayLike

from mdsd_core.distributions import check_pair
from mdsd_core.schemes import Scheme
from mdsd_core.transport.curtain.coupling import left_curtain
from mdsd_core.transport.nest.plan import TOLERANCE, nested_plan
from mdsd_core.transport.priority import SelectionPlan


def has_plan(scheme: Scheme) -> bool:
    """True if :func:`optimal_plan` makes a plan for the scheme.

    >>> from mdsd_core.schemes import Deterministic, WithoutReplacement
    >>> has_plan(WithoutReplacement(3)), has_plan(Deterministic(2))
    (True, False)
    """
    return scheme.draws("independent") or scheme.draws("sequential") or scheme.draws("conditioned")


def optimal_plan(p: ArrayLike, q: ArrayLike, scheme: Scheme, tolerance: float = TOLERANCE) -> SelectionPlan:
    """The plan that selects a draft so that the optimal verifier accepts as often as any can.

    Parameters
    ----------
    p, q : array_like of float, shape [V]
        Target and draft distribution.
    scheme : Scheme
        The law of the drafts: any fixed set, and drafts sampled off it by any law of the library.
    tolerance : float
        For drafts without replacement: trades acceptance for time, see
        :func:`~mdsd_core.transport.nest.nested_plan`. Independent drafts lose nothing but rounding.

    Returns
    -------
    SelectionPlan

    Raises
    ------
    TypeError, ValueError
        If there is no plan for the scheme, or `p` and `q` are not distributions over one vocabulary.

    Notes
    -----
    Where at most one draft is sampled there is nothing to select; a plan is made all the same. Cost: O(V log V) for
    independent drafts; else see `nested_plan`.

    Source: new here, see :func:`~mdsd_core.transport.curtain.coupling.left_curtain` and
    :func:`~mdsd_core.transport.nest.nested_plan`.

    Examples
    --------
    >>> from mdsd_core.schemes import WithoutReplacement, WithReplacement
    >>> p, q = [0.2, 0.8], [0.5, 0.5]
    >>> optimal_plan(p, q, WithReplacement(2)).acceptance, optimal_plan(p, q, WithoutReplacement(2)).acceptance
    (0.95, 1.0)
    """
    if not has_plan(scheme):
        raise TypeError(f"scheme must be one that samples drafts by one law of them all, got {scheme!r}")
    if scheme.draws("independent"):
        p, q = check_pair(p, q)
        curtain = left_curtain(p, q, scheme)
        plan = curtain.plan()
        off = p[curtain.tokens]
        fixed = float(p[curtain.fixed].sum())
        acceptance = fixed + float(np.minimum(off, plan.marginal[curtain.tokens]).sum())
        bound = fixed + float(np.minimum(off, curtain.asked).sum())
        return SelectionPlan(plan, acceptance, bound, bound - acceptance)
    return nested_plan(p, q, scheme, tolerance)
