"""Every claim as data: what is claimed, by whom, how it is measured here, by which criterion it holds.

The verdicts are computed from the results files, see :mod:`mdsd_study.report.scorecard.verdicts`; the scorecard of the
book is made from this list. One statement a claim. Nothing is tuned to match a published number.
"""

from dataclasses import dataclass

from mdsd_study.report.published import HU, YANG, Paper
from mdsd_study.report.scorecard.claim_values import SCORES, At, Change, Share, Sum, Turn, Values
from mdsd_study.report.scorecard.verdicts import Above, AtMost, Evidence, Judgement, Reader, judge

#: What differs from the papers' settings, where a claim does not say otherwise.
DIFFERENCE = (
    "SmolLM2-135M-Instruct with drafts made of it by leaving layers out (or from counted trigrams), on MT-Bench, "
    "HumanEval and other packaged prompts; exact acceptances at teacher-forced positions in place of counts over "
    "sampled runs"
)
_LAW = "a statement about laws, not about models."

#: Patterns of keys; their groups are the properties that a verdict may depend on.
_RULES = r"(?P<rule>RRS|K-SEQ)"
_SCHEME = r"(?P<scheme>with|without) replacement"
_CELL = r"(?P<draft>[^,]+), (?P<task>[^,]+)"
_WITH = {"scheme": "with"}
_GREEDY, _LEAD = "acceptance, same text, greedy drafts .*", "greedy - {}, same text"


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes
    ----------
    key : str
        A name of its own, such as ``hu-gap``.
    title : str
        A few words, for the table.
    paper : Paper or None
        Who claims it; None for what this book asks itself.
    finding : str or None
        The key of the paper's finding; None for a formula, and for what this book asks itself.
    statement : str
        What is claimed.
    evidence : tuple of Evidence
        How it is measured here, and by which criterion it is judged; none for a claim that nothing here tests.
    law : bool
        Whether it is a formula or a theorem rather than a measurement.
    published : str
        The paper's figures for it, with their standing; empty if none are at hand.
    difference : str
        What differs between the paper's setting and ours, beside :data:`DIFFERENCE`.
    needs : str
        For a claim that nothing here tests: what testing it would take.

    Examples
    --------
    >>> next(claim for claim in CLAIMS if claim.key == "hu-greedy-optimal").judge(lambda notebook: None).verdict
    'not measured in this profile'
    """

    key: str
    title: str
    paper: Paper | None
    finding: str | None
    statement: str
    evidence: tuple[Evidence, ...]
    law: bool = False
    published: str = ""
    difference: str = ""
    needs: str = ""

    def judge(self, read: Reader) -> Judgement:
        """The verdict from the results at hand; see :func:`mdsd_study.report.scorecard.verdicts.judge`."""
        return judge(self.evidence, read, law=self.law)


def _finding(
    paper: Paper,
    finding: str,
    title: str,
    *evidence: Evidence,
    law: bool = False,
    published: str = "",
    difference: str = "",
    needs: str = "",
) -> Claim:
    key = f"{'hu' if paper is HU else 'yang'}-{finding}"
    return Claim(key, title, paper, finding, paper.findings[finding], evidence, law, published, difference, needs)


def _untested(paper: Paper, finding: str, title: str, needs: str) -> Claim:
    return _finding(paper, finding, title, needs=needs)


_MAIN_GAPS = Evidence(
    "the gap of RRS, K-SEQ and RRS without replacement, by pair and task, n = 3, T = 0.7",
    Values("10_main_table", rf"gap, {_CELL}, {_RULES}(?: (?P<scheme>without))?", given=_WITH),
    points=True,
)

CLAIMS: tuple[Claim, ...] = (
    _finding(
        HU,
        "gap",
        "Rules stay below the optimum",
        Evidence(
            "the mean gap of RRS, K-SEQ and RRS without replacement to the optimal rate of their own drafts, n = 2 to "
            "4, T = 0.7",
            Values("06_verifiers", rf"gap, {_RULES}, {_SCHEME}, n=(?P<n>[2-4])"),
            points=True,
        ),
        _MAIN_GAPS,
        published="a gap of 0.1 to 3.3 points of acceptance (third hand: read in notes on the paper).",
    ),
    _finding(
        HU,
        "without",
        "Without replacement above with replacement",
        Evidence(
            "the bound without less the bound with replacement, and RRS without less RRS with, by pair and task, n = "
            "3, T = 0.7, paired by prompt",
            Values("10_main_table", rf"(?P<rule>bound|RRS): without - with replacement, {_CELL}"),
            points=True,
        ),
        Evidence(
            "the optimal rate of sequential drafts less that of independent ones, by draft, n = 2 and 4, paired by "
            "prompt",
            Values(
                "13_design_of_drafts",
                r"minus sequential, with replacement, n=(?P<n>\d+), (?P<draft>[^,]+?)(?: at T=.*)?",
                sign=-1,
                given={"rule": "bound"},
            ),
            points=True,
        ),
        Evidence(
            "tokens a round of RRS without replacement more than RRS with, on trees, T = 0.7, paired by prompt",
            Values(
                "16_closing_the_gap",
                r"gain, RRS without against with, tree (?P<tree>(?!1(,1)*$).*)",
                given={"rule": "RRS"},
            ),
        ),
        Evidence(
            "the acceptance of RRS without replacement less that of RRS with replacement, n = 2 to 4, measured apart",
            Sum(
                "06_verifiers",
                r"acceptance, (?P<rule>RRS), without replacement, n=(?P<n>[2-4])",
                minus=(r"acceptance, RRS, with replacement, n=\g<n>",),
            ),
            points=True,
        ),
        published="3 to 4 points (third hand: read in notes on the paper).",
    ),
    _finding(
        HU,
        "growth",
        "The gap grows with n",
        Evidence(
            "the gap of RRS with and without replacement and of K-SEQ at four drafts less that at two, measured apart",
            Sum(
                "06_verifiers",
                rf"gap, {_RULES}, {_SCHEME}, n=4",
                minus=(r"gap, \g<rule>, \g<scheme> replacement, n=2",),
                given={"from_n": 2.0, "to_n": 4.0},
            ),
            points=True,
        ),
        Evidence(
            "the gap at four drafts less that at two, and at ten less that at four, paired by prompt",
            Values(
                "12_number_of_drafts",
                rf"gap growth, {_RULES}(?:, {_SCHEME})?, n=(?P<from_n>\d+) to (?P<to_n>\d+)",
                given=_WITH,
            ),
            points=True,
        ),
    ),
    _finding(
        HU,
        "greedy",
        "Greedy above RRS and K-SEQ",
        Evidence(
            "the acceptance of greedy drafts less that of RRS without replacement, by pair and task, n = 3, T = 0.7, "
            "paired by prompt",
            Values("10_main_table", rf"greedy - RRS without, {_CELL}", given={"rule": "RRS", "scheme": "without"}),
            points=True,
        ),
        Evidence(
            "the same less that of RRS: the sum of two differences, each paired by prompt",
            Sum(
                "10_main_table",
                rf"greedy - RRS without, {_CELL}",
                plus=(r"RRS: without - with replacement, \g<draft>, \g<task>",),
                given={"rule": "RRS", "scheme": "with"},
            ),
            points=True,
        ),
        Evidence(
            "the same less that of K-SEQ: the sum of three differences, each paired by prompt",
            Sum(
                "10_main_table",
                rf"greedy - RRS without, {_CELL}",
                plus=(r"RRS: without - with replacement, \g<draft>, \g<task>",),
                minus=(r"K-SEQ - RRS, \g<draft>, \g<task>",),
                given={"rule": "K-SEQ", "scheme": "with"},
            ),
            points=True,
        ),
        Evidence(
            "greedy less RRS without replacement at each temperature, on text drawn at the same one, n = 3, paired by "
            "prompt",
            Values(
                "11_temperature",
                _LEAD.format("RRS without"),
                axis="temperatures",
                given={"rule": "RRS", "scheme": "without"},
            ),
            points=True,
        ),
        Evidence(
            "greedy less RRS at each temperature, measured apart",
            Sum(
                "11_temperature",
                _GREEDY,
                minus=("acceptance, same text, RRS, with replacement",),
                axis="temperatures",
                given={"rule": "RRS", "scheme": "with"},
            ),
            points=True,
        ),
        Evidence(
            "greedy less K-SEQ at each temperature, measured apart",
            Sum(
                "11_temperature",
                _GREEDY,
                minus=("acceptance, same text, K-SEQ",),
                axis="temperatures",
                given={"rule": "K-SEQ", "scheme": "with"},
            ),
            points=True,
        ),
    ),
    _finding(
        HU,
        "greedy-cold",
        "Greedy above RRS without replacement at T=0.1",
        Evidence(
            "greedy less RRS without replacement at T = 0.1 on text drawn at T = 0.1, n = 3, paired by prompt",
            At(Values("11_temperature", _LEAD.format("RRS without"), axis="temperatures"), "T", 0.1),
            points=True,
        ),
    ),
    _finding(
        HU,
        "greedy-fade",
        "Greedy's lead over it shrinks towards T=1",
        Evidence(
            "the lead over RRS without replacement at T = 0.1 less that at T = 1, measured apart",
            Change(Values("11_temperature", _LEAD.format("RRS without"), axis="temperatures"), "T", 0.1, 1.0),
            points=True,
        ),
    ),
    _finding(
        HU,
        "greedy-cold-with",
        "Greedy above the optimum with replacement at T=0.1",
        Evidence(
            "greedy less the optimal rate with replacement at T = 0.1 on text drawn at T = 0.1, n = 3, paired by "
            "prompt",
            At(Values("11_temperature", _LEAD.format("bound with"), axis="temperatures"), "T", 0.1),
            points=True,
        ),
    ),
    _finding(
        HU,
        "greedy-cold-without",
        "Greedy above the optimum without at T=0.1",
        Evidence(
            "greedy less the optimal rate without replacement at T = 0.1 on text drawn at T = 0.1, n = 3, paired by "
            "prompt",
            At(Values("11_temperature", _LEAD.format("bound without"), axis="temperatures"), "T", 0.1),
            points=True,
        ),
    ),
    _finding(
        HU,
        "greedy-fade-bounds",
        "Greedy's lead over optima shrinks towards T=1",
        Evidence(
            "the lead over the optimal rates with and without replacement at T = 0.1 less that at T = 1, measured "
            "apart",
            Change(
                Values("11_temperature", _LEAD.format("bound (?P<scheme>with|without)"), axis="temperatures"),
                "T",
                0.1,
                1.0,
            ),
            points=True,
        ),
    ),
    _finding(
        HU,
        "greedy-optimal",
        "Greedy attains its optimum",
        Evidence(
            "the mean gap of the greedy verifier to the optimal rate of greedy drafts, n = 1 to 4, T = 0.7",
            Values("06_verifiers", r"gap, greedy, greedy drafts, n=(?P<n>\d+)"),
            AtMost(1e-9),
        ),
        law=True,
        difference=_LAW,
    ),
    _finding(
        HU,
        "turn",
        "A turn near T=0.9",
        Evidence(
            "acceptance against temperature, text drawn at the same temperature, n = 3: the smaller of the curve's "
            "largest rise and its largest fall, measured apart",
            Turn(Values("11_temperature", r"acceptance, same text, (?P<rule>.*)", axis="temperatures"), "T"),
            points=True,
        ),
        Evidence(
            "the same, the turn at a temperature from 0.8 to 1, measured apart",
            Turn(
                Values("11_temperature", r"acceptance, same text, (?P<rule>.*)", axis="temperatures"), "T", (0.8, 1.0)
            ),
            points=True,
        ),
    ),
    Claim(
        "hu-formula",
        "The formula without replacement",
        HU,
        None,
        "the generating-function formula gives the optimal rate of drafts sampled one after another without "
        "replacement",
        (
            Evidence(
                "the share of contexts in which RRS with sequential drafts accepts more often than the formula allows "
                "(two drafts, exact): an upper bound is never exceeded",
                Values("05_without_replacement", r"share below RRS"),
                AtMost(0.0),
            ),
            Evidence(
                "the same at other temperatures of p and q",
                Values("17_above_the_bound", r"share above the formula, T=(?P<T>.*)"),
                AtMost(0.0),
            ),
        ),
        law=True,
        difference=f"{_LAW} If the paper means independent drafts conditioned on being different, its formula is "
        "right; drafts sampled one after another follow another law.",
    ),
    _untested(
        HU,
        "pairs",
        "The paper's own pairs",
        "the weights of LLaMA-7B and LLaMA-68M, OPT-6.7B and OPT-125M, the three task sets, and a GPU that holds a "
        "model of seven billion parameters; the pairs are listed for `mdsd measure --pair`.",
    ),
    _untested(
        HU,
        "heads",
        "Trained heads as drafts",
        "a drafter that loads EAGLE heads, which this project does not have, and the heads of Vicuna-7B-v1.3 and "
        "Qwen2-7B-Instruct.",
    ),
    _untested(
        HU,
        "speed",
        "Speed-ups on a GPU",
        "the paper's pairs on a GPU of the class of its RTX A6000, its trees on MT-Bench, and its speed table, which "
        "we have not seen. Times in this book are those of a CPU.",
    ),
    _finding(
        YANG,
        "several",
        "Several candidates above one",
        Evidence(
            "the acceptance of RRS with two, three and four drafts less that with one, T = 0.7, measured apart",
            Sum(
                "06_verifiers",
                rf"acceptance, (?P<rule>RRS), {_SCHEME}, n=(?P<n>[2-4])",
                minus=(r"acceptance, RRS, \g<scheme> replacement, n=1",),
            ),
            points=True,
        ),
        Evidence(
            "the acceptance of RRS with and without replacement and of K-SEQ less that of one draft, by pair and task, "
            "n = 3, T = 0.7, paired by prompt",
            Values(
                "10_main_table",
                rf"more than one draft, {_CELL}, {_RULES}(?: (?P<scheme>without))?",
                given=_WITH,
            ),
            points=True,
        ),
        Evidence(
            "the acceptance of RRS and K-SEQ at ten drafts less that at one, measured apart",
            Change(
                Values("12_number_of_drafts", rf"acceptance, {_RULES}(?:, {_SCHEME})?", axis="drafts", given=_WITH),
                "n",
                10,
                1,
            ),
            points=True,
        ),
        Evidence(
            "the acceptance at one position with two to eight candidates less that with one, T = 1 and T = 0, measured "
            "apart",
            Sum(
                "14_multi_candidate",
                r"acceptance, T=(?P<T>[\d.]+), (?P<rule>.*), k=(?P<n>[2-8])",
                minus=(r"acceptance, T=\g<T>, \g<rule>, k=1",),
            ),
            points=True,
        ),
        Evidence(
            "block efficiency with trees of branching 4,2,2 less that of chains of the same depth, measured apart",
            Sum(
                "08_decoding_with_trees",
                r"block efficiency, (?P<rule>.*), tree 4,2,2",
                minus=(r"block efficiency, \g<rule>, tree 1,1,1",),
            ),
        ),
    ),
    *(
        _finding(
            YANG,
            f"twenty{suffix}",
            f"RRS {scheme} replacement 20 % above one draft",
            Evidence(
                f"the acceptance of RRS {scheme} replacement less that of one draft (paired by prompt), over that of "
                "one draft, by pair and task, n = 3, T = 0.7; the quotient takes the ends at their worst",
                Share("10_main_table", rf"more than one draft, {_CELL}, RRS{key}", r"one draft, \g<draft>, \g<task>"),
                Above(0.2),
            ),
            published="20 % and more.",
        )
        for suffix, scheme, key in (("", "with", ""), ("-without", "without", " without"))
    ),
    _finding(
        YANG,
        "lossless",
        "The law of one step is kept",
        Evidence(
            "the total variation between the law of the emitted token and p, all drafts enumerated, every verifier",
            Values("06_verifiers", r"small example, total variation, (?P<rule>.*)"),
            AtMost(1e-12),
        ),
        law=True,
        difference="proved and enumerated in double precision rather than sampled; the law of a text follows from the "
        "law of each step.",
    ),
    _untested(
        YANG,
        "pairs",
        "The paper's own pairs",
        "the weights of LLaMA and Vicuna with their drafts of 68M and 160M parameters, the sentences of WMT En-De, and "
        "a GPU that holds the targets; the pairs are listed for `mdsd measure --pair`.",
    ),
    _untested(
        YANG,
        "speed",
        "Speed-ups on a GPU",
        "the paper's pairs on a GPU, and its hardware and result tables, which we have not seen. Times in this book "
        "are those of a CPU.",
    ),
    Claim(
        "own-shrinks",
        "The lead of without replacement shrinks with T",
        None,
        None,
        "the lead of drafts without over drafts with replacement shrinks from T=0.1 to T=1.5, in the optimum and in "
        "RRS",
        (
            Evidence(
                "the difference of without and with replacement at T = 0.1 less that at T = 1.5, text drawn at the "
                "same temperature, n = 3, all four measured apart",
                Change(
                    Sum(
                        "11_temperature",
                        "acceptance, same text, (?P<rule>bound|RRS), without replacement",
                        minus=(r"acceptance, same text, \g<rule>, with replacement",),
                        axis="temperatures",
                    ),
                    "T",
                    0.1,
                    1.5,
                ),
                points=True,
            ),
        ),
    ),
    Claim(
        "own-optimal",
        "The optimal rule attains the bound",
        None,
        None,
        "the optimal rule of this library attains the optimal rate of its drafts to a hundredth of a point",
        (
            Evidence(
                "the largest distance of the rule to the bound with replacement over all contexts",
                Values("04_optimal_verifier", r"distance to the bound, n=(?P<n>\d+)", given=_WITH),
                AtMost(1e-4),
            ),
            Evidence(
                "the mean gap of the rule",
                Values("06_verifiers", rf"gap, optimal, {_SCHEME}, n=(?P<n>\d+)"),
                AtMost(1e-4),
            ),
            Evidence(
                "the largest loss over all contexts of the rule for drafts without replacement",
                Values("09_nest", r"largest loss, T=(?P<T>.*)", axis="drafts", given={"scheme": "without"}),
                AtMost(1e-4),
            ),
        ),
        law=True,
        difference=_LAW,
    ),
    Claim(
        "own-loop",
        "Accepts in the loop as it should",
        None,
        None,
        "in the decoding loop every lossless rule accepts as often as its exact acceptance says",
        (
            Evidence(
                "accepted less expected at every visited node, as a standard score: over all visits and by depth, "
                "given the drafts and given p and q alone, every rule (about one score in 16,000 passes 4 by chance)",
                Values(
                    SCORES,
                    r"score, (?P<scheme>\w+), (?P<rule>\w+), depth (?P<depth>\d+), given (?P<given>\w+)",
                ),
                AtMost(4.0),
            ),
        ),
        law=True,
        difference="a test of the program on real models, by counting; what it accepts is part of the law of the text, "
        "not all of it.",
    ),
)
