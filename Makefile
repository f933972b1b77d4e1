# Everything runs in .venv, which the first target you call makes from the lock files. `make` alone lists the targets.

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
STEP := @$(BIN)/python scripts/step.py
# Most tests wait for something more than they compute, so there are more processes than processors.
PYTEST := $(BIN)/python -m pytest -n $$((2 * $$(getconf _NPROCESSORS_ONLN))) --maxprocesses 8 --dist loadfile --no-loadscope-reorder --max-worker-restart 0
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --custom-compile-command "make lock" pyproject.toml

# Tests start hundreds of Python processes; without bytecode each of them would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test check nightly lint types contract size bench web picture docs lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile
	@echo "PYTEST_ARGS='-n0 -x -k chat' is handed on to pytest by check, test and nightly."
	@echo "PYTHON=python3.12 chooses the Python for .venv (3.11 or newer; after 'make clean')."

demo: .venv/.runtime ## run the main job, start to finish: no key, no network
	@$(BIN)/journeyman demo

test: .venv/.dev ## all tests, slow ones included; SKIP_BROWSER=1 leaves out those in a browser
	scripts/get-browser
	scripts/get-pgbouncer
	$(PYTEST) --hypothesis-profile ci $(PYTEST_ARGS)

check: lint types contract size ## what to run all day: lint, types, contract, size and the fast tests
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)

nightly: .venv/.dev ## all tests, those that repeat things at full length; takes an hour
	scripts/get-browser
	scripts/get-pgbouncer
	$(PYTEST) --nightly --hypothesis-profile nightly $(PYTEST_ARGS)

lint: .venv/.dev ## ruff: mistakes and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: .venv/.dev ## mypy --strict
	$(BIN)/mypy

contract: .venv/.dev ## which room may import which
	$(BIN)/lint-imports --no-logo --no-cache

size: .venv/.dev ## files and lines per room, whether they grew, and what is written twice
	$(BIN)/python -m scripts.size
	$(BIN)/python -m scripts.shared_lines

bench: .venv/.dev ## the benchmarks, each with its targets; takes a while
	$(BIN)/python -m benchmarks.imports
	$(BIN)/python -m benchmarks.gram
	$(BIN)/python -m benchmarks.journal
	$(BIN)/python -m benchmarks.crash
	$(BIN)/python -m benchmarks.backlog
	$(BIN)/python -m benchmarks.audit
	$(BIN)/python -m benchmarks.embedded
	$(BIN)/python -m benchmarks.retrieval
	$(BIN)/python -m benchmarks.memory
	$(BIN)/python -m benchmarks.overhead
	$(BIN)/python -m benchmarks.choosing cost
	$(BIN)/python -m benchmarks.bfcl
	$(BIN)/python -m benchmarks.grounding
	$(BIN)/python -m benchmarks.injection
	$(BIN)/python -m benchmarks.replay
	$(BIN)/python -m benchmarks.service
	$(BIN)/python -m benchmarks.page
	$(BIN)/python -m benchmarks.rate_limits
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python -m benchmarks.slack
	$(BIN)/python -m benchmarks.slack.kills
	$(BIN)/python -m benchmarks.mcp

web: ## build the web page again after a change in web/; needs Node and npm
	npm --prefix web ci --no-audit --no-fund
	npm --prefix web run check
	npm --prefix web run build

picture: .venv/.dev ## draw the README's terminal and the pictures of the web page again
	$(BIN)/python -m scripts.draw_terminal
	scripts/get-browser
	$(BIN)/python -m tests.doors.http.web.pictures docs/assets

docs: .venv/.dev ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

lock: .venv/bin/uv ## pin again after a change of dependencies; pins that still fit stay
	$(COMPILE) --group build --extra embedded --extra serve -o requirements.lock
	$(COMPILE) --group dev --extra all --extra providers -c requirements.lock -o requirements-dev.lock
	$(COMPILE) --extra langchain --extra llamaindex -c requirements-dev.lock -o tests/interop/requirements.txt

clean: ## remove everything that `make` made
	rm -rf .venv .bench site build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage

# The demo needs a quarter of what development needs, so it has a lock of its own. Both install into the same place:
# the second only adds to the first.
.venv/.runtime: requirements.lock pyproject.toml
	$(call install,requirements.lock)
	@touch $@

.venv/.dev: requirements-dev.lock pyproject.toml
	$(call install,requirements-dev.lock)
	@touch .venv/.runtime $@

# Only who changes dependencies needs uv.
.venv/bin/uv:
	$(venv)
	$(STEP) "Installing uv" 0 $(PIP) install uv

# The build back end is in the lock too: without isolation pip fetches nothing that is not pinned. A lock is whole, so
# --no-deps leaves out nothing but what pyproject.toml says is not needed.
define install
	$(venv)
	$(STEP) "Installing the packages of $(1)" $$(grep -c == $(1)) $(PIP) install --no-deps --require-hashes -r $(1)
	$(STEP) "Installing Journeyman itself" 0 $(PIP) install --no-deps --no-build-isolation -e .
endef

# Also over a .venv that is already there: an installation may have been cut short.
define venv
	@python=$$(PYTHON="$(PYTHON)" scripts/find-python) && echo "Making .venv with $$python …" && "$$python" -m venv .venv
endef
