"""Are the numbers of this run those of the reference? One test a results file."""

import pytest

from mdsd_study.tools.notebooks.project import HERE
from mdsd_study.tools.reference.reproduce import differences, names_to_check


@pytest.mark.parametrize("name", names_to_check(HERE))
def test_results_equal_the_reference(name):
    found = differences(HERE, name)
    assert not found, "\n".join(found)
