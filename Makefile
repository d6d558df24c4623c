# Everything runs in .venv, which each target creates or updates when pyproject.toml has changed.
PYTHON ?= python3
BIN := .venv/bin
# Modules are compiled when they are first imported, and that is kept; most of what is installed never is (--no-compile).
export PYTHONDONTWRITEBYTECODE :=
# One more than cores: tests wait for disks and processes a quarter of their time.
WORKERS = $(shell $(PYTHON) -c "import os; print(os.cpu_count() + 1)")

.PHONY: demo reproduce test lint types unit package long cuda bench docs notebooks fashion-mnist browser format clean

demo: .venv/runtime.stamp ## fit on the digits, forget three kinds of them, write demo/report.html
	$(BIN)/maxrr demo --out demo/

reproduce: .venv/dev.stamp ## the paper's table and figures on the digits, a minute; writes build/results/smoke/report.html
	$(BIN)/python -m lab reproduce --profile smoke --out build/results

test: lint ## everything that must hold before a change lands
	$(MAKE) --no-print-directory --jobs 3 unit types package # tests wait for disks and processes now and then, the others do not

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev.stamp
	$(BIN)/mypy

unit: .venv/dev.stamp fashion-mnist
	@$(BIN)/python -c "import torch._dynamo" & \
	$(BIN)/python -c "import matplotlib.pyplot, schemathesis, sklearn.base, sqlalchemy.orm"; wait # compiles what each worker would
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile

package: .venv/dev.stamp ## an sdist, from it a wheel, and the demo in another folder with nothing but that wheel and what it says it needs
	rm -rf build/package
	$(BIN)/python -m build --no-isolation --outdir build/package/dist
	$(PYTHON) -m venv --without-pip build/package/empty
	$(BIN)/python -m pip --python build/package/empty install --quiet --no-deps --no-compile build/package/dist/*.whl
	$(BIN)/python tools/link_needs.py maxrr build/package/empty/lib/python*/site-packages
	$(BIN)/python -m pip --python build/package/empty check
	mkdir build/package/elsewhere
	cd build/package/elsewhere && PYTHONPATH= ../empty/bin/maxrr --version
	cd build/package/elsewhere && PYTHONPATH= ../empty/bin/maxrr demo --out demo/

long: .venv/dev.stamp fashion-mnist browser ## statistical claims and large oracles: minutes, not seconds
	$(BIN)/python -m pytest tests/long
	MAXRR_THOROUGH=1 $(BIN)/python -m pytest tests # all cases, see tests/cases.py, and what is marked as long

cuda: .venv/dev.stamp ## what can only be seen on a GPU
	$(BIN)/python -m pytest tests/cuda

bench: .venv/bench.stamp fashion-mnist ## beside the peers, two or three hours; writes benchmarks/results.json, and plots and tables for benchmarks/svm.md
	$(BIN)/python benchmarks/training.py --out benchmarks/training.json
	$(BIN)/python benchmarks/unlearning.py --out benchmarks/unlearning.json
	$(BIN)/python benchmarks/plot_unlearning.py benchmarks/unlearning.json
	$(BIN)/python benchmarks/workspace.py --out benchmarks/workspace.json
	$(BIN)/python benchmarks/requests.py --out benchmarks/requests.json
	$(BIN)/python benchmarks/service.py --out benchmarks/service.json
	$(BIN)/python benchmarks/plot_requests.py benchmarks/requests.json
	$(BIN)/python benchmarks/engines.py --out benchmarks/engines.json
	$(BIN)/python benchmarks/svm.py --out benchmarks/results.json
	$(BIN)/python benchmarks/proof.py --out benchmarks/proof.json
	$(BIN)/python benchmarks/plot.py benchmarks/results.json
	$(BIN)/python benchmarks/tables.py benchmarks/results.json

docs: .venv/docs.stamp ## the pages and a reference as a site, build/site/index.html; every warning is an error
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --builder html docs build/site

notebooks: .venv/docs.stamp ## run the notebooks of docs/notebooks, and keep what they show
	$(BIN)/python tools/run_notebooks.py docs/notebooks/*.ipynb

fashion-mnist: .venv/dev.stamp ## find it, or fetch it, as the tests need it
	@tools/fashion-mnist.sh $(BIN)/python

browser: ## find Chromium, or install it, as the long tests of pages need it
	@tools/browser.sh

format: .venv/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build .mypy_cache .pytest_cache .ruff_cache .hypothesis

# Installing twice at once is never wanted. What `test` starts has found everything installed.
ifeq ($(MAKELEVEL),0)
.NOTPARALLEL:
endif

.venv/runtime.stamp: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --no-compile --editable .
	touch $@

# The development environment contains the runtime one.
.venv/dev.stamp: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --no-compile --editable '.[dev]'
	touch .venv/runtime.stamp $@

.venv/bench.stamp: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --no-compile --editable '.[bench]'
	touch .venv/runtime.stamp .venv/dev.stamp $@

.venv/docs.stamp: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --no-compile --editable '.[docs]'
	touch .venv/runtime.stamp $@
