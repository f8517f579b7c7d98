"""Which setting to use: numbers of drafts, schemes and verifiers on given p and q, with what each brings and costs.

No model, no torch, no plot: those are in ``compare_models`` and ``compare_plot``.
"""

import dataclasses
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mdsd_core.schemes import Scheme
from mdsd_core.schemes.names import FAMILIES, scheme_of
from mdsd_core.transport.subset import optimal_acceptance
from mdsd_core.trees.shape import DraftTree
from mdsd_core.verifiers import Estimate, Verifier, verifier, verifiers_for
from mdsd_study.statistics import Interval, bootstrap_mean

if TYPE_CHECKING:
    from mdsd_study.analysis.cost_model import RoundCost

#: On how many contexts drawing and verification are timed.
_TIMED = 8


@dataclass(frozen=True, eq=False)
class Contexts:
    """Pairs of distributions to compare settings on.

    Attributes
    ----------
    pairs : sequence of (ndarray, ndarray)
        p and q of each context, float64, shape [V].
    prompts : sequence of str
        The text each context belongs to: what intervals resample.
    windows : ndarray of int, shape [W, depth]
        Contexts that follow each other in a text, one row for each beginning of a round.

    Examples
    --------
    >>> Contexts.of_rows(np.eye(2), np.eye(2)).windows.tolist()
    [[0], [1]]
    """

    pairs: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]
    prompts: Sequence[str]
    windows: NDArray[np.int64]

    @classmethod
    def of_rows(cls, p: NDArray[np.float64], q: NDArray[np.float64]) -> "Contexts":
        """Rows that have nothing to do with each other, each a text of its own; shape [contexts, V]."""
        return cls(list(zip(p, q)), [str(i) for i in range(len(p))], np.arange(len(p))[:, None])


@dataclass(frozen=True)
class Setting:
    """One number of drafts with one scheme and verifier.

    Attributes
    ----------
    n, scheme, verifier
        The setting; schemes by their names in :data:`~mdsd_core.schemes.names.FAMILIES`.
    acceptance : Interval
        Mean over contexts of the probability that a draft is accepted at a node, with its interval over texts (none for
        a single one). Where the library gives brackets or intervals for a context, the ends take them in.
    exact : bool
        False if some context has such a bracket or interval.
    optimum : float
        Mean optimal acceptance rate of the scheme.
    tokens_per_round : float
        One more than the drafts accepted along a path; see :func:`compare_settings`.
    draw_ms, verify_ms : float
        Drawing the drafts of a node; preparing and verifying it. Processor time of one thread, medians.
    nodes : int or None
        Drafts in the tree of a round, if models were given.
    round_ms, tokens_per_second, speedup : float or None
        A whole round; what it brings, also against plain decoding. Estimates from the costs of its parts.

    Examples
    --------
    >>> contexts = Contexts.of_rows(np.array([[0.5, 0.5]]), np.array([[0.5, 0.5]]))
    >>> {round(setting.optimum, 12) for setting in compare_settings(contexts, [2])}
    {1.0}
    """

    n: int
    scheme: str
    verifier: str
    acceptance: Interval
    exact: bool
    optimum: float
    tokens_per_round: float
    draw_ms: float
    verify_ms: float
    nodes: int | None = None
    round_ms: float | None = None
    tokens_per_second: float | None = None
    speedup: float | None = None


