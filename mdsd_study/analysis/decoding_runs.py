"""Decoding runs over prompts: one configuration at a time, resumable prompt by prompt.

A *configuration* says how tokens are drafted and verified. Each prompt is decoded with a random stream of its own,
keyed by seed and prompt, so that neither the order of the prompts nor what was finished before changes a text. What is
kept of a prompt is counts: the figures of :mod:`mdsd_core.decoding.metrics` and their intervals follow from them.
"""

import contextlib
import dataclasses
import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mdsd_core.decoding.drafters.base import Drafter
from mdsd_core.decoding.generate import generate
from mdsd_core.decoding.metrics import Metrics
from mdsd_core.decoding.scoring import Scorer
from mdsd_core.disk_cache import key_of
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import LanguageModel
from mdsd_core.models.prompts import Prompt
from mdsd_study.report.provenance import code_digest
from mdsd_study.report.results import write_json
from mdsd_study.statistics import Interval, bootstrap_ratio

#: The kinds of work that a round's time is split into.
KINDS_OF_WORK = ("draft", "scheme", "target", "verify", "cache")


@dataclass(frozen=True)
class Configuration:
    """How tokens are drafted and verified.

    Attributes
    ----------
    drafter : str
        The name of the drafter, "none" for plain decoding.
    tree : str
        As for :meth:`~mdsd_core.trees.shape.DraftTree.parse`.
    scheme, verifier, tree_rule : str
        As for :func:`~mdsd_core.decoding.generate.generate`.
    temperature : float
        Of the target.
    draft_temperature : float or None
        Of the draft; the target's by default.

    Examples
    --------
    >>> Configuration("skip4", "4,2,2").label
    'skip4, tree 4,2,2, with_replacement, rrs, T=0.7'
    """

    drafter: str
    tree: str
    scheme: str = "with_replacement"
    verifier: str = "rrs"
    tree_rule: str = "node"
    temperature: float = 0.7
    draft_temperature: float | None = None

    @property
    def plain(self) -> bool:
        """True for decoding without drafts."""
        return self.drafter == "none" or self.tree == "none"

    @property
    def label(self) -> str:
        """All of it in words, for tables and results files."""
        if self.plain:
            return f"plain, T={self.temperature:g}"
        rule = self.verifier if self.tree_rule == "node" else f"{self.verifier} ({self.tree_rule})"
        draft = "" if self.draft_temperature is None else f", draft T={self.draft_temperature:g}"
        return f"{self.drafter}, tree {self.tree}, {self.scheme}, {rule}, T={self.temperature:g}{draft}"


@dataclass(frozen=True)
class PromptRun:
    """What is kept of one prompt's run.

    Attributes
    ----------
    key : str
        The prompt.
    visits : tuple of tuple of (int, int)
        For each round, for each decision from the root down: the drafts at the node, and the index of the accepted one
        (-1 if none was).
    emitted : int
        Tokens emitted, after cuts.
    draft_calls : int
        Passes of the draft model.
    seconds : dict of str to float
        Time by kind of work (:data:`KINDS_OF_WORK`), in all ("wall"), and the processor time of this process, all its
        threads together ("processor").

    Examples
    --------
    >>> run = PromptRun("a", (((2, 1), (2, -1)), ((2, -1),)), emitted=3, draft_calls=4, seconds={"wall": 1.0})
    >>> run.rounds, run.accepted
    (2, 1)
    """

    key: str
    visits: tuple[tuple[tuple[int, int], ...], ...]
    emitted: int
    draft_calls: int
    seconds: dict[str, float]

    @property
    def rounds(self) -> int:
        """Target passes that scored a tree of this prompt."""
        return len(self.visits)

    @property
    def accepted(self) -> int:
        """Accepted drafts, before cuts."""
        return sum(index >= 0 for row in self.visits for _, index in row)

    @classmethod
    def of(cls, key: str, metrics: Metrics, wall: float, processor: float) -> "PromptRun":
        """Keep what counts of the rounds of a run of one prompt."""
        records = metrics.of_request(0)
        visits = tuple(tuple((v.drafts, v.accepted_index) for v in record.visits) for record in records)
        seconds = {kind: float(getattr(metrics.times, kind)) for kind in KINDS_OF_WORK}
        emitted = sum(record.emitted for record in records)
        return cls(key, visits, emitted, metrics.draft_calls, {**seconds, "wall": wall, "processor": processor})

    @classmethod
    def read(cls, path: Path) -> "PromptRun":
        """Read a file that holds the fields as JSON."""
        content = json.loads(path.read_text(encoding="utf-8"))
        visits = tuple(tuple((int(n), int(i)) for n, i in row) for row in content["visits"])
        return cls(content["key"], visits, content["emitted"], content["draft_calls"], dict(content["seconds"]))


