"""The public interface: complete, imported only when asked for, with docstrings that refer to what exists."""

import ast
import importlib
import inspect
import re
import subprocess
import sys

import pytest

import mdsd_core
from mdsd_study.tools.notebooks.project import HERE
from mdsd_study.tools.pages import api

NAMES = {page: api.names_of(part) for page, part in api.PARTS.items()}
ROLE = re.compile(r":(func|class|meth|mod|data|attr|exc|obj):`(?:[^`<]*<)?~?\.?([\w.]+)>?`")


PUBLIC = {
    "Deterministic", "DistinctConditioned", "DraftTree", "Estimate", "GenerationResult", "SamplingParams", "Scheme",
    "SpecHubPairs", "TopThenSampled", "Verdict", "WithReplacement", "WithoutReplacement", "generate", "greedy",
    "load_model", "load_pair", "load_prompts", "optimal_acceptance", "probabilities", "verifier", "verifiers_for",
}  # fmt: skip


def test_every_name_of_the_package_can_be_had():
    assert mdsd_core.__all__ == sorted(mdsd_core.__all__)
    assert set(mdsd_core.__all__) == PUBLIC
    for name in mdsd_core.__all__:
        assert callable(getattr(mdsd_core, name)), name
        assert name in dir(mdsd_core)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        mdsd_core.nothing  # noqa: B018


@pytest.mark.parametrize("package", ["mdsd_core", "mdsd_core.models"])
def test_names_imported_when_asked_for_exist(package):
    module = importlib.import_module(package)
    assert module.__all__
    for name in module.__all__:
        assert hasattr(module, name), f"{package}.{name}"


def test_nothing_heavy_is_imported_before_it_is_needed():
    code = """
import sys, mdsd_core
heavy = lambda: {name for name in ("torch", "transformers", "numba", "scipy", "matplotlib") if name in sys.modules}
assert not heavy(), heavy()
mdsd_core.optimal_acceptance, mdsd_core.verifier, mdsd_core.greedy, mdsd_core.load_prompts
assert not heavy() & {"torch", "transformers", "matplotlib"}, heavy()
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=HERE.root)


@pytest.mark.parametrize("page", NAMES)
def test_every_public_name_is_real_and_has_a_docstring(page):
    assert NAMES[page]
    for one in NAMES[page]:
        thing = getattr(importlib.import_module(one.module), one.name)
        assert inspect.isclass(thing) == (one.kind == "class")
        assert one.summary.rstrip().endswith((".", ":", "?")), f"{one.module}.{one.name}: {one.summary!r}"


@pytest.mark.parametrize("page", NAMES)
def test_docstrings_refer_to_names_that_exist(page):
    for one in NAMES[page]:
        thing = getattr(importlib.import_module(one.module), one.name)
        homes = [thing, sys.modules[thing.__module__], importlib.import_module(one.module), mdsd_core]
        texts = [inspect.getdoc(thing) or ""]
        if inspect.isclass(thing):
            texts += [inspect.getdoc(value) or "" for key, value in vars(thing).items() if not key.startswith("_")]
        for kind, target in (match for text in texts for match in ROLE.findall(text)):
            assert exists(target, homes), f"{one.module}.{one.name} refers to {kind} {target}"


def exists(target, homes):
    """Whether a role's target can be reached: from one of the homes, or as an absolute name."""
    first, *rest = target.split(".")
    for start in homes:
        if hasattr(start, first):
            found = getattr(start, first)
            if all(hasattr(found, name) and (found := getattr(found, name)) is not None for name in rest):
                return True
    parts = target.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        return all(hasattr(found, name) and ((found := getattr(found, name)) or True) for name in parts[cut:])
    return False


def test_a_wrong_reference_is_noticed():
    home = importlib.import_module("mdsd_core.schemes.base")
    assert not exists("mdsd_core.schemes.nothing", [home])
    assert not exists("Scheme.nothing", [home])
    assert exists("Scheme.sample", [home])
    assert exists("mdsd_core.transport.curtain.coupling.iid_plan", [home])


@pytest.mark.parametrize("page", NAMES)
def test_every_public_name_has_an_example(page):
    """In its own docstring or that of a method; `make test` runs them all."""
    for one in NAMES[page]:
        (node,) = ast.parse(inspect.getsource(inspect.unwrap(one.value))).body
        texts = [
            ast.get_docstring(part) for part in [node, *node.body] if isinstance(part, ast.FunctionDef | ast.ClassDef)
        ]
        assert any(">>>" in (text or "") for text in texts), f"{one.module}.{one.name} has no example"
        assert not any("+SKIP" in (text or "") for text in texts), (
            f"{one.module}.{one.name} has an example that is not run"
        )
