# Both may be called again at any time: what is there is not made anew.
PYTHON ?= python3

.PHONY: results test

# All tables and figures, with the packages of requirements.lock.
results: .venv/installed
	.venv/bin/snakemake --cores 8

test: .venv/installed
	.venv/bin/python -m pytest -n auto

.venv/installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --require-hashes -r requirements.lock
	.venv/bin/python -m pip install --no-deps --no-build-isolation -e .
	touch $@

# The packages and what goes beside them, in dist/; nothing is uploaded.
.PHONY: release
release: .venv/installed
	.ci/release

# The site, in docs/_build/html.
.PHONY: site
site: .venv/installed
	.venv/bin/python -m sphinx --fail-on-warning -b html docs docs/_build/html
