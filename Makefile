# Two commands, each with all of its own set-up:
#   make campaign   kills and resumes three sound tasks and one broken one, and judges them
#   make test       runs every test
# uv is used where it is installed, pip elsewhere.

PYTHON ?= python3
VENV   := .venv
READY  := $(VENV)/.ready

.PHONY: setup campaign test exhaustive lint gallery bench docs reference clean

setup: $(READY)

$(READY): pyproject.toml Makefile
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --quiet --allow-existing --python $(PYTHON) $(VENV) && \
	  uv pip install --quiet --python $(VENV)/bin/python -e '.[dev]'; \
	else \
	  $(PYTHON) -m venv $(VENV) && \
	  $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'; \
	fi
	@touch $(READY)

campaign: setup
	@$(VENV)/bin/chaoskit demo

test: setup
	@$(VENV)/bin/python -m pytest -q -n 2

exhaustive: setup
	@$(VENV)/bin/python -m pytest -q -n 2 -m exhaustive

lint: setup
	@$(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check . && $(VENV)/bin/mypy

gallery: setup
	@$(VENV)/bin/chaoskit gallery

bench: setup
	@$(VENV)/bin/python benchmarks/sweep_rate.py

# The site, in build/site; a warning is an error.
docs: setup
	@$(VENV)/bin/python -m sphinx -q -W --keep-going -j auto -b html -c docs . build/site
	@echo "build/site/index.html"

# The pages of docs/reference, from the code.
reference: setup
	@$(VENV)/bin/python -m docs._reference

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
