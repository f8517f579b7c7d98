"""The verifiers on batches: one call for B nodes, each with its own distributions, number of drafts and stream."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mdsd_core.decoding.tensor_rules import _by_rows
from mdsd_core.decoding.tensor_rules._nodes import Nodes, check_shapes, check_uniforms, check_values
from mdsd_core.decoding.tensor_rules._rules import RULES
from mdsd_core.schemes import Scheme
from mdsd_core.verifiers import UnsupportedScheme, verifier, verifiers_for

#: Kinds of devices on which a batch is judged row by row by the verifier: tensor operations are slower there.
ROW_BY_ROW = ("cpu",)


@dataclass(frozen=True, eq=False)
class BatchedVerdict:
    """The outcome of one step at B nodes; all tensors are int64, shape [B], on the device of the input.

    Attributes
    ----------
    tokens : Tensor
        The emitted tokens.
    accepted_index : Tensor
        The (lowest) index of the token among the row's drafts, -1 if it is none of them.
    used : Tensor
        How many of the row's uniforms decided: the first ones of its row.

    Examples
    --------
    >>> one = BatchedVerdict(torch.tensor([5]), torch.tensor([-1]), torch.tensor([3]))
    >>> (one.accepted_index >= 0).tolist()
    [False]
    """

    tokens: Tensor
    accepted_index: Tensor
    used: Tensor


def uniforms_for(scheme: Scheme) -> int:
    """How many uniforms a node with drafts of this scheme may need, whatever the rule.

    One for each draft, and one each to accept the draft selected, to draw from the residual, and to draw from the
    target where rounding left the residual empty.

    >>> from mdsd_core.schemes import WithReplacement
    >>> uniforms_for(WithReplacement(4))
    7
    """
    return scheme.drafts + 3


def draw_uniforms(
    generators: Sequence[np.random.Generator],
    schemes: Scheme | Sequence[Scheme],
    device: torch.device | str = "cpu",
) -> Tensor:
    """The uniforms of a batch, a row from each node's own generator.

    Parameters
    ----------
    generators : sequence of B numpy.random.Generator
        Row i comes from generator i, which gives :func:`uniforms_for` its scheme, no more and no less: what is drawn
        depends neither on the other rows nor on what the rule then uses.
    schemes : Scheme or sequence of B schemes
        As for :func:`verify`.
    device : torch.device or str
        Where to put them.

    Returns
    -------
    Tensor of float64, shape [B, K]
        Numbers in [0, 1); K is the largest number needed, rows that need fewer end in zeros that are never used.

    Examples
    --------
    >>> from mdsd_core.schemes import WithReplacement
    >>> draw_uniforms([np.random.default_rng(i) for i in (0, 1)], [WithReplacement(1), WithReplacement(2)]).shape
    torch.Size([2, 5])
    """
    rows = [schemes] * len(generators) if isinstance(schemes, Scheme) else list(schemes)
    if len(rows) != len(generators):
        raise ValueError(f"generators must be one for each of the {len(rows)} schemes, got {len(generators)}")
    for row, generator in enumerate(generators):
        if not isinstance(generator, np.random.Generator):
            raise TypeError(f"generators must be numpy.random.Generator, got {generator!r} for row {row}")
    counts = [uniforms_for(scheme) for scheme in rows]
    uniforms = np.zeros((len(rows), max(counts, default=0)))
    for row, (generator, count) in enumerate(zip(generators, counts)):
        uniforms[row, :count] = generator.random(count)
    return torch.from_numpy(uniforms).to(device)


def runs_on_tensors(name: str, schemes: Scheme | Sequence[Scheme]) -> bool:
    """True if :func:`verify` judges such a batch on a GPU with tensor operations, False if row by row on the host.

    >>> from mdsd_core.schemes import DistinctConditioned, WithReplacement, odds
    >>> runs_on_tensors("rrs", WithReplacement(2)), runs_on_tensors("token_matching", DistinctConditioned(2, odds))
    (True, False)
    """
    rows = [schemes] if isinstance(schemes, Scheme) else schemes
    return verifier(name).rule in RULES and all(scheme.by_rank for scheme in rows)


@torch.no_grad()
def verify(
    name: str,
    p: Tensor,
    q: Tensor,
    drafts: Tensor,
    schemes: Scheme | Sequence[Scheme],
    uniforms: Tensor | Sequence[np.random.Generator],
    *,
    check: bool = True,
) -> BatchedVerdict:
    """Emit one token at each of B nodes: what the verifier of that name emits, row by row, with the same uniforms.

    Parameters
    ----------
    name : str
        A verifier's name, such as "rrs".
    p, q : Tensor, shape [B, V]
        Target and draft distributions, float64 or of lower precision, on one device, contiguous or not; never written.
        Sums may be off 1 by as much as :func:`mdsd_core.distributions.check_distribution` allows (rows of a coarser
        type in a wider tensor are looked at one by one); a row's distribution is the row over its sum. All arithmetic
        is float64.
    drafts : Tensor of integers, shape [B, N]
        The drafts of each row in the order drawn: n of its own scheme, then -1.
    schemes : Scheme or sequence of B schemes
        The law of the drafts, for all rows or one for each; kinds and n may differ between rows.
    uniforms : Tensor of float64, shape [B, K], or sequence of B numpy.random.Generator
        Row i holds the uniforms of node i, K >= :func:`uniforms_for` its scheme; or the generators to draw them from,
        see :func:`draw_uniforms`.
    check : bool
        If False, values are taken to be right: nothing is looked at, and on a GPU nothing waits for it. A row with NaN
        then gives token -1 or an error. Types, shapes and devices are always checked.

    Returns
    -------
    BatchedVerdict

    Raises
    ------
    KeyError
        If there is no verifier of that name.
    TypeError
        If an argument is of the wrong type.
    ValueError
        If shapes or devices do not fit, or the values of a row are wrong: the message names the first such row.
    UnsupportedScheme
        If the rule is not lossless for a row's scheme.

    Notes
    -----
    On a GPU, the rules that do not sort run as tensor operations, a few passes over [B, V], which never wait for the
    device; see :func:`runs_on_tensors`. On the host, and for rules that sort or schemes that weigh all sets of drafts,
    the verifier itself judges row by row (and looks at the values even without `check`). No row sees another one's
    numbers.

    Tensor operations add in another order than the verifiers: a verdict can differ from theirs only if a uniform falls
    within rounding, about 1e-14, of a threshold (1e-8 for K-SEQ at p = q, where its rho is a double root).

    Examples
    --------
    >>> from mdsd_core.schemes import WithReplacement
    >>> p = torch.tensor([[0.6, 0.4], [0.0, 1.0]])
    >>> q = torch.tensor([[0.2, 0.8], [1.0, 0.0]])
    >>> drafts = torch.tensor([[1, 1], [0, -1]])
    >>> streams = [np.random.default_rng(seed) for seed in (3, 1)]
    >>> verdict = verify("rrs", p, q, drafts, [WithReplacement(2), WithReplacement(1)], streams)
    >>> verdict.tokens, verdict.accepted_index
    (tensor([1, 1]), tensor([ 0, -1]))
    """
    rule, rows = verifier(name), check_shapes(p, q, drafts, schemes)
    _check_support(name, rows)
    u = uniforms if isinstance(uniforms, Tensor) else draw_uniforms(uniforms, rows, p.device)
    check_uniforms(u, p, [uniforms_for(scheme) for scheme in rows], values=check)
    if not rows:
        none = torch.empty(0, dtype=torch.int64, device=p.device)
        return BatchedVerdict(none, none.clone(), none.clone())
    if p.device.type in ROW_BY_ROW or not runs_on_tensors(name, rows):
        tokens, used = _by_rows.verify(rule, p, q, drafts, rows, u)
    else:
        nodes = Nodes.of(p, q, drafts, rows)
        if check:
            check_values(p, q, nodes, rows)
        tokens, used = RULES[rule.rule](nodes, u)
        tokens = torch.where(nodes.p_sums.sum(dim=1).isfinite(), tokens, -1)
    same = (drafts == tokens[:, None]) & (drafts >= 0)
    index = torch.where(same.any(dim=1), same.to(torch.uint8).argmax(dim=1), -1) if drafts.shape[1] else tokens
    return BatchedVerdict(tokens, index, used)


def _check_support(name: str, schemes: Sequence[Scheme]) -> None:
    rule = verifier(name)
    for row, scheme in enumerate(schemes):
        if not rule.supports(scheme):
            able = ", ".join(verifiers_for(scheme)) or "none"
            raise UnsupportedScheme(
                f"row {row}: verifier {name!r} is not lossless for drafts of {scheme!r}; verifiers that are: {able}"
            )