def compare_settings(
    contexts: Contexts,
    drafts: Sequence[int],
    passes: "RoundCost | None" = None,
    *,
    progress: Callable[[Sequence[Any]], Iterable[Any]] = iter,
) -> list[Setting]:
    """Every scheme with every verifier that is lossless for it.

    A scheme that goes by several names is there once, by the first: ``top1_sampled`` with 2 drafts is ``greedy``.

    Parameters
    ----------
    contexts : Contexts
        Where to measure.
    drafts : sequence of int
        Numbers of drafts.
    passes : RoundCost, optional
        What passes of the models take, from :func:`~mdsd_study.analysis.compare_models.measure_passes`; drawing and
        verifying are measured here, setting by setting.
    progress : callable
        Goes through a sequence and shows how far it is, such as ``rich.progress.track``.

    Returns
    -------
    list of Setting
        By number of drafts, scheme and verifier.

    Notes
    -----
    Acceptance at a node is computed, not sampled. Tokens per round are the mean over windows of
    ``1 + a_1 + a_1 a_2 + ...``, a the acceptances at positions of a text of the target's that follow each other: what a
    tree with n drafts at every node brings if acceptance did not hang on which token was accepted. For one level
    (``1 + a_1``) nothing is assumed.

    Examples
    --------
    >>> p, q = np.array([[0.5, 0.3, 0.2]]), np.array([[0.2, 0.3, 0.5]])
    >>> settings = compare_settings(Contexts.of_rows(p, q), [2])
    >>> for s in settings:
    ...     if s.verifier in ("rrs", "rrs_without") and "replacement" in s.scheme:
    ...         print(s.scheme, round(s.acceptance.mean, 6), round(s.optimum, 6), round(s.tokens_per_round, 6))
    with_replacement 0.76 0.86 1.76
    without_replacement 0.82 0.985714 1.82
    """
    settings = []
    every = [(n, scheme, name) for n in drafts for scheme, name in _schemes(n).items()]
    for n, scheme, name in progress(every):
        optimum = float(np.mean([optimal_acceptance(p, q, scheme).rate for p, q in contexts.pairs]))
        for rule in verifiers_for(scheme):
            settings.append(_setting(contexts, n, name, scheme, verifier(rule), optimum, passes))
    return settings


def _schemes(n: int) -> dict[Scheme, str]:
    """The schemes that have n drafts, each with the first of its names."""
    named: dict[Scheme, str] = {}
    for name in FAMILIES:
        scheme = scheme_of(name, n)
        if scheme is not None:
            named.setdefault(scheme, name)
    return named


def _setting(
    contexts: Contexts, n: int, name: str, scheme: Scheme, rule: Verifier, optimum: float, passes: "RoundCost | None"
) -> Setting:
    values = [rule.acceptance(p, q, scheme) for p, q in contexts.pairs]
    exact = not any(isinstance(value, Estimate) for value in values)
    low, a, high = (
        np.array([getattr(value, at) if isinstance(value, Estimate) else value for value in values])
        for at in ("low", "value", "high")
    )
    of_low, of_value, of_high = (bootstrap_mean(x, contexts.prompts, seed=0) for x in (low, a, high))
    ends = (of_low.low, of_high.high) if of_value.prompts > 1 else (float(low.mean()), float(high.mean()))
    acceptance = Interval(of_value.mean, *ends, of_value.level, of_value.prompts, of_value.positions)
    reached = np.cumprod(a[contexts.windows], axis=1)
    tokens = float(1.0 + reached.sum(axis=1).mean())
    draw_ms, verify_ms = _node_ms(contexts, scheme, rule)
    setting = Setting(n, name, rule.name, acceptance, exact, optimum, tokens, draw_ms, verify_ms)
    if passes is None:
        return setting
    branching = (n,) * contexts.windows.shape[1]
    visited = 1.0 + float(reached[:, :-1].sum(axis=1).mean())
    cost = dataclasses.replace(passes, draw=draw_ms / 1e3, verdict=verify_ms / 1e3)
    seconds = sum(cost.parts(branching, visited).values())
    return dataclasses.replace(
        setting,
        nodes=DraftTree.from_branching(branching).size,
        round_ms=1e3 * seconds,
        tokens_per_second=tokens / seconds,
        speedup=tokens * passes.target.of(1) / seconds,
    )


def _node_ms(contexts: Contexts, scheme: Scheme, rule: Verifier) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    drawing, verifying = [], []
    chosen = list(contexts.pairs[:: max(1, len(contexts.pairs) // _TIMED)])
    often = -(-_TIMED // len(chosen))  # each context more than once if there are few
    for p, q in [chosen[0], *chosen * often]:
        started = time.thread_time()
        drafts = scheme.sample(q, rng)
        drawn = time.thread_time()
        rule.prepare(p, q, scheme).verify(drafts, rng)
        drawing.append(drawn - started)
        verifying.append(time.thread_time() - drawn)
    return 1e3 * statistics.median(drawing[1:]), 1e3 * statistics.median(verifying[1:])  # the first call may compile


def best_setting(settings: Sequence[Setting]) -> Setting:
    """The fastest one, if models were timed; else that of most tokens per round, the cheaper one among equals.

    >>> contexts = Contexts.of_rows(np.array([[0.5, 0.3, 0.2]]), np.array([[0.2, 0.3, 0.5]]))
    >>> best_setting(compare_settings(contexts, [1, 2])).n
    2
    """
    return max(settings, key=lambda s: (s.tokens_per_second or 0.0, round(s.tokens_per_round, 9), -s.verify_ms))
