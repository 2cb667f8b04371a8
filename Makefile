# Everything happens in .venv, which these targets make themselves. Paths are relative, so spaces above do no harm.
PYTHON ?= python3
CONSTRAINTS ?=
VENV_PYTHON := .venv/bin/python
# uv, which pip installs, takes a fifth of pip's time for all the rest; it does not read pip's configuration, such as an index
# of one's own, and what it cannot install pip does. Neither compiles, which takes as long as all the rest of pip's installing:
# Python compiles the modules that are used when it first imports them. The build backend warns of every editable install;
# there is nothing in it for the reader.
PIP_INSTALL = PYTHONWARNINGS=ignore $(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check --no-compile
OF_PROJECT = $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS)) --editable $(2)
INSTALL = @echo "Installing into .venv: $(1) (a few seconds to three minutes) ..." && { $(PIP_INSTALL) --only-binary :all: uv && $(VENV_PYTHON) -m uv pip install --quiet --python $(VENV_PYTHON) $(OF_PROJECT) 2>/dev/null || $(PIP_INSTALL) $(OF_PROJECT); }

# Variables, since a comma would end an argument of `call`.
FOR_TESTS := '.[dev,test]'
FOR_ALL := '.[dev,test,docs]'

# Hundreds of processes are started by the tests: they compile the package once. In a fresh clone pytest first compiles the
# tests and the packages that they import, and the history of the embedded node is built and stored: the workers, which load
# all of them at the same moment, would each do it again.
unexport PYTHONDONTWRITEBYTECODE
COMPILE := [ -e tests/__pycache__ ] || { $(VENV_PYTHON) -m pytest -q --collect-only tests >/dev/null; $(VENV_PYTHON) -c "import toolkit; toolkit.connect().close()"; } || true

.PHONY: demo lab docs test lint unit notebooks browser search audit lock wheelhouse class clean

demo: .venv/.for-use
	@$(VENV_PYTHON) -m toolkit demo

lab: .venv/.for-lab
	$(VENV_PYTHON) -m jupyterlab notebooks

# The documentation site, build/docs/html/index.html: offline, and a warning is an error.
docs: .venv/.for-docs
	$(VENV_PYTHON) docs/build.py

# Runs every part although an earlier one failed, and ends with the closing line of each. Three lanes go on at once: the
# tests, the browser's tests, and lint, notebooks, documentation and its search one after the other; the last two lanes are
# printed at the end. The first two begin when everything is compiled, beside which lint leaves a core free.
# The tests give way to both others: only they use every core to their end, so no core waits for a lane that needs one.
BESIDE := browser lint notebooks docs search
PARTS := unit $(BESIDE)

test: .venv/.for-all
	@logs=$$(mktemp -d) && trap 'rm -rf "$$logs"' EXIT && trap 'trap - TERM; kill 0' INT TERM && \
	run() { nice -n $$1 $(MAKE) --no-print-directory $$2 2>&1 && touch "$$logs/$$2.passed"; }; \
	for part in lint notebooks docs search; do run 2 $$part >"$$logs/$$part"; done & \
	$(COMPILE); \
	run 0 browser >"$$logs/browser" & \
	run 5 unit | tee "$$logs/unit"; \
	wait; failed=0; \
	for part in $(BESIDE); do cat "$$logs/$$part"; done; echo; \
	for part in $(PARTS); do \
		if [ -e "$$logs/$$part.passed" ]; then verdict=passed; else verdict=FAILED; failed=1; fi; \
		printf '%-10s %s: %s\n' $$part $$verdict "$$(grep -v -e '^make' -e '^$(VENV_PYTHON)' "$$logs/$$part" | tail -n 1)"; \
	done; \
	exit $$failed

lint: .venv/.for-tests
	$(VENV_PYTHON) -m ruff check .
	$(VENV_PYTHON) -m ruff format --check .
	$(VENV_PYTHON) -m mypy

