# Each target sets up .venv/ by itself; only Python 3.11.4+, pip, venv, make and git are needed.
PYTHON ?= python3
PY = .venv/bin/python
JOBS ?= 2
# Tests start many interpreters, each of which would compile the package anew where the shell keeps no byte code.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo tutorials test test-all test-lowest test-newest lint mutants house handbook bench gpu peers clean

.venv/ready: pyproject.toml
	$(if $(shell command -v $(PYTHON)),,$(error make setup: PYTHON = $(PYTHON) is no command, expected Python 3.11.4 or newer))
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 4) and "make setup: edgesim needs Python 3.11.4 or newer")'
	@$(PYTHON) .ci/setup.py .venv
	touch $@

setup: .venv/ready

demo: .venv/ready
	$(PY) scenarios/fedteddi.py --out runs/demo
	$(PY) scenarios/delay_knowledge.py --out runs/demo-timing

PYTEST = $(PY) -m pytest -n $(JOBS) --dist worksteal --ignore tests/benchmarks

# What a change can break, in a few minutes, with a sixth of each large family of cases (tests/conftest.py); everything,
# with each benchmark once at its least size (tests/benchmarks/sizes.py).
test: lint
	$(PYTEST) -m 'not slow'

test-all: test
	$(PYTEST) -m slow
	EDGESIM_BENCH=least $(PY) -m pytest tests/benchmarks -n $(JOBS) --dist worksteal -rs

# The quick tests with the lowest versions of all direct dependencies that pyproject.toml allows, and with the newest, each
# in an environment of its own of some 6 GB. A version without a wheel for $(PYTHON) is passed over: docs/architecture.md.
test-lowest: RESOLUTION = lowest-direct
test-newest: RESOLUTION = highest
test-lowest test-newest: PY = .venv-$*/bin/python
test-lowest test-newest: test-%: pyproject.toml
	$(PYTHON) -m venv --clear .venv-$*
	$(PY) -m pip install --quiet --disable-pip-version-check uv
	$(PY) -m uv pip install --quiet --python $(PY) --no-build --prerelease disallow --resolution $(RESOLUTION) -r $< --extra dev
	$(PY) -m uv pip install --quiet --python $(PY) --no-deps --editable .
	$(PY) -m uv pip freeze --python $(PY)
	$(PYTEST) -m 'not slow'

lint: .venv/ready
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports

# Changes lines of edgesim that matter, one at a time, and tells which changes no quick test notices: some ten minutes.
mutants: .venv/ready
	$(PY) tests/mutants.py --jobs $(JOBS)

# Runs the tutorials whole and writes what they show into them: some five minutes on two cores. NAMES: some of them.
tutorials: .venv/ready
	$(PY) docs/notebooks.py $(NAMES)

# How large the project is and how its packages depend on each other, by the rules in tests/house.py.
house: .venv/ready
	@$(PY) tests/house.py

# The handbook as a site in site/, without network; dead links and anchors fail.
handbook: .venv/ready
	$(PY) docs/build.py

bench: .venv/ready
	$(PY) -m pytest tests/benchmarks --benchmark-columns=min,mean,rounds

# What only a machine with an NVIDIA GPU can show: its tests, and how fast it trains.
gpu: .venv/ready
	$(PY) -c 'import sys, torch; sys.exit(None if torch.cuda.is_available() else "make gpu: torch finds no GPU here")'
	$(PY) -m pytest tests/learning tests/base/test_saved.py tests/test_simulation.py -k 'on_a_gpu'
	$(PY) -m pytest tests/benchmarks/test_training.py -k 'on_a_gpu' -s

# The table of docs/speed.md, in a quarter of an hour on two quiet cores. Installs two other simulators into
# runs/peers/environments once: some gigabytes. FOLDER: that of Fashion-MNIST's IDX files.
peers: .venv/ready
	$(PY) tests/benchmarks/peers/run.py $(if $(FOLDER),--folder $(FOLDER))

clean:
	rm -rf .venv .venv-lowest .venv-newest runs site .pytest_cache .mypy_cache .ruff_cache .hypothesis
