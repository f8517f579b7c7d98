"""A batch of nodes: distributions, fixed and sampled drafts, one row each, checked."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mdsd_core.decoding.tensor_rules._blocks import block_sums, top_tokens
from mdsd_core.distributions import SUM_TOLERANCE, check_distribution
from mdsd_core.schemes import NO_DRAFT, Scheme

#: Scale of the weights of the drafts, as in the verifiers: 1/w stays in the range of float64 for subnormal w.
LIFT = 2.0**64


@dataclass(frozen=True, eq=False)
class Nodes:
    """B nodes of one vocabulary; row i of every tensor belongs to node i and to no other.

    Attributes
    ----------
    p, q : Tensor of float64, shape [B, V]
        Target and draft distributions. Nothing is normalised: the rules use the sums.
    p_sums, q_sums : Tensor, shape [B, blocks]
        Sums over blocks of tokens.
    drafts : Tensor of int64, shape [B, N]
        In the order drawn, -1 pads.
    fixed : Tensor of int64, shape [B, M]
        The fixed set of each row's scheme, -1 pads; M is 0 if no scheme has one.
    sampled : Tensor of int64, shape [B, K]
        The drafts that are not fixed, in the order drawn, -1 pads.
    count : Tensor of int64, shape [B]
        How many they are.
    """

    p: Tensor
    q: Tensor
    p_sums: Tensor
    q_sums: Tensor
    drafts: Tensor
    fixed: Tensor
    sampled: Tensor
    count: Tensor

    @classmethod
    def of(cls, p: Tensor, q: Tensor, drafts: Tensor, schemes: Sequence[Scheme]) -> "Nodes":
        """Split the drafts. Four passes over [B, V] or fewer; copies only what is not float64."""
        device = p.device
        p, q, drafts = p.double(), q.double(), drafts.long()
        tops = [scheme.fixed_drafts for scheme in schemes]
        most = min(max(tops, default=0), p.shape[1])
        if most:
            fixed = top_tokens(q, torch.tensor(tops, device=device), most)
            free = (drafts >= 0) & ~(drafts[:, :, None] == fixed[:, None, :]).any(dim=-1)
            width = max(scheme.drafts - m for scheme, m in zip(schemes, tops))
            # stable: the sampled drafts come first, in the order drawn
            order = (~free).to(torch.uint8).argsort(dim=1, stable=True)[:, :width]
            sampled = torch.where(free.gather(1, order), drafts.gather(1, order), -1)
        else:
            fixed = drafts.new_empty((len(drafts), 0))
            sampled = drafts
        return cls(p, q, block_sums(p), block_sums(q), drafts, fixed, sampled, (sampled >= 0).sum(dim=1))

    def weights(self) -> tuple[Tensor, Tensor]:
        """The weights w of the sampled drafts, [B, V], 0 on the fixed set and scaled by LIFT; their block sums."""
        w = self.q * LIFT
        if self.fixed.shape[1] == 0:
            return w, self.q_sums * LIFT
        first = self.fixed[:, :1]  # stands in for missing ones; a row without a fixed set gets back what it has
        index = torch.where(self.fixed >= 0, self.fixed, first).clamp(min=0)
        w.scatter_(1, index, torch.where(first >= 0, 0.0, w.gather(1, index)))
        return w, block_sums(w)


def check_shapes(p: Tensor, q: Tensor, drafts: Tensor, schemes: Scheme | Sequence[Scheme]) -> list[Scheme]:
    """One scheme for every row, if types, shapes and devices fit together, else an error. Looks at no entry."""
    for name, x in (("p", p), ("q", q), ("drafts", drafts)):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name} must be a torch tensor, got {type(x).__name__}")
        if x.ndim != 2:
            raise ValueError(f"{name} must have 2 axes, [B, V] or [B, n], got shape {tuple(x.shape)}")
        if x.device != p.device:
            raise ValueError(f"{name} must be on the device of p, {p.device}, got {x.device}")
    for name, x in (("p", p), ("q", q)):
        if not x.dtype.is_floating_point:
            raise TypeError(f"{name} must hold real floating-point numbers, got {x.dtype}")
    if p.shape != q.shape or p.shape[1] == 0:
        raise ValueError(f"p and q must have one shape [B, V] with V >= 1, got {tuple(p.shape)} and {tuple(q.shape)}")
    if drafts.dtype not in (torch.int64, torch.int32, torch.int16, torch.int8):
        raise TypeError(f"drafts must hold integers, got {drafts.dtype}")
    rows = [schemes] * len(p) if isinstance(schemes, Scheme) else list(schemes)
    for i, scheme in enumerate(rows):
        if not isinstance(scheme, Scheme):
            raise TypeError(f"schemes must be a Scheme or one for each row, got {scheme!r} for row {i}")
    if len(rows) != len(p) or len(drafts) != len(p):
        raise ValueError(
            f"drafts and schemes must have a row for each of the {len(p)} rows of p, got {len(drafts)} and {len(rows)}"
        )
    wide = max((scheme.drafts for scheme in rows), default=drafts.shape[1])
    if drafts.shape[1] < wide:
        raise ValueError(f"drafts must have at least {wide} columns, as many as the largest n, got {drafts.shape[1]}")
    return rows


def check_values(p: Tensor, q: Tensor, nodes: Nodes, schemes: Sequence[Scheme]) -> None:
    """Raise for the first row whose numbers are wrong; `p` and `q` are as they were given.

    Asks the device once, and then only about rows that are not right beyond doubt.
    """
    good = _sums_to_one(nodes.p, nodes.p_sums, p.dtype) & _sums_to_one(nodes.q, nodes.q_sums, q.dtype)
    good &= _drafts_possible(nodes, schemes)
    if bool(good.all()):
        return
    for i in (~good).nonzero()[:, 0].tolist():
        try:
            check_distribution(p[i], "p")
            row_q = check_distribution(q[i], "q")
            row = own_drafts(nodes.drafts[i].cpu().numpy(), schemes[i])
            schemes[i].check_drafts(row_q, row)  # allows fewer drafts where the support is too small
        except ValueError as error:
            raise ValueError(f"row {i}: {error}") from None


def own_drafts(row: NDArray[np.int64], scheme: Scheme) -> NDArray[np.int64]:
    """The drafts of a row without the padding behind them. Raises ValueError if anything else stands there."""
    n = scheme.drafts
    if (row[n:] != NO_DRAFT).any():
        raise ValueError(f"drafts must hold {n} ids and then only {NO_DRAFT}, got {row.tolist()}")
    return row[:n]


def check_uniforms(uniforms: Tensor, p: Tensor, needed: Sequence[int], *, values: bool) -> None:
    """Raise unless `uniforms` is float64 in [0, 1) (if `values`), with enough columns, on the device of p."""
    if uniforms.dtype != torch.float64:
        raise TypeError(f"uniforms must be float64, got {uniforms.dtype}")
    wide = max(needed, default=0)
    if uniforms.ndim != 2 or len(uniforms) != len(p) or uniforms.shape[1] < wide:
        raise ValueError(f"uniforms must have shape [{len(p)}, {wide} or more], got {tuple(uniforms.shape)}")
    if uniforms.device != p.device:
        raise ValueError(f"uniforms must be on the device of p, {p.device}, got {uniforms.device}")
    if values:
        bad = ~((uniforms >= 0.0) & (uniforms < 1.0)).all(dim=1)
        if bool(bad.any()):
            row = int(bad.nonzero()[0, 0])
            raise ValueError(f"row {row}: uniforms must lie in [0, 1), got {uniforms[row].tolist()}")


def _sums_to_one(x: Tensor, sums: Tensor, given: torch.dtype) -> Tensor:
    """True for rows within the tolerance of the type they were `given` in; ``check_distribution`` may allow more."""
    off = SUM_TOLERANCE.get(str(given).removeprefix("torch."), SUM_TOLERANCE["float64"])
    # NaN and infinity make the sum so, and no comparison with NaN holds
    return ((sums.sum(dim=1) - 1.0).abs() <= off) & (x.amin(dim=1) >= 0.0)


def _drafts_possible(nodes: Nodes, schemes: Sequence[Scheme]) -> Tensor:
    """True for rows with n drafts that are a possible draw; False for others, possible or not."""
    drafts, V = nodes.drafts, nodes.p.shape[1]
    n = torch.tensor([scheme.drafts for scheme in schemes], device=drafts.device)
    distinct = torch.tensor([scheme.distinct for scheme in schemes], device=drafts.device)
    inside = torch.arange(drafts.shape[1], device=drafts.device) < n[:, None]
    real = (drafts >= 0) & (drafts < V)
    good = torch.where(inside, real, drafts == -1).all(dim=1)
    good &= ((nodes.q.gather(1, drafts.clamp(0, V - 1)) > 0.0) | ~inside).all(dim=1)
    same = (drafts[:, :, None] == drafts[:, None, :]).tril(-1) & inside[:, :, None] & inside[:, None, :]
    good &= ~(distinct & same.flatten(1).any(dim=1))
    if nodes.fixed.shape[1]:
        tops = torch.tensor([scheme.fixed_drafts for scheme in schemes], device=drafts.device)
        held = ((drafts[:, :, None] == nodes.fixed[:, None, :]) & inside[:, :, None]).sum(dim=1)
        good &= ((held == 1) | (nodes.fixed < 0)).all(dim=1) & ((nodes.fixed >= 0).sum(dim=1) == tops)
    return good
