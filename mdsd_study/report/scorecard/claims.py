"""Every claim, from ``claims.toml``: what is claimed, by whom, how it is measured here, by which criterion it holds.

The verdicts are computed from the results files, see :mod:`mdsd_study.report.scorecard.verdicts`; the scorecard of the
book is made from this list.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from mdsd_study.report.data_files import check_fields, read_packaged
from mdsd_study.report.published import PAPERS, Paper
from mdsd_study.report.scorecard.claim_values import At, Change, Source, Turn, Values
from mdsd_study.report.scorecard.verdicts import Above, AtMost, Evidence, Judgement, Reader, judge


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes
    ----------
    key : str
        A name of its own, such as ``hu-gap``.
    title : str
        A few words, for the table.
    statement : str
        What is claimed.
    paper : Paper or None
        Who claims it; None for what this book asks itself.
    finding : str or None
        The key of the paper's finding; None for a formula, and for what this book asks itself.
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
    statement: str
    paper: Paper | None = None
    finding: str | None = None
    evidence: tuple[Evidence, ...] = ()
    law: bool = False
    published: str = ""
    difference: str = ""
    needs: str = ""

    def judge(self, read: Reader) -> Judgement:
        """The verdict from the results at hand; see :func:`mdsd_study.report.scorecard.verdicts.judge`."""
        return judge(self.evidence, read, law=self.law)


_CLAIM = {"paper": str, "finding": str, "statement": str, "law": bool, "published": str, "difference": str}
_VALUES = {"plus": list, "minus": list, "of": str, "axis": str, "sign": int, "given": dict}
_JUDGED = {"above": float, "at_most": float, "points": bool}
#: How cells are taken along a property, each way with what it must be given.
_ALONG = {
    "at": "{ PROPERTY = 0.1 }",
    "change": "{ PROPERTY = [0.1, 1.0] }",
    "turn": '{ PROPERTY = [0.8, 1.0] } or { PROPERTY = "anywhere" }',
}

T = TypeVar("T")


def read_claim(entry: Mapping[str, Any], patterns: Mapping[str, str]) -> Claim:
    """One entry of ``claims.toml``, whose head says what the fields are.

    Parameters
    ----------
    entry : mapping
        As it was read.
    patterns : mapping of str to str
        Parts of regular expressions that ``{name}`` stands for in `keys`.

    Raises
    ------
    ValueError
        If a field is not what it must be; the message names the claim, the field, its value and what would be right.

    Examples
    --------
    >>> claim = {"key": "own-gap", "title": "Gaps", "statement": "there is a gap"}
    >>> evidence = {"how": "the gap", "notebook": "06_verifiers", "keys": "gap, (?P<rule>.*)", "above": 0.1}
    >>> read_claim({**claim, "evidence": [evidence]}, {}).evidence[0].criterion
    Above(limit=0.1)
    >>> read_claim({**claim, "evidence": [{**evidence, "keys": "*"}]}, {})
    Traceback (most recent call last):
        ...
    ValueError: claim 'own-gap', evidence 1: keys must be a regular expression, got '*': nothing to repeat at position 0
    """
    where = f"claim {entry.get('key')!r}"
    fields = dict(check_fields(entry, where, {"key": str, "title": str}, {**_CLAIM, "needs": str, "evidence": list}))
    evidence = enumerate(fields.pop("evidence", ()), 1)
    fields["evidence"] = tuple(_evidence(one, f"{where}, evidence {i}", patterns) for i, one in evidence)
    if "paper" in fields:
        fields["paper"] = _chosen({paper.key: paper for paper in PAPERS}, fields["paper"], f"{where}: paper")
    if ("finding" in fields) == ("statement" in fields) or ("finding" in fields and "paper" not in fields):
        raise ValueError(f"{where} must have either the finding of a paper, or a statement of its own")
    if "finding" in fields:
        fields["statement"] = _chosen(fields["paper"].findings, fields["finding"], f"{where}: finding")
    return Claim(**fields)


def _evidence(entry: Any, where: str, patterns: Mapping[str, str]) -> Evidence:
    needed = {"how": str, "notebook": str, "keys": str}
    fields = check_fields(entry, where, needed, _VALUES | dict.fromkeys(_ALONG, dict) | _JUDGED)
    keys = re.sub(
        r"\{([a-z]+)\}", lambda name: _chosen(patterns, name[1], f"{where}: a pattern in keys"), fields["keys"]
    )
    try:
        groups = re.compile(keys).groupindex
    except re.error as error:
        raise ValueError(f"{where}: keys must be a regular expression, got {keys!r}: {error}") from error
    plus, minus = (tuple(fields.get(name, ())) for name in ("plus", "minus"))
    for template in (*plus, *minus, fields.get("of", "")):
        for name in re.findall(r"\\g<(\w+)>", template):
            _chosen(groups, name, f"{where}: a group of keys in {template!r}")
    own = {name: fields[name] for name in ("of", "axis", "sign", "given") if name in fields}
    source = Values(fields["notebook"], keys, plus, minus, **own)
    if {"above", "at_most"} <= set(fields):
        raise ValueError(f"{where} must have above or at_most, got {fields['above']} and {fields['at_most']}")
    criterion = AtMost(fields["at_most"]) if "at_most" in fields else Above(fields.get("above", 0.0))
    return Evidence(fields["how"], _along(source, fields, where), criterion, fields.get("points", False))


def _along(source: Values, fields: Mapping[str, Any], where: str) -> Source:
    ways = [way for way in _ALONG if way in fields]
    if len(ways) > 1:
        raise ValueError(f"{where} must have at most one of {', '.join(_ALONG)}, got {' and '.join(ways)}")
    for way in ways:
        match way, list(fields[way].items()):
            case "at", [(name, float(place))]:
                return At(source, name, place)
            case "change", [(name, [float(first), float(second)])]:
                return Change(source, name, first, second)
            case "turn", [(name, "anywhere")]:
                return Turn(source, name)
            case "turn", [(name, [float(first), float(last)])]:
                return Turn(source, name, (first, last))
        raise ValueError(f"{where}: {way} must be like {_ALONG[way]}, got {fields[way]!r}")
    return source


def _chosen(known: Mapping[str, T], value: str, what: str) -> T:
    if value not in known:
        raise ValueError(f"{what} must be one of {', '.join(known)}, got {value!r}")
    return known[value]


_CONTENT = check_fields(
    read_packaged("mdsd_study.report.scorecard", "claims.toml"),
    "claims.toml",
    {"difference": str, "patterns": dict, "claim": list},
)

#: What differs from the papers' settings, where a claim does not say otherwise.
DIFFERENCE: str = _CONTENT["difference"]

#: All claims, in the order of the file.
CLAIMS = tuple(read_claim(entry, _CONTENT["patterns"]) for entry in _CONTENT["claim"])
