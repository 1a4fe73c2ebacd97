# Needs python3 (3.11 or later, with venv and headers), a C++20 compiler and make; everything else goes into .venv.
#
#   make demo       train and evaluate a tagger on the bundled data
#   make test       lint, types, tests (a process to a core, 8 at most) and the examples in the docstrings
#   make sanitize   the tests of the core under AddressSanitizer and UndefinedBehaviorSanitizer (GCC)
#   make lint       only lint and types
#   make stub       write the types of the compiled core anew
#   make docs       the documentation, with a gallery of examples that are run; a minute or two
#   make clean      remove everything made here
#
# PYTEST_ARGS goes to pytest: make sanitize PYTEST_ARGS="-k chain -x", make test PYTEST_ARGS="-n 0 --pdb"

PYTHON ?= python3
VENV   ?= .venv
CXX    ?= g++
PYTEST_ARGS ?=

BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Folders are listed too: their time changes when a file is added or removed.
SOURCES := $(shell find cpp src -name __pycache__ -prune -o -print) CMakeLists.txt pyproject.toml README.md LICENSE
# Prints the build and run-time requirements of pyproject.toml, so that they are written in one place only.
REQUIREMENTS := import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); \
                print(*p["build-system"]["requires"], *p["project"]["dependencies"], "cmake", "ninja", sep="\n")
# No build isolation and a lasting build folder: only what changed is compiled again.
BUILD := $(PIP) install --no-build-isolation --no-deps

.PHONY: demo test lint sanitize stub docs clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed
	$(BIN)/python examples/tagger_demo.py

# The processes of pytest share the cores; threads of NumPy's BLAS in each would wait for each other.
test: lint $(VENV)/.installed
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n logical --maxprocesses 8 --dist worksteal $(PYTEST_ARGS)
	$(BIN)/python -m pytest --doctest-modules --pyargs maxmargin

lint: $(VENV)/.tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)/.tools: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "maxmargin needs Python 3.11 or later: make PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"
	$(BIN)/python -c '$(REQUIREMENTS)' > $(VENV)/requirements.txt
	$(PIP) install -r $(VENV)/requirements.txt --group test --group lint
	touch $@

$(VENV)/.installed: $(VENV)/.tools $(SOURCES)
	$(BUILD) --force-reinstall -Cbuild-dir="build/{wheel_tag}" .
	touch $@

# The sanitized build lies in a folder of its own, which PYTHONPATH puts before the plain one in .venv. Python itself
# is not sanitized, hence the preloading; libstdc++ comes along because ASan must see its exceptions from the start.
# The sanitizers write past sys.stderr: only --capture=sys lets their reports through.
SANITIZED := build/sanitized
RUNTIMES   = $(foreach lib,asan ubsan stdc++,$(realpath $(shell $(CXX) -print-file-name=lib$(lib).so)))

$(SANITIZED)/.installed: $(VENV)/.tools $(SOURCES)
	rm -rf $(SANITIZED)
	CXX="$(CXX)" $(BUILD) --target $(SANITIZED) -Cbuild-dir=build/sanitize \
	  -Ccmake.build-type=RelWithDebInfo -Ccmake.define.MAXMARGIN_SANITIZE=ON .
	touch $@

sanitize: $(SANITIZED)/.installed
	PYTHONPATH=$(SANITIZED) LD_PRELOAD="$(strip $(RUNTIMES))" ASAN_OPTIONS=detect_leaks=0 \
	  UBSAN_OPTIONS=print_stacktrace=1 $(BIN)/python -m pytest -m core --capture=sys $(PYTEST_ARGS)

# The types of the compiled core, for mypy and editors: to be run after a change of cpp/bindings.
stub: $(VENV)/.installed
	$(BIN)/python -m nanobind.stubgen -q -m maxmargin._core -o src/maxmargin/_core.pyi
	sed -i.bak 's/-> tuple:/-> tuple[Any, ...]:/; s/import Annotated, overload/import Annotated, Any, overload/' src/maxmargin/_core.pyi
	rm src/maxmargin/_core.pyi.bak

docs: $(VENV)/.installed
	$(PIP) install --group docs
	$(BIN)/python -m sphinx -W -b html docs docs/_build/html

clean:
	rm -rf $(VENV) build dist docs/_build docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis
