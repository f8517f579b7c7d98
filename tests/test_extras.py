"""What works with which extra, and what is said where one is missing: packages are hidden from a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mdsd_core.extras import EXTRAS

ROOT = Path(__file__).resolve().parent.parent
HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
"""


def run(code, *arguments, extras=()):
    """Run code where the packages of all extras but these are missing."""
    hidden = {name for name, extra in EXTRAS.items() if extra not in extras}
    if "models" not in extras:
        hidden |= {"tokenizers", "tqdm", "accelerate", "gguf"}
    command = [sys.executable, "-c", HIDE.format(hidden=hidden) + code, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")


def mdsd(*arguments, extras=("cli",)):
    return run("from mdsd_study.cli import main; main()", *arguments, extras=extras)


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"p": [0.5, 0.3, 0.2], "q": [0.2, 0.3, 0.5]}))
    return path


def test_the_base_has_all_but_models_and_decoding():
    code = """
import mdsd_core
for name in mdsd_core.__all__:
    try:
        getattr(mdsd_core, name)
    except ImportError as error:
        print(name, error)
"""
    done = run(code)
    assert done.returncode == 0, done.stderr
    without = {"GenerationResult": "decoding", "generate": "decoding"}
    without |= {name: f"mdsd_core.models.{name}" for name in ("load_model", "load_pair")}
    assert done.stdout.splitlines() == [
        f"{name} the package torch is needed for {what}: `pip install 'mdsd-core[models]'`"
        for name, what in without.items()
    ]


def test_the_command_needs_its_extra(mine):
    done = mdsd("bound", mine, extras=())
    assert (done.returncode, done.stdout) == (3, "")
    assert (
        done.stderr.strip() == "error: the package typer is needed for the command line: `pip install 'mdsd-core[cli]'`"
    )


@pytest.mark.parametrize("arguments", [["bound", "FILE", "--json"], ["compare", "FILE", "--json"]], ids=str)
def test_bound_and_compare_need_no_other_and_load_no_more_than_they_use(mine, arguments):
    """What would make them slow: the larger parts of SciPy, and compiling what three tokens do not need."""
    code = """
from mdsd_study.cli import main
try:
    main()
finally:
    import numba
    assert numba.config.DISABLE_JIT
    assert not {"scipy.stats", "scipy.optimize", "scipy.sparse"} & set(sys.modules)
"""
    done = run(code, *(mine if word == "FILE" else word for word in arguments), extras=("cli",))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


@pytest.mark.parametrize(
    ("arguments", "package", "extra"),
    [
        (["compare", "FILE", "-n", "1", "--plot", "a.png"], "matplotlib", "study"),
        (["compare", "--target", "tiny-random", "--draft", "tiny-random-draft"], "torch", "models"),
        (["generate", "hello"], "torch", "models"),
        (["models", "list"], "torch", "models"),
        (["bench"], "torch", "models"),
        (["measure", "--list"], "torch", "models"),
    ],
)
def test_other_commands_say_what_to_install(mine, arguments, package, extra):
    done = mdsd(*(mine if word == "FILE" else word for word in arguments))
    assert (done.returncode, done.stdout) == (3, "")
    line = done.stderr.splitlines()[-1]
    assert line.startswith(f"error: the package {package} is needed for ")
    assert line.endswith(f": `pip install 'mdsd-core[{extra}]'`")


def test_an_error_within_a_package_is_not_explained_away():
    code = "from mdsd_core.extras import needed_for\nwith needed_for('this'): import no_such_package"
    assert run(code).stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'no_such_package'"
