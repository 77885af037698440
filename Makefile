# `make setup` is what everything else begins with; it is quick when there is nothing to do.
.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench image clean
PY := .venv/bin/python

help: ## show this
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## make .venv/bin/harness, a container engine and the box's image ready
	@./setup.sh

demo: setup ## an agent fixes a real package in a box, and is refused what it should not do
	@$(PY) demo/run.py

test: setup ## the whole suite, with real containers
	$(PY) -m pytest -n 0 -m "not live" --hypothesis-profile whole

check: setup ## formatting, lint, types, layers, dependencies
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/pyright
	.venv/bin/lint-imports
	.venv/bin/deptry .
	$(PY) docs/generate.py --check

bench: setup ## measure, and write bench/perf/results.json and docs/performance.md
	@$(PY) -m bench.perf

image: setup ## build the box's base image
	@$(PY) -m harness.sandbox.images

clean: ## remove what tools left behind; keeps .venv and images
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
