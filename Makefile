# Two commands do everything: `make demo` and `make test`. Both make .venv and install into it first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow lint install docs results clean
.DEFAULT_GOAL := demo

.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[test,cluster]'
	touch $@

install: .venv/installed

demo: install
	$(BIN)/diffassemble models --prepare
	$(BIN)/diffassemble demo --out demo --overwrite

lint: install
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vulture
	$(BIN)/python tools/budgets.py || true  # becomes binding with the last budget met

test: lint
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses 2 --dist loadgroup

test-slow: install
	$(BIN)/pytest -m slow

# The reference of all public functions, from their docstrings: docs/api/index.html.
docs: install
	$(BIN)/pip install --quiet --editable '.[docs]'
	$(BIN)/python docs/reference.py

# Measures what docs/results.toml lists (CLASS=tiny|minutes|hour|overnight; DATA=folder; FORCE=1 also what is fresh), and
# renders docs/RESULTS.md and the table in README.md.
CLASS ?= minutes
results: install
	$(BIN)/python tools/results.py run --class $(CLASS) $(if $(DATA),--data $(DATA)) $(if $(FORCE),--force)

clean:
	rm -rf .venv demo docs/api
