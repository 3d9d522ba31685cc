# Two commands for a newcomer: `make demo` and `make test`. Both set up .venv first, once.
.PHONY: demo test docs scale faults lock audit lint setup clean
SHELL := /bin/bash
READY := .venv/.ready

setup: $(READY)

$(READY): pyproject.toml constraints.txt scripts/setup
	bash scripts/setup
	touch $(READY)

demo: $(READY)
	.venv/bin/gcdformer demo

lint: $(READY)
	.venv/bin/ruff check .
	.venv/bin/mypy

# One thread a worker: two workers use two cores.
test: lint
	OMP_NUM_THREADS=1 .venv/bin/python -m pytest -n 2 --dist worksteal

# The documentation as a site, strict; part of make test too. To read it with its search: python3 -m http.server -d site
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --strict --site-dir site

# Ray and torchrun under faults: minutes, one process at a time.
scale: $(READY)
	OMP_NUM_THREADS=1 .venv/bin/python -m pytest -m scale tests/test_ray.py tests/test_distributed.py

# The full form of tests/faults with its table of figures; FAULTS_SOAK_MINUTES=0 leaves out the soak of two hours.
faults: $(READY)
	FAULTS=full OMP_NUM_THREADS=1 .venv/bin/python -m pytest tests/faults -p no:xdist

# The core install of a release, every file by its hash: pip install --require-hashes -r requirements.lock
lock: $(READY)
	.venv/bin/pip install --quiet --constraint constraints.txt --editable '.[release]'
	bash scripts/lock

# Known vulnerabilities of what the lock names; asks the vulnerability service of the package index.
audit: $(READY)
	.venv/bin/pip install --quiet --constraint constraints.txt --editable '.[release]'
	.venv/bin/pip-audit --strict --requirement requirements.lock --no-deps --disable-pip

clean:
	rm -rf .venv
