"""Start and end a training on two ranks again and again, on each backend, and count hangs and aborts.

    python benchmarks/rank_ends.py --times 200

Each time two processes train one tiny run (`gcdformer train` with the variables that torchrun or srun set; the rendezvous is
on 127.0.0.1) and end as the interpreter ends. They are forked from processes that have torch loaded, which saves five
seconds of imports per rank; `--new` starts a new interpreter each time. A rank that has not ended after two minutes hangs;
one that ends with another code than 0 has failed. Prints a line per backend; exits with 1 unless all ended well.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from time import monotonic

LIMIT = 120
TINY = ["--base", "10", "--max", "1000", "--operands", "uniform", "--outcomes", "natural", "--dim", "16", "--heads", "2",
        "--lr", "3e-3", "--warmup", "5", "--batch-size", "17", "--epoch-size", "850", "--test-size", "200",
        "--schedule", "constant", "--optimizer", "adam", "--weight-decay", "0", "--threads", "1", "--device", "cpu",
        "--max-epochs", "1", "--quiet"]
SERVER = """
import json, os, sys, time
import torch, torch._dynamo, torch.distributed
import gcdformer.commands.train, gcdformer.models.packed.kernels, gcdformer.training
from gcdformer.cli import run_process
while line := sys.stdin.readline():
    order = json.loads(line)
    rank = os.fork()
    if rank == 0:
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ.update(order["environment"])
        sys.argv = ["gcdformer", *order["words"]]
        break
    deadline, ended = time.monotonic() + order["limit"], (0, 0)
    while ended[0] == 0 and time.monotonic() < deadline:
        time.sleep(0.02)
        ended = os.waitpid(rank, os.WNOHANG)
    if ended[0] == 0:
        os.kill(rank, 9)
        os.waitpid(rank, 0)
    print("hung" if ended[0] == 0 else os.waitstatus_to_exitcode(ended[1]), flush=True)
else:
    sys.exit(0)
run_process()  # in a rank, which then ends as any interpreter does
"""


class Server:
    """A process that starts one rank at a time and says how it ended."""

    def __init__(self, stack: ExitStack) -> None:
        self.process = stack.enter_context(subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE,
                                                            stdout=subprocess.PIPE, text=True))

    def start(self, words: list[str], environment: dict[str, str], log: Path) -> None:
        assert self.process.stdin is not None
        order = {"words": words, "environment": environment, "log": str(log), "limit": LIMIT}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def ending(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip() or "the server has ended"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def start_and_end(words: list[str], folder: Path, servers: list[Server]) -> list[str]:
    """How each of two ranks ended: `ended`, `hung`, or its exit code and the last line it wrote."""
    shared = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
              "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    logs = [folder / f"rank-{rank}" for rank in range(2)]
    for rank, (server, log) in enumerate(zip(servers, logs, strict=True)):
        variables = shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        server.start(["train", *TINY, *words, "--out", str(folder / "run")], variables, log)
    endings = []
    for server, log in zip(servers, logs, strict=True):
        code = server.ending()
        said = log.read_text().strip().splitlines() if log.exists() else []
        endings.append("ended" if code == "0" else code if code == "hung"
                       else f"exit {code}: {said[-1] if said else 'no word'}")
    return endings


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--times", type=int, default=200, help="starts on each backend")
    parser.add_argument("--backends", default="auto,autograd", help="the backends, with a comma between")
    parser.add_argument("--new", action="store_true", help="a new interpreter for each rank")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # torch's threads would be missing in what is forked
    good = True
    for backend in args.backends.split(","):
        endings: Counter[str] = Counter()
        began = monotonic()
        with ExitStack() as all_times:
            servers = [] if args.new else [Server(all_times), Server(all_times)]
            for _ in range(args.times):
                with tempfile.TemporaryDirectory() as folder, ExitStack() as once:
                    ranks = servers or [Server(once), Server(once)]
                    endings.update(start_and_end(["--backend", backend], Path(folder), ranks))
        how = ", ".join(f"{count} {ending}" for ending, count in endings.most_common())
        print(f"{backend}: {args.times} starts of two ranks in {monotonic() - began:.0f} s: {how}", flush=True)
        good &= endings == {"ended": 2 * args.times}
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
