# `make` lists the targets. Every target first makes its own Python environment in $(VENV) if need be, so each works as
# the first command on a machine that has Python 3.11 and make.

PYTHON  ?= python3.11
VENV    ?= .venv
LOCK    ?= requirements.lock
PROFILE ?= quick
PORT    ?= 8000
# Notebooks to run, by name; empty for all.
NOTEBOOKS ?=
# More arguments for pytest (test, test-slow, check) or for each benchmark (bench).
ARGS ?=

PY := $(VENV)/bin/python
# One thread: more of them change the last digits of sums, and `make test` already uses two processes.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1
SKIPPED := slow or gpu
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONUTF8 := 1
# Packages are installed without bytecode; where the shell forbids Python to keep it, each of the notebooks' kernels would
# compile torch and transformers anew (10 s of processor time each).
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup notebooks book test test-oldest test-slow check lint format bench gpu-check pdf serve clean coverage \
	mutants contexts reference-values reference

help:  ## List the targets and the notebooks' budget of seconds
	@echo "Usage: make TARGET [PROFILE=ci|quick|full]"
	@echo
	@grep -hE '^[a-z-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed 's/:.*## /\t/' | \
		while IFS="$$(printf '\t')" read -r name text; do printf '  %-17s %s\n' "$$name" "$$text"; done
	@echo
	@echo "Budget of the notebooks (notebooks/budget.toml), seconds on 2 cores"
	@grep -vE '^ *(#|$$)' notebooks/budget.toml | sed 's/^/  /'

setup: $(VENV)/.stamp-package $(VENV)/.stamp-assets  ## Make the Python environment: pinned packages, model, prompts

$(VENV)/.stamp-venv:
	@if [ -x "$(PY)" ] && "$(PY)" -m pip --version >/dev/null 2>&1; then \
		echo "Using the environment in $(VENV)"; \
	elif ! command -v "$(PYTHON)" >/dev/null 2>&1; then \
		echo "make: $(PYTHON) was not found. Install Python 3.11 (3.11.5 or later), or say where one is:" >&2; \
		echo "      make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; \
	elif ! "$(PYTHON)" -c 'import sys; sys.exit(not (3, 11, 5) <= sys.version_info < (3, 15))'; then \
		echo "make: $$($(PYTHON) --version) is not supported: Python 3.11.5 or later, below 3.15, is needed." >&2; exit 1; \
	else \
		echo "Making a Python environment in $(VENV)"; "$(PYTHON)" -m venv "$(VENV)"; \
	fi
	@touch $@

$(VENV)/.stamp-lock: $(LOCK) $(VENV)/.stamp-venv
	@echo "Installing the pinned packages (about 1.5 GB; several more where torch comes with CUDA, see README.md)"
	"$(PY)" -m pip install --no-compile -r $(LOCK)
	@touch $@

$(VENV)/.stamp-package: pyproject.toml $(VENV)/.stamp-lock
	"$(PY)" -m pip install --no-compile --no-deps -e .
	@touch $@

$(VENV)/.stamp-assets: assets.lock $(VENV)/.stamp-lock | $(VENV)/.stamp-package
	"$(PY)" -m pip install --no-compile --no-deps --require-hashes -r assets.lock
	@touch $@

notebooks: setup  ## Run the notebooks that are not up to date (NOTEBOOKS="A B" for some of them)
	"$(PY)" -m mdsd_study.tools.notebooks.run_notebooks --profile $(PROFILE) $(NOTEBOOKS)

book: setup  ## Run the notebooks and build the book: _build/html/index.html
	"$(PY)" -m mdsd_study.tools.notebooks.run_notebooks --profile $(PROFILE)
	"$(PY)" -m mdsd_study.tools.build_book --profile $(PROFILE)

test: setup  ## Run the tests and the examples in docstrings (minutes)
	$(ONE_THREAD) "$(PY)" -m pytest -n 2 -m "not ($(SKIPPED))" --doctest-modules --durations=20 \
		tests mdsd_core mdsd_study $(ARGS)

