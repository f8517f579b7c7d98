"""The reference vectors: are they what the library says, do they agree with a reader that shares no code with it?"""

import copy
import importlib.util
import json

import pytest

from mdsd_core.verifiers import verifiers_for
from mdsd_study.tools.notebooks.project import HERE
from mdsd_study.tools.reference.write_vectors import PLACE, SCHEMES, vectors

FILE = HERE.book / PLACE


@pytest.fixture(scope="module")
def stored():
    return json.loads(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def checker():
    specification = importlib.util.spec_from_file_location("check_vectors", FILE.with_name("check_vectors.py"))
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def same(old, new, tolerance):
    if isinstance(old, dict):
        return old.keys() == new.keys() and all(same(old[key], new[key], tolerance) for key in old)
    if isinstance(old, list):
        return len(old) == len(new) and all(same(a, b, tolerance) for a, b in zip(old, new))
    if isinstance(old, float):
        return isinstance(new, float) and abs(old - new) <= tolerance
    return old == new


def flattened(q):
    return [0.9 * value + 0.1 / len(q) for value in q]


def test_they_are_what_the_library_says(stored):
    made = vectors()
    assert stored["tolerance"] == made["tolerance"]
    assert same({**stored, "made_by": ""}, {**made, "made_by": ""}, stored["tolerance"])
    assert FILE.stat().st_size < 200_000


def test_a_changed_number_is_noticed(stored, checker):
    changed = copy.deepcopy(stored)
    law = changed["cases"][-1]["verifiers"]["token_matching"]["laws"][0]
    changed["cases"][0]["verifiers"]["rrs"]["acceptance"] += 1e-9
    law[0] -= 1e-9
    assert not same(stored, changed, stored["tolerance"])
    assert len(list(checker.check(changed))) == 2


def test_a_reader_without_the_library_agrees(stored, checker):
    assert list(checker.check(stored)) == []
    source = FILE.with_name("check_vectors.py").read_text(encoding="utf-8")
    assert {line.split()[1] for line in source.splitlines() if line.startswith(("import", "from"))} == {"json", "sys"}
    assert set(checker.RULES) == {rule for _, rules in SCHEMES.values() for rule in rules}


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        ("rrs", lambda c, p, q, n, d: c.recursive_rejection(p, q, list(dict.fromkeys(d)), True)),  # duplicates skipped
        ("rrs_without", lambda c, p, q, n, d: c.recursive_rejection(p, q, d, True)),  # q not renormalised
        ("rrs", lambda c, p, q, n, d: c.recursive_rejection(p, flattened(q), d, True)),  # another q than the drafts'
        ("kseq", lambda c, p, q, n, d: c.kseq(p, q, 1, d)),  # a factor below the smallest
        ("greedy", lambda c, p, q, n, d: c.recursive_rejection(p, q, d[-1:], True)),  # q with the top tokens in it
        ("spechub", lambda c, p, q, n, d: c.spechub(p, q, n, sorted(d))),  # the order of the pair forgotten
        ("deterministic", lambda c, p, q, n, d: c.recursive_rejection(p, q, d, False)),  # chosen, judged as sampled
        ("token_matching", lambda c, p, q, n, d: q),
    ],
)
def test_the_reader_notices_a_fault(stored, checker, rule, fault):
    def broken(p, q, n, drafts):
        return fault(checker, p, q, n, drafts)

    found = list(checker.check(stored, {**checker.RULES, rule: broken}))
    assert found
    assert all(rule in line for line in found)


def test_the_cases_cover_the_rules_and_hold_laws(stored):
    assert {rule for case in stored["cases"] for rule in case["verifiers"]} == {
        "rrs", "rrs_without", "kseq", "greedy", "spechub", "deterministic", "token_matching",
    }  # fmt: skip
    for case in stored["cases"]:
        make, rules = SCHEMES[case["scheme"]]
        assert set(rules) <= set(verifiers_for(make(case["n"])))
        assert abs(sum(case["probabilities"]) - 1.0) < 1e-12
        assert len({tuple(row) for row in case["drafts"]}) == len(case["drafts"]) == len(case["probabilities"])
        for expected in case["verifiers"].values():
            assert all(abs(sum(law) - 1.0) < 1e-12 and min(law) >= 0.0 for law in expected["laws"])
    repeated = [case for case in stored["cases"] if any(len(set(row)) < len(row) for row in case["drafts"])]
    assert len(repeated) > 10


def test_the_page_shows_what_the_checker_prints(stored):
    assert f"\n{len(stored['cases'])} cases agree\n" in (HERE.book / "engines.md").read_text(encoding="utf-8")
