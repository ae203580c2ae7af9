# Every target sets up what it needs in .venv on first use: Python 3.11+, make and a package index
# are enough. `make help` lists the targets.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Of a package only those files are installed whose hash is known. pip takes no hash for a folder, so
# the project itself comes after what it needs, and is built with what has been installed by then.
LOCKED := $(PIP) --require-hashes --requirement
PROJECT := $(PIP) --no-deps --no-build-isolation --editable .

# Without bytecode, every process that a test starts would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo docs test test-long test-slow fuzz kills lint format build check-build sbom bench bench-rivals tables lock clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.run ## what the accepted-only view hides, on a simulated lending log
	@$(BIN)/sellf demo

test: .venv/.dev ## the tests (a few minutes)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal --durations 60 --durations-min 4

test-long: .venv/.dev ## tests that take some seconds each (minutes in all)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -m "long and not slow" --numprocesses 2 --dist worksteal --durations 60 --durations-min 4

test-slow: .venv/.dev ## the tests that take longer, and ten times as many examples of each property
	$(BIN)/python -m pytest -m slow
	SELLF_TESTS=thorough $(BIN)/python -m pytest tests/fairness tests/audit/test_tails.py

INPUTS ?= 100000

fuzz: .venv/.dev ## damaged and forged files, read as a user would (hours; INPUTS=6000 for minutes)
	$(BIN)/python -m tests.hostile.fuzz --inputs $(INPUTS)

KILLS ?= 200

kills: .venv/.dev ## commands killed at random moments, and what the next one makes of it (an hour)
	$(BIN)/python -m tests.hostile.kills --kills $(KILLS)

lint: .venv/.dev ## style and types; the documents build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs: .venv/.dev ## build the documents into site/, and their tables and notebooks anew
	$(BIN)/python tools/docs_tables.py
	$(BIN)/python tools/notebooks.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

format: .venv/.dev ## put the code into the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

build: .venv/.dev ## a wheel and a source archive, in dist/
	$(BIN)/python -m build --no-isolation

check-build: .venv/.dev ## both archives, installed into an empty environment and used (two minutes)
	$(BIN)/python tools/check_build.py

sbom: .venv/.dev ## write the bill of materials of what is locked anew
	$(BIN)/python tools/sbom.py

bench: .venv/.dev ## how fast, as ratios measured in one run (run nothing else meanwhile)
	taskset -c 0 $(BIN)/python -m benchmarks fairness worlds functions training
	$(BIN)/python -m benchmarks audit

bench-rivals: .bench-venv/.done ## PPO against Stable-Baselines3 and SBX (installs PyTorch apart)
	taskset -c 0 .bench-venv/bin/python -m benchmarks rivals

tables: .venv/.dev ## make the worlds' figures again from their sources
	$(BIN)/python tools/build_tables.py

COMPILE = $(BIN)/uv pip compile --universal --no-header --no-annotate --quiet
HASHED = $(COMPILE) --generate-hashes --constraint constraints.txt

lock: .venv/.dev ## choose the newest versions that the bounds in pyproject.toml allow
	$(COMPILE) pyproject.toml --all-extras --group dev --upgrade --output-file constraints.txt
	mkdir -p locks
	rm -f locks/run.txt locks/dev.txt
	echo 'hatchling>=1.27,<2' | $(HASHED) pyproject.toml - --output-file locks/run.txt \
	  --extra audit --extra train --extra report
	$(HASHED) pyproject.toml --all-extras --group dev --output-file locks/dev.txt

clean: ## remove everything that a target made
	rm -rf .venv .bench-venv .pytest_cache .ruff_cache .hypothesis build dist site

.venv/.pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "sellf needs Python 3.11 or newer: type 'make PYTHON=python3.11 $(MAKECMDGOALS)'"; exit 2; }
	@echo "setting up .venv (once, a minute or two)"
	@$(PYTHON) -m venv .venv
	@touch $@

.bench-venv/.done: pyproject.toml constraints.txt
	@$(PYTHON) -m venv .bench-venv
	@.bench-venv/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	@.bench-venv/bin/python -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt stable-baselines3==2.9.2 sbx-rl==0.28.0 --editable '.[train,report]'
	@touch $@

.venv/.run: .venv/.pip pyproject.toml locks/run.txt
	@$(LOCKED) locks/run.txt
	@$(PROJECT)
	@touch $@

.venv/.dev: .venv/.run locks/dev.txt
	@$(LOCKED) locks/dev.txt
	@touch $@
