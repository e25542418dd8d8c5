PYTHON ?= python3
BIN := .venv/bin
# Many tests wait for a process, so that there are more of them than processors.
WORKERS := $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))
# More flags for the demo: make demo UP="--once --no-browser"
UP ?=
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
# Tests start many processes: what is compiled is kept for the next, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=
# The first install takes a while: each package is named as it comes. If one cannot be installed,
# all that pip printed is shown.
INSTALL = $(BIN)/pip install --progress-bar off --disable-pip-version-check --constraint constraints.txt \
	--editable '$(1)' 2>&1 | tee .venv/install.log | sed -un 's/^Collecting \([A-Za-z0-9._-]*\).*/   \1/p' || \
	{ cat .venv/install.log >&2; exit 1; }
# One resolution for all Pythons that pyproject.toml allows, by markers where they differ.
COMPILE := pip compile --universal --upgrade --quiet --no-annotate --custom-compile-command "make lock" pyproject.toml

.PHONY: help install demo simulate test coverage soak exactness mutations lint format docs site house screenshots bench hostile lock image-check release clean
.SILENT:

help:
	echo "make install   make .venv, with Moorage and all that its tests need"
	echo "make demo      a minute of story on a cluster in one process, to try with kubectl after"
	echo "make simulate  schedule the example cluster and show the decisions"
	echo "make test      everything CI checks: format, lint, types, layers, tests"
	echo "make lint      the same without the tests"
	echo "make coverage  the tests alone, with a report of the lines that they run"
	echo "make format    rewrite the code in house format"
	echo "make docs      write the tables in the docs that are made from code and results"
	echo "make site      build the docs as a site with search, in site/"
	echo "make house     print how large the code is, and check that its figures do not grow"
	echo "make screenshots  take the pictures in the docs, with Chromium"
	echo "make soak      an hour of hostile objects, killed API servers and killed schedulers"
	echo "make exactness decide random streams with and without reuse, a million decisions"
	echo "make mutations make mistakes in the machinery of reuse, and see that tests notice"
	echo "make bench     measure throughput, and write benchmarks/results and the tables in docs"
	echo "make hostile   measure what the costliest pods cost, against limits"
	echo "make lock      refresh constraints.txt and requirements.lock"
	echo "make image-check  run the install steps of the Dockerfile in an empty folder"
	echo "make release   make wheel, sdist, chart and SBOM of the tag that is checked out"
	echo "make clean     remove everything that was generated"

install: .venv/installed-test

demo: .venv/installed
	$(BIN)/moorage up --demo $(UP)

# Exit code 1 means that a pod stayed pending, which a demo may show.
simulate: .venv/installed
	$(BIN)/moorage simulate examples/demo || test $$? -eq 1

test: lint
	echo "== pytest"
	$(BIN)/pytest --quiet --numprocesses $(WORKERS) --dist worksteal

coverage: .venv/installed-test
	echo "== pytest with coverage"
	$(BIN)/pytest --quiet --numprocesses $(WORKERS) --dist worksteal --cov --cov-report=term:skip-covered --cov-report=xml

soak: .venv/installed-test
	$(BIN)/python -m tools.fuzz --events 1000000
	$(BIN)/pytest --quiet -m soak -s tests/live

lint: .venv/installed-test
	echo "== ruff format"
	$(BIN)/ruff format --check --quiet
	echo "== ruff check"
	$(BIN)/ruff check --quiet
	echo "== mypy"
	$(BIN)/mypy
	echo "== lint-imports"
	$(BIN)/lint-imports --no-logo

format: .venv/installed-test
	$(BIN)/ruff check --fix --quiet
	$(BIN)/ruff format

docs: .venv/installed
	$(BIN)/python -m tools.doc_tables

site: .venv/installed-test
	$(call INSTALL,.[test,docs])
	$(BIN)/python -m tools.site site
	echo "Open site/index.html"

house: .venv/installed
	$(BIN)/python -m tools.house

screenshots: .venv/installed-test
	MOORAGE_SCREENSHOTS=1 $(BIN)/pytest --quiet tests/web/test_browser.py -k picture

exactness: .venv/installed-test
	$(BIN)/python -m tools.streams --decisions 1000000
	$(BIN)/python -m tools.reuse_load churn
	$(BIN)/python -m tools.reuse_load classes

mutations: .venv/installed-test
	$(BIN)/python -m tools.mutations

hostile: .venv/installed
	$(BIN)/python -m moorage.bench.hostile

bench: .venv/installed
	$(BIN)/moorage bench benchmarks --labels short --out benchmarks/results
	$(BIN)/python -m tools.doc_tables

lock:
	rm -rf .venv-lock
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install --quiet --disable-pip-version-check uv
	.venv-lock/bin/uv $(COMPILE) --all-extras --output-file constraints.txt
	.venv-lock/bin/uv $(COMPILE) --constraint constraints.txt --generate-hashes --output-file requirements.lock
	rm -rf .venv-lock

image-check: .venv/installed
	$(BIN)/python -m tools.image_root

release: .venv/installed-test
	$(call INSTALL,.[test,release])
	$(BIN)/python -m tools.release

clean:
	rm -rf .coverage* coverage.xml .venv .venv-lock .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist site
	find . -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/pip:
	echo "== creating .venv"
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml constraints.txt | $(BIN)/pip
	echo "== installing moorage"
	$(call INSTALL,.)
	touch $@

.venv/installed-test: pyproject.toml constraints.txt | $(BIN)/pip
	echo "== installing moorage and its test tools"
	$(call INSTALL,.[test])
	touch $@ .venv/installed
