# What CI runs and what people run are the same targets. Needs git, make and Python >= 3.11 with venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNNABLE := $(VENV)/.runnable
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
WORKERS ?= 2
SOAK_S ?= 3600
FUZZ_S ?= 600
# Where packages come from is the machine's business. The brackets keep the rule from finding itself.
REGISTRY := (py[p]i|pythonhoste[d]|npmj[s]|yarnpk[g])\.(org|com)

.PHONY: help setup demo test soak fuzz bench bench-quick check audit dist gen format clean
help:
	@echo "make demo    see it work, in under a minute once it is set up"
	@echo "make test    every test, PostgreSQL included"
	@echo "make soak    every fault for an hour, or SOAK_S seconds; writes docs/reliability.md"
	@echo "make fuzz    the parsers and decoders against a coverage-guided fuzzer, for FUZZ_S seconds"
	@echo "make bench   every performance goal, in 20 minutes; writes bench/RESULTS.md; bench-quick: appends in 3"
	@echo "make check   format, lint, types, protos, generated code"
	@echo "make audit   known vulnerabilities of the pinned packages"
	@echo "make dist    the wheel, and the bill of materials that goes with it, into dist/"
	@echo "make format  put the code into its format"
	@echo "make gen     generate the protobuf code and the API reference again"
	@echo "make setup   install everything into .venv (the others do it when needed)"
	@echo "make clean   remove .venv and what the tools left behind"

setup: $(READY)
$(READY): $(RUNNABLE)
	@echo "Setting up the tools and the tests' packages in $(VENV) ..."
	@$(PIP) --no-build-isolation -e '.[dev]'
	@touch $@

# What runs the service, without the tools: enough for the demo.
$(RUNNABLE): pyproject.toml constraints.txt
	@echo "Setting up Foldlog in $(VENV) ..."
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Foldlog needs Python 3.11 or newer. Name one: make PYTHON=python3.13 ...")'
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) hatchling editables
	@$(PIP) --no-build-isolation -e .
	@touch $@

demo: $(RUNNABLE)
	@$(BIN)/python -m demo

test: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

soak: $(READY)
	@$(BIN)/python -m tests.faults.soak --seconds $(SOAK_S) $(if $(SEED),--seed $(SEED))

fuzz: $(READY)
	@$(BIN)/python -m tests.fuzz --seconds $(FUZZ_S) $(if $(ONLY),--only $(ONLY))

# The stores that we are measured beside, in an environment that nothing else needs.
PEERS := .venv-bench
$(PEERS)/.ready: bench/requirements.txt bench/constraints.txt
	@echo "Setting up the stores to compare with in $(PEERS) ..."
	@$(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install -qq --disable-pip-version-check -c bench/constraints.txt -r bench/requirements.txt
	@mkdir -p $(PEERS)/claude
	@$(PEERS)/bin/python -m pip download -qq --disable-pip-version-check -c bench/constraints.txt --no-deps --no-binary :all: \
		-d $(PEERS)/claude claude-agent-sdk && tar xzf $(PEERS)/claude/*.tar.gz -C $(PEERS)/claude || \
		echo "The Claude Agent SDK's example store cannot be had: it is left out, and the results say so."
	@touch $@

bench: $(READY) $(PEERS)/.ready
	@$(BIN)/python -m bench $(if $(ONLY),--only $(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-quick: $(READY)
	@$(BIN)/python -m bench --quick $(if $(ONLY),--only $(ONLY)) $(if $(ROUNDS),--rounds $(ROUNDS))

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy service tests demo bench
	$(BIN)/buf lint protos
	@$(BIN)/python -m tests.tools.breaking
	@$(BIN)/python -m tests.tools.freshness
	@if git grep -nIE '$(REGISTRY)'; then echo 'a package registry is named above' >&2; exit 1; fi

audit: $(READY)
	@$(BIN)/python -m tests.tools.audit

dist: $(READY)
	@rm -rf dist build/release
	$(BIN)/python -m pip wheel -q --no-deps --no-build-isolation -w dist .
	$(PYTHON) -m venv build/release
	build/release/bin/python -m pip install -qq --disable-pip-version-check -c constraints.txt "$$(echo dist/*.whl)[all]"
	$(BIN)/python -m tests.tools.sbom build/release/bin/python dist/foldlog.cdx.json
	@ls dist

gen: $(READY)
	@$(BIN)/python -m tests.tools.generate service
	@$(BIN)/python -m tests.tools.api_reference > docs/reference/api.md

format: $(READY)
	$(BIN)/ruff check --fix-only --select I .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(PEERS) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
