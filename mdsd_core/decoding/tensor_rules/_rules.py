"""The verifiers on tensors: every function judges all rows of a batch and gives (tokens, uniforms used), both [B].

A rule takes its uniforms from the columns of `u`, [B, K], in the order in which the verifier of the same name draws
them. Formulae and names are those of :mod:`mdsd_core.verifiers`, with one difference: p and q are not normalised, so
the mass that is left of p starts as its sum. Nothing here asks the device for a value, so on a GPU no rule waits for
it.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from mdsd_core.decoding.tensor_rules._blocks import block_sums, draw, pick, without
from mdsd_core.decoding.tensor_rules._nodes import Nodes

#: Tokens and uniforms used, both [B].
Decided = tuple[Tensor, Tensor]

#: Steps of the search for K-SEQ's rho where it cannot be asked whether they suffice. Any rho above the root is
#: lossless, and after so many steps none is more than some units in the last place above it.
_STEPS = 64


def residual(p: Tensor, w: Tensor, level: Tensor) -> Tensor:
    """``(p - l w)_+``, [B, V]."""
    return torch.addcmul(p, w, level[:, None], value=-1.0).clamp_(min=0.0)


def draw_from(weights: Tensor, u: Tensor) -> Tensor:
    """A token drawn by each row of weights, [B]; -1 where they are all 0."""
    return draw(weights, block_sums(weights), u)


def _target_if_empty(nodes: Nodes, u: Tensor, token: Tensor, last: Tensor, used: Tensor, open_: Tensor) -> Decided:
    """The token where the residual is empty, as :meth:`mdsd_core.verifiers.node.Node.draw_from` has it.

    Its mass was lost to rounding, so the last draft judged was certain; should the target give that draft nothing, the
    token is drawn from the target with one more uniform.
    """
    empty = open_ & (token < 0)
    certain = pick(nodes.p, last.clamp(min=0)) > 0.0
    again = empty & ~certain
    other = draw(nodes.p, nodes.p_sums, pick(u, used.clamp(max=u.shape[1] - 1)))
    return torch.where(empty, torch.where(certain, last, other), token), used + again


def recursive_rejection(nodes: Nodes, u: Tensor, replacement: bool) -> Decided:
    """RRS with or without replacement:
    :class:`mdsd_core.verifiers.recursive_rejection.with_replacement.RecursiveRejectionPlan`.
    """
    p = nodes.p
    w, w_sums = nodes.weights()
    level, mass, rest = torch.zeros_like(w_sums[:, 0]), nodes.p_sums.sum(dim=1), w_sums.sum(dim=1)
    token = torch.full_like(nodes.count, -1)
    used = torch.zeros_like(nodes.count)
    judging = nodes.count > 0
    for j in range(nodes.sampled.shape[1]):
        judged = judging & (j < nodes.count)
        x = nodes.sampled[:, j].clamp(min=0)
        of_x = pick(w, x)
        weight = pick(p, x) - level * of_x
        accepted = judged & (u[:, j] * (mass * (of_x / rest)) < weight)
        used += judged
        rejected = judged & ~accepted
        next_level = level + mass / rest
        next_mass = residual(p, w, next_level).sum(dim=1)
        # The target's mass is used up: in exact arithmetic this draft was accepted with certainty. If the target gives
        # it nothing (rounding drew it), the residual before it still has mass.
        used_up = rejected & (next_mass == 0.0)
        token = torch.where(accepted | (used_up & (weight > 0.0)), x, token)
        judging = rejected & ~used_up
        level, mass = torch.where(judging, next_level, level), torch.where(judging, next_mass, mass)
        if not replacement and j + 1 < nodes.sampled.shape[1]:
            rest = without(w, w_sums, nodes.sampled[:, : j + 1]).sum(dim=1)
    open_ = token < 0
    left = draw_from(residual(p, w, level), pick(u, used))
    return torch.where(open_, left, token), used + open_


def kseq(nodes: Nodes, u: Tensor) -> Decided:
    """K-SEQ: :class:`mdsd_core.verifiers.kseq.KSeqPlan`."""
    p, k = nodes.p, nodes.count
    w, w_sums = nodes.weights()
    total = w_sums.sum(dim=1)
    scale = nodes.p_sums.sum(dim=1) / torch.where(total > 0.0, total, 1.0)  # of w, so that it sums to what p sums to
    rho, beta = _solve_rho(nodes, w, scale)
    token = torch.full_like(k, -1)
    used = torch.zeros_like(k)
    for j in range(nodes.sampled.shape[1]):
        judged = (token < 0) & (j < k)
        x = nodes.sampled[:, j].clamp(min=0)
        passed = judged & (u[:, j] * (rho * (scale * pick(w, x))) < pick(p, x))
        token = torch.where(passed, x, token)
        used += judged
    open_ = token < 0
    share = torch.where(beta > 0.0, -torch.expm1(k * torch.log1p(-beta)) / beta, 0.0)

    taken = torch.minimum((share / rho)[:, None] * p, (share * scale)[:, None] * w)
    drawn = draw_from(torch.sub(p, taken, out=taken).clamp_(min=0.0), pick(u, used))
    last = nodes.sampled.gather(1, (k[:, None] - 1).clamp(min=0))[:, 0] if nodes.sampled.shape[1] else drawn
    drawn, used = _target_if_empty(nodes, u, drawn, last, used + open_, open_)
    return torch.where(open_, drawn, token), used


def _solve_rho(nodes: Nodes, w: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """K-SEQ's rho (the upper end of a bracket of ``1 - (1 - beta)^k = rho beta``) and beta, both [B].

    The search of ``mdsd_core/verifiers/kseq.py``, with a fixed number of steps for all rows. That one stops where the
    bracket is narrow enough, which a row here cannot know without waiting for the device.
    """
    p, k = nodes.p, nodes.count
    mass = nodes.p_sums.sum(dim=1)

    def within(rho: Tensor) -> Tensor:  # rho beta(rho)
        scaled = w * (rho * scale)[:, None]
        return torch.minimum(scaled, p, out=scaled).sum(dim=1) / mass

    def excess(rho: Tensor) -> Tensor:  # positive below the root
        inside = within(rho)
        return -torch.expm1(k * torch.log1p(-(inside / rho).clamp(max=1.0 - 2.0**-53))) - inside

    low = torch.ones_like(mass)
    high = k.double().clamp(min=1.0)
    need = k > 1
    at_low, at_high = excess(low), excess(high)
    high = torch.where(need & (at_low > 0.0), high, low)
    for step in range(_STEPS):
        need = high - low > 4e-16 * high
        # regula falsi with the Illinois weights, a bisection every third step
        middle = 0.5 * (low + high)
        rho = middle
        if step % 3 < 2:
            line = (high * at_low - low * at_high) / (at_low - at_high)
            rho = torch.where((at_low > at_high) & (line > low) & (line < high), line, middle)
        here = excess(rho)
        below, above = need & (here > 0.0), need & (here <= 0.0)
        at_low, at_high = (
            torch.where(below, here, torch.where(above, 0.5 * at_low, at_low)),
            torch.where(above, here, torch.where(below, 0.5 * at_high, at_high)),
        )
        low, high = torch.where(below, rho, low), torch.where(above, rho, high)
    return high, torch.where(k > 0, within(high) / high, 0.0).clamp(max=1.0)


def spechub(nodes: Nodes, u: Tensor) -> Decided:
    """SpecHub: :class:`mdsd_core.verifiers.spechub.SpecHubPlan`."""
    p, q = nodes.p, nodes.q
    w, w_sums = nodes.weights()
    of_p, of_q, total = nodes.p_sums.sum(dim=1), nodes.q_sums.sum(dim=1), w_sums.sum(dim=1)
    paired = nodes.count > 0
    hub, x = nodes.fixed[:, 0], nodes.sampled[:, 0]
    at_x = x.clamp(min=0)
    drawn, wanted = pick(q, at_x) / of_q, pick(p, at_x) / of_p
    hub_first = nodes.drafts[:, 0] == hub  # (hub, x) serves what (x, hub) could not
    wanted = torch.where(hub_first, wanted - drawn, wanted)
    both = pick(w, at_x) / torch.where(paired, total, 1.0)
    drawn = torch.where(hub_first, pick(q, hub.clamp(min=0)) / of_q * both, drawn)
    accepted = paired & (u[:, 0] * drawn < wanted)
    used = paired.long()
    level = torch.where(paired, of_p / total, 0.0)
    open_ = ~accepted
    left = draw_from(residual(p, w, level), pick(u, used))
    left, used = _target_if_empty(nodes, u, left, x, used + open_, open_)
    return torch.where(accepted, x, left), used


def deterministic(nodes: Nodes, u: Tensor) -> Decided:
    """Zero and renormalise: :class:`mdsd_core.verifiers.deterministic.ChildrenPlan`."""
    p, children = nodes.p, nodes.drafts
    token, used = torch.full_like(nodes.count, -1), torch.zeros_like(nodes.count)
    sums, mass = nodes.p_sums, nodes.p_sums.sum(dim=1)
    for j in range(children.shape[1]):
        judged = (token < 0) & (children[:, j] >= 0)
        x = children[:, j].clamp(min=0)
        accepted = judged & (u[:, j] * mass < pick(p, x))
        used += judged
        sums = without(p, nodes.p_sums, children[:, : j + 1])
        mass = sums.sum(dim=1)
        # if the target has no other token left, this child was certain
        token = torch.where(accepted | (judged & (mass == 0.0)), x, token)
    open_ = token < 0
    return torch.where(open_, draw(p, sums, pick(u, used), gone=children), token), used + open_


def token_matching(nodes: Nodes, u: Tensor) -> Decided:
    """One draw from p for all drafts: :class:`mdsd_core.verifiers.token_matching.TokenMatchingPlan`."""
    return draw(nodes.p, nodes.p_sums, u[:, 0]), torch.ones_like(nodes.count)


#: The rules that run on tensors.
RULES: dict[str, Callable[[Nodes, Tensor], Decided]] = {
    "rrs": lambda nodes, u: recursive_rejection(nodes, u, replacement=True),
    "rrs_without": lambda nodes, u: recursive_rejection(nodes, u, replacement=False),
    "kseq": kseq,
    "spechub": spechub,
    "deterministic": deterministic,
    "token_matching": token_matching,
}
