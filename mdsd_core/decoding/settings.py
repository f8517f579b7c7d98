"""How a decoding loop decodes, whatever the models and the prompts: one object, checked when it is made."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from mdsd_core.distributions import SamplingParams
from mdsd_core.schemes import Scheme
from mdsd_core.schemes.names import Family
from mdsd_core.trees.rules import TreeRule
from mdsd_core.trees.shape import DraftTree

#: A logits processor as in transformers: (ids [1, L], scores [1, V]) -> scores.
Processor = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class LoopSettings:
    """The settings of a :class:`~mdsd_core.decoding.loop.DecodingLoop`.

    Attributes
    ----------
    tree : DraftTree
        The shape to fill; cut where a model's context ends.
    family : callable
        Number of drafts at a node -> scheme.
    rule : TreeRule
        Decides what of a tree is accepted.
    sampling : SamplingParams
        From target logits to p.
    draft_sampling : SamplingParams, optional
        From draft logits to q; as for the target by default.
    eos : frozenset of int
        End-of-sequence tokens.
    processors : tuple of callable
        Logits processors, applied before either sampling to each node's own path.
    trim : bool
        Draw no deeper than can still be emitted.

    Raises
    ------
    UnsupportedScheme
        If the rule is not lossless for the scheme at some node of the tree.

    Examples
    --------
    >>> from mdsd_core.schemes import WithReplacement
    >>> from mdsd_core.trees.rules import tree_rule
    >>> from mdsd_core.verifiers import verifier
    >>> settings = LoopSettings(DraftTree.chain(2), WithReplacement, tree_rule("node", verifier("rrs")))
    >>> settings.schemes, settings.draft_params.temperature
    ({1: WithReplacement(n=1)}, 1.0)
    """

    tree: DraftTree
    family: Family
    rule: TreeRule
    sampling: SamplingParams = field(default_factory=SamplingParams)
    draft_sampling: SamplingParams | None = None
    eos: frozenset[int] = frozenset()
    processors: tuple[Processor, ...] = ()
    trim: bool = False

    def __post_init__(self) -> None:
        for scheme in self.schemes.values():
            self.rule.check(scheme)

    @property
    def schemes(self) -> dict[int, Scheme]:
        """Number of drafts -> scheme, for every number that a node of the tree has."""
        return schemes_of(self.tree, self.family)

    @property
    def draft_params(self) -> SamplingParams:
        """From draft logits to q."""
        return self.sampling if self.draft_sampling is None else self.draft_sampling


def schemes_of(tree: DraftTree, family: Family) -> dict[int, Scheme]:
    """Number of drafts -> scheme, for every number that a node of the tree has.

    >>> from mdsd_core.schemes import WithReplacement
    >>> schemes_of(DraftTree.from_branching((2, 1)), WithReplacement)
    {1: WithReplacement(n=1), 2: WithReplacement(n=2)}
    """
    return {n: family(n) for n in sorted({len(children) for children in tree.children if children})}
