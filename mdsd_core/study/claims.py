"""Every claim of the two papers as data: what is claimed, how it is measured here, by which criterion it holds.

The verdicts are computed from the results files, see :mod:`mdsd_core.study.verdicts`; the scorecard of the book is made
from this list. Nothing is tuned to match a published number.
"""

from dataclasses import dataclass

from mdsd_core.study.published import HU, YANG, Paper
from mdsd_core.study.sources import Change, Differences, Entry, Turn, Values
from mdsd_core.study.verdicts import AtMost, Evidence, Judgement, Reader, judge

_OUR_MODELS = (
    "Here: SmolLM2-135M-Instruct with drafts made of it by leaving layers out, on MT-Bench, HumanEval and other "
    "packaged prompts; exact acceptances at teacher-forced positions in place of counts over sampled runs."
)


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes
    ----------
    key : str
        A name of its own, such as ``hu-gap``.
    paper : Paper
        Who claims it.
    finding : str or None
        The key of the paper's finding; None for a claim that is a formula or a theorem rather than a measurement.
    statement : str
        What is claimed.
    evidence : tuple of Evidence
        How it is measured here, and by which criterion it is judged.
    published : str
        The paper's figures for it, with their standing; empty if none are at hand.
    difference : str
        What differs between the paper's setting and ours.

    Examples
    --------
    >>> next(claim for claim in CLAIMS if claim.key == "hu-greedy-optimal").judge(lambda notebook: None).verdict
    'not measured in this profile'
    """

    key: str
    paper: Paper
    finding: str | None
    statement: str
    evidence: tuple[Evidence, ...]
    published: str = ""
    difference: str = _OUR_MODELS

    def judge(self, read: Reader) -> Judgement:
        """The verdict from the results at hand; see :func:`mdsd_core.study.verdicts.judge`."""
        return judge(self.evidence, read)


def _finding(
    paper: Paper, finding: str, *evidence: Evidence, published: str = "", difference: str = _OUR_MODELS
) -> Claim:
    prefix = "hu" if paper is HU else "yang"
    return Claim(
        f"{prefix}-{finding}",
        paper,
        finding,
        paper.findings[finding],
        evidence,
        published=published,
        difference=difference,
    )


CLAIMS: tuple[Claim, ...] = (
    _finding(
        HU,
        "gap",
        Evidence(
            "mean gap of RRS, K-SEQ and token matching to the optimal rate of their own drafts, n = 2 to 4, T = 0.7",
            Values("06_verifiers", r"gap, (RRS|K-SEQ|token matching), .*, n=[2-4]"),
        ),
        Evidence("the same by pair and task, n = 3, T = 0.7", Values("10_main_table", r"gap, .*")),
        published="A gap of 0.1 to 3.3 points of acceptance (third hand: read in notes on the paper).",
    ),
    _finding(
        HU,
        "without",
        Evidence(
            "bound without less bound with replacement, and RRS without less RRS with, by pair and task, n = 3, "
            "T = 0.7, paired by prompt",
            Values("10_main_table", r"(bound|RRS): without - with replacement, .*"),
        ),
        Evidence(
            "optimal rate of sequential drafts less that of independent ones, by draft, n = 2 and 4, paired by prompt",
            Values("13_design_of_drafts", r"minus sequential, with replacement, n=\d+, .*", sign=-1),
        ),
        Evidence(
            "tokens a round of RRS without replacement more than RRS with, on trees, T = 0.7, paired by prompt",
            Values("16_closing_the_gap", r"gain, RRS without against with, tree (?!1(,1)*$).*"),
        ),
        Evidence(
            "acceptance of RRS without replacement less that of RRS with replacement, n = 2 to 4 (measured apart)",
            Differences(
                "06_verifiers",
                r"acceptance, RRS, without replacement, n=([2-4])",
                r"acceptance, RRS, with replacement, n=\1",
            ),
        ),
        published="3 to 4 points (third hand: read in notes on the paper).",
    ),
    _finding(
        HU,
        "growth",
        Evidence(
            "gap of RRS with and without replacement and of K-SEQ at four drafts less that at two (measured apart)",
            Differences("06_verifiers", r"gap, ((?:RRS|K-SEQ), .*), n=4", r"gap, \1, n=2"),
        ),
        Evidence(
            "the gap at four drafts less that at two, and at ten less that at four, paired by prompt",
            Values("12_number_of_drafts", r"gap growth, .*"),
        ),
    ),
    _finding(
        HU,
        "greedy-cold",
        Evidence(
            "acceptance of greedy drafts less that of RRS without replacement, and less the optimal rates with and "
            "without replacement, at T = 0.1 on text drawn at T = 0.1, n = 3",
            Entry("11_temperature", r"greedy - .*, same text", "temperatures", 0.1),
        ),
        Evidence(
            "the same at T = 0.1 less that at T = 1: the lead shrinks (measured apart)",
            Change("11_temperature", r"greedy - .*, same text", "temperatures", 0.1, 1.0),
        ),
    ),
    _finding(
        HU,
        "greedy-optimal",
        Evidence(
            "mean gap of the greedy verifier to the optimal rate of greedy drafts, n = 1 to 4, T = 0.7",
            Values("06_verifiers", r"gap, greedy, greedy drafts, n=\d+"),
            AtMost(1e-9),
        ),
    ),
    _finding(
        HU,
        "turn",
        Evidence(
            "acceptance against temperature, text drawn at the same temperature, n = 3: the smaller of the curve's "
            "largest rise and its largest fall (measured apart)",
            Turn("11_temperature", r"acceptance, same text, .*"),
        ),
        Evidence(
            "the same, the turn at a temperature from 0.8 to 1 (measured apart)",
            Turn("11_temperature", r"acceptance, same text, .*", "temperatures", (0.8, 1.0)),
        ),
    ),
    Claim(
        "hu-formula",
        HU,
        None,
        "the generating-function formula gives the optimal rate without replacement",
        (
            Evidence(
                "share of contexts in which RRS with sequential drafts accepts more often than the formula allows (two "
                "drafts, exact): an upper bound is never exceeded",
                Values("05_without_replacement", r"share below RRS"),
                AtMost(0.0),
            ),
            Evidence(
                "the same at other temperatures of p and q",
                Values("17_above_the_bound", r"share above the formula, T=.*"),
                AtMost(0.0),
            ),
        ),
        difference="A statement about laws, not about models: the formula is exact for independent drafts conditioned "
        "on being different, and samplers draw another law.",
    ),
    _finding(
        YANG,
        "several",
        Evidence(
            "acceptance of RRS with two, three and four drafts less that with one (measured apart), T = 0.7",
            Differences("06_verifiers", r"acceptance, (RRS, .*), n=[2-4]", r"acceptance, \1, n=1"),
        ),
        Evidence(
            "acceptance of RRS with and without replacement and of K-SEQ less that of one draft, by pair and task, "
            "n = 3, T = 0.7, paired by prompt",
            Values("10_main_table", r"more than one draft, .*"),
        ),
        Evidence(
            "acceptance of RRS and K-SEQ at ten drafts less that at one",
            Change("12_number_of_drafts", r"acceptance, (RRS, .*|K-SEQ)", "drafts", 10, 1),
        ),
        Evidence(
            "acceptance at one position with two to eight candidates less that with one, naive rule and RRS with and "
            "without replacement, T = 1 and T = 0 (measured apart)",
            Differences("14_multi_candidate", r"acceptance, (T=.*, .*), k=[2-8]", r"acceptance, \1, k=1"),
        ),
        Evidence(
            "block efficiency with trees of branching 4,2,2 less that of chains of the same depth (measured apart)",
            Differences(
                "08_decoding_with_trees", r"block efficiency, (.*), tree 4,2,2", r"block efficiency, \1, tree 1,1,1"
            ),
        ),
    ),
    _finding(
        YANG,
        "lossless",
        Evidence(
            "total variation between the law of the emitted token and p, all drafts enumerated, every verifier",
            Values("06_verifiers", r"small example, total variation, .*"),
            AtMost(1e-12),
        ),
        difference="Proved and enumerated in double precision rather than sampled; the law of a text follows from the "
        "law of each step.",
    ),
)
