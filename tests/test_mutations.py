"""The catalogue of mutations fits the source, and a sample of it is killed (`make mutants` runs all)."""

import ast

import pytest

from tests.mutations import CATALOGUE, ROOT, SAMPLE, check, copy_project, mutated


def test_catalogue_fits_the_source():
    assert len(CATALOGUE) >= 30
    assert len({m.name for m in CATALOGUE}) == len(CATALOGUE)
    for mutation in CATALOGUE:
        ast.parse(mutated((ROOT / mutation.file).read_text(encoding="utf-8"), mutation.edits))
        assert mutation.tests


def test_text_that_is_gone_is_an_error():
    with pytest.raises(ValueError, match="0 times"):
        mutated("a = 1", (("a = 2", "a = 3"),))
    with pytest.raises(ValueError, match="2 times"):
        mutated("a = 1; a = 1", (("a = 1", "a = 3"),))
    with pytest.raises(ValueError, match="itself"):
        mutated("a = 1", (("a = 1", "a = 1"),))


@pytest.mark.parametrize("name", SAMPLE)
def test_mutant_is_killed(name, tmp_path):
    copy_project(tmp_path)
    [mutation] = [m for m in CATALOGUE if m.name == name]
    killed, _, output = check(mutation, tmp_path)
    assert killed, output
