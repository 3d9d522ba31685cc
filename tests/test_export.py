"""Exported folders: loaded back bit for bit, the card true, ONNX as onnxruntime computes it, Parquet as the tables are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pyarrow.parquet
import pytest
import torch

from conftest import tiny_config
from gcdformer import UNREADABLE, DamagedFile, Run, UserError, load_exported, train
from gcdformer.cli import main
from gcdformer.numbers.encoding import BEGIN, END, PAD
from gcdformer.runs.exported import export_run


@pytest.fixture(scope="module")
def exported(trained: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "model"
    assert main(["export", str(trained.path), "--to", str(folder), "--onnx", "--parquet"]) == 0
    return folder


def test_loaded_back_it_is_bit_for_bit_the_same(trained: Run, exported: Path) -> None:
    before, after = trained.predictor(), load_exported(exported)
    weights = after.model.state_dict()
    assert all(torch.equal(weights[name], weight) for name, weight in before.model.state_dict().items())
    pairs = np.random.default_rng(0).integers(1, 1001, (400, 2))
    assert (before.tokens(pairs) == after.tokens(pairs)).all()
    batch = before.problem.encode_batch(pairs)
    with torch.inference_mode():
        states = [one.model(torch.from_numpy(batch.inputs), torch.from_numpy(batch.targets)) for one in (before, after)]
    assert torch.equal(*states)


@pytest.mark.parametrize("leaves", [{"family": "gru", "heads": 0}, {"task": "division", "maximum": 50},
                                    {"precision": "bf16"}, {"framing": "published", "norm_epsilon": 1e-3}], ids=str)
def test_every_kind_of_model(leaves: dict[str, object], tmp_path: Path) -> None:
    run = train(tiny_config(max_epochs=1, **leaves), tmp_path / "run")
    assert export_run(run, tmp_path / "model") == ["config.json", "model.safetensors", "README.md"]
    pairs = np.random.default_rng(0).integers(1, 51, (20, 2))
    assert (run.predictor().tokens(pairs) == load_exported(tmp_path / "model").tokens(pairs)).all()


def test_the_card_tells_what_the_run_does(trained: Run, exported: Path) -> None:
    card = (exported / "README.md").read_text()
    scores = trained.scores()
    assert f"D, the GCD it predicts right: {', '.join(map(str, scores.correct))} (" in card
    assert f"Accuracy {scores.accuracy:.2f} % measured" in card
    code = card.partition("```python\n")[2].partition("```")[0].replace("PATH/TO/THIS/FOLDER", str(exported))
    names = {"a": np.array([12]), "b": np.array([18])}
    exec(code, names)
    assert names["model"].predict(names["a"], names["b"]).shape == (1,)  # type: ignore[attr-defined]
    config = json.loads((exported / "config.json").read_text())
    assert config["model_type"] == "gcdformer" and config["vocabulary"][:6] == ["<pad>", "<begin>", "<end>", "+", "-", "0"]
    assert "machine" not in config["gcdformer"] and str(trained.path.parent) not in json.dumps(config)


def test_onnx_decodes_as_the_model_does(trained: Run, exported: Path) -> None:
    """Greedy decoding by onnxruntime alone, rows of different lengths together."""
    session = onnxruntime.InferenceSession(exported / "model.onnx", providers=["CPUExecutionProvider"])
    pairs = np.random.default_rng(1).integers(1, 1001, (60, 2))
    problem = trained.problem
    inputs, lengths = problem.encode_questions(pairs)
    assert len(set(lengths.tolist())) > 2
    outputs = np.full((60, 1), BEGIN)
    for _ in range(problem.longest_target):
        chosen = session.run(None, {"inputs": inputs, "outputs": outputs})[0][:, -1].argmax(-1)
        ended = (outputs == END).any(1)
        outputs = np.concatenate([outputs, np.where(ended, PAD, chosen)[:, None]], axis=1)
    assert (outputs[:, 1:] == trained.predictor().tokens(pairs)).all()


def test_parquet_holds_the_tables_of_every_epoch(trained: Run, exported: Path) -> None:
    found = pyarrow.parquet.read_table(exported / "predictions.parquet").to_pylist()
    wanted = []
    for line in trained.metrics:
        for name, table in trained.prediction_tables(line["epoch"]).items():
            wanted += [{"epoch": line["epoch"], "set": name, "gcd": k, "prediction": None if value == UNREADABLE else value,
                        "count": count} for k, value, count in zip(
                            table.gcd.tolist(), table.prediction.tolist(), table.count.tolist(), strict=True)]
    assert found == wanted


def test_what_cannot_be_exported_is_refused(trained: Run, exported: Path, tmp_path: Path,
                                            capsys: pytest.CaptureFixture[str]) -> None:
    run = train(tiny_config(max_epochs=1, family="lstm", heads=0, task="division", maximum=50), tmp_path / "run")
    for words, says in ((["export", str(trained.path), "--to", str(exported)], "is there already"),
                        (["export", str(run.path), "--to", str(tmp_path / "a"), "--onnx"], "recurrent"),
                        (["export", str(run.path), "--to", str(tmp_path / "a"), "--parquet"], "for task 'gcd'"),
                        (["export", str(trained.path), "--to", str(tmp_path / "a"), "--checkpoint", "77"], "77")):
        assert main(words) == 2
        assert says in capsys.readouterr().err and not (tmp_path / "a").exists()


def test_a_damaged_folder_is_named(exported: Path, tmp_path: Path) -> None:
    for name, data in (("config.json", b"{}"), ("config.json", b"["), ("model.safetensors", b"x" * 99),
                       ("config.json", None), ("model.safetensors", None)):
        folder = Path(shutil.copytree(exported, tmp_path / "model"))
        (folder / name).unlink()
        if data is not None:
            (folder / name).write_bytes(data)
        with pytest.raises((DamagedFile, UserError), match=name):
            load_exported(folder)
        shutil.rmtree(folder)
