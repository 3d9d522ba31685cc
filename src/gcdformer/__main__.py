"""`python -m gcdformer` is `gcdformer`."""

from gcdformer.cli import run_process

run_process()
