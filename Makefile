# Two commands for a bare clone: `make demo` and `make test`. Both set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := $(VENV)/.demo
# Datasets lying beside the checkout are used; otherwise the user's cache is, or they are fetched.
ifneq ($(wildcard ../shared/data),)
export UNSWAYED_DATA ?= $(abspath ../shared/data)
endif

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint types layers docs unit clean

help:  ## what there is to make
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 10

INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

$(DEMO): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -e .
	touch $(DEMO)

$(STAMP): $(DEMO)
	$(INSTALL) -e '.[dev]'
	touch $(STAMP)

setup: $(STAMP)  ## create .venv and install everything into it

demo: $(DEMO)  ## prove which answers no forged link can change, and write a report
	$(BIN)/unswayed demo

test: lint types layers docs unit  ## everything CI checks

lint: setup  ## ruff: lint and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup  ## mypy, strict
	$(BIN)/mypy

layers: setup  ## import-linter: the layers of the design
	PYTHONPATH=src $(BIN)/lint-imports

docs: setup  ## the documentation site, built strictly
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

unit: setup  ## pytest: tests and doctests, warnings are errors
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

clean:  ## remove what make made
	rm -rf $(VENV) docs/_build .pytest_cache .mypy_cache .ruff_cache
