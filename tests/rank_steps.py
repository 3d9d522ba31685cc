"""Run by torchrun: some steps of learning; what each rank saw and has in the end, as JSON, rank by rank."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import torch

from conftest import tiny_config
from gcdformer import Problem
from gcdformer.training.device import Ranks, in_ranks
from gcdformer.training.learner import Learner, new_model


def steps(leaves: dict[str, object], count: int, out: Path | None = None) -> dict[str, object]:
    """Losses of the first steps and digests of the last gradients and the weights."""
    torch.set_num_threads(1)
    config = tiny_config(**leaves)
    problem, cpu = Problem.of(config), torch.device("cpu")

    def work(ranks: Ranks) -> dict[str, object]:
        learner = Learner(config, problem, new_model(config, problem), cpu, ranks)
        losses = [learner.learn(step)[0] for step in range(count)]
        weights = list(learner.model.parameters())
        facts: dict[str, object] = {
            "rank": ranks.rank, "size": ranks.size, "losses": losses,
            "gradients": digest(learner.backend.gradients()), "weights": digest(weights),
            "first_gradient": learner.backend.gradients()[0].flatten()[:50].tolist()}
        if out is not None:
            (out / f"rank-{ranks.rank}.json").write_text(json.dumps(facts))
        return facts

    return in_ranks(cpu, work)


def digest(tensors: list[torch.Tensor]) -> str:
    return hashlib.sha256(b"".join(tensor.detach().numpy().tobytes() for tensor in tensors)).hexdigest()


if __name__ == "__main__":
    steps(json.loads(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
    left = [name for path in Path("/proc/self/task").glob("*/comm") if "gloo" in (name := path.read_text().strip())]
    if left:
        sys.exit(f"threads of the group outlive it: {left}")
