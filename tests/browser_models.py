"""Models for the tests of the module that runs them in a browser: random weights of every family, as files for a page.

The weights are random but for one map, which is fitted so that answers depend on the question and many are integers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save

from gcdformer import Config, Problem
from gcdformer.data.problem import framed
from gcdformer.models import Seq2Seq, build_model, generate
from gcdformer.models.hooks import Logits, run_with_cache
from gcdformer.models.transformer import Transformer
from gcdformer.numbers.encoding import BEGIN, END, PAD, Integers, encode
from lab_browser import Tab

STATIC = Path(__file__).parent.parent / "src" / "gcdformer" / "lab" / "static"
ORIGIN = "http://127.0.0.1"
PAGE = """<!doctype html><title>model</title><body>model<script type="module">
import * as checks from "/checks.js";
window.checks = checks;
document.body.dataset.ready = "";
</script>"""
FAMILIES: dict[str, dict[str, object]] = {
    "transformer": dict(layers=1, dim=32, heads=4),
    "uneven": dict(encoder_layers=2, decoder_layers=1, encoder_dim=24, decoder_dim=36, encoder_heads=2, decoder_heads=12,
                   cross_query="input", framing="published", positions=64, norm_epsilon=0.05),
    "lstm": dict(family="lstm", layers=2, dim=16, hidden_dim=30),
    "gru": dict(family="gru", layers=2, encoder_dim=20, decoder_dim=24),
}


SHARPNESS = 8.0
"""How far the logits of the tokens that a model is fitted to stand out."""


@dataclass(frozen=True)
class Case:
    """A model that torch and the page both have, under one name."""

    name: str
    config: Config
    problem: Problem
    model: Seq2Seq


@dataclass
class Checks:
    """A page with the module, and the files that it may fetch. No request leaves the browser: all are answered here."""

    tab: Tab
    files: dict[str, bytes] = field(default_factory=dict)

    def open(self) -> None:
        self.tab.page.route("**/*", self.serve)
        self.tab.open(ORIGIN + "/")

    def serve(self, route: Any) -> None:
        path = route.request.url.removeprefix(ORIGIN + "/")
        if path.startswith("data/"):
            route.fulfill(body=self.files[path.removeprefix("data/")], content_type="application/octet-stream")
        elif path.endswith(".js"):
            source = Path(__file__).parent / "browser_model.js" if path == "checks.js" else STATIC / path
            route.fulfill(body=source.read_text(), content_type="text/javascript")
        else:
            route.fulfill(body=PAGE, content_type="text/html")

    def run(self, function: str, *given: object) -> Any:
        """Call a function of browser_model.js."""
        return self.tab.page.evaluate("([name, given]) => checks[name](...given)", [function, list(given)])

    def add(self, case: Case, weights: bytes | None = None) -> Case:
        """Let the page load a model, with these bytes as its weights if they are not to be the model's own."""
        self.files[f"{case.name}.safetensors"] = weights or save(case.model.state_dict())
        self.files[f"{case.name}.json"] = case.config.model_dump_json().encode()
        return case

    def compare(self, case: Case, count: int, seed: int = 0) -> tuple[dict[str, Any], list[list[int]], list[int | None]]:
        """Ask both the same questions: what the page found, torch's tokens and its answers."""
        pairs = questions(case.problem, count, seed)
        inputs = torch.from_numpy(case.problem.encode_questions(pairs)[0])
        outputs = generate(case.model, inputs, case.problem.longest_target)
        fed = torch.cat([torch.full((count, 1), BEGIN), outputs[:, :-1]], 1)
        with torch.no_grad():
            logits = Logits(case.model)(inputs, fed)
        values, readable = case.problem.decode_answers(outputs.numpy())
        tokens = [row[:row.index(END) + 1] if END in row else row for row in outputs.tolist()]
        answers = [int(value) if known else None for value, known in zip(values[:, 0], readable, strict=True)]
        chosen = torch.cat([row[:len(kept)] for row, kept in zip(logits, tokens, strict=True)])
        name = f"{case.name}.questions.json"
        self.files[name] = json.dumps({"pairs": pairs.tolist(), "tokens": tokens, "answers": answers}).encode()
        self.files[f"{case.name}.logits"] = chosen.numpy().tobytes()
        return self.run("compare", case.name), tokens, answers


def questions(problem: Problem, count: int, seed: int = 0) -> Integers:
    """Pairs of every length, half of them multiples of a common integer."""
    rng = np.random.default_rng(seed)
    common = np.where(np.arange(count) % 2, rng.integers(1, 100, count), 1)
    pairs = np.exp(rng.uniform(0, np.log(problem.maximum // common), (2, count))).astype(np.int64)
    return np.stack([*np.maximum(pairs, 1) * common], axis=1)


def case_of(family: str, base: int, seed: int = 0, **leaves: object) -> Case:
    config = Config().derive(FAMILIES[family], base=base, **leaves)
    problem = Problem.of(config)
    model = build_model(config, problem, seed=seed).eval()
    spread(model, problem, seed)
    return Case(f"{family}-{base}-{seed}", config, problem, model)


@torch.no_grad()
def spread(model: Seq2Seq, problem: Problem, seed: int) -> None:
    """Make a fresh model's answers depend on the question: larger weights, and the last map inside the decoder fitted by
    least squares to repeat the second operand."""
    generator = torch.Generator().manual_seed(seed)
    for name, weight in model.named_parameters():
        if weight.dim() == 1:
            weight += 0.2 * torch.randn(weight.shape, generator=generator)
        elif "embed" not in name:
            weight *= 2.0
    pairs = questions(problem, 300, seed)
    targets = torch.from_numpy(framed(*encode(pairs[:, 1:], problem.base))[0])
    known = targets[:, 1:] != PAD
    _, cache = run_with_cache(model, problem.encode_questions(pairs)[0], targets[:, :-1])
    if isinstance(model, Transformer):
        layer = f"decoder.{model.sizes.decoder_layers - 1}"
        last, features = model.get_submodule(f"{layer}.feed_forward.down"), cache[f"{layer}.feed_forward.hidden"]
        missing, embedding = cache[f"{layer}.residual.cross_attention"], model.embed_outputs.tokens
    else:
        last, features = model.get_submodule("read"), cache["decoder.states"]
        missing, embedding = torch.zeros_like(cache["decoder.read"]), model.get_submodule("embed_outputs")
    assert isinstance(last, torch.nn.Linear) and isinstance(embedding, torch.nn.Embedding)
    wanted = SHARPNESS * embedding.weight[targets[:, 1:][known]] - missing[known] - last.bias
    last.weight.copy_(torch.linalg.lstsq(features[known], wanted, driver="gelsd").solution.T)
