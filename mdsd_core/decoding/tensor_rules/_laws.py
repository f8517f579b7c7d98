"""Exact laws of the emitted tokens, by the textbook recursions on whole vectors: what the rules must follow, [B, V]."""

from collections.abc import Callable

import torch
from torch import Tensor

from mdsd_core.decoding.tensor_rules._blocks import pick
from mdsd_core.decoding.tensor_rules._nodes import Nodes
from mdsd_core.decoding.tensor_rules._rules import solve_rho


def _add(law: Tensor, x: Tensor, amount: Tensor) -> None:
    law.scatter_add_(1, x[:, None], amount[:, None])


def _normalised(weights: Tensor) -> tuple[Tensor, Tensor]:
    """Weights over their sum, and whether there is any (a row of zeros stays one)."""
    total = weights.sum(dim=1, keepdim=True)
    some = total > 0.0
    return weights / torch.where(some, total, 1.0), some[:, 0]


def _law_of_draw(nodes: Nodes, p: Tensor, weights: Tensor, last: Tensor) -> Tensor:
    """The law of a draw from a residual that may be empty: then the last draft, or p if the target gives it nothing."""
    law, some = _normalised(weights)
    at = last.clamp(min=0)
    certain = torch.zeros_like(p).scatter_(1, at[:, None], 1.0)
    return torch.where(some[:, None], law, torch.where((pick(p, at) > 0.0)[:, None], certain, p))


def recursive_rejection(nodes: Nodes, replacement: bool) -> Tensor:
    """The law of RRS."""
    r, _ = _normalised(nodes.p)
    w, _ = nodes.weights()
    law = torch.zeros_like(r)
    reach = torch.ones_like(r[:, 0])
    going = nodes.count > 0
    for j in range(nodes.sampled.shape[1]):
        judged = going & (j < nodes.count)
        x = nodes.sampled[:, j].clamp(min=0)
        proposal, _ = _normalised(w)
        chance = torch.where(judged, (pick(r, x) / pick(proposal, x)).clamp(max=1.0), 0.0)
        _add(law, x, reach * chance)
        reach = reach * (1.0 - chance)
        left, some = _normalised((r - proposal).clamp(min=0.0))
        going = judged & some
        r = torch.where(going[:, None], left, r)
        if not replacement:
            w.scatter_(1, x[:, None], torch.where(judged, 0.0, pick(w, x))[:, None])
    return law + reach[:, None] * r


def kseq(nodes: Nodes) -> Tensor:
    """The law of K-SEQ."""
    p, _ = _normalised(nodes.p)
    w, w_sums = nodes.weights()
    total = w_sums.sum(dim=1)
    rho, _ = solve_rho(nodes, w, nodes.p_sums.sum(dim=1) / torch.where(total > 0.0, total, 1.0))
    q, _ = _normalised(w)
    taken = torch.minimum(p / rho[:, None], q)  # the probability that a draft is x and accepted
    law, reach = torch.zeros_like(p), torch.ones_like(rho)
    one, tries, last = taken.sum(dim=1), torch.zeros_like(rho), torch.zeros_like(nodes.count)
    for j in range(nodes.sampled.shape[1]):
        judged = j < nodes.count
        last = torch.where(judged, nodes.sampled[:, j], last)
        at = last.clamp(min=0)
        chance = torch.where(judged, pick(taken, at) / pick(q, at), 0.0)
        _add(law, at, reach * chance)
        reach = reach * (1.0 - chance)
        tries = tries + torch.where(judged, (1.0 - one) ** j, 0.0)  # expected number of drafts judged
    left = (p - taken * tries[:, None]).clamp(min=0.0)
    return law + reach[:, None] * _law_of_draw(nodes, p, left, last)


def spechub(nodes: Nodes) -> Tensor:
    """The law of SpecHub, from the mass that flows from each pair to the draft that is not the hub."""
    p, _ = _normalised(nodes.p)
    q, _ = _normalised(nodes.q)
    both, _ = _normalised(nodes.weights()[0])  # of the two pairs with x together
    paired, hub = nodes.count > 0, nodes.fixed[:, 0]
    x = nodes.sampled[:, 0].clamp(min=0)
    first = torch.minimum(pick(p, x), pick(q, x))
    second = torch.minimum(pick(p, x), pick(both, x)) - first
    hub_first = nodes.drafts[:, 0] == hub
    flow = torch.where(hub_first, second, first)
    pair = torch.where(hub_first, pick(both, x) * pick(q, hub.clamp(min=0)), pick(q, x))
    accepted = torch.where(pair > 0.0, (flow / torch.where(pair > 0.0, pair, 1.0)).clamp(max=1.0), 0.0)
    law = (1.0 - accepted)[:, None] * _law_of_draw(nodes, p, (p - both).clamp(min=0.0), x)
    _add(law, x, accepted)
    return torch.where(paired[:, None], law, p)


def deterministic(nodes: Nodes) -> Tensor:
    """The law of zero-and-renormalise: p, for any children."""
    r, _ = _normalised(nodes.p)
    law, reach = torch.zeros_like(r), torch.ones_like(r[:, 0])
    for j in range(nodes.drafts.shape[1]):
        judged = (nodes.drafts[:, j] >= 0) & (reach > 0.0)
        x = nodes.drafts[:, j].clamp(min=0)
        chance = torch.where(judged, pick(r, x), 0.0)
        _add(law, x, reach * chance)
        left, some = _normalised(torch.where(judged[:, None], r.scatter(1, x[:, None], 0.0), r))
        reach = torch.where(some, reach * (1.0 - chance), 0.0)
        r = left
    return law + reach[:, None] * r


def token_matching(nodes: Nodes) -> Tensor:
    """p, for any drafts."""
    return _normalised(nodes.p)[0]


#: The law of each rule in ``_rules.RULES``.
LAWS: dict[str, Callable[[Nodes], Tensor]] = {
    "rrs": lambda nodes: recursive_rejection(nodes, replacement=True),
    "rrs_without": lambda nodes: recursive_rejection(nodes, replacement=False),
    "kseq": kseq,
    "spechub": spechub,
    "deterministic": deterministic,
    "token_matching": token_matching,
}
