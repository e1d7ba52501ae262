# The two commands: `make run` sets everything up and opens the product, `make test` tests it.
# Everything lives in .venv, frontend/node_modules and KERNELWRIGHT_HOME; nothing is installed system-wide.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
HOST ?= 127.0.0.1
PORT ?= 8000
# Only where no NVIDIA GPU is: the CPU build of torch. Where this index cannot be reached, pip warns and goes on.
TORCH_CPU_INDEX ?= https://download.pytorch.org/whl/cpu

.PHONY: help setup run test lint format dist measurements clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

setup: ## virtual environment, CUDA compiler, native parts, front end
	@scripts/setup "$(PYTHON)" "$(VENV)" "$(TORCH_CPU_INDEX)"

run: setup ## set everything up and open the product on http://127.0.0.1:8000
	@exec $(BIN)/kernelwright serve --host $(HOST) --port $(PORT)

test: setup ## the whole test suite, front end included
	@$(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadfile
	@cd frontend && npm test --silent

lint: setup ## ruff, mypy, import-linter, eslint, tsc, generated types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m webapp.live.schema --check
	$(BIN)/python -m webapp.live.client --check
	$(BIN)/python manage.py makemigrations --check --dry-run
	cd frontend && npm run lint --silent && npm run typecheck --silent

format: setup ## format the Python sources
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

dist: setup ## a wheel and a source archive in dist/, with the C++, the examples and the built front end
	$(BIN)/python scripts/dist dist

measurements: setup ## repeat the measurements that docs/measurements quotes
	$(BIN)/kernelwright bench first-kernel
	$(BIN)/kernelwright bench functions --folder examples/c
	$(BIN)/kernelwright bench functions --folder examples/pytorch
	$(BIN)/kernelwright bench functions || echo "not all of them passed: the table says why"

clean: ## remove what setup made
	rm -rf $(VENV) frontend/node_modules webapp/static/ide sandbox/_native
