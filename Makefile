# Every target sets up what it needs by itself, and does nothing when nothing changed.

PYTHON ?= python3
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
PIP_COMPILE := env PIP_CONFIG_FILE=/dev/null PIP_FIND_LINKS= PIP_EXTRA_INDEX_URL= $(BIN)/python -m piptools compile \
	--quiet --generate-hashes --strip-extras --allow-unsafe --no-header \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options
LOCK_HEADER := \# Made by `make lock` from pyproject.toml: exact versions with hashes. Do not edit by hand.

.DEFAULT_GOAL := help
.PHONY: help run test check bench format lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.runtime $(VENV)/.package ## start everything on http://localhost:3000
	@$(BIN)/switchboard up $(ARGS)

test: $(VENV)/.dev $(VENV)/.package ## run the tests (make test ARGS="tests/unit -x")
	@echo "==> running the tests"
	@$(BIN)/python -m pytest -q -n 2 --durations=10 $(ARGS)

check: $(VENV)/.dev $(VENV)/.package ## format, lint, strict types, import contracts
	@echo "==> checking the format"
	@$(BIN)/ruff format --check .
	@echo "==> linting"
	@$(BIN)/ruff check .
	@echo "==> checking the types"
	@$(BIN)/mypy
	@echo "==> checking who imports whom"
	@$(BIN)/lint-imports

bench: $(VENV)/.dev $(VENV)/.package ## measure, print a table, write bench/results/
	@echo "==> measuring"
	@$(BIN)/python -m bench $(ARGS)

format: $(VENV)/.dev ## format the code and fix what can be fixed
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

# ARGS="--upgrade" takes the newest versions; without it only what pyproject.toml asks for changes.
lock: $(VENV)/.dev ## write requirements*.lock anew from pyproject.toml
	@echo "==> resolving the packages (takes some minutes)"
	@$(PIP_COMPILE) $(ARGS) --output-file requirements.lock pyproject.toml
	@$(PIP_COMPILE) $(ARGS) --extra dev --constraint requirements.lock --output-file requirements-dev.lock pyproject.toml
	@for lock in requirements.lock requirements-dev.lock; do \
		{ echo '$(LOCK_HEADER)'; grep -v '^# Made by' $$lock; } > $$lock.new && mv $$lock.new $$lock; \
	done

clean: ## remove the venv and the caches (data/ stays)
	@rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Switchboard needs Python 3.11 or newer as '$(PYTHON)'. Install it (Debian: apt install python3 python3-venv) or name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
		echo "$(PYTHON) can't make virtual environments. Install its venv module (Debian: apt install python3-venv)." >&2; exit 1; }
	@echo "==> making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: requirements.lock | $(BIN)/python
	@echo "==> installing the packages of requirements.lock"
	@$(PIP) install --require-hashes -r requirements.lock
	@touch $@

# The development lock contains the runtime one, so both are done after it.
$(VENV)/.dev: requirements-dev.lock requirements.lock | $(BIN)/python
	@echo "==> installing the packages of requirements-dev.lock"
	@$(PIP) install --require-hashes -r requirements-dev.lock
	@touch $(VENV)/.runtime $@

$(VENV)/.package: pyproject.toml | $(BIN)/python
	@echo "==> installing the switchboard command"
	@$(PIP) install --no-deps -e .
	@touch $@
