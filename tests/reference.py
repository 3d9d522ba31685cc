"""A small checkpoint in the form of the paper's published code, and its forward pass in numpy, written from its description.

Independent of the package: words, masks, attention, norms and gates are computed here once more.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, np.dtype[np.float64]]
SPECIAL = ["<eos>", "<pad>", "<sep>", "(", ")", *(f"<SPECIAL_{i}>" for i in range(10))]


def vocabulary(base: int) -> list[str]:
    return SPECIAL + sorted(["+", "-", "V1", "V2", *(str(digit) for digit in range(base))])


def words(value: int, base: int) -> list[str]:
    digits: list[str] = []
    while value or not digits:
        digits.insert(0, str(value % base))
        value //= base
    return ["+", *digits]


def make_checkpoint(path: Path, *, family: str = "transformer", base: int = 12, prefix: str = "", seed: int = 0,
                    **params: Any) -> dict[str, Any]:
    """Random weights, saved as that code saves them; what was saved."""
    generator = torch.Generator().manual_seed(seed)
    enc, dec, hidden, n = 8, 12, 10, base + 19

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator) * 0.5

    def linear(name: str, out: int, width: int) -> dict[str, torch.Tensor]:
        return {f"{name}.weight": random(out, width), f"{name}.bias": random(out)}

    def norm(name: str, dim: int) -> dict[str, torch.Tensor]:
        return {f"{name}.weight": 1 + random(dim), f"{name}.bias": random(dim)}

    def side(dim: int, layers: int, decoder: bool) -> dict[str, torch.Tensor]:
        found = {"embeddings.weight": random(n, dim), **norm("layer_norm_emb", dim)}
        if family != "transformer":
            gates = 4 if family == "lstm" else 3
            for i in range(layers):
                width = dim if i == 0 else hidden
                found |= {f"layers.weight_ih_l{i}": random(gates * hidden, width),
                          f"layers.weight_hh_l{i}": random(gates * hidden, hidden),
                          f"layers.bias_ih_l{i}": random(gates * hidden), f"layers.bias_hh_l{i}": random(gates * hidden)}
            found |= linear("gru_out", dim, hidden)
        else:
            found["position_embeddings.weight"] = random(4096, dim)
            for i in range(layers):
                for part in ("q", "k", "v", "out"):
                    found |= linear(f"layers.{i}.self_attention.{part}_lin", dim, dim)
                    if decoder:
                        width = enc if part in "kv" else dim
                        found |= linear(f"layers.{i}.cross_attention.{part}_lin", dim, width)
                for name in ("layer_norm1", "layer_norm2", *(["layer_norm15"] if decoder else [])):
                    found |= norm(f"layers.{i}.{name}", dim)
                found |= linear(f"layers.{i}.ffn.lin1", 4 * dim, dim) | linear(f"layers.{i}.ffn.lin2", dim, 4 * dim)
        if decoder:
            found |= {"proj.weight": found["embeddings.weight"], "proj.bias": random(n)}
        return {prefix + key: value for key, value in found.items()}

    depth = (1, 2) if family == "transformer" else (2, 2)
    saved = {"encoder": side(enc, depth[0], False), "decoder": side(dec, depth[1], True), "epoch": 3, "n_total_iter": 40,
             "best_metrics": {}, "best_stopping_criterion": None, "optimizer": {"state": {}, "param_groups": []},
             "params": {"base": base, "maxint": 1000, "enc_emb_dim": enc, "dec_emb_dim": dec, "n_enc_layers": depth[0],
                        "n_dec_layers": depth[1], "n_enc_heads": 2, "n_dec_heads": 3, "n_words": n, "share_inout_emb": True,
                        "sinusoidal_embeddings": False, "lstm": family != "transformer", "GRU": family == "gru",
                        "lstm_hidden_dim": hidden, "batch_size": 16, "optimizer": "adam,lr=0.0001", "gelu_activation": False,
                        "norm_attention": False, "n_enc_hidden_layers": 1, "n_dec_hidden_layers": 1, "benford": True,
                        "train_inverse_dist": True, "max_inverse": 100, "env_base_seed": -1, **params}}
    torch.save(saved, path)
    return saved


class NumpyModel:
    """The forward pass of a checkpoint, in float64."""

    def __init__(self, saved: dict[str, Any]) -> None:
        self.params = saved["params"]
        self.e, self.d = ({key.removeprefix("module."): value.double().numpy() for key, value in saved[name].items()}
                          for name in ("encoder", "decoder"))
        self.words = vocabulary(self.params["base"])

    def logits(self, a: int, b: int, answer: int) -> Array:
        """Logits over the vocabulary after the begin token and after each word of the answer."""
        base = self.params["base"]
        inputs = [self.words.index(w) for w in ["V2", *words(a, base), *words(b, base), "<eos>"]]
        outputs = [self.words.index(w) for w in ["<eos>", *words(answer, base)]]
        forward = self.recurrent if self.params["lstm"] else self.transformer
        x = forward(inputs, outputs)
        return x @ self.d["proj.weight"].T + self.d["proj.bias"]

    def transformer(self, inputs: list[int], outputs: list[int]) -> Array:
        heads = self.params["n_enc_heads"]
        x = norm(self.e, "layer_norm_emb",
                 self.e["embeddings.weight"][inputs] + self.e["position_embeddings.weight"][:len(inputs)])
        for i in range(self.params["n_enc_layers"]):
            layer = f"layers.{i}."
            x = norm(self.e, layer + "layer_norm1", x + attend(self.e, layer + "self_attention", x, x, heads))
            x = norm(self.e, layer + "layer_norm2", x + feed_forward(self.e, layer, x))
        memory, heads = x, self.params["n_dec_heads"]
        x = norm(self.d, "layer_norm_emb",
                 self.d["embeddings.weight"][outputs] + self.d["position_embeddings.weight"][:len(outputs)])
        for i in range(self.params["n_dec_layers"]):
            layer = f"layers.{i}."
            n = norm(self.d, layer + "layer_norm1", x + attend(self.d, layer + "self_attention", x, x, heads, causal=True))
            n = norm(self.d, layer + "layer_norm15", n + attend(self.d, layer + "cross_attention", x, memory, heads))
            x = norm(self.d, layer + "layer_norm2", n + feed_forward(self.d, layer, n))
        return x

    def recurrent(self, inputs: list[int], outputs: list[int]) -> Array:
        hidden, layers = self.params["lstm_hidden_dim"], self.params["n_enc_layers"]
        states = [(np.zeros(hidden), np.zeros(hidden)) for _ in range(layers)]
        found: list[Array] = []
        for weights, tokens in ((self.e, inputs), (self.d, outputs)):
            found = []
            for token in tokens:
                x = norm(weights, "layer_norm_emb", weights["embeddings.weight"][token])
                for i in range(layers):
                    states[i] = (gru if self.params["GRU"] else lstm)(weights, i, x, *states[i])
                    x = states[i][0]
                found.append(linear(weights, "gru_out", x))
        return np.stack(found)


def linear(weights: dict[str, Array], name: str, x: Array) -> Array:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def norm(weights: dict[str, Array], name: str, x: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    unit = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
    return unit * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def attend(weights: dict[str, Array], name: str, x: Array, to: Array, heads: int, *, causal: bool = False) -> Array:
    q, k, v = (linear(weights, f"{name}.{part}_lin", y) for part, y in (("q", x), ("k", to), ("v", to)))
    size = q.shape[-1] // heads
    out = np.zeros_like(q)
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        scores = q[:, part] @ k[:, part].T / np.sqrt(size)
        if causal:
            scores[np.triu_indices(len(x), 1)] = -np.inf
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        out[:, part] = shares / shares.sum(-1, keepdims=True) @ v[:, part]
    return linear(weights, f"{name}.out_lin", out)


def feed_forward(weights: dict[str, Array], layer: str, x: Array) -> Array:
    return linear(weights, layer + "ffn.lin2", np.maximum(linear(weights, layer + "ffn.lin1", x), 0))


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def lstm(weights: dict[str, Array], i: int, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    gates = (weights[f"layers.weight_ih_l{i}"] @ x + weights[f"layers.bias_ih_l{i}"]
             + weights[f"layers.weight_hh_l{i}"] @ h + weights[f"layers.bias_hh_l{i}"])
    inward, forget, new, out = np.split(gates, 4)
    c = sigmoid(forget) * c + sigmoid(inward) * np.tanh(new)
    return sigmoid(out) * np.tanh(c), c


def gru(weights: dict[str, Array], i: int, x: Array, h: Array, unused: Array) -> tuple[Array, Array]:
    r, z, n = np.split(weights[f"layers.weight_ih_l{i}"] @ x + weights[f"layers.bias_ih_l{i}"], 3)
    hr, hz, hn = np.split(weights[f"layers.weight_hh_l{i}"] @ h + weights[f"layers.bias_hh_l{i}"], 3)
    update = sigmoid(z + hz)
    return (1 - update) * np.tanh(n + sigmoid(r + hr) * hn) + update * h, unused
