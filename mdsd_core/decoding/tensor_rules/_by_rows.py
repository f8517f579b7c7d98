"""A batch judged row by row on the host by the verifier itself: rules that sort, and those with little to gain."""

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mdsd_core.schemes import NO_DRAFT, Scheme
from mdsd_core.verifiers import Verifier


class _Columns:
    """A source that plays the uniforms of one row."""

    def __init__(self, values: list[float]) -> None:
        self.values, self.used = values, 0

    def random(self) -> float:
        """The next uniform."""
        self.used += 1
        return self.values[self.used - 1]


class _Row:
    """One row of a batch: its plan and its drafts; errors name the row."""

    def __init__(self, rule: Verifier, p: Any, q: Any, ids: NDArray[np.int64], scheme: Scheme, row: int) -> None:
        self.row = row
        n = scheme.drafts
        with self:
            if (ids[n:] != NO_DRAFT).any():
                raise ValueError(f"drafts must hold {n} ids and then only {NO_DRAFT}, got {ids.tolist()}")
            self.plan, self.drafts = rule.prepare(p, q, scheme), ids[:n]

    def __enter__(self) -> "_Row":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, ValueError):
            raise ValueError(f"row {self.row}: {error}") from None


def _rows(rule: Verifier, p: Tensor, q: Tensor, drafts: Tensor, schemes: Sequence[Scheme]) -> Iterator[_Row]:
    host_p, host_q = (x.cpu() if x.dtype == torch.bfloat16 else x.cpu().numpy() for x in (p.detach(), q.detach()))
    host_drafts = drafts.cpu().numpy()
    for i, scheme in enumerate(schemes):
        yield _Row(rule, host_p[i], host_q[i], host_drafts[i], scheme, i)


def verify(
    rule: Verifier, p: Tensor, q: Tensor, drafts: Tensor, schemes: Sequence[Scheme], u: Tensor
) -> tuple[Tensor, Tensor]:
    """Tokens and uniforms used, both [B], on the device of p."""
    tokens, used = [], []
    for row, values in zip(_rows(rule, p, q, drafts, schemes), u.cpu().tolist()):
        source = _Columns(values)
        with row:
            tokens.append(row.plan.verify(row.drafts, source).token)
        used.append(source.used)
    return torch.tensor(tokens, device=p.device).long(), torch.tensor(used, device=p.device).long()


def output_law(rule: Verifier, p: Tensor, q: Tensor, drafts: Tensor, schemes: Sequence[Scheme]) -> Tensor:
    """The laws of the emitted tokens, [B, V], on the device of p."""
    laws = torch.empty(p.shape, dtype=torch.float64)
    for i, row in enumerate(_rows(rule, p, q, drafts, schemes)):
        with row:
            laws[i] = torch.from_numpy(row.plan.output_law(row.drafts))
    return laws.to(p.device)
