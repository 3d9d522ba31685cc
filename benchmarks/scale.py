"""Measures what a sweep costs on Ray against local processes, and what threads and ranks give, on this machine.

    python benchmarks/scale.py [ray] [threads] [ranks] [--seconds 60] [--rounds 3] [--json]

ray      the same trials with --engine local and --engine ray, one thread each, as many at a time as there are cores:
         training examples per second within the trials (start-up apart) and the wall time of the whole sweep
threads  two trials of one thread side by side against one trial of two threads: examples per second in all
ranks    the paper preset on two gloo ranks of one thread against one process of one thread: examples per second

The variants take turns, so that a slow minute of the machine hits all of them. Run it on quiet cores.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gcdformer import load_run, preset
from gcdformer.data import Problem
from gcdformer.training.device import choose_device
from gcdformer.training.throughput import measure_speed

EPOCH = 25_600  # examples
Facts = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help="ray, threads, ranks (default: all three)")
    parser.add_argument("--seconds", type=float, default=60, help="length of a trial, about")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    measures = {"ray": ray_against_local, "threads": threads_against_trials, "ranks": ranks_against_one}
    if set(args.what) - set(measures):
        parser.error(f"there is {', '.join(measures)}, not {' '.join(args.what)}")
    results = {name: measures[name](args.seconds, args.rounds) for name in args.what or measures}
    if args.json:
        print(json.dumps(results, indent=1))


def sweep_text(trials: int, cpus: int, epochs: int) -> str:
    return (f'preset = "fast"\nseeds = {trials}\n[fixed]\nepoch_size = {EPOCH}\ntest_size = 1000\ndevice = "cpu"\n'
            f"[budget]\nmax_epochs = {epochs}\n[needs]\ncpus = {cpus}\n")


def run_sweep(folder: Path, trials: int, cpus: int, epochs: int, *words: str) -> Facts:
    """Examples a second of each trial within its own clock, their sum, and the wall time of the sweep."""
    folder.mkdir(parents=True)
    file, out = folder / "sweep.toml", folder / "out"
    file.write_text(sweep_text(trials, cpus, epochs))
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "gcdformer", "sweep", str(file), "--out", str(out), *words], check=True,
                   stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - began
    rates = []
    for path in sorted(out.glob("*/metrics.jsonl")):
        last = load_run(path.parent).metrics[-1]
        rates.append(last["examples"] / last["seconds"])
    assert len(rates) == trials
    return {"examples_per_s": sum(rates), "wall_seconds": wall}


def epochs_for(seconds: float) -> int:
    """How many epochs a trial of one thread does in about that time here."""
    config = preset("fast").replace(threads=1, test_size=1000, device="cpu")
    step, _ = measure_speed(config, Problem.of(config), choose_device(config.machine), seconds=2)
    return max(1, round(seconds / (step * EPOCH / config.training.batch_size)))


def compare(title: str, variants: dict[str, Any], rounds: int) -> Facts:
    """Run the variants in turn; the median of each and the ratio of the second to the first."""
    seen: dict[str, list[Facts]] = {name: [] for name in variants}
    for turn in range(rounds):
        for name, measure in variants.items():
            with tempfile.TemporaryDirectory() as folder:
                seen[name].append(measure(Path(folder) / "run"))
            print(f"{title}, round {turn + 1}, {name}: {seen[name][-1]}", file=sys.stderr, flush=True)
    rates = {name: statistics.median(one["examples_per_s"] for one in facts) for name, facts in seen.items()}
    first, second = rates.values()
    names = list(rates)
    print(f"{title}: {names[0]} {first:,.0f}, {names[1]} {second:,.0f} examples/s; ratio {second / first:.3f}", flush=True)
    return {"rounds": seen, "median": rates, "ratio": second / first}


def ray_against_local(seconds: float, rounds: int) -> Facts:
    cores = len(os.sched_getaffinity(0))
    epochs = epochs_for(seconds)
    return compare(f"{cores} trials of one thread", {
        "local": lambda folder: run_sweep(folder, cores, 1, epochs),
        "ray": lambda folder: run_sweep(folder, cores, 1, epochs, "--engine", "ray")}, rounds)


def threads_against_trials(seconds: float, rounds: int) -> Facts:
    epochs = epochs_for(seconds)
    return compare("two threads", {
        "one trial of two threads": lambda folder: run_sweep(folder, 1, 2, epochs),
        "two trials of one thread": lambda folder: run_sweep(folder, 2, 1, epochs, "--jobs", "2")}, rounds)


def ranks_against_one(seconds: float, rounds: int) -> Facts:
    config = preset("paper").replace(threads=1, device="cpu")
    step, _ = measure_speed(config.replace(test_size=100), Problem.of(config), choose_device(config.machine), seconds=1)
    steps = max(3, round(seconds / step))
    words = ["train", "paper", "--epoch-size", str(256 * steps), "--test-size", "100", "--max-epochs", "1", "--threads", "1",
             "--device", "cpu", "--quiet"]

    def measured(folder: Path, *launcher: str) -> Facts:
        began = time.perf_counter()
        subprocess.run([*launcher, *words, "--out", str(folder)], check=True)
        return {"examples_per_s": load_run(folder).metrics[-1]["throughput"], "wall_seconds": time.perf_counter() - began}

    def two(folder: Path) -> Facts:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = str(server.getsockname()[1])
        return measured(folder, sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-addr",
                        "127.0.0.1", "--master-port", port, "-m", "--", "gcdformer")

    return compare(f"paper preset, {steps} steps", {
        "one process": lambda folder: measured(folder, sys.executable, "-m", "gcdformer"), "two ranks": two}, rounds)


if __name__ == "__main__":
    main()
