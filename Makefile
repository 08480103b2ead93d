# Every target sets up what it needs; `make` alone lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
# Tests start hundreds of Python processes. Each would compile all modules anew if none could keep its bytecode.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
# Where `make demo` writes its lake.
DIR ?= lakewright-demo
# How long `make fuzz` looks for something; the seed of one finding, to see it again.
FUZZ_MINUTES ?= 10
FUZZ_SEED ?=
# Workers that run tests at once. Each takes a file at a time; tests/durations.py puts the longest first.
WORKERS ?= 2
ALONGSIDE := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# What `make test` passes on to pytest, as in `make test ARGS="tests/unit -x"`.
ARGS ?=

.PHONY: help setup demo test durations slow check coverage orchestrators matrix nightly chaos format lint types docs dist bench fuzz lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Make .venv with the locked environment; fetch Delta's jars, and a Java if there is none
	@scripts/setup

demo: setup ## Write a lake into DIR (lakewright-demo) and run it
	@$(BIN)/lakewright demo "$(DIR)"

test: setup ## Run all tests; ARGS="..." goes to pytest
	@$(BIN)/pytest $(if $(ARGS),,$(ALONGSIDE)) $(ARGS)

durations: setup ## Run all tests and keep how long they took, in tests/durations.json
	@KEEP_DURATIONS=1 $(BIN)/pytest $(ALONGSIDE)

slow: setup ## List the files whose tests take longer than their budget of 25 s, as kept in tests/durations.json
	@$(BIN)/python -m tests.durations

check: setup ## What CI runs: format, lint, types, layers, tests, doctests
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest $(ALONGSIDE)
	$(BIN)/python -m tests.matrix --short

matrix: setup ## Run tests on Spark 4.0 and 4.1, and by Spark Connect; ARGS="..." as `python -m tests.matrix -h` says
	@scripts/emulators
	@$(BIN)/python -m tests.matrix $(ARGS)

coverage: setup ## Run all tests and report the lines and branches that they don't reach
	$(BIN)/pytest $(ALONGSIDE) --cov --cov-report=term

orchestrators: setup ## Test packages/ against Airflow and Dagster, each in an environment of its own in .tools
	@scripts/orchestrators

nightly: setup ## Search longer for faults: marked tests, properties, fuzz and chaos, for NIGHTLY_MINUTES (120)
	@$(BIN)/python -m tests.nightly --workers $(WORKERS) $(ARGS)

chaos: setup ## Kill and stop runs, 1,000 times; CHAOS_MINUTES, CHAOS_POINTS, or ARGS="..." as `python -m tests.chaos -h` says
	@$(BIN)/python -m tests.chaos $(ARGS)

format: setup ## Format the code and sort its imports
	$(BIN)/ruff check --select I --fix
	$(BIN)/ruff format

lint: setup ## Find faults in the code, and imports that point up the layers
	$(BIN)/ruff check
	$(BIN)/lint-imports

types: setup ## Check the types
	$(BIN)/mypy

docs: setup ## Make the pages of docs/reference from the code, and the site in site/ from docs/
	@$(BIN)/python -m scripts.reference
	@$(BIN)/python -m scripts.architecture
	@$(BIN)/zensical build --strict

dist: setup ## Build the wheel and the source distribution into dist/
	@rm -rf dist && $(BIN)/python -m hatchling build -t wheel -t sdist

bench: setup ## Measure against the defaults, into docs/benchmarks.md; ARGS="..." as `python -m benchmarks -h` says
	@$(BIN)/python -m benchmarks $(ARGS)

fuzz: setup ## Compare the strategies and the manifest with models, from new seeds, for FUZZ_MINUTES (10)
	@$(BIN)/python -m tests.spark.strategies.fuzz --minutes $(FUZZ_MINUTES) $(if $(FUZZ_SEED),--seed $(FUZZ_SEED))

lock: ## Pin the newest versions allowed by pyproject.toml into requirements/
	@UPGRADE=1 scripts/lock

clean: ## Remove what building and testing made; keeps .venv and the jars
	rm -rf dist site .cache .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache lakewright-demo
