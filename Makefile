# make discover   install, then watch destroy-repair pairs being discovered for the TSP
# make test       lint, types and the tests that take an instant each
# make test-on    the same tests on another Python, in an environment of its own: PYTHON=python3.13
# make long       the tests that take seconds each
# make slow       the tests that take ten seconds and more each
# make test-vllm  discovery through a real vLLM server, in an environment of its own (3.4 GB);
#                 LIVE=vllm for the slow ones, too
# make bench      the evaluator against a bare loop
# make docs       the documentation as a site, in site/index.html
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
VLLM_VENV ?= .venv-vllm
# Where pip finds no PyTorch for CPUs: --extra-index-url https://download.pytorch.org/whl/cpu
VLLM_INDEX ?=
# The environment of test-on, and a JAX for it where it should not be the latest: JAX='jax==0.11.*'
OTHER = .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
JAX ?=
# Processes that run tests, each with up to 4 GB.
JOBS ?= 2
# What the editable install compiles.
NATIVE := $(wildcard spo_jax/envs/problems/*.h spo_jax/envs/problems/*/kit/*.[ch])
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest
SIDE_BY_SIDE := -n $(JOBS) --dist loadfile --no-loadscope-reorder
# What test-on runs; all by default.
TESTS ?=
LIVE ?= "vllm and not slow"
INSTANT := "not long and not slow and not vllm"

.PHONY: discover test test-on lint types long slow test-vllm bench docs clean

discover: $(VENV)/.installed
	$(BIN)/spo discover tsp --preset quick

test: $(VENV)/.installed-test lint types
	$(PYTEST) $(SIDE_BY_SIDE) -m $(INSTANT)

# Without torch, of which builds for CPUs are few: see tests/oracles.py.
test-on:
	$(MAKE) VENV=$(OTHER) $(OTHER)/.installed-other
	SPO_WITHOUT_ORACLES=1 OPENBLAS_NUM_THREADS=1 $(OTHER)/bin/python -m pytest $(SIDE_BY_SIDE) \
	  -m $(INSTANT) $(TESTS)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

long: $(VENV)/.installed-test
	$(PYTEST) $(SIDE_BY_SIDE) -m "long and not slow and not vllm"

slow: $(VENV)/.installed-test
	$(PYTEST) $(SIDE_BY_SIDE) --timeout=1800 -m "slow and not vllm"

test-vllm: $(VENV)/.installed-test $(VLLM_VENV)/.installed
	JAX_PLATFORMS=cpu OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
	SPO_VLLM_PYTHON=$(abspath $(VLLM_VENV))/bin/python \
	$(BIN)/python -m pytest -m $(LIVE) --durations=0 tests/live

bench: $(VENV)/.installed-test
	$(BIN)/python experiments/bench/evaluator.py

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml $(NATIVE) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.installed-test: pyproject.toml $(NATIVE) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,oracles,solvers,bench]"
	touch $@ $(VENV)/.installed

$(VENV)/.installed-other: pyproject.toml $(NATIVE) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,solvers,bench]" $(JAX:%="%")
	touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml $(NATIVE) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	touch $@ $(VENV)/.installed

# vLLM needs torchvision for images alone, and what PyPI has of it is built for CUDA.
$(VLLM_VENV)/.installed: tests/live/requirements.txt tests/live/stub/torchvision.py
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(VLLM_INDEX) \
	  -r tests/live/requirements.txt
	$(VLLM_VENV)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	cp tests/live/stub/torchvision.py $(VLLM_VENV)/lib/python3.*/site-packages/
	touch $@

clean:
	rm -rf $(VENV) $(VLLM_VENV) .venv-3.* site .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
