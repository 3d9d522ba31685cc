"""Rows 11 and 12: pickles are refused and never run, wherever a file is read; fuzzed files give typed errors."""

from __future__ import annotations

import ast
import io
import json
import os
import pickle
import re
import resource
import shutil
import sys
from pathlib import Path
from typing import Any

import hostile
import numpy as np
import pytest
import torch

from conftest import ROOT, Figures
from faults import TINY, count, rng_of, run_to_end
from forked import fork
from gcdformer import DamagedFile, UserError, load_run
from gcdformer.cli import main
from reference import make_checkpoint

MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    run_to_end(["train", *TINY, "--max-epochs", 2, "--out", folder / "run"], folder / "log")
    return folder / "run"


def test_the_payloads_would_run(tmp_path: Path) -> None:
    """The tests below could fail: loaded by an unsafe loader, every payload leaves its mark."""
    import gzip
    mark = tmp_path / "mark"
    payloads = hostile.pickles(mark)
    unsafe: dict[str, Any] = {
        "torch-zip": lambda data: torch.load(io.BytesIO(data), weights_only=False),
        "torch-legacy": lambda data: torch.load(io.BytesIO(data), weights_only=False),
        "npy": lambda data: np.load(io.BytesIO(data), allow_pickle=True),
        "npz": lambda data: np.load(io.BytesIO(data), allow_pickle=True)["natural.gcd"],
        "gzip": lambda data: pickle.loads(gzip.decompress(data)),
    }
    for name, data in payloads.items():
        unsafe.get(name, pickle.loads)(data)
        assert mark.read_text() == "executed", name
        mark.unlink()


PLACES = ("config.toml", "metrics.jsonl", "predictions", "model.safetensors", "optimizer.safetensors", "state.json",
          "SHA256SUMS", "csv", "standard input", "init-from file", "init-from run", "task file", "examples as text",
          "examples as CSV", "examples as Parquet", "reference checkpoint")


def offer(place: str, name: str, data: bytes, path: Path) -> list[list[str]]:
    """Put a payload where a file is read; the commands that read it."""
    run, file = str(path), str(path.parent / f"{name}.pth")
    Path(file).write_bytes(data)
    out = str(path.parent / "new")
    fresh = ["train", *map(str, TINY), "--max-epochs", "1", "--out", out]
    if place == "config.toml":
        hostile.forge_config(path, data)
        return [["predict", run, "1", "2"], ["train", "--out", run, "--max-epochs", "3"], [*fresh, "--init-from", run]]
    if place == "metrics.jsonl":
        (path / place).write_bytes(data)
        return [["explain", run], ["report", run], ["train", "--out", run, "--max-epochs", "3"]]
    if place == "predictions":
        hostile.forge_tables(path, data)
        return [["explain", run], ["report", run]]
    if place.startswith("examples"):
        path_of = path.parent / f"{name}.{place.rpartition(' ')[2].lower()}"
        path_of.write_bytes(data)
        return [[*fresh, "--train-file", str(path_of)], ["evaluate", run, "--test-file", str(path_of)]]
    if place in ("model.safetensors", "optimizer.safetensors", "state.json", "SHA256SUMS", "init-from run"):
        hostile.forge_every_checkpoint(path, {"model.safetensors" if place == "init-from run" else place: data})
        return [[*fresh, "--init-from", run]] if place == "init-from run" else [
            ["predict", run, "1", "2"], ["evaluate", run], ["train", "--out", run, "--max-epochs", "3"]]
    return {"csv": [["explain", "--base", "10", "--predictions", file]], "standard input": [["predict", run, "-"]],
            "init-from file": [[*fresh, "--init-from", file]], "task file": [[*fresh, "--task", f"{file}:Task"]],
            "reference checkpoint": [["import-reference", file, "--to", out]]}[place]


