# ironbench: `make help` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
# uv from our own .venv, never one that happens to be active.
unexport VIRTUAL_ENV
# Bytecode is kept: without it each process that the tests start would compile a thousand modules anew.
unexport PYTHONDONTWRITEBYTECODE
PYTHON ?= python3
VENV := .venv
# A shared machine may stop for seconds: what failed is tried once more with the machine to itself, and is listed as failed.
RETRIED := .pytest_cache/retried
FAILED := .pytest_cache/v/cache/lastfailed
COMPILED := $(VENV)/tests-compiled
AGAIN = { $(VENV)/bin/python -c 'import json; print(*json.load(open("$(FAILED)")), sep="\n")' 2>/dev/null >> $(RETRIED); \
	echo "once more, alone:"; $(VENV)/bin/python -m pytest --last-failed --last-failed-no-failures none -m 'not long'; }
AGAIN_LONG = $(subst 'not long','long' --timeout 1800,$(AGAIN))
UV := $(VENV)/bin/uv
RUST_TESTS := cargo --config crates/tests.toml test --locked --quiet --release --workspace

.PHONY: help setup demo test build-rust-tests test-together test-long fuzz pgbench-cases lint format wheel bench labs findings pictures session docs clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-13s %s\n", $$1, $$2}'

setup: $(UV) ## Create .venv, build the core in release mode, install locked dependencies
	@$(UV) sync --locked --quiet

$(UV):
	@scripts/prerequisites $(PYTHON)
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check "uv>=0.13,<1"
	@echo "building the core and installing dependencies (a few minutes the first time)"

demo: setup ## A lab of 6 minutes: what would a faster WAL device do for PostgreSQL?
	@$(VENV)/bin/python scripts/demo.py

test: setup ## All tests but the long ones: Rust, Python, live engines
	@scripts/servers
	@rm -f $(RETRIED) $(FAILED)
	@$(MAKE) --no-print-directory -j2 build-rust-tests test-together
	@$(RUST_TESTS)
	@$(VENV)/bin/python -m pytest -m 'alone and not long' tests/live || $(AGAIN)
	@if [ -s $(RETRIED) ]; then echo "passed only when run once more, alone:"; cat $(RETRIED); fi

# Python's tests wait more than they compute: Rust's are built meanwhile. They run alone: some of them keep time.
build-rust-tests:
	@$(RUST_TESTS) --no-run
test-together:
	@# Compiles what is new once, not once in each worker.
	@if [ -n "$$(find src tests bench uv.lock '(' -name '*.py' -o -name uv.lock ')' -newer $(COMPILED) -print -quit 2>&1)" ]; then \
		$(VENV)/bin/python -m pytest --collect-only -qq >/dev/null && touch $(COMPILED) || true; fi
	@$(VENV)/bin/python -m pytest -m 'not alone and not long' -n auto --dist loadgroup || $(AGAIN)

test-long: setup ## The tests that take long, and further variants of short ones
	@scripts/servers
	@rm -f $(RETRIED) $(FAILED)
	@$(VENV)/bin/python -m pytest -m 'long and not alone' --timeout 1800 -n 3 --dist loadgroup || $(AGAIN_LONG)
	@$(VENV)/bin/python -m pytest -m 'long and alone' --timeout 1800 || $(AGAIN_LONG)
	@if [ -s $(RETRIED) ]; then echo "passed only when run once more, alone:"; cat $(RETRIED); fi

fuzz: setup ## Mutated inputs of every kind (FUZZ_INPUTS=1000000), and a table of what came of them
	@cd tests && PYTHONPATH=. ../$(VENV)/bin/python -m fuzz $(or $(FUZZ_INPUTS),1000000)

pgbench-cases: setup ## PostgreSQL's own tests of pgbench through pgbench and ironbench (PGBENCH_TESTS=DIR)
	@PGBENCH_TESTS="$(PGBENCH_TESTS)" PYTHONPATH=tests:tests/live $(VENV)/bin/python -m pgbench_cases

lint: setup ## Formatting, lints, types, the stub against the core, and wording
	@cargo fmt --check
	@cargo clippy --locked --quiet --release --workspace --all-targets -- -D warnings
	@$(VENV)/bin/ruff format --check --quiet .
	@$(VENV)/bin/ruff check --quiet .
	@$(VENV)/bin/mypy --no-error-summary
	@$(VENV)/bin/stubtest ironbench._core --mypy-config-file pyproject.toml --concise
	@$(VENV)/bin/python scripts/prose.py

format: setup ## Format everything
	@cargo fmt
	@$(VENV)/bin/ruff format --quiet .
	@$(VENV)/bin/ruff check --fix --quiet .

# manylinux_2_28: RHEL 8, Debian 10, Ubuntu 20.04 and newer.
wheel: setup ## One wheel for every Python from 3.11 on (glibc 2.28 or newer), and an sdist, in build/wheel
	@rm -rf build/wheel
	@$(UV) sync --locked --quiet --inexact --group wheel
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/maturin build --release --locked --quiet --zig \
		--compatibility manylinux_2_28 --target $(shell uname -m)-unknown-linux-gnu --out build/wheel
	@$(VENV)/bin/maturin sdist --out build/wheel >/dev/null
	@ls build/wheel/*

bench: setup ## Measure ironbench itself beside pgbench and psql; fails when an asked figure is missed
	@$(VENV)/bin/python -m bench

labs: setup ## Every lab in labs/ in full (many hours), one after another; goes on where it was stopped
	@$(VENV)/bin/python scripts/labs.py $(LABS)

findings: setup ## The measured part of docs/results/LAB.md from that lab's records: make findings LAB=engines
	@$(VENV)/bin/python scripts/findings.py $(LAB)

pictures: setup ## Pictures of docs/img from a lab that `make demo` left: make pictures LAB=ironbench-results/demo/NAME
	@$(VENV)/bin/python scripts/pictures.py $(LAB)

session: setup ## docs/img/session.svg: a recorded terminal session (a minute on a quiet machine)
	@$(VENV)/bin/python scripts/session.py

docs: setup ## The documentation site, in build/site; regenerates docs/reference and the text of `ironbench --help`
	@$(UV) sync --locked --quiet --inexact --group docs
	@$(VENV)/bin/python scripts/reference.py
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet --clean
	@echo "build/site/index.html"

clean: ## Remove what was built; records stay
	@rm -rf $(VENV) target build
