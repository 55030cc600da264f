# `make help` lists the commands. Only Python >= 3.10 is needed: Kafka and a Java to run it come as packages.
PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python
# Tests that run at once, each with its own brokers (about 1 GB of memory for each).
AT_ONCE ?= 3
STAMP = $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help venv jars browser test unit coverage lint format demo bench chaos clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml constraints.txt
	@test -x $(RUN) || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Python 3.10 or later is needed; name one: make PYTHON=python3.12 ..."; exit 1; }
	@test -x $(RUN) || { echo "venv: creating $(VENV)"; $(PYTHON) -m venv $(VENV) || { echo "python3-venv is missing: install it with your system's packages"; exit 1; }; }
	@echo "venv: installing the replicator and what it needs"
	@$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[dev]' --constraint constraints.txt
	@touch $@

venv: $(STAMP) ## Make the virtual environment

jars: $(STAMP) ## Download Kafka (once, kept in ~/.cache/krabka-replicator)
	@$(RUN) -m dev.kafka jars

test: jars browser ## Run every test, on real brokers that the tests start
	@$(RUN) -m pytest --numprocesses $(AT_ONCE) --dist worksteal --quiet

browser: ## Install Debian's chromium for the browser tests, where that is possible; else they are skipped
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && echo "browser: installing chromium" \
	  && { apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1; } \
	  || echo "browser: there is no chromium and it cannot be installed here: the browser tests are skipped"

unit: $(STAMP) ## Run the tests that need no broker
	@$(RUN) -m pytest -m "not integration" tests/unit tests/property tests/simulation

coverage: $(STAMP) ## Show the lines and branches of app/core that the tests without brokers do not reach; at most 5 %
	@$(RUN) -m pytest --quiet tests/unit tests/property tests/simulation --cov=app/core --cov-branch \
	  --cov-report=term-missing:skip-covered --cov-fail-under=95

lint: $(STAMP) ## Check style and types
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy

format: $(STAMP) ## Format the code
	@$(RUN) -m ruff check --fix --quiet .
	@$(RUN) -m ruff format .

demo: jars ## Two clusters, live traffic and a worker; Ctrl-C ends it (DEMO_SECONDS=60 lets it end by itself)
	@$(RUN) -m dev.demo

bench: jars ## Measure throughput and CPU (QUICK=1 for a short run)
	@$(RUN) -m dev.bench

chaos: jars ## Kill, freeze and restart workers and brokers under load, then count (CHAOS_SECONDS, CHAOS_SEED)
	@$(RUN) -m dev.chaos

clean: ## Remove what the commands made here
	@rm -rf .demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage build dist *.egg-info
