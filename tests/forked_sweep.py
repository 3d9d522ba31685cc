"""`gcdformer` whose sweeps fork their trials too: a module for `start` of forked.py, not for users."""

import subprocess
from types import SimpleNamespace

from forked import TrialProcess
from gcdformer.cli import run_process
from gcdformer.sweeps import launcher

launcher.subprocess = SimpleNamespace(Popen=TrialProcess, PIPE=subprocess.PIPE)
run_process()