test-oldest:  ## Run the tests of mdsd_core with the lowest versions it allows, in .venv-oldest (requirements.oldest.lock)
	$(MAKE) setup VENV=.venv-oldest LOCK=requirements.oldest.lock
	$(ONE_THREAD) .venv-oldest/bin/python -m pytest -n 2 -m "not ($(SKIPPED))" tests/core tests/decoding $(ARGS)

test-slow: setup  ## Run the tests that take many minutes
	$(ONE_THREAD) "$(PY)" -m pytest -n 2 -m slow tests $(ARGS)

check: setup  ## Compare results/ with reference/, and look at the built book (after `make book`)
	$(ONE_THREAD) "$(PY)" -m pytest tests/built $(ARGS)

lint: setup  ## Check style, types, imports, lines of code, and that notebooks are stripped
	"$(PY)" -m ruff check .
	"$(PY)" -m ruff format --check .
	"$(PY)" -m mypy
	"$(VENV)/bin/lint-imports" --no-cache --no-logo
	"$(PY)" -m mdsd_study.tools.check.code_lines
	"$(PY)" -m mdsd_study.tools.notebooks.strip_notebooks --check

format: setup  ## Format the sources and strip the notebooks
	"$(PY)" -m ruff check --fix .
	"$(PY)" -m ruff format .
	"$(PY)" -m mdsd_study.tools.notebooks.strip_notebooks

bench: setup  ## Print the tables of mdsd_study/benchmarks/
	@for file in mdsd_study/benchmarks/[a-z]*.py; do \
		name=$$(basename "$$file" .py); echo "== $$name"; \
		env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(ONE_THREAD) "$(PY)" -m mdsd_study.benchmarks.$$name $(ARGS) || exit 1; \
	done

gpu-check: setup  ## Run the tests that need a GPU, on a GPU; writes _build/gpu_check.json
	"$(PY)" -m mdsd_study.tools.check.gpu_check

coverage: setup  ## Measure the lines that tests reach, kernels included (compilation off)
	NUMBA_DISABLE_JIT=1 $(ONE_THREAD) "$(PY)" -m pytest -n 2 -m "not ($(SKIPPED) or large or model)" \
		-W ignore::RuntimeWarning --ignore=tests/book --ignore=tests/study/tools \
		--cov=mdsd_core --cov=mdsd_study --cov-report=term-missing:skip-covered --cov-fail-under=95 tests $(ARGS)

mutants: setup  ## Break the rules on purpose, and see that the tests notice
	$(ONE_THREAD) "$(PY)" -m tests.mutations $(ARGS)

contexts: setup  ## Draw the stored texts of PROFILE anew: reference/PROFILE/contexts/
	$(ONE_THREAD) "$(PY)" -m mdsd_study.measure.stored_texts --profile $(PROFILE)

reference-values: notebooks  ## Take the results of the notebooks as the new reference: reference/PROFILE/*.json
	"$(PY)" -m mdsd_study.tools.reference.write_reference --profile $(PROFILE) $(NOTEBOOKS)

reference: contexts  ## Make all of reference/PROFILE/ anew: texts, then values
	$(MAKE) reference-values

pdf: book  ## Print the book to _build/mdsd.pdf (needs Chromium)
	"$(PY)" -m mdsd_study.tools.print_pdf

serve: setup  ## Show the built book at http://127.0.0.1:$(PORT)/
	@test -f _build/html/index.html || { echo "there is no book in _build/html: run \`make book\`" >&2; exit 1; }
	"$(PY)" -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

clean:  ## Remove what was built (_build/, results/, caches); the environment stays
	rm -rf _build results .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage coverage.xml *.egg-info
	find . -name __pycache__ -type d -not -path './$(VENV)*/*' -prune -exec rm -rf {} +
