"""Checkpoints: weights and optimiser as safetensors, the rest as JSON, checksummed; no pickle anywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Generic, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter
from safetensors.torch import load, save
from torch import Tensor

from gcdformer.config import Config
from gcdformer.data import Problem
from gcdformer.errors import DamagedFile, UserError
from gcdformer.models import Seq2Seq, build_model, described_model
from gcdformer.runs.files import read_checked, read_folder, read_sums, recover_folders, remove_folder, replace_folder
from gcdformer.runs.folder import AVERAGE, FILES, checkpoint_path, checkpoint_steps

Count = Annotated[int, Field(ge=0)]


@dataclass
class TrainingState:
    """How far a run is: with the weights and the optimiser, all that the next step depends on."""

    __pydantic_config__ = ConfigDict(strict=True, allow_inf_nan=False)
    step: Count = 0
    evaluations: Count = 0
    seconds: Annotated[float, Field(ge=0)] = 0.0
    loss_sum: float = 0.0
    loss_count: Count = 0


STATE = TypeAdapter(TrainingState)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint in memory."""

    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    """The optimiser's state, and the averaged weights if the run has them."""
    state: TrainingState

    @property
    def averages(self) -> dict[str, Tensor]:
        """The averaged weights by the parameters' names; none if the run has none."""
        mark = f"{AVERAGE}/"
        return {key.removeprefix(mark): tensor for key, tensor in self.optimizer.items() if key.startswith(mark)}

    @property
    def evaluated(self) -> dict[str, Tensor]:
        """The weights that answer questions: the averaged ones if there are any."""
        return self.averages or self.model


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
        name = "state.json"
        state = read_state(contents[name], step)
        name = "model.safetensors"
        model = load(contents[name])
        name = "optimizer.safetensors"
        optimizer = load(contents[name])
    except Exception as error:  # right checksums but not our content
        reason = str(error).splitlines()[0][:100] if str(error) else ""
        raise DamagedFile(f"{path / name}: not a checkpoint's: {type(error).__name__}: {reason}") from None
    return Checkpoint(model, optimizer, state)


def load_state(folder: Path, step: int) -> TrainingState:
    """The state of a checkpoint, without reading its weights; `DamagedFile` if it cannot be trusted."""
    path = checkpoint_path(folder, step)
    data = read_checked(path / "state.json", read_sums(path, FILES)["state.json"])
    try:
        return read_state(data, step)
    except ValueError as error:
        raise DamagedFile(f"{path / 'state.json'}: not a checkpoint's: {type(error).__name__}") from None


Content = TypeVar("Content")


@dataclass(frozen=True)
class Newest(Generic[Content]):
    """The newest checkpoint that is whole, what was read of it, and what is wrong with each that is newer."""

    step: int
    content: Content
    damaged: list[str]


def newest_whole(folder: Path, load: Callable[[Path, int], Content]) -> Newest[Content] | None:
    """The newest checkpoint that `load` can read; None if there never was one, `DamagedFile` if all are damaged."""
    damaged: list[str] = []
    for step in reversed(checkpoint_steps(folder)):
        try:
            return Newest(step, load(folder, step), damaged)
        except DamagedFile as error:
            damaged.append(str(error))
    if damaged:
        raise DamagedFile(f"{damaged[0]}; no checkpoint of this run is whole")
    return None


def read_state(data: bytes, step: int) -> TrainingState:
    state, given = STATE.validate_json(data), json.loads(data)
    missing = [field.name for field in fields(TrainingState) if field.name not in given]
    if missing or state.step != step:
        raise ValueError(f"it lacks {', '.join(missing)}" if missing else f"it is of step {state.step}")
    return state


def check_weights(config: Config, problem: Problem, weights: dict[str, Tensor], source: Path) -> None:
    """Names, shapes and types must be those of the configuration's model, which is only described here: a configuration
    that asks for a giant model with a checkpoint of a small one is refused before anything is allocated."""
    model = described_model(config, problem)
    wanted = model.state_dict()
    for name in wanted.keys() | weights.keys():
        have, want = (f"{list(tensors[name].shape)} {tensors[name].dtype}" if name in tensors else "missing"
                      for tensors in (weights, wanted))
        if have != want:
            raise UserError(f"{source}: does not fit the run's configuration: {name[:100]} is {have}, wanted {want}")


def load_model(config: Config, problem: Problem, weights: dict[str, Tensor], source: Path) -> Seq2Seq:
    """The configuration's model with these weights, which are checked first."""
    check_weights(config, problem, weights, source)
    model = build_model(config, problem)
    model.load_state_dict(weights, strict=True)
    return model


def prune_checkpoints(folder: Path, keep: int, also: set[int]) -> None:
    """Remove all but the newest `keep` and those in `also`."""
    steps = checkpoint_steps(folder)
    for step in steps[:-keep]:
        if step not in also:
            remove_folder(checkpoint_path(folder, step))


def drop_checkpoints_after(folder: Path, step: int) -> None:
    """Remove damaged checkpoints that were passed over."""
    for later in checkpoint_steps(folder):
        if later > step:
            remove_folder(checkpoint_path(folder, later))


def recover_checkpoints(folder: Path) -> None:
    """Finish or undo a save or a removal that a kill interrupted; only for the process that holds the run."""
    recover_folders(folder / "checkpoints", FILES)