# One worker more than there are cores: many tests wait for a process or a server. A file runs in one worker, which makes
# its fixtures once; in the order of their names the slowest files come early. A worker that crashes ends the tests: with a new
# one in its place, pytest-xdist can wait for ever.
unit: .venv/.for-tests
	@$(COMPILE)
	$(VENV_PYTHON) -m pytest -q -n $$($(VENV_PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)') --max-worker-restart 0 --dist loadfile --no-loadscope-reorder --ignore tests/browser tests

# Lessons with their solutions: the copies for students are generated from them. The longest notebooks are named first.
notebooks: .venv/.for-tests
	$(VENV_PYTHON) -m pytest -q -p nbval.plugin --nbval --nbval-sanitize-with notebooks/sanitize.cfg -p no:cacheprovider -o filterwarnings=default -n 2 --max-worker-restart 0 --dist loadfile notebooks/ten_thousand_versions.ipynb notebooks/what_people_paid.ipynb notebooks/archive_in_sql.ipynb notebooks/an_analysts_hour.ipynb notebooks/solutions

# Apart from the others: Playwright leaves an event loop running in its process. A file runs in one worker: the tests in
# JupyterLab are one file, which starts it once.
browser: .venv/.for-tests
	$(VENV_PYTHON) -m pytest -q -n 2 --max-worker-restart 0 --dist loadfile --ignore tests/browser/test_docs_search.py tests/browser

# Everyday questions to the search of the site that `make docs` has built.
search: .venv/.for-tests
	$(VENV_PYTHON) -m pytest -q tests/browser/test_docs_search.py

# Known vulnerabilities of the packages that CI installs; says so if no advisory service can be asked.
audit: .venv/.for-tests
	$(VENV_PYTHON) .ci/audit.py .ci/lock.txt

# The exact versions that CI installs; run after changing dependencies.
lock: .venv/.for-tests .venv/.for-docs
	$(VENV_PYTHON) -m pip freeze --exclude-editable > .ci/lock.txt

# Everything that a class installs without a network: pip install --no-index --find-links wheelhouse 'ledger-toolkit[notebook]'
wheelhouse: .venv/.made
	$(VENV_PYTHON) -m pip wheel --quiet --disable-pip-version-check --wheel-dir wheelhouse $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS)) '.[notebook]'

# What a class gets, build/class/students: without solutions. SEED draws its exercises; EXAM=1 leaves out hints and hashes
# the answers that `check` knows.
class: .venv/.for-use
	@$(VENV_PYTHON) notebooks/make_course.py --class build/class $(if $(SEED),--seed $(SEED)) $(if $(EXAM),--exam)

clean:
	rm -rf .venv demo build wheelhouse *.egg-info .mypy_cache .ruff_cache .pytest_cache

.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0] + "; name another: make PYTHON=python3.12" or 0)'
	@echo "Making .venv ..." && $(PYTHON) -m venv .venv
	@touch $@

.venv/.for-use: pyproject.toml .venv/.made
	$(call INSTALL,the toolkit,.)
	@touch $@

.venv/.for-lab: pyproject.toml .venv/.made
	$(call INSTALL,the toolkit and JupyterLab,'.[notebook]')
	@touch $@ .venv/.for-use

.venv/.for-docs: pyproject.toml .venv/.made
	$(call INSTALL,what the documentation needs,'.[docs]')
	@touch $@ .venv/.for-use

.venv/.for-tests: pyproject.toml .venv/.made
	$(call INSTALL,the toolkit and what its tests need,$(FOR_TESTS))
	@touch $@ .venv/.for-use

# What `make test` needs, resolved and installed once.
.venv/.for-all: pyproject.toml .venv/.made
	$(call INSTALL,the toolkit and what its tests and documentation need,$(FOR_ALL))
	@touch $@ .venv/.for-use .venv/.for-tests .venv/.for-docs
