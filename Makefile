# The two commands of the README are `make grade` and `make test`; the others are for authors and for CI.

PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3,$(shell command -v $(name) 2>/dev/null)))
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
HW ?= hw4_pytorch_init_norm

export OMP_NUM_THREADS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help grade test env build check lint types validate examples bench containers clean

help:
	@echo "make grade       environment, build, and the examples graded into out/"
	@echo "make test        the tests"
	@echo "make build       student/ and dist/ from assignments/ and solutions/"
	@echo "make validate    proves the grading: solutions, alternatives, known mistakes"
	@echo "make bench       what grading costs, as ratios"
	@echo "make containers  real otter grade in containers, compared with autograder grade (Linux, podman)"
	@echo "make lint types check   what CI looks at besides"

grade: env
	@$(BIN)/autograder build $(HW)
	@$(BIN)/autograder grade $(HW) examples/$(HW) -o out -j $(JOBS) || test $$? -eq 1

test: env
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(TESTS)

env: $(VENV)/.ready

$(VENV)/.ready: constraints.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: no Python found; install Python 3.11 or newer"; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is too old; set PYTHON=… to a Python of at least 3.11"; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

build: env
	$(BIN)/autograder build

check: env
	$(BIN)/autograder build --check
	$(BIN)/python scripts/make_examples.py --check

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: env
	$(BIN)/mypy

validate: env
	$(BIN)/autograder validate

examples: env
	$(BIN)/python scripts/make_examples.py

bench: env
	$(BIN)/python scripts/bench.py

containers: env
	$(BIN)/python scripts/container_check.py

clean:
	rm -rf $(VENV) out dist
