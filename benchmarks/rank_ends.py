"""Start and end a training on two ranks again and again, on each backend, and count hangs and aborts.

    python benchmarks/rank_ends.py --times 200

Each time two real processes train one tiny run (`gcdformer train` with the variables that torchrun or srun set; the
rendezvous is on 127.0.0.1). A rank that has not ended after two minutes hangs; one that ends with another code than 0 has
failed. Prints a line per backend; exits with 1 unless all ended well.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import monotonic

LIMIT = 120
TINY = ["--base", "10", "--max", "1000", "--operands", "uniform", "--outcomes", "natural", "--dim", "16", "--heads", "2",
        "--lr", "3e-3", "--warmup", "5", "--batch-size", "17", "--epoch-size", "850", "--test-size", "200",
        "--schedule", "constant", "--optimizer", "adam", "--weight-decay", "0", "--threads", "1", "--device", "cpu",
        "--max-epochs", "1", "--quiet"]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def start_and_end(words: list[str], folder: Path) -> list[str]:
    """How each of two ranks ended: `ended`, `hung`, or its exit code and the last line it wrote."""
    shared = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
              "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    command = [sys.executable, "-m", "gcdformer", "train", *TINY, *words, "--out", str(folder / "run")]
    logs = [(folder / f"rank-{rank}").open("w+") for rank in range(2)]
    ranks = [subprocess.Popen(command, stdout=log, stderr=log, env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)})
             for rank, log in enumerate(logs)]
    deadline = monotonic() + LIMIT
    endings = []
    for rank, log in zip(ranks, logs, strict=True):
        try:
            code = rank.wait(max(0.0, deadline - monotonic()))
        except subprocess.TimeoutExpired:
            rank.send_signal(signal.SIGKILL)
            rank.wait()
            endings.append("hung")
            continue
        log.seek(0)
        said = log.read().strip().splitlines()
        endings.append("ended" if code == 0 else f"exit {code}: {said[-1] if said else 'no word'}")
        log.close()
    return endings


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--times", type=int, default=200, help="starts on each backend")
    parser.add_argument("--backends", default="auto,autograd", help="the backends, with a comma between")
    args = parser.parse_args()
    good = True
    for backend in args.backends.split(","):
        endings: Counter[str] = Counter()
        began = monotonic()
        for _ in range(args.times):
            with tempfile.TemporaryDirectory() as folder:
                endings.update(start_and_end(["--backend", backend], Path(folder)))
        told = ", ".join(f"{count} {ending}" for ending, count in endings.most_common())
        print(f"{backend}: {args.times} starts of two ranks in {monotonic() - began:.0f} s: {told}", flush=True)
        good &= endings == {"ended": 2 * args.times}
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
