"""The pages that are made from data."""

import re
from pathlib import Path

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
    uses, rows = architecture.imports(HERE), architecture.layers(HERE)
    places = [room for row in rows for room in row]
    serving = {"assets", "disk_cache", "extras"}
    assert {room for room in places if not room.startswith("_")} == architecture.ROOMS.keys() | serving
    assert {"distributions", "schemes", "verifiers", "torch"} <= uses["decoding"]
    assert "torch" not in architecture.reached(uses, "trees") | architecture.reached(uses, "report")
    lower = architecture.down(uses)
    for room, used in uses.items():
        assert all(places.index(name) < places.index(room) for name in used - {"torch", "transformers"})
        followed, seen = {room}, set()
        while followed:
            seen |= followed
            followed = {name for one in followed for name in lower[one]} - seen
        assert used <= seen | {"torch", "transformers"}, room
    drawing = architecture.draw(uses, rows)
    assert drawing.count("<line ") >= len(architecture.ROOMS) - 3
    assert all(f">{room}</text>" in drawing for room in architecture.ROOMS)


def test_readme_and_architecture_page_name_the_same_five_files_to_read_first():
    page = Path(architecture.__file__).with_suffix(".md").read_text(encoding="utf-8")
    first = re.findall(r"^\d\. .*?`(.+?)`", page, re.MULTILINE)
    readme = (HERE.root / "README.md").read_text(encoding="utf-8")
    _, found, rest = readme.partition("begin with five files, in this order:")
    assert found
    assert first == re.findall(r"\]\((.+?)\)", rest.split("\n\n")[0])
    lengths = [len((HERE.root / name).read_text(encoding="utf-8").splitlines()) for name in first]
    assert len(first) == 5
    assert max(lengths) <= 300


def test_the_architecture_page_names_every_room_and_only_files_that_exist():
    text = Path(architecture.__file__).with_suffix(".md").read_text(encoding="utf-8")
    for room in architecture.ROOMS:
        assert re.search(rf"^\| .*`(mdsd_\w+/)?{room}(/|\.py)`.* \|$", text, re.MULTILINE), room
    answers = re.findall(r"^- Where .*\? (`.+`)$", text, re.MULTILINE)
    assert len(answers) > 25
    for name in re.findall(r"`(mdsd_\w+/[\w/.]+)`", text):
        assert (HERE.root / name).exists(), name
    for name in (name for answer in answers for name in re.findall("`(.*?)`", answer)):
        assert (HERE.root / name).is_file(), name


def test_every_file_is_in_the_index_of_the_architecture_page():
    text = "".join(architecture.index(HERE, row) for row in architecture.layers(HERE))
    listed = re.findall(r"^`(.*)`\n: \S", text, re.MULTILINE)
    files = [path for package in ("mdsd_core", "mdsd_study") for path in (HERE.root / package).glob("*[!_]*/**/*.py")]
    files += [path for package in ("mdsd_core", "mdsd_study") for path in (HERE.root / package).glob("*[!_].py")]
    assert sorted(listed) == sorted(path.relative_to(HERE.root).as_posix() for path in files)


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
