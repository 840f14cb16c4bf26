# Verbs: make demo | reproduce-small | test | test-slow | attack | format | docs | dist | clean. Each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup demo reproduce-small test test-slow attack lint types format docs dist clean

setup: $(VENV)/.done

$(VENV)/.done: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "labelsieve needs Python 3.11 or newer; $(PYTHON) is older. Use: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[all,dev]'
	@touch $@

demo: setup
	$(BIN)/labelsieve demo

# Figures and a shortened table 3 on Fashion-MNIST, on a CPU. A second call goes on, or only writes the table again.
reproduce-small: setup
	$(BIN)/labelsieve reproduce small --seeds 1 --out runs/small
	$(BIN)/labelsieve reproduce figures runs/small

# Two at a time, each with one thread: several threads on busy cores wait for each other (PAPER.md, traps).
test: lint types
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -m "not slow and not gpu"

test-slow: setup
	$(BIN)/pytest -m "slow"

# 20,000 damaged inputs, kills, and reviews whose server dies. What fails is kept in tests/attack/found, and is a test from then on.
attack: setup
	PYTHONPATH=tests:. OMP_NUM_THREADS=1 nice $(BIN)/python -m attack

lint: setup
	$(BIN)/ruff check src tests studies examples .ci
	$(BIN)/ruff format --check src tests studies examples .ci

types: setup
	$(BIN)/mypy

format: setup
	$(BIN)/ruff check --fix src tests studies examples .ci
	$(BIN)/ruff format src tests studies examples .ci

# The documentation site, into site/; a broken link is an error (with --quiet it would not be).
docs: setup
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# Wheel and source distribution, each checked, and the wheel tried in a fresh environment.
dist: setup
	rm -rf dist build
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/*
	$(BIN)/python .ci/check_dist.py

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache build dist site src/labelsieve.egg-info
