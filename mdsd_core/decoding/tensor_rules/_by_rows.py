"""A batch judged row by row on the host by the verifiers themselves."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mdsd_core.decoding.tensor_rules._nodes import own_drafts
from mdsd_core.schemes import Scheme
from mdsd_core.verifiers import Verifier


class _Uniforms:
    """Gives the uniforms of one row, in order, and counts them."""

    def __init__(self, values: list[float]) -> None:
        self.values, self.used = values, 0

    def random(self) -> float:
        """The next uniform."""
        self.used += 1
        return self.values[self.used - 1]


def verify(
    rule: Verifier, p: Tensor, q: Tensor, drafts: Tensor, schemes: Sequence[Scheme], u: Tensor
) -> tuple[Tensor, Tensor]:
    """Tokens and uniforms used, both [B], on the device of p. Errors name the row."""
    host_p, host_q = (x.cpu() if x.dtype == torch.bfloat16 else x.cpu().numpy() for x in (p.detach(), q.detach()))
    tokens, used = [], []
    for row, (ids, values) in enumerate(zip(drafts.cpu().numpy(), u.cpu().tolist())):
        source = _Uniforms(values)
        try:
            plan = rule.prepare(host_p[row], host_q[row], schemes[row])
            tokens.append(plan.verify(own_drafts(ids, schemes[row]), source).token)
        except ValueError as error:
            raise ValueError(f"row {row}: {error}") from None
        used.append(source.used)
    return torch.tensor(tokens, device=p.device).long(), torch.tensor(used, device=p.device).long()
