"""What other papers report, as data: their findings, and figures to set beside this project's own.

Facts only, each with its source. Figures read in other people's notes and not in the paper itself are marked.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """A paper whose claims are judged here.

    Attributes
    ----------
    key : str
        Its key in the book's bibliography.
    name : str
        A short name.
    arxiv : str
        The number of its preprint.
    setup : str
        Models, tasks and settings.
    findings : dict of str to str
        Its claims, by a key of their own, one statement each, in our words.

    Examples
    --------
    >>> YANG.arxiv, YANG.findings["lossless"]
    ('2401.06706', 'the target distribution is kept')
    """

    key: str
    name: str
    arxiv: str
    setup: str
    findings: dict[str, str]


HU = Paper(
    key="hu2025",
    name="Hu et al., Towards Optimal Multi-draft Speculative Decoding (ICLR 2025)",
    arxiv="2502.18779",
    setup="LLaMA-7B with LLaMA-68M, OPT-6.7B with OPT-125M, Vicuna-7B-v1.3 and Qwen2-7B-Instruct with EAGLE heads; "
    "Alpaca, WMT14 De-En and CNN/DailyMail, 1,024 samples each, up to 128 new tokens; T = 0.7 and n = 3 where not "
    "varied; speed on MT-Bench on an RTX A6000, trees 2 x depth 4, 4 x depth 3 and EAGLE's default",
    findings={
        "gap": "existing verifiers stay below the optimal rate, with and without replacement",
        "without": "without replacement beats with replacement in the optimum and in RRS",
        "growth": "the gap to the optimum grows with the number of drafts",
        "greedy": "greedy drafts are accepted more often than those of RRS, K-SEQ and RRS without replacement",
        "greedy-cold": "at T=0.1 greedy drafts are accepted more often than those of RRS without replacement",
        "greedy-fade": "the lead of greedy drafts over RRS without replacement shrinks from T=0.1 to T=1",
        "greedy-cold-with": "at T=0.1 greedy drafts are accepted more often than any rule could accept drafts with "
        "replacement",
        "greedy-cold-without": "at T=0.1 greedy drafts are accepted more often than any rule could accept drafts "
        "without replacement",
        "greedy-fade-bounds": "the lead of greedy drafts over the optimum of other drafts shrinks from T=0.1 to T=1",
        "greedy-optimal": "the greedy verifier attains its own optimum",
        "turn": "the effect of temperature is not monotone (turn near T=0.9)",
        "pairs": "all of this on the paper's own pairs of models and its own tasks",
        "heads": "all of this with trained EAGLE heads as drafts",
        "speed": "the speed-ups on a GPU",
    },
)

YANG = Paper(
    key="yang2024",
    name="Yang et al., Multi-Candidate Speculative Decoding",
    arxiv="2401.06706",
    setup="drafts LLaMA-68M, LLaMA-160M, Vicuna-68M and Vicuna-160M; Alpaca prompts and 1,000 test sentences of WMT "
    "En-De, up to 128 new tokens; trees such as (4, 2, 2)",
    findings={
        "several": "several candidates raise acceptance over one candidate on every model, data set and decoding setup "
        "tried",
        "twenty": "acceptance with several candidates is at least 20 % above that of one: RRS with replacement",
        "twenty-without": "acceptance with several candidates is at least 20 % above that of one: RRS without "
        "replacement",
        "lossless": "the target distribution is kept",
        "pairs": "all of this on the paper's own pairs of models and its own tasks",
        "speed": "the speed-ups on a GPU",
    },
)

PAPERS = (HU, YANG)


@dataclass(frozen=True)
class Figures:
    """A table of another paper.

    Attributes
    ----------
    key : str
        A key of its own.
    source : str
        Whose, where.
    setup : str
        Models, tasks and settings.
    unit : str
        What the numbers are.
    columns : tuple of str
        Heads of the columns.
    rows : dict of str to tuple of float
        The numbers, a row each.

    Examples
    --------
    >>> dict(zip(SPECTR.columns, SPECTR.rows["as above"], strict=True))
    {'SpecTr': 4.0, 'one draft': 2.9}
    """

    key: str
    source: str
    setup: str
    unit: str
    columns: tuple[str, ...]
    rows: dict[str, tuple[float, ...]]


#: Digits read by character recognition from the paper's table.
KHISTI = Figures(
    key="khisti",
    source="Khisti et al., arXiv 2410.18234",
    setup="K identical drafts with replacement; digits read from the table by machine",
    unit="mean acceptance",
    columns=("optimal", "importance sampling", "SpecTr", "SpecInfer"),
    rows={
        "XSum, K=2": (0.5009, 0.4933, 0.4889, 0.4875),
        "XSum, K=4": (0.5226, 0.5145, 0.5083, 0.5058),
        "XSum, K=8": (0.5419, 0.5333, 0.5263, 0.5227),
        "Dolly, K=2": (0.6384, 0.6348, 0.6246, 0.6202),
        "Dolly, K=4": (0.6731, 0.6691, 0.6560, 0.6489),
        "Dolly, K=8": (0.6962, 0.6919, 0.6800, 0.6722),
    },
)

SPECHUB = Figures(
    key="spechub",
    source="run logs published with SpecHub, arXiv 2411.05289",
    setup="Llama-2-7b-chat, drafts of 68M and 160M, 200 prompts of CNN/DailyMail, full binary trees",
    unit="tokens per target call",
    columns=("depth 2", "depth 3", "depth 4", "depth 5"),
    rows={
        "68M, T=0.6, RRS": (1.554, 1.848, 2.051, 2.139),
        "68M, T=0.6, RRS without replacement": (1.600, 1.969, 2.169, 2.315),
        "68M, T=0.6, SpecHub": (1.616, 1.986, 2.246, 2.403),
        "68M, T=1, RRS": (1.543, 1.838, 1.976, 2.069),
        "68M, T=1, RRS without replacement": (1.552, 1.879, 2.044, 2.138),
        "68M, T=1, SpecHub": (1.600, 1.983, 2.211, 2.310),
        "160M, T=0.6, RRS": (1.634, 2.016, 2.283, 2.378),
        "160M, T=0.6, RRS without replacement": (1.668, 2.143, 2.370, 2.605),
        "160M, T=0.6, SpecHub": (1.686, 2.176, 2.484, 2.724),
        "160M, T=1, RRS": (1.609, 1.960, 2.204, 2.315),
        "160M, T=1, RRS without replacement": (1.633, 2.054, 2.286, 2.418),
        "160M, T=1, SpecHub": (1.675, 2.136, 2.420, 2.662),
    },
)

GLS = Figures(
    key="gls",
    source="arXiv 2506.05632",
    setup="Qwen-2.5, eight drafts of length 4",
    unit="block efficiency",
    columns=("SpecInfer", "SpecTr", "GLS", "one draft"),
    rows={"GSM8K": (4.75, 4.78, 4.78, 4.18), "HumanEval": (4.54, 4.56, 4.55, 3.75)},
)

SPECTR = Figures(
    key="spectr",
    source="Sun et al. (SpecTr), arXiv 2310.15141",
    setup="PaLM-2, eight drafts of length 8, T = 1",
    unit="block efficiency",
    columns=("SpecTr", "one draft"),
    rows={"as above": (4.0, 2.9)},
)

TABLES = (KHISTI, SPECHUB, GLS, SPECTR)