def test_pickles_are_refused_wherever_a_file_is_read(
        whole: Path, tmp_path: Path, figures: Figures, capfd: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "mark"
    refused = executed = offered = 0
    payloads = list(hostile.pickles(mark).items())
    for number, (place, (name, data)) in enumerate((p, q) for p in PLACES for q in payloads):
        path = Path(shutil.copytree(whole, tmp_path / f"{number}" / "run"))
        for words in offer(place, name, data, path):
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
            code = main(words)
            err = capfd.readouterr().err
            assert code == 2 and len(err.splitlines()) == 1 and err[:-1].isprintable(), (place, name, words, err)
            executed += mark.exists()
        offered += 1
        refused += code == 2
        shutil.rmtree(path.parent)
    figures(11, f"malicious pickles, {len(payloads)} kinds in {len(PLACES)} places: refused", f"{refused} of {offered}",
            f"{offered} of {offered} (at least 30)")
    figures(11, "of them executed", executed, 0)
    assert refused == offered >= 30 and executed == 0


UNSAFE_MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "yaml", "pty"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__"}
UNPICKLES = {"exec_module", "read_pickle", "UnsafeLoader", "broadcast_object_list", "all_gather_object",
             "scatter_object_list", "gather_object", "recv_object_list"}
TASK_LOADER = "tasks/registry.py"
RANKS = "training/device.py"
ALLOWED = {("exec_module", TASK_LOADER), ("broadcast_object_list", RANKS)}
"""A task's own file runs once its reader has named it; ranks of one training tell each other what came of an evaluation."""
FOREIGN_WEIGHTS = "runs/reference.py"


def unsafe_places(text: str, name: str) -> list[str]:
    """Pickle and its kin, loaders that may unpickle, code from strings."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            found += [f"{name}:{node.lineno} imports {m}" for m in modules if m.split(".")[0] in UNSAFE_MODULES]
            names = {alias.name for alias in node.names} if isinstance(node, ast.ImportFrom) else set()
            if modules[0].split(".")[0] in ("torch", "numpy") and names & {"load", *UNPICKLES}:
                found.append(f"{name}:{node.lineno} takes {', '.join(sorted(names))} from {modules[0]}")
        if isinstance(node, ast.Attribute) and node.attr in UNPICKLES and (node.attr, name) not in ALLOWED:
            found.append(f"{name}:{node.lineno} uses {node.attr}")
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        options = {word.arg: ast.unparse(word.value) for word in node.keywords}
        if isinstance(node.func, ast.Name) and called in UNSAFE_CALLS:
            found.append(f"{name}:{node.lineno} calls {called}")
        if called in ("torch.load", "torch.serialization.load") and (
                options.get("weights_only") != "True" or name != FOREIGN_WEIGHTS):
            found.append(f"{name}:{node.lineno} torch.load without weights_only=True, or not in {FOREIGN_WEIGHTS}")
        if called in ("np.load", "numpy.load") and options.get("allow_pickle") != "False":
            found.append(f"{name}:{node.lineno} np.load without allow_pickle=False")
        if options.get("allow_pickle") == "True" or options.get("shell") == "True" or called == "os.system":
            found.append(f"{name}:{node.lineno} {called} with allow_pickle or a shell")
    return found


def test_no_pickle_and_no_unsafe_load_in_the_package(figures: Figures) -> None:
    bad = ["import pickle", "from pickle import loads", "torch.load(f)", "np.load(f)", "np.load(f, allow_pickle=True)",
           "eval(x)", "pandas.read_pickle(f)", "torch.load(f, weights_only=False)",
           "subprocess.run(x, shell=True)", "import joblib", "torch.load(f, weights_only=True)",
           "from torch import load", "from numpy import load", "dist.broadcast_object_list(x)", "module.exec_module(x)"]
    assert all(unsafe_places(text, "x.py") for text in bad)
    assert not unsafe_places("torch.load(f, weights_only=True)", FOREIGN_WEIGHTS)
    assert not unsafe_places("np.load(f, allow_pickle=False)", "x.py")
    package = ROOT / "src" / "gcdformer"
    files = sorted(package.rglob("*.py"))
    found = [place for file in files for place in unsafe_places(file.read_text(), str(file.relative_to(package)))]
    figures(11, f"pickle or unsafe load in the {len(files)} files of the package", len(found), 0)
    assert not found and len(files) > 50


def test_a_run_folder_brings_no_code_with_it(tmp_path: Path, whole: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A folder from elsewhere that names a task's file, with the right hash: not run until its reader names it."""
    from gcdformer.tasks.registry import task_digest
    mark, code = tmp_path / "mark", tmp_path / "task.py"
    code.write_text(f"from pathlib import Path\nPath({str(mark)!r}).write_text('run')\n"
                    "from gcdformer.tasks.gcd import Gcd\nclass Own(Gcd):\n    pass\n")
    path = Path(shutil.copytree(whole, tmp_path / "run"))
    body = (path / "config.toml").read_text().partition("\n")[2].replace('task = "gcd"', f'task = "{code}:Own"')
    body = body.replace("[gcdformer]\n", f'[gcdformer]\ntask_sha256 = "{task_digest(f"{code}:Own")}"\n')
    hostile.forge_config(path, body.encode())
    fresh = ["train", "--out", tmp_path / "new", *TINY, "--max-epochs", 1]
    for words in (["predict", path, 1, 2], ["evaluate", path], ["explain", path], ["report", path], ["seen", path, 1, 2],
                  ["train", "--out", path], [*fresh, "--init-from", path]):
        assert main([str(word) for word in words]) == 2, words
        assert "name it yourself once" in capfd.readouterr().err and not mark.exists()
    assert main(["describe", "--no-timing", "--task", f"{code}:Own"]) == 0 and mark.exists()
    assert main(["predict", str(path), "1", "2"]) == 0


def test_a_small_file_does_not_unpack_to_a_large_one(whole: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(whole, tmp_path / "run"))
    hostile.forge_tables(path, hostile.bomb("natural.gcd"))
    with pytest.raises(DamagedFile, match=r"epoch-00002\.npz: .*bytes when unpacked"):
        load_run(path).prediction_tables()


def test_a_configuration_of_a_giant_with_weights_of_a_dwarf_allocates_nothing(whole: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(whole, tmp_path / "run"))
    body = (path / "config.toml").read_text().partition("\n")[2]
    for name, value in {"encoder_layers": 256, "encoder_dim": 65536, "decoder_dim": 65536}.items():
        body = re.sub(rf"^{name} = \d+$", f"{name} = {value}", body, flags=re.MULTILINE)
    hostile.forge_config(path, body.encode())
    with pytest.raises(UserError, match="does not fit the run's configuration"):
        load_run(path).predictor()


def fuzz(run: str, folder: str, per_kind: int, seed: int) -> None:
    """In a process of its own: read mutants until there are enough typed errors of each kind; what happened, as JSON."""
    path, work = Path(run), Path(folder)
    os.dup2(os.open(work / "out", os.O_WRONLY | os.O_CREAT), 1)
    import pyarrow
    import pyarrow.parquet
    pyarrow.parquet.write_table(pyarrow.table({"a": [1, 2], "b": [3, 4], "prediction": [1, 2]}), work / "whole.parquet")
    parquet = (work / "whole.parquet").read_bytes()
    pyarrow.parquet.write_table(pyarrow.table({"a": [6, 8] * 40, "b": [3, 4] * 40, "gcd": [3, 4] * 40}), work / "e.parquet")
    examples, reference = (work / "e.parquet").read_bytes(), make_checkpoint(work / "whole.pth", maxint=1000)
    toml = (path / "config.toml").read_text().partition("\n")[2]
    metrics, tables = (path / "metrics.jsonl").read_text(), (path / "predictions" / "epoch-00002.npz").read_bytes()
    checkpoint = path / "checkpoints" / "step-000000040"
    model, optimizer = ((checkpoint / name).read_bytes() for name in ("model.safetensors", "optimizer.safetensors"))
    kinds: dict[str, tuple[Any, Any, list[str]]] = {
        "model": (lambda rng: hostile.bad_safetensors(model, rng),
                  lambda p, d: hostile.forge_every_checkpoint(p, {"model.safetensors": d}), ["predict", "RUN", "1", "2"]),
        "optimizer": (lambda rng: hostile.bad_safetensors(optimizer, rng),
                      lambda p, d: hostile.forge_every_checkpoint(p, {"optimizer.safetensors": d}),
                      ["train", "--out", "RUN", "--max-epochs", "3", "--quiet"]),
        "TOML": (lambda rng: hostile.bad_toml(toml, rng), hostile.forge_config, ["predict", "RUN", "1", "2"]),
        "JSONL": (lambda rng: hostile.bad_metrics(metrics, rng), lambda p, d: (p / "metrics.jsonl").write_bytes(d),
                  ["explain", "RUN"]),
        "npz": (lambda rng: hostile.bad_tables(tables, rng), hostile.forge_tables, ["explain", "RUN"]),
        "CSV": (hostile.bad_csv, lambda p, d: (p / "p.csv").write_bytes(d),
                ["explain", "--base", "10", "--predictions", "RUN/p.csv"]),
        "Parquet": (lambda rng: hostile.bad_parquet(parquet, rng), lambda p, d: (p / "p.parquet").write_bytes(d),
                    ["explain", "--base", "10", "--predictions", "RUN/p.parquet"]),
        "Int2Int": (hostile.bad_int2int, lambda p, d: (p / "p.txt").write_bytes(d),
                    ["evaluate", "RUN", "--test-file", "RUN/p.txt"]),
        "examples as CSV": (hostile.bad_examples, lambda p, d: (p / "p.csv").write_bytes(d),
                            ["evaluate", "RUN", "--test-file", "RUN/p.csv"]),
        "examples as Parquet": (lambda rng: hostile.bad_parquet(examples, rng),
                                lambda p, d: (p / "p.parquet").write_bytes(d),
                                ["evaluate", "RUN", "--test-file", "RUN/p.parquet"]),
        "reference checkpoint": (lambda rng: hostile.bad_reference(reference, rng),
                                 lambda p, d: (p / "p.pth").write_bytes(d),
                                 ["import-reference", "RUN/p.pth", "--to", "RUN/new", "--test-size", "100"]),
    }
    results: dict[str, Any] = {}
    baseline = 0
    for name, (make, put, words) in kinds.items():
        rng = rng_of(f"fuzz {name} {seed}")
        typed, loaded, others = 0, 0, []
        for number in range(8 * per_kind):
            if typed >= per_kind:
                break
            target = Path(shutil.copytree(path, work / "run"))
            put(target, make(rng))
            errors = io.StringIO()
            sys.stderr = errors
            try:
                code: object = main([word.replace("RUN", str(target)) for word in words])
            except BaseException as error:
                code = f"{type(error).__name__}: {str(error)[:300]}"
            said = errors.getvalue()
            typed += code == 2
            loaded += code in (0, 3)
            one_line = [line for line in said.splitlines() if line.startswith("gcdformer: ") and line.isprintable()]
            if code not in (0, 2, 3) or (code == 2 and not one_line):
                others.append(f"{name} {number}: {code} {said[:300]}")
            shutil.rmtree(target)
            if not baseline and number >= 3:
                baseline = peak()
        results[name] = {"typed": typed, "loaded": loaded, "others": others}
    results["memory"] = (peak() - baseline) / MEGABYTE
    (work / "results.json").write_text(json.dumps(results))
    os._exit(0)


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def test_fuzzed_files_give_typed_errors_in_little_memory(whole: Path, tmp_path: Path, figures: Figures) -> None:
    """With right checksums. A mutant that is still a sound file may load; anything else is one line and exit code 2."""
    per_kind = count(15, 72)
    process = fork(fuzz, str(whole), str(tmp_path), per_kind, 0)
    process.join()
    assert process.exitcode == 0, process.exitcode
    results = json.loads((tmp_path / "results.json").read_text())
    memory = results.pop("memory")
    typed = sum(result["typed"] for result in results.values())
    loaded = {name: result["loaded"] for name, result in results.items()}
    others = [text for result in results.values() for text in result["others"]]
    wanted = per_kind * len(results)
    figures(12, f"fuzzed {', '.join(results)}: typed errors", f"{typed}, else {len(others)}", f"{wanted}, else 0")
    figures(12, "of more mutants, those that were still sound and loaded", sum(loaded.values()), "-")
    figures(12, "memory beside the first reads", f"+{memory:.0f} MB", "under +200 MB")
    assert not others, others[:5]
    assert typed == wanted, results
    assert memory < 200
