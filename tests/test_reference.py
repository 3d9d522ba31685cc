"""Checkpoints of the published code: logits as an independent forward pass gives them; what is not implemented refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gcdformer import UserError, load_run
from gcdformer.cli import main
from gcdformer.numbers.encoding import BEGIN, Vocabulary
from gcdformer.runs.reference import read_reference, to_config, to_weights
from gcdformer.training.imported import save_imported
from reference import NumpyModel, make_checkpoint, vocabulary

PAIRS = [(1, 1), (160, 120), (12, 1000), (999, 37), (143, 144), (7, 84)]


WRITTEN: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a transformer": ("transformer", "", {}),
    "a data-parallel one": ("transformer", "module.", {}),
    "a transformer that was meant to be a GRU": ("transformer", "", {"GRU": True}),
    "an LSTM": ("lstm", "", {}),
    "a GRU": ("gru", "", {}),
    "a data-parallel GRU": ("gru", "module.", {}),
    "a plain transformer of Int2Int": ("transformer", "", {
        "enc_loops": 1, "dec_loops": 1, "enc_loop_idx": -1, "dec_loop_idx": -1, "gated": False, "enc_gated": False,
        "dec_gated": False, "scalar_gate": True, "gate_bias": 0, "enc_act": False, "dec_act": False, "enc_has_pos_emb": True,
        "dec_has_pos_emb": True, "architecture": "encoder_decoder", "max_src_len": 0, "operation": "gcd"}),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_logits_as_an_independent_forward_pass_gives_them(name: str, tmp_path: Path) -> None:
    """Every word that has a token here, at every position; the words without one, and BEGIN, cannot be predicted."""
    path = tmp_path / "model.pth"
    family, prefix, params = WRITTEN[name]
    theirs = NumpyModel(make_checkpoint(path, family=family, prefix=prefix, **params))
    reference = read_reference(path)
    config = to_config(reference, 100)
    assert config.model.family == family
    run = save_imported(config, to_weights(reference, config), path, "a test", tmp_path / "run")
    predictor, problem = run.predictor(), run.problem
    ours, known = Vocabulary(12), vocabulary(12)
    places = [known.index({"<pad>": "<pad>", "<end>": "<eos>"}.get(ours.symbol(token), ours.symbol(token)))
              for token in range(ours.size) if token != BEGIN]
    for a, b in PAIRS:
        batch = problem.encode_batch(np.array([[a, b]]))
        with torch.inference_mode():
            states = predictor.model(torch.from_numpy(batch.inputs), torch.from_numpy(batch.targets[:, :-1]))
            found = predictor.model.project(states)[0].numpy()
        wanted = theirs.logits(a, b, int(np.gcd(a, b)))
        assert np.abs(np.delete(found, BEGIN, axis=1) - wanted[:, places]).max() < 1e-4
        assert (found[:, BEGIN] < -1e8).all()


def test_an_imported_run_is_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_checkpoint(tmp_path / "model.pth")
    run = tmp_path / "run"
    assert main(["import-reference", str(tmp_path / "model.pth"), "--to", str(run), "--test-size", "1000", "--json"]) == 0
    line = json.loads(capsys.readouterr().out)["last"]
    config = load_run(run).config
    assert (config.data.operands, config.data.outcomes, config.data.max_gcd, config.training.lr, config.model.positions,
            config.model.cross_query, line["examples"]) == ("log-uniform", "log-uniform", 100, 1e-4, 4096, "input", 40 * 16)
    assert main(["evaluate", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == line["accuracy"]
    for words in (["explain", str(run)], ["predict", str(run), "12", "18"],
                  ["lab", str(run), "--export", str(tmp_path / "page")],
                  ["export", str(run), "--to", str(tmp_path / "exported")]):
        assert main(words) == 0, (words, capsys.readouterr().err)
    assert main(["train", "--out", str(run), "--max-epochs", "2"]) == 2 and "--init-from" in capsys.readouterr().err
    assert main(["import-reference", str(tmp_path / "model.pth"), "--to", str(run)]) == 2
    assert "holds a run already" in capsys.readouterr().err
    sizes = config.model.model_dump(exclude_none=True) | {"base": 12, "max": 1000, "framing": "published"}
    flags = [word for name, value in sizes.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    words = ["train", *flags, "--init-from", str(run), "--out", str(tmp_path / "next"), "--epoch-size", "64",
             "--batch-size", "16", "--test-size", "100", "--max-epochs", "1", "--threads", "1", "--quiet"]
    assert main(words) == 0, capsys.readouterr().err


def test_the_packed_decoder_answers_as_the_plain_one(tmp_path: Path) -> None:
    """Framed questions, another epsilon of the norms, other queries: the compiled decoder knows them all."""
    path = tmp_path / "model.pth"
    make_checkpoint(path)
    reference = read_reference(path)
    config = to_config(reference, 300)
    predictor = save_imported(config, to_weights(reference, config), path, "a test", tmp_path / "run").predictor()
    pairs = np.random.default_rng(0).integers(1, 1001, (300, 2))
    plain = np.concatenate([predictor.tokens(pairs[start:start + 100]) for start in range(0, 300, 100)])
    assert (predictor.tokens(pairs) == plain).all()


SIDES = ("enc", "dec")
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another activation": ({"gelu_activation": True}, "gelu_activation = True is not implemented"),
    "normalised attention": ({"norm_attention": True}, "norm_attention = True is not implemented"),
    "a deeper feed-forward": ({"n_enc_hidden_layers": 2}, "n_enc_hidden_layers = 2 is not implemented"),
    "sinusoidal positions": ({"sinusoidal_embeddings": True}, "sinusoidal_embeddings = True is not implemented"),
    "an untied projection": ({"share_inout_emb": False}, "share_inout_emb = False is not implemented"),
    "another operation": ({"operation": "modular_add"}, "operation = modular_add is not implemented"),
    "other words": ({"n_words": 40}, "n_words = 40 is not implemented"),
    "a base out of bounds": ({"base": 10**6}, "params.base"),
    "no size": ({"enc_emb_dim": "x"}, "params.enc_emb_dim: an integer"),
    "another width": ({"enc_emb_dim": 16}, "does not fit"),
    "more layers than weights": ({"n_enc_layers": 2}, "encoder has no weights 'layers.1.self_attention.q_lin.weight'"),
    "fewer layers than weights": ({"n_dec_layers": 1}, "decoder has weights 'layers.1.cross_attention"),
    "no maximum": ({"maxint": 1}, "params.maxint"),
    **{f"{side} layers applied again": ({f"{side}_loops": 2}, f"{side}_loops = 2 is not implemented") for side in SIDES},
    **{f"{side} loop index": ({f"{side}_loop_idx": 0}, f"{side}_loop_idx = 0 is not implemented") for side in SIDES},
    **{f"{side} gates": ({f"{side}_gated": True}, f"{side}_gated = True is not implemented") for side in SIDES},
    **{f"{side} halting": ({f"{side}_act": True}, f"{side}_act = True is not implemented") for side in SIDES},
    **{f"{side} without positions": ({f"{side}_has_pos_emb": False}, f"{side}_has_pos_emb = False") for side in SIDES},
    **{f"{side} other positions": ({f"{side}_pos_emb": "rotary"}, f"{side}_pos_emb = rotary is not") for side in SIDES},
    "gated loops": ({"gated": True}, "gated = True is not implemented"),
    "encoder only": ({"architecture": "encoder_only"}, "architecture = encoder_only is not implemented"),
    "decoder only": ({"architecture": "decoder_only"}, "architecture = decoder_only is not implemented"),
    "a shortened source": ({"max_src_len": 5}, "max_src_len = 5 is not implemented"),
    "an option of tomorrow": ({"enc_mixer": "conv"}, "enc_mixer = conv is not known here"),
}


@pytest.mark.parametrize(("params", "says"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_implemented_is_refused_by_name(params: dict[str, Any], says: str, tmp_path: Path,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    make_checkpoint(tmp_path / "model.pth", **params)
    assert main(["import-reference", str(tmp_path / "model.pth"), "--to", str(tmp_path / "run"), "--test-size", "100"]) == 2
    said = capsys.readouterr().err
    assert says in said and len(said.splitlines()) == 1
    assert not (tmp_path / "run").exists()


FLAGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "none": ({}, {"outcomes": "natural"}),
    "1/k": ({"train_inverse_dist": True}, {"outcomes": "log-uniform", "max_gcd": 70}),
    "k^-1/2": ({"train_sqrt_dist": True}, {"outcomes": "inverse-sqrt", "max_gcd": 70}),
    "k^-1/2 with 1/k": ({"train_sqrt_dist": True, "train_inverse_dist": True}, {"outcomes": "inverse-sqrt", "max_gcd": 70}),
    "k^-3/2 with 1/k": ({"train_32_dist": True, "train_inverse_dist": True}, {"outcomes": "inverse-sqrt", "max_gcd": 70}),
    "k^-3/2 alone": ({"train_32_dist": True}, {"outcomes": "natural"}),
    "1/k before uniform": ({"train_inverse_dist": True, "train_uniform_gcd": True},
                           {"outcomes": "log-uniform", "max_gcd": 70}),
    "k^-1/2 before a mixture": ({"train_sqrt_dist": True, "mixture": 0.3}, {"outcomes": "inverse-sqrt", "max_gcd": 70}),
    "1/k before a mixture": ({"train_inverse_dist": True, "mixture": 0.3}, {"outcomes": "log-uniform", "max_gcd": 70}),
    "uniform": ({"train_uniform_gcd": True}, {"outcomes": "uniform", "max_gcd": 60}),
    "uniform before a mixture": ({"train_uniform_gcd": True, "mixture": 0.3}, {"outcomes": "uniform", "max_gcd": 60}),
    "k^-3/2 and uniform": ({"train_32_dist": True, "train_uniform_gcd": True}, {"outcomes": "uniform", "max_gcd": 60}),
    "a mixture": ({"mixture": 0.3}, {"outcomes": "mixture", "mixture_share": 0.3}),
    "log-uniform operands": ({"benford": True}, {"operands": "log-uniform", "outcomes": "natural"}),
}


@pytest.mark.parametrize(("flags", "meaning"), FLAGS.values(), ids=FLAGS)
def test_what_the_flags_of_the_distributions_mean(flags: dict[str, Any], meaning: dict[str, Any], tmp_path: Path) -> None:
    """As that code draws its examples, not as its flags are called."""
    off = {"benford": False, "train_inverse_dist": False, "max_inverse": 70, "max_uniform": 60, "mixture": -1.0}
    make_checkpoint(tmp_path / "model.pth", **off | flags)
    data = to_config(read_reference(tmp_path / "model.pth"), 100).data
    assert {name: getattr(data, name) for name in meaning} == meaning
    assert data.operands == meaning.get("operands", "uniform")


def test_seen_says_what_it_cannot_know_of_imported_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_checkpoint(tmp_path / "model.pth")
    run = tmp_path / "run"
    assert main(["import-reference", str(tmp_path / "model.pth"), "--to", str(run), "--test-size", "100", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["seen", str(run), "12", "18"]) == 0
    assert "cannot be looked for: the weights were imported" in capsys.readouterr().out
    assert main(["seen", str(run), "12", "18", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["seen"] is found["examples"] is None and "imported" in found["unknown"] and found["when"] == []


def test_weights_that_are_not_of_this_architecture_are_refused(tmp_path: Path) -> None:
    saved = make_checkpoint(tmp_path / "model.pth")
    changes = {"deeper": ("encoder", "layers.0.ffn.midlin.0.weight", torch.zeros(3, 3), "midlin.0.weight', which is not"),
               "untied": ("decoder", "proj.weight", saved["decoder"]["proj.weight"] + 1, "not tied"),
               "no number": ("encoder", "embeddings.weight", saved["encoder"]["embeddings.weight"] / 0, "not all numbers"),
               "no weights": ("encoder", "embeddings.weight", "text", "something else than named weights"),
               "rows missing": ("encoder", "embeddings.weight", torch.zeros(5, 8), "5 rows"),
               "a scalar": ("encoder", "embeddings.weight", torch.tensor(1.0), "a single number"),
               "unequal": ("decoder", "layers.0.self_attention.k_lin.weight", torch.zeros(3), "do not fit together")}
    for name, (side, key, value, says) in changes.items():
        torch.save({**saved, side: {**saved[side], key: value}}, tmp_path / name)
        with pytest.raises(UserError, match=says):
            reference = read_reference(tmp_path / name)
            to_weights(reference, to_config(reference, 100))
    for name, top in {"list": [1], "empty": {}, "no mapping": {**saved, "encoder": 3}}.items():
        torch.save(top, tmp_path / name)
        with pytest.raises(UserError, match="not a checkpoint of the published code"):
            read_reference(tmp_path / name)
