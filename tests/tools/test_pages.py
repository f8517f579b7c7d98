"""The pages that are made from data."""

import re

from tools.pages import faults
from tools.project import HERE


def test_every_fault_within_scope_is_on_the_list_once():
    listed = [name for group in faults.read_groups() for fault in group["fault"] for name in fault["ids"]]
    within = {name for name, place in faults.places(HERE).items() if not place.startswith("out of scope")}
    assert len(within) > 70
    assert sorted(listed) == sorted(within)


def test_every_test_on_the_list_exists():
    page = faults.render(HERE, "ci")
    named = re.findall(r"^  - `(\S+)`$", page, re.MULTILINE)
    assert len(named) > 70
    for place in named:
        file, _, name = place.partition("::")
        source = (HERE.root / "tests" / file).read_text(encoding="utf-8")
        assert not name or re.search(rf"^ *def {name}\(", source, re.MULTILINE), place
    assert len([place for place in named if "::" not in place]) < 5
