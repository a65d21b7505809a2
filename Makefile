# make discover   install, then watch destroy-repair pairs being discovered for the TSP
# make test       lint, types and tests
# make bench      the evaluator against a bare loop
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: discover test lint types slow bench clean

discover: $(VENV)/.installed
	$(BIN)/spo discover tsp --preset quick

test: $(VENV)/.installed-test lint types
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow"

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

slow: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m slow

bench: $(VENV)/.installed-test
	$(BIN)/python experiments/bench/evaluator.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.installed-test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,solvers,bench]"
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
