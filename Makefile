# Each target has one or two lines; continuous integration calls the same targets.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Tests start hundreds of commands: keep their compiled modules, even if the shell disables it.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo examples test properties test-kube test-peers adversary kube-up kube-down check fmt charts picture schemas traces golden bench

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## create the virtual environment

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 to 3.14 is needed; none was found on PATH" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet pip==26.3
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable . --group dev
	@touch $@

demo: $(READY) ## roll out a small shop and a platform on a simulated cluster
	@$(BIN)/python -m examples.demo

examples: $(READY) ## create the keys and encrypted files of the examples; they stay on this machine
	@$(BIN)/python -m examples.seal examples/fineract
	@$(BIN)/python -m examples.encrypt examples/layers

test: check ## run all tests that need no cluster
	$(BIN)/python -m pytest -q -n 2 -m "not kube and not peers"

properties: $(READY) ## run thousands of random rollouts, killed, failing and concurrent; takes hours
	TIDEGATE_EXAMPLES=$${TIDEGATE_EXAMPLES:-10000} $(BIN)/python -m pytest -q tests/property -k rollouts --hypothesis-profile=default

test-kube: $(READY) ## build and start a real control plane, and run the tests that need it
	$(BIN)/python -m plane build
	$(BIN)/python -m pytest -q -m kube -n 2 --dist loadfile

test-peers: $(READY) ## build Argo CD and Flux, run them beside Tidegate, and record what they do
	$(BIN)/python -m plane build
	$(BIN)/python -m tests.conformance.peers.build
	$(BIN)/python -m pytest -q -m peers
	$(BIN)/python -m tests.conformance.peers.record
	$(BIN)/python -m pytest -q tests/conformance/peers/test_recorded.py

adversary: $(READY) ## attack rollouts on a real control plane for an hour; SEED=N draws other moments
	$(BIN)/python -m plane build
	$(BIN)/python -m tests.adversary --seed $${SEED:-1}

kube-up: $(READY) ## start the control plane and leave it running
	@$(BIN)/python -m plane up

kube-down: $(READY) ## stop the control plane
	@$(BIN)/python -m plane down

check: $(READY) ## check style, types, imports, dependencies and spelling
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry src
	$(BIN)/typos
	@find src -name '*.py' -exec wc -l {} + | awk '$$1 > 600 && $$2 != "total" { print "note: " $$2 " has " $$1 " lines; does it have a second subject?" }'

fmt: $(READY) ## format, and fix what can be fixed
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format --quiet

charts: $(READY) ## write the generated files of the example charts
	$(BIN)/python -m charts

picture: $(READY) ## draw the picture of the README
	@$(BIN)/python -m examples.picture

schemas: $(READY) ## write the schemas of the API server and of CRDs into the schema package
	$(BIN)/python -m plane build
	$(BIN)/python -m plane.schemas
	$(BIN)/python -m plane.dialect_schemas

traces: $(READY) ## record statuses of real controllers, which tests compare with the sandbox
	$(BIN)/python -m plane build
	$(BIN)/python -m tests.conformance.controllers

golden: $(READY) ## write recorded output again; git shows the changes
	$(BIN)/python -m plane build
	$(BIN)/python -m pytest -q tests --golden

bench: $(READY) ## measure durations, as ratios of one run
	$(BIN)/python -m plane build
	$(BIN)/python -m bench