def prompt_seed(seed: int, key: str) -> int:
    """The seed of one prompt's random stream in a decoding run.

    >>> prompt_seed(0, "mt_bench/81") == prompt_seed(0, "mt_bench/81") != prompt_seed(1, "mt_bench/81")
    True
    """
    return int.from_bytes(hashlib.sha256(f"{seed} {key}".encode()).digest()[:8], "big")


def decode_prompts(
    target: LanguageModel,
    scorer: Scorer,
    drafter: Drafter | None,
    configuration: Configuration,
    prompts: Sequence[Prompt],
    *,
    max_new_tokens: int,
    seed: int = 0,
    store: Path | None = None,
) -> list[PromptRun]:
    """Decode prompts by one configuration, one after the other.

    Parameters
    ----------
    target : LanguageModel
        Encodes the prompts and says what ends a text.
    scorer : Scorer
        The target, ready for draft trees.
    drafter : Drafter or None
        What the configuration calls its drafter; not used for plain decoding.
    configuration : Configuration
        How tokens are drafted and verified.
    prompts : sequence of Prompt
        Their keys name their random streams.
    max_new_tokens : int
        A text ends there, or at its end-of-sequence token.
    seed : int
        Of the experiment.
    store : path, optional
        A folder in which finished prompts are kept, a file each, and looked up: a run that was killed goes on where it
        stopped. What other code made (another source of the packages, other installed versions) is not found.

    Returns
    -------
    list of PromptRun
        In the order of `prompts`.

    Examples
    --------
    >>> from mdsd_core.decoding.generate import as_scorer
    >>> from mdsd_core.models import tiny_random_pair
    >>> target, prompt = tiny_random_pair().target, Prompt("toy", "0", "abc", False, "MIT", True)
    >>> plain = Configuration("none", "none")
    >>> decode_prompts(target, as_scorer(target), None, plain, [prompt], max_new_tokens=3)[0].rounds
    3
    """
    files = {}
    if store is not None:
        settings = (code_digest(), dataclasses.asdict(configuration), target.name, max_new_tokens, seed)
        files = {p.key: store / f"{key_of(*settings, p.key)}.json" for p in prompts}
    found = {}
    for key, path in files.items():
        with contextlib.suppress(FileNotFoundError, ValueError, KeyError):  # a damaged file is decoded again
            found[key] = PromptRun.read(path)
    draft = configuration.draft_temperature
    for prompt in prompts:
        if prompt.key in found:
            continue
        started, began = time.perf_counter(), time.process_time()
        result = generate(
            scorer,
            None if configuration.plain else drafter,
            [target.encode(prompt.text, chat=prompt.chat)],
            "none" if configuration.plain else configuration.tree,
            configuration.scheme,
            configuration.verifier,
            configuration.tree_rule,
            sampling=SamplingParams(configuration.temperature),
            draft_sampling=None if draft is None else SamplingParams(draft),
            max_new_tokens=max_new_tokens,
            seeds=[prompt_seed(seed, prompt.key)],
            eos_token_ids=target.eos_ids,
        )
        wall, processor = time.perf_counter() - started, time.process_time() - began
        found[prompt.key] = PromptRun.of(prompt.key, result.metrics, wall, processor)
        if files:
            write_json(files[prompt.key], dataclasses.asdict(found[prompt.key]))
    return [found[p.key] for p in prompts]


def block_efficiency(runs: Sequence[PromptRun]) -> Interval:
    """1 + accepted per round, with its interval over prompts.

    >>> runs = [PromptRun("a", (((2, 0),), ((2, -1),)), 3, 2, {}), PromptRun("b", (((2, 1),),), 2, 1, {})]
    >>> round(block_efficiency(runs).mean, 4)
    1.6667
    """
    emitted = [run.accepted + run.rounds for run in runs]
    return bootstrap_ratio(emitted, [run.rounds for run in runs], [run.key for run in runs], seed=0)


def tokens_per_second(runs: Sequence[PromptRun], *, clock: str = "wall") -> Interval:
    """Emitted tokens over seconds, the prompt's own pass included, with its interval over prompts.

    `clock` is "wall", or "processor" for the processor time of the process: with one thread, what the wall-clock would
    say on a machine that nobody else uses.

    >>> tokens_per_second([PromptRun("a", ((),), 6, 0, {"wall": 2.0})]).mean
    3.0
    """
    seconds = [run.seconds[clock] for run in runs]
    return bootstrap_ratio([run.emitted for run in runs], seconds, [run.key for run in runs], seed=0)


def time_split(runs: Iterable[PromptRun]) -> dict[str, float]:
    """Seconds a round by kind of work; "other" is what no kind accounts for.

    >>> time_split([PromptRun("a", ((), ()), 2, 0, {"target": 1.0, "wall": 3.0})])["other"]
    1.0
    """
    runs = list(runs)
    rounds = sum(run.rounds for run in runs)
    split = {kind: sum(run.seconds.get(kind, 0.0) for run in runs) / rounds for kind in KINDS_OF_WORK}
    split["other"] = sum(run.seconds["wall"] for run in runs) / rounds - sum(split.values())
    return split
