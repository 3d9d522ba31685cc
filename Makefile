# Two commands for a newcomer: `make demo` and `make test`. Each sets up in .venv what it needs, once.
.PHONY: demo test check compile lint setup docs notebooks scale faults test-device lock audit clean
SHELL := /bin/bash
LEAN := .venv/.ready-demo
READY := .venv/.ready
DEVICE ?= cuda
WORKERS ?= 3
# A thread that waits for others does not spin: tests share the cores.
PYTEST := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive .venv/bin/python -m pytest
MADE_FROM := pyproject.toml constraints.txt scripts/setup

# What the demo and the lab need.
$(LEAN): $(MADE_FROM)
	bash scripts/setup lab
	touch $(LEAN)

# All extras, and a browser for the tests of the lab.
$(READY): $(MADE_FROM)
	bash scripts/setup all
	touch $(LEAN) $(READY)

setup: $(READY)

demo: $(LEAN)
	.venv/bin/gcdformer demo

lint: $(READY)
	.venv/bin/ruff check .
	.venv/bin/mypy

# Compile the training step for the tests' widths of heads, 4, 8 and 16, so that their processes need not all do it at the same time.
compile: $(READY)
	.venv/bin/python -c 'from gcdformer.cli import main; \
	exit(max(main(["bench", "--seconds", "0.01", "--threads", "1", "--dim", dim]) for dim in ("16", "32", "64")))' > /dev/null

# One thread per worker; the third has something to do while browsers and processes are waited for. With SEED=7 the tests come
# in a random order, the same for the same seed.
test: $(READY)
	$(MAKE) --no-print-directory -j 2 --output-sync=target lint compile
	$(PYTEST) -n $(WORKERS) --dist worksteal $(if $(SEED),-p randomly --randomly-seed=$(SEED))

# What one runs all day: lint, types, and the tests that start no process, browser or Ray.
check: $(READY)
	$(MAKE) --no-print-directory -j 2 --output-sync=target lint compile
	$(PYTEST) -n $(WORKERS) --dist worksteal -m 'not processes and not scale'

# The tests of models and training on another device: make test-device DEVICE=cuda
test-device: $(READY)
	$(PYTEST) --device $(DEVICE) tests/test_models.py tests/test_device.py

# The documentation as a site, strict; part of make test too. To read it with its search: python3 -m http.server -d site
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --strict --site-dir site

# Run the notebooks and store their outputs in them: two of them train for a few minutes. The tests see whether it is needed.
notebooks: $(READY)
	.venv/bin/python scripts/notebooks.py

# Ray and torchrun under faults: minutes, one process at a time.
scale: $(READY)
	$(PYTEST) -m scale tests/test_ray.py tests/test_distributed.py
	.venv/bin/python benchmarks/rank_ends.py

# The full form of tests/faults with its table of figures; FAULTS_SOAK_MINUTES=0 leaves out the soak of two hours.
faults: $(READY)
	FAULTS=full $(PYTEST) tests/faults -p no:xdist --timeout 10800 -o faulthandler_timeout=0

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
