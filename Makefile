# Two commands do everything: `make demo` and `make test`. Needs Python 3.11 or newer; the tests a C compiler and jq.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
EXAMPLE := examples/machines/rtx4080-desktop

.DEFAULT_GOAL := help
.PHONY: help demo test lint type golden bench integration integration-server wheel-test clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(READY) ## Install, then run the main job on this machine and on a shipped example
	@echo '== this machine'
	$(BIN)/gpusnap ps
	$(BIN)/gpusnap snap | head -c 300; echo ' ...'
	@echo; echo '== a shipped example: an RTX 4080 desktop with a language model'
	$(BIN)/gpusnap ps --replay $(EXAMPLE)
	@echo
	$(BIN)/gpusnap explain pid:4711 --replay $(EXAMPLE)
	@echo
	$(BIN)/gpusnap snap --replay $(EXAMPLE) | head -c 600; echo ' ...'
	@echo; echo '== a recording: is it a leak?'
	$(BIN)/gpusnap explain examples/step-leak.jsonl.gz

test: $(READY) ## Run the tests
	$(BIN)/python -m pytest -q -n 2 tests --ignore=tests/integration

lint: $(READY) ## Check style and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

type: $(READY) ## Check types, strictly
	$(BIN)/mypy

golden: $(READY) ## Write the generated files anew (JSON Schema, golden outputs): review the diff
	$(BIN)/python -m gpusnap.schema.generate
	$(BIN)/python -m tests.example_snapshots
	$(BIN)/python -m tests.chaos

bench: $(READY) ## Measure costs beside the peers, in one run
	$(BIN)/python -m tests.bench

integration: $(READY) ## Run the tests against real third-party programs
	sh tests/integration/setup_programs.sh $(BIN)/python
	$(BIN)/python -m tests.integration.setup_real
	$(BIN)/python -m pytest -q tests/integration --ignore=tests/integration/server

integration-server: $(READY) ## Build a real llama-server (CPU, tens of minutes) and explain it end to end
	$(BIN)/python -m tests.integration.setup_real
	$(BIN)/python -m tests.integration.server.build
	$(BIN)/python -m pytest -q tests/integration/server

wheel-test: ## Install the wheel bare into a fresh venv and run every command
	rm -rf build/wheel && mkdir -p build/wheel
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps -w build/wheel .
	build/wheel/venv/bin/python -m pip install --quiet --disable-pip-version-check build/wheel/gpusnap-*.whl
	PATH="$(CURDIR)/build/wheel/venv/bin:$$PATH" sh tests/wheel.sh

clean: ## Remove what was built
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
