# What CI runs and what people run are the same targets. Needs git, make and Python >= 3.11 with venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PROTOS := $(sort $(wildcard protos/foldlog/*/*.proto protos/foldlog/*/*/*.proto))

.PHONY: help setup demo test check gen format clean
help:
	@echo "make demo    see it work, in about a minute"
	@echo "make test    every test, PostgreSQL included"
	@echo "make check   lint, types, generated code, protos"
	@echo "make gen     generate the protobuf code again"

setup: $(READY)
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

gen: $(READY)
	$(BIN)/python -m tests.tools.generate service
