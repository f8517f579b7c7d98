"""The pages that are made from data."""

import re

from mdsd_core.models.prompts import PROMPT_SETS
from mdsd_study.tools.notebooks.project import HERE
from mdsd_study.tools.pages import architecture, cards, documents, faults


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


def test_the_drawing_shows_every_import():
    uses = architecture.imports(HERE)
    assert set(uses) == set(architecture.PLACES) == set(architecture.WORDS)
    assert {"distributions", "schemes", "verifiers"} <= uses["decoding"]
    lower = architecture.down(uses)
    for part, used in uses.items():
        followed, seen = {part}, set()
        while followed:
            seen |= followed
            followed = {name for one in followed for name in lower[one]} - seen
        assert used <= seen, part
    drawing = architecture.draw(uses)
    assert drawing.count("<line ") == sum(map(len, lower.values()))
    assert all(f">{part}</text>" in drawing for part in uses)


def test_the_drawing_knows_which_parts_need_torch():
    needs = re.compile(r"^\s*(import|from) (torch|transformers)\b", re.MULTILINE)
    uses, heavy = architecture.imports(HERE), set()
    for part in uses:
        places = [HERE.root / package / part for package in ("mdsd_core", "mdsd_study")]
        sources = [
            path for place in places for path in [*place.rglob("*.py"), place.with_suffix(".py")] if path.is_file()
        ]
        if any(needs.search(path.read_text(encoding="utf-8")) for path in sources):
            heavy.add(part)
    for _ in uses:
        heavy |= {part for part, used in uses.items() if used & heavy}
    assert heavy == architecture.HEAVY


def test_no_part_uses_one_that_stands_no_lower():
    assert not {part: used for part, used in architecture.up(architecture.imports(HERE)).items() if used}


def test_the_library_knows_nothing_of_the_study():
    root = HERE.root / "mdsd_core"
    assert not [path for path in root.rglob("*.py") if "mdsd_study" in path.read_text(encoding="utf-8")]


def test_the_cards_name_every_set_with_its_licence():
    page = cards.render(HERE, "ci")
    for name, one in PROMPT_SETS.items():
        assert f"| `{name}` | {one.about} | {one.licence} |" in page
    assert "[[" not in page
    lock = (HERE.root / "assets.lock").read_text(encoding="utf-8")
    assert re.search(r"package `([\w-]+)`, pinned by hash", page)[1] in lock


def test_links_to_files_of_the_repository_become_words():
    page = documents.contributing(HERE, "ci")
    assert page.startswith("# Contributing")
    assert not re.search(r"\]\((?!https?://|#)", page)
