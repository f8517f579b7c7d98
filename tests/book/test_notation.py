"""The page on notation: its names are those of the library."""

import re
from pathlib import Path

import mdsd_core
from mdsd_core import schemes as all_schemes
from mdsd_core.transport.subset import optimal_acceptance
from mdsd_core.verifiers.interface import _REGISTRY

PAGE = (Path(__file__).parents[2] / "book" / "notation.md").read_text(encoding="utf-8")


def table(after):
    """The first table behind a heading, as rows of cells."""
    lines = PAGE.split(after)[1].split("\n\n")
    rows = next(part for part in lines if part.startswith("| ")).splitlines()[2:]
    return [[cell.strip() for cell in row.strip("| ").split("|")] for row in rows]


def test_every_scheme_has_a_row():
    rows = [re.match(r"`(\w+)\(", cells[0])[1] for cells in table("## How drafts are drawn")]
    schemes = {name for name in mdsd_core.__all__ if hasattr(all_schemes, name)} - {"Scheme"}
    assert set(rows) == schemes


def test_every_verifier_has_a_row_and_is_lossless_for_what_it_says():
    rows = {cells[1].strip("`"): cells[-1] for cells in table("## Verifiers")}
    assert set(rows) == set(_REGISTRY)
    for name, words in rows.items():
        for scheme in re.findall(r"`(\w+)\((n?)\)`", words):
            one = getattr(mdsd_core, scheme[0])(*[3] * bool(scheme[1]))
            assert mdsd_core.verifier(name).supports(one), (name, scheme)


def test_symbols_have_the_names_of_the_code():
    names = {cells[1].strip("`") for cells in table("## One position") if cells[1]}
    scheme = mdsd_core.WithReplacement(2)
    best = optimal_acceptance([0.6, 0.4], [0.2, 0.8], scheme)
    selection = mdsd_core.verifier("optimal").prepare(best.p, best.q, scheme).selection
    assert {"rate", "curve", "subset", "marginal", "prefix_mass", "fixed_set", "weights"} <= names
    for name in names - {"V"}:
        assert any(hasattr(thing, name) for thing in (best, scheme, selection)), name


def test_the_top_of_the_curve_is_what_has_to_be_rejected():
    for scheme in (mdsd_core.WithReplacement(2), mdsd_core.greedy(2)):
        best = optimal_acceptance([0.5, 0.2, 0.3], [0.2, 0.7, 0.1], scheme)
        assert abs(best.curve.max() - (1 - best.rate)) < 1e-15
