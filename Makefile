# Two commands for a newcomer: `make demo` and `make test`. Both set up .venv first, once.
.PHONY: demo test scale lint setup clean
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

# Ray and torchrun under faults: minutes, one process at a time.
scale: $(READY)
	OMP_NUM_THREADS=1 .venv/bin/python -m pytest -m scale tests/test_ray.py tests/test_distributed.py

clean:
	rm -rf .venv
