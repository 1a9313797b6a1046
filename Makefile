# Two commands matter: `make demo` runs everything, `make test` tests it. Both need only
# Python 3.11 with venv; the rest is installed into .venv from the hashed lock.
PYTHON ?= python3
VENV ?= .venv
PY = $(VENV)/bin/python
UNIT = not browser and not kube and not ovs and not races and not demo

.PHONY: demo test lint lock shots venv

demo: venv
	@exec $(PY) -m gpucloud.supervisor

test: venv
	$(PY) -m pytest -m "$(UNIT)" $(ARGS)

# Without Django's checks: they would read the demo's rows, and tests hold another key.
lint: venv
	$(VENV)/bin/ruff check .
	GPUCLOUD_TESTING=1 $(VENV)/bin/mypy
	GPUCLOUD_TESTING=1 $(PY) manage.py makemigrations --check --dry-run --skip-checks
	find templates -name '*.html' -exec $(VENV)/bin/djade --check --target-version 5.2 {} +

# Screenshots of every page of a running demo, into $GPUCLOUD_DATA/shots.
shots: venv
	PYTHONPATH=. $(PY) tests/shots.py

# The lock is made from .requirements.in; uv only makes it and is no dependency.
lock: venv
	$(PYTHON) -m venv $(VENV)/lock && $(VENV)/lock/bin/pip install -q uv
	$(VENV)/lock/bin/uv pip compile --generate-hashes --python-version 3.11 -q .requirements.in \
		-o requirements.txt --no-emit-index-url

venv: $(VENV)/installed.txt

# A copy of the lock marks what is installed; a newer file with the same content costs nothing.
$(VENV)/installed.txt: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gpucloud needs Python 3.11 or newer; set PYTHON")'
	@test -x $(VENV)/bin/pip || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "Python has no venv: install it first (Debian: apt install python3-venv)"; exit 1; }
	@cmp -s requirements.txt $@ || { echo "Installing into $(VENV) (once per lock) …"; \
		$(PY) -m pip install --disable-pip-version-check --no-input --require-hashes -r requirements.txt; }
	@cp requirements.txt $@
