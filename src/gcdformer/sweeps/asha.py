"""Early stopping of hopeless trials: Ray Tune's ASHA decides at each epoch which trials continue.

Trials are the same run folders as without it. One that is stopped early keeps its last checkpoint and is recorded as
stopped, so that the same command does not resume it (`--retry` does). On a signal Tune ends the trials at once;
they resume from their last checkpoint.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from gcdformer.config import Config
from gcdformer.runs.metrics import Line
from gcdformer.sweeps.board import Board
from gcdformer.sweeps.launcher import record_outcome
from gcdformer.sweeps.on_ray import (
    PROGRESS_SECONDS,
    connect,
    disconnect,
    go_to,
    handlers,
    make_ready,
    set_handlers,
    slots_for,
)
from gcdformer.sweeps.plan import HIDDEN, Planned, note_start, refresh, write_record
from gcdformer.sweeps.trial import DONE, Ending, run_trial
from gcdformer.training.signals import EXIT_INTERRUPTED, StopRequest

NO_END = 1_000_000  # epochs, where no limit of epochs is set


def figure_of_merit(line: Line) -> float:
    """What ASHA compares: the correct GCD, then the accuracy; the accuracy alone for tasks without GCD."""
    return float(line.get("n_correct", 0) + line["accuracy"] / 1000)


def tuned_trial(orders: dict[str, str]) -> None:
    """What runs in a Tune worker: a session that reports each epoch, after its checkpoint is written."""
    from ray import tune
    last = {"epoch": 0, "merit": -1.0}

    def report(line: Line) -> None:
        last.update(epoch=line["epoch"], merit=figure_of_merit(line))
        tune.report({**last, "code": DONE, "reason": ""})

    trial = json.loads(orders["trial"])
    go_to(trial["here"])  # Tune has changed to a folder of its own
    ending = run_trial(Config.parse(trial["config"]), Path(trial["out"]), every=PROGRESS_SECONDS, on_epoch=report)
    tune.report({**last, "code": ending.code, "reason": ending.reason})


def run_with_asha(planned: list[Planned], board: Board, stop: StopRequest, *, address: str | None, grace: int,
                  reduction: int, retries: int) -> None:
    """Run what is not over, under ASHA. Sets the status and reason of each trial."""
    os.environ.setdefault("TUNE_DISABLE_SIGINT_HANDLER", "1")  # signals are ours; `Watch` takes SIGUSR1 back
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")  # the board shows it
    os.environ.setdefault("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
    make_ready(address)
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler
    todo = {trial.name: trial for trial in planned if not trial.over}
    first = next(iter(todo.values()))
    longest = max(trial.config.limits.max_epochs or NO_END for trial in todo.values())
    scratch = first.path.parent.absolute() / HIDDEN / "tune"
    endings: dict[str, Ending] = {}
    ours = handlers()

    class Watch(tune.Callback):
        """Passes what Tune reports on to the board."""

        def setup(self, *args: Any, **info: Any) -> None:
            set_handlers(ours)

        def on_trial_start(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
            planned = planned_as(trial)
            if planned.status != "running":
                note_start(planned)
                planned.status = "running"
                board.started(planned)

        def on_trial_result(self, iteration: int, trials: list[Any], trial: Any, result: Any, **info: Any) -> None:
            endings[planned_as(trial).name] = Ending(result["code"], result["reason"])
            board.refresh()

        def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
            planned = planned_as(trial)
            conclude(planned, endings.get(planned.name), bool(stop))
            board.ended(planned)

        def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
            planned = planned_as(trial)
            record_outcome(planned, Ending(1, f"failed in Ray Tune, see {scratch}"))
            board.ended(planned)

    class UntilSignal(tune.Stopper):
        """Ends all trials when a signal came."""

        def __call__(self, trial_id: str, result: Any) -> bool:
            return False

        def stop_all(self) -> bool:
            return bool(stop)

    def planned_as(trial: Any) -> Planned:
        return todo[json.loads(trial.config["trial"])["name"]]

    connect(address)
    try:
        board.slots = slots_for(first.needs)
        needs = {"cpu": first.needs.cpus, "gpu": first.needs.gpus}
        orders = [json.dumps({"name": trial.name, "out": str(trial.path.absolute()), "here": str(Path.cwd()),
                              "config": trial.config.model_dump()}) for trial in todo.values()]
        scheduler = ASHAScheduler(time_attr="epoch", metric="merit", mode="max", max_t=max(longest, grace),
                                  grace_period=grace, reduction_factor=reduction)
        tuner = tune.Tuner(
            tune.with_resources(tuned_trial, needs), param_space={"trial": tune.grid_search(orders)},
            tune_config=tune.TuneConfig(scheduler=scheduler, trial_dirname_creator=lambda trial: trial.trial_id),
            run_config=tune.RunConfig(name="sweep", storage_path=str(scratch), verbose=0, callbacks=[Watch()],
                                      stop=UntilSignal(), failure_config=tune.FailureConfig(max_failures=retries)))
        with board:
            tuner.fit()
    finally:
        disconnect()
    for trial in todo.values():
        if not trial.over and trial.status not in ("failed", "in use"):
            trial.status = refresh(trial).status
            trial.reason = "stopped by a signal" if stop else "Ray Tune ended before it did"
    if all(trial.status != "failed" for trial in planned):
        shutil.rmtree(scratch, ignore_errors=True)


def conclude(trial: Planned, ending: Ending | None, stopping: bool) -> None:
    """Status of a trial that Tune calls complete: it reached a limit, ended badly, or ASHA ended it."""
    record_outcome(trial, ending or Ending(EXIT_INTERRUPTED, "ended before its first epoch"))
    if trial.over or stopping or ending is None or ending.code != DONE:
        return
    lines, problem = trial.lines()
    if problem or not lines:
        trial.reason = problem or trial.reason
        return
    trial.status, trial.reason = "stopped", f"by ASHA after epoch {lines[-1]['epoch']}"
    write_record(trial, trial.status, trial.reason)
