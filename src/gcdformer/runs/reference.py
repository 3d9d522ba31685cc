"""Checkpoints of the paper's published code, and of Int2Int where they are the same, as a configuration and weights of ours.

The one place that reads a foreign checkpoint, with torch's weights-only loader: nothing in it is executed. Every option that
changes the mathematics and is not implemented here is refused by name. Its words are mapped to our tokens: `V2` in front of
a question is our BEGIN on the encoder's side, its end token our END, and on the decoder's side both BEGIN and END; BEGIN is
never predicted. Its other words (parentheses, special ones, `V1`, `V2`) have no token here: where a model would predict one,
the next best is taken.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gcdformer.config import LARGEST_BASE, Config
from gcdformer.errors import UserError
from gcdformer.numbers.encoding import BEGIN, Vocabulary

Leaves = dict[str, str | int | float]
"""Values of a configuration by name."""
SPECIAL_TOKENS = 15
END_TOKEN, PAD_TOKEN = 0, 1
NEVER = -1e9
"""The bias of a token that is never to be predicted."""
REFUSED: dict[str, Callable[[Any], bool]] = {
    "gelu_activation": bool, "norm_attention": bool, "sinusoidal_embeddings": bool,
    "share_inout_emb": lambda value: not value, "n_enc_hidden_layers": lambda value: value != 1,
    "n_dec_hidden_layers": lambda value: value != 1, "operation": lambda value: value != "gcd",
    **{f"{side}_loops": lambda value: value != 1 for side in ("enc", "dec")},
    **{f"{side}_loop_idx": lambda value: value != -1 for side in ("enc", "dec")},
    **{f"{side}_has_pos_emb": lambda value: not value for side in ("enc", "dec")},
    **{f"{side}_pos_emb": lambda value: value != "abs_learned" for side in ("enc", "dec")},
    "gated": bool, "enc_gated": bool, "dec_gated": bool, "enc_act": bool, "dec_act": bool, "max_src_len": bool,
    "architecture": lambda value: value not in ("encoder_decoder", "encoder-decoder"),
}
"""Options of the published code, then of Int2Int, with the values that are not implemented here."""
MODEL_OPTION = re.compile(r"(?:n_)?(?:enc|dec)_\w+|\w*(?:loop|gate|halt)\w*")
"""Names of options of a model. One that is neither known nor off is refused, as it may change the mathematics."""
KNOWN_OPTIONS = {"enc_emb_dim", "dec_emb_dim", "n_enc_layers", "n_dec_layers", "n_enc_heads", "n_dec_heads",
                 "scalar_gate", "biased_gates", "gate_bias"}


@dataclass
class Side:
    """The weights of an encoder or a decoder, and which of them were taken."""

    name: str
    weights: dict[str, Tensor]
    source: Path
    taken: set[str] = field(default_factory=set)

    def take(self, key: str) -> Tensor:
        if key not in self.weights:
            raise UserError(f"{self.source}: its {self.name} has no weights '{key}'")
        self.taken.add(key)
        return self.weights[key]

    def both(self, theirs: str, ours: str) -> dict[str, Tensor]:
        """Weight and bias of a map or a norm, renamed."""
        return {f"{ours}.{part}": self.take(f"{theirs}.{part}") for part in ("weight", "bias")}

    def stacked(self, theirs: list[str], ours: str) -> dict[str, Tensor]:
        """Several maps as one."""
        weights = {part: [self.take(f"{name}.{part}") for name in theirs] for part in ("weight", "bias")}
        for part, tensors in weights.items():
            if len({tensor.shape[1:] for tensor in tensors}) > 1:
                shapes = ", ".join(str(list(tensor.shape)) for tensor in tensors)
                raise UserError(f"{self.source}: '{theirs[0]}.{part}' of its {self.name} and those beside it do not fit "
                                f"together: {shapes}")
        return {f"{ours}.{part}": torch.cat(tensors) for part, tensors in weights.items()}

    def require_all_taken(self) -> None:
        left = sorted(set(self.weights) - self.taken)
        if left:
            raise UserError(f"{self.source}: its {self.name} has weights '{left[0][:100]}', which is not implemented here")


@dataclass(frozen=True)
class Reference:
    """A checkpoint of the published code, read."""

    params: Mapping[str, Any]
    iterations: int
    encoder: Side
    decoder: Side
    source: Path


def read_reference(path: Path) -> Reference:
    """Read a checkpoint without executing anything in it; a `UserError` says what is not as it should be."""
    if not path.is_file():
        raise UserError(f"{path}: there is no such file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what torch thinks of the file's age; what counts is checked below
            top = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a file that is no checkpoint makes torch, zipfile or the unpickler say
        reason = next(iter(str(error).splitlines()), "")[:100]
        raise UserError(f"{path}: cannot be read as weights alone, with nothing executed: {type(error).__name__}: "
                        f"{reason}") from None
    if not isinstance(top, dict):
        raise UserError(f"{path}: not a checkpoint of the published code: a mapping expected, got {type(top).__name__}")
    for key in ("encoder", "decoder", "params"):
        if not isinstance(top.get(key), dict):
            raise UserError(f"{path}: not a checkpoint of the published code: it has no mapping '{key}'")
    params = top["params"]
    for name, value in params.items():
        require_option(str(name), value, path)
    iterations = top.get("n_total_iter", 0)
    if not isinstance(iterations, int) or not 0 <= iterations < 2**40:
        raise UserError(f"{path}: n_total_iter: a number of steps, got {str(iterations)[:50]}")
    encoder, decoder = (side_of(name, top[name], path) for name in ("encoder", "decoder"))
    return Reference(params, max(iterations, 1), encoder, decoder, path)


def require_option(name: str, value: Any, path: Path) -> None:
    """Refuse an option that changes what the model computes and is not implemented here."""
    is_plain_value = value is None or isinstance(value, bool | int | float | str)
    if name in REFUSED and (not is_plain_value or REFUSED[name](value)):
        raise UserError(f"{path}: {name} = {str(value)[:50]} is not implemented here")
    if name not in REFUSED and name not in KNOWN_OPTIONS and MODEL_OPTION.fullmatch(name) and (not is_plain_value or value):
        raise UserError(f"{path}: {name[:50]} = {str(value)[:50]} is not known here and may change what a model computes")


def side_of(name: str, entries: dict[Any, Any], path: Path) -> Side:
    weights = {}
    for key, tensor in entries.items():
        if not isinstance(key, str) or not isinstance(tensor, Tensor) or not tensor.is_floating_point():
            raise UserError(f"{path}: its {name} holds something else than named weights: '{str(key)[:50]}'")
        if tensor.dim() == 0:
            raise UserError(f"{path}: weights '{key[:100]}' of its {name} are a single number")
        if not is_plain(tensor) or not bool(torch.isfinite(tensor).all()):
            raise UserError(f"{path}: weights '{key[:100]}' of its {name} are not all numbers")
        weights[key.removeprefix("module.")] = tensor.detach().float()
    return Side(name, weights, path)


def is_plain(tensor: Tensor) -> bool:
    """Whether all its numbers are there: a few bytes may call themselves a tensor of any size."""
    return (tensor.layout == torch.strided and not tensor.is_meta
            and tensor.numel() * tensor.element_size() <= tensor.untyped_storage().nbytes())


def whole(reference: Reference, name: str, low: int, high: int, default: int | None = None) -> int:
    value = reference.params.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise UserError(f"{reference.source}: params.{name}: an integer in {low}..{high}, got {str(value)[:50]}")
    return value


def family_of(params: Mapping[str, Any]) -> str:
    """`lstm` alone is an LSTM, with `GRU` a GRU; without `lstm` that code builds a transformer, whatever `GRU` says."""
    if not params.get("lstm"):
        return "transformer"
    return "gru" if params.get("GRU") else "lstm"


def to_config(reference: Reference, test_size: int) -> Config:
    """The configuration of the run it becomes: one epoch of all the examples it was trained on."""
    params, family = reference.params, family_of(reference.params)
    base = whole(reference, "base", 2, LARGEST_BASE)
    usual = base + SPECIAL_TOKENS + 4
    words = whole(reference, "n_words", 1, 10**6, usual)
    if words != usual:
        raise UserError(f"{reference.source}: n_words = {words} is not implemented here: base {base} has {usual}")
    batch = whole(reference, "batch_size", 1, 10**6, 256)
    leaves: Leaves = dict(
        base=base, maximum=whole(reference, "maxint", 2, 2**53), framing="published", norm_epsilon=1e-12, family=family,
        encoder_layers=whole(reference, "n_enc_layers", 1, 256), decoder_layers=whole(reference, "n_dec_layers", 1, 256),
        encoder_dim=whole(reference, "enc_emb_dim", 1, 65_536), decoder_dim=whole(reference, "dec_emb_dim", 1, 65_536),
        optimizer="adam", schedule="constant", warmup=0, batch_size=batch, epoch_size=batch * reference.iterations,
        test_size=test_size, seed=max(0, whole(reference, "env_base_seed", -1, 2**62, 0)), **distributions_of(reference))
    rate = re.search(r"\blr=([0-9.]+(?:e-?[0-9]+)?)", str(params.get("optimizer", ""))[:200])
    if rate is not None and 0 < float(rate[1]) <= 10:
        leaves["lr"] = float(rate[1])
    if family == "transformer":
        positions = reference.encoder.weights.get("position_embeddings.weight")
        leaves |= dict(encoder_heads=whole(reference, "n_enc_heads", 1, 65_536), cross_query="input",
                       decoder_heads=whole(reference, "n_dec_heads", 1, 65_536),
                       positions=4096 if positions is None else len(positions))
    else:
        leaves["hidden_dim"] = whole(reference, "lstm_hidden_dim", 1, 65_536)
    return Config().derive(**leaves)


def distributions_of(reference: Reference) -> Leaves:
    """The distributions it was trained with, by what its flags really do.

    The flag for k^-1.5 has no effect by itself, and with that for 1/k it gives k^-0.5. Those two kinds come before uniform
    outcomes, and these before a mixture. Its log-uniform operands are rounded down, ours to the nearest integer.
    """
    params = reference.params
    distributions: Leaves = {"operands": "log-uniform" if params.get("benford") else "uniform", "outcomes": "natural"}
    inverse, root, flag_32 = (bool(params.get(f"train_{name}_dist")) for name in ("inverse", "sqrt", "32"))
    if inverse or root:
        outcomes = "inverse-sqrt" if root or flag_32 else "log-uniform"
        return distributions | {"outcomes": outcomes, "max_gcd": whole(reference, "max_inverse", 1, 2**53, 100)}
    if params.get("train_uniform_gcd"):
        return distributions | {"outcomes": "uniform", "max_gcd": whole(reference, "max_uniform", 1, 2**53, 100)}
    share = params.get("mixture", -1)
    if isinstance(share, int | float) and 0 < share <= 1:
        return distributions | {"outcomes": "mixture", "mixture_share": float(share)}
    return distributions


def tokens_of(base: int) -> dict[str, int]:
    """The published vocabulary: its special tokens, then symbols in the order of strings, each with its number."""
    symbols = sorted(["+", "-", "V1", "V2", *map(str, range(base))])
    return {word: SPECIAL_TOKENS + place for place, word in enumerate(symbols)}


def to_weights(reference: Reference, config: Config) -> dict[str, Tensor]:
    """The weights by our names, rows of embeddings in the order of our tokens."""
    base, encoder, decoder = config.task.base, reference.encoder, reference.decoder
    known = tokens_of(base)
    digits = [known[Vocabulary(base).symbol(token)] for token in range(3, Vocabulary(base).size)]
    inputs, outputs = [PAD_TOKEN, known["V2"], END_TOKEN, *digits], [PAD_TOKEN, END_TOKEN, END_TOKEN, *digits]
    proj, words = decoder.take("proj.weight"), decoder.take("embeddings.weight")
    if proj.shape != words.shape or not torch.equal(proj, words):
        raise UserError(f"{reference.source}: a projection not tied to the decoder's embeddings is not implemented here")
    bias = rows_of(decoder, "proj.bias", outputs)
    bias[BEGIN] = NEVER
    make = transformer_weights if config.model.family == "transformer" else recurrent_weights
    weights = make(config, encoder, decoder, inputs, outputs) | {"output_bias": bias}
    for side in (encoder, decoder):
        side.require_all_taken()
    return {name: tensor.contiguous() for name, tensor in weights.items()}


def rows_of(side: Side, key: str, order: list[int]) -> Tensor:
    """Rows of a table, one per word, in the order of our tokens."""
    table = side.take(key)
    if len(table) <= max(order):
        raise UserError(f"{side.source}: '{key}' of its {side.name} has {len(table)} rows, {max(order) + 1} wanted")
    return table[order].clone()


def transformer_weights(config: Config, encoder: Side, decoder: Side, inputs: list[int],
                        outputs: list[int]) -> dict[str, Tensor]:
    weights: dict[str, Tensor] = {}
    for side, order, ours, layers in ((encoder, inputs, "inputs", config.model.encoder_layers),
                                      (decoder, outputs, "outputs", config.model.decoder_layers)):
        weights[f"embed_{ours}.tokens.weight"] = rows_of(side, "embeddings.weight", order)
        weights[f"embed_{ours}.positions.weight"] = side.take("position_embeddings.weight")
        weights |= side.both("layer_norm_emb", f"embed_{ours}.norm")
        for index in range(layers):
            theirs, mine = f"layers.{index}", f"{side.name}.{index}"
            weights |= side.stacked([f"{theirs}.self_attention.{part}_lin" for part in "qkv"], f"{mine}.attention.qkv")
            names = {"self_attention.out_lin": "attention.out", "layer_norm1": "norm_attention",
                     "ffn.lin1": "feed_forward.up", "ffn.lin2": "feed_forward.down", "layer_norm2": "norm_feed_forward"}
            if side is decoder:
                both = [f"{theirs}.cross_attention.{part}_lin" for part in "kv"]
                weights |= side.stacked(both, f"{mine}.cross_attention.kv")
                names |= {"cross_attention.q_lin": "cross_attention.q", "cross_attention.out_lin": "cross_attention.out",
                          "layer_norm15": "norm_cross_attention"}
            for name, new in names.items():
                weights |= side.both(f"{theirs}.{name}", f"{mine}.{new}")
    return weights


def recurrent_weights(config: Config, encoder: Side, decoder: Side, inputs: list[int],
                      outputs: list[int]) -> dict[str, Tensor]:
    weights: dict[str, Tensor] = {}
    for side, order, ours in ((encoder, inputs, "inputs"), (decoder, outputs, "outputs")):
        weights[f"embed_{ours}.weight"] = rows_of(side, "embeddings.weight", order)
        weights |= side.both("layer_norm_emb", f"norm_{ours}")
        for index in range(config.model.encoder_layers):
            for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                weights[f"{side.name}.{part}_l{index}"] = side.take(f"layers.{part}_l{index}")
    if "gru_out.weight" in encoder.weights:  # the encoder's states are not read, only its final one
        encoder.both("gru_out", "")
    return weights | decoder.both("gru_out", "read")
