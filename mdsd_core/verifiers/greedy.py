"""The rule for greedy drafts (Hu et al.): one draft is sampled, the others cannot fail to be there."""

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mdsd_core.schemes import Scheme, TopThenSampled
from mdsd_core.verifiers._node import Node
from mdsd_core.verifiers.interface import Verifier, register
from mdsd_core.verifiers.recursive_rejection import RecursiveRejectionPlan


@register
class Greedy(Verifier):
    """The top-m tokens T and one draft off T: single-draft speculative sampling with the draft that was sampled.

    Its law is ``q/(1 - q(T))`` off T, 0 on T. It is accepted with probability ``min(1, p_x (1 - q(T))/q_x)``; else the
    token is drawn from ``(p - q/(1 - q(T)) off T)_+``, which keeps all of p on T: if it falls there, it is a draft too.
    No verifier of these drafts accepts more.

    References
    ----------
    Hu et al., "Towards Optimal Multi-draft Speculative Decoding", arXiv 2502.18779, section 5.

    Examples
    --------
    >>> from mdsd_core.schemes import greedy
    >>> Greedy().acceptance([0.7, 0, 0, 0, 0.3], [0.22, 0.2, 0.2, 0.2, 0.18], greedy(2))  # doctest: +ELLIPSIS
    0.930769...
    """

    name: ClassVar[str] = "greedy"

    def supports(self, scheme: Scheme) -> bool:
        """True for the top tokens and one sampled draft."""
        return isinstance(scheme, TopThenSampled) and scheme.sampled == 1

    def prepare(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> RecursiveRejectionPlan:
        """Recursive rejection with a single draft; see :meth:`Verifier.prepare`. O(V)."""
        return RecursiveRejectionPlan(Node.of(*self.checked(p, q, scheme), scheme), replacement=True)

    def acceptance(self, p: ArrayLike, q: ArrayLike, scheme: Scheme) -> float:
        """``p(T) + sum_x min(p_x, q_x/(1 - q(T)))`` over x off T, exact. O(V)."""
        node = Node.of(*self.checked(p, q, scheme), scheme)
        fixed = node.p[list(node.fixed)].sum()
        return float(fixed + np.minimum(node.p, node.w / node.total).sum()) if node.sampled else float(fixed)
