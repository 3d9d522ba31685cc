"""Checkpoints: weights and optimiser as safetensors, the rest as JSON, checksummed; no pickle anywhere."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import torch
from safetensors.torch import load, save
from torch import Tensor

from gcdformer.errors import DamagedFile, UserError
from gcdformer.runs.checkpoint_names import checkpoint_path as checkpoint_path
from gcdformer.runs.checkpoint_names import checkpoint_steps as checkpoint_steps
from gcdformer.runs.files import read_folder, remove_folder, replace_folder

FILES = ["model.safetensors", "optimizer.safetensors", "state.json"]


@dataclass
class TrainingState:
    """Where a run stands: with the weights and the optimiser, all that the next step depends on."""

    step: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    loss_sum: float = 0.0
    loss_count: int = 0


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint in memory."""

    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: TrainingState


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    def pack(tensors: dict[str, Tensor]) -> bytes:
        return save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})

    replace_folder(checkpoint_path(folder, checkpoint.state.step), {
        "model.safetensors": pack(checkpoint.model),
        "optimizer.safetensors": pack(checkpoint.optimizer),
        "state.json": (json.dumps(asdict(checkpoint.state), indent=1) + "\n").encode(),
    })


def load_checkpoint(folder: Path, step: int) -> Checkpoint:
    """A checkpoint, every byte checked; `DamagedFile` names what is wrong."""
    path = checkpoint_path(folder, step)
    contents = read_folder(path, FILES)
    try:
        model = load(contents["model.safetensors"])
        optimizer = load(contents["optimizer.safetensors"])
        values = json.loads(contents["state.json"])
        state = TrainingState(**{field.name: values[field.name] for field in fields(TrainingState)})
    except Exception as error:  # right checksums but not our content
        raise DamagedFile(f"{path}: not a checkpoint: {type(error).__name__}") from None
    return Checkpoint(model, optimizer, state)


def load_weights(module: torch.nn.Module, weights: dict[str, Tensor], source: Path) -> None:
    """Set a module's weights; names and shapes must agree."""
    try:
        module.load_state_dict(weights, strict=True)
    except RuntimeError as error:
        first = str(error).splitlines()[1].strip() if "\n" in str(error) else str(error)
        raise UserError(f"{source}: does not fit the run's configuration: {first}") from None


def prune_checkpoints(folder: Path, keep: int, also: set[int]) -> None:
    """Remove all but the newest `keep` and those in `also`."""
    steps = checkpoint_steps(folder)
    for step in steps[:-keep]:
        if step not in also:
            remove_folder(checkpoint_path(folder, step))


def drop_checkpoints_after(folder: Path, step: int) -> None:
    """Remove damaged checkpoints that were passed over, and what an interrupted save or removal left behind."""
    for later in checkpoint_steps(folder):
        if later > step:
            remove_folder(checkpoint_path(folder, later))
    for left in (folder / "checkpoints").glob(".step-*"):
        shutil.rmtree(left, ignore_errors=True)
