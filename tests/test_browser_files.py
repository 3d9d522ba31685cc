"""Hostile weights and configurations in the browser: each is refused in one line, and nothing else happens."""

from __future__ import annotations

import copy
import json
import math
import random
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save as save_arrays
from safetensors.torch import save

from browser_models import Case, Checks, case_of
from lab_browser import Tab, needs_browser, open_browser  # noqa: F401 - a fixture

pytestmark = [needs_browser, pytest.mark.processes]
Header = dict[str, Any]


@pytest.fixture(scope="module")
def checks(browser: Any) -> Iterator[Checks]:
    with Tab(browser) as tab:
        found = Checks(tab)
        found.open()
        yield found
        assert not tab.problems, tab.problems


@pytest.fixture(scope="module")
def case() -> Case:
    return case_of("transformer", 10)


def split(weights: bytes) -> tuple[Header, bytes]:
    (length,) = struct.unpack("<Q", weights[:8])
    return json.loads(weights[8:8 + length]), weights[8 + length:]


def join(header: object, data: bytes, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def bad_lengths(rng: random.Random, header: Header, data: bytes) -> bytes:
    """A length of the header that is not the header's."""
    text = json.dumps(header).encode()
    length = rng.choice([0, 1, len(text) - 1, len(text) + 8, len(text) + len(data) + 1, 2**31, 2**53, 2**63, 2**64 - 1])
    return join(text, data, length)


def bad_text(rng: random.Random, header: Header, data: bytes) -> bytes:
    """No JSON, or JSON that is no object of objects."""
    name = rng.choice(list(header))
    return join(rng.choice([
        b"", b"{", b"\xff\xfe\x00", b"[]", b"null", b"7", b'"x"', b"{}", b"[" * 200_000, b'{"a":' * 50_000,
        rng.randbytes(500), json.dumps(header | {name: rng.choice([None, 3, [], "x", {}])}).encode()]), data)


def bad_names(rng: random.Random, header: Header, data: bytes) -> bytes:
    """A tensor too many, too few, or by another name."""
    changed = dict(header)
    entry = changed.pop(rng.choice(list(changed)))
    if rng.random() < 0.7:
        changed[rng.choice(["x", "__proto__", "constructor", "<img src=x onerror=alert(1)>", "y" * 100_000])] = entry
    return join(changed, data)


def bad_field(rng: random.Random, header: Header, data: bytes) -> bytes:
    """A tensor's type, shape or place that is not what the model needs."""
    changed = copy.deepcopy(header)
    entry = changed[rng.choice(list(changed))]
    begin, end = entry["data_offsets"]
    wrong: dict[str, list[object]] = {
        "dtype": ["BF16", "F64", "I8", "F16", "", None, 4, "toString"],
        "shape": [[], None, [-1], [10**15, 10**15], [*entry["shape"], 1], entry["shape"][:-1], [0], "32", [1.5], [2**53]],
        "data_offsets": [[begin, end + 4], [begin + 4, end], [begin + 4, end + 4], [end, begin], [-4, end - begin - 4],
                         [0, 2**53], [begin], [str(begin), str(end)], None, {}, [begin, math.inf], [begin + 0.5, end + 0.5]]}
    name = rng.choice(list(wrong))
    entry[name] = rng.choice(wrong[name])
    return join(changed, data)


def bad_data(rng: random.Random, header: Header, data: bytes) -> bytes:
    """A file cut short or too long, or a value that is not finite."""
    whole = join(header, data)
    kind = rng.randrange(3)
    if kind == 0:
        return whole[:rng.randrange(len(whole))]
    if kind == 1:
        return whole + rng.randbytes(rng.choice([1, 4, 4096]))
    at = 4 * rng.randrange(len(data) // 4)
    value = struct.pack("<f", rng.choice([math.nan, math.inf, -math.inf]))
    return join(header, data[:at] + value + data[at + 4:])


KINDS = [bad_lengths, bad_text, bad_names, bad_field, bad_data]


def test_hostile_files(case: Case, checks: Checks) -> None:
    rng = random.Random(0)
    header, data = split(save(case.model.state_dict()))
    config = json.loads(case.config.model_dump_json())
    text = json.dumps(header | {"__metadata__": {"format": "pt"}}).encode()
    for blanks in range(4):  # the data may begin at any byte
        checks.files[f"sound-{blanks}"] = join(text + b" " * blanks, data)
    assert checks.run("refusals", [{"weights": f"sound-{blanks}", "config": config} for blanks in range(4)]) == [None] * 4
    made = [KINDS[number % len(KINDS)](rng, header, data) for number in range(100)]
    for number, file in enumerate(made):
        checks.files[f"hostile-{number}"] = file
    found = checks.run("refusals", [{"weights": f"hostile-{number}", "config": config} for number in range(len(made))])
    for number, refusal in enumerate(found):
        where = (KINDS[number % len(KINDS)].__name__, made[number][:200], refusal)
        assert refusal is not None and refusal[0] and refusal[1].startswith("weights: "), where
        assert len(refusal[1]) < 300 and "\n" not in refusal[1], where


def test_files_are_refused_by_name(case: Case, checks: Checks) -> None:
    header, data = split(save(case.model.state_dict()))
    name = "output_bias"
    entry = header[name]
    files = [
        (b"", "weights: 0 bytes are no safetensors file"),
        (join(b"{}", b"", 2**40), "weights: a header of 1099511627776 bytes does not fit a file of 10 bytes"),
        (join(header | {"x": entry}, data), 'weights: unknown tensor "x"'),
        (join(header | {name: entry | {"dtype": "BF16"}}, data),
         "weights: tensor 'output_bias' has dtype \"BF16\"; only F32 and F16 are read here"),
        (join(header | {name: entry | {"shape": [3]}}, data), "weights: tensor 'output_bias' needs shape [15], has [3]"),
        (join(header, data[:-4]), "weights: tensor 'output_bias' has 60 bytes, which bytes "),
    ]
    for number, (file, _) in enumerate(files):
        checks.files[f"named-{number}"] = file
    config = json.loads(case.config.model_dump_json())
    found = checks.run("refusals", [{"weights": f"named-{number}", "config": config} for number in range(len(files))])
    for refusal, (_, words) in zip(found, files, strict=True):
        assert refusal is not None and refusal[0] and refusal[1].startswith(words), (refusal, words)


def test_every_half_is_read_exactly(checks: Checks) -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)]
    checks.files["halves"] = save_arrays({"w": halves})
    assert checks.run("tensor", "halves", [len(halves)]) == halves.astype(np.float64).tolist()


WRONG: list[tuple[str, str, object, str]] = [
    ("task", "task", "comparison", 'task.task: "comparison" is not known here; gcd, division, simplification are'),
    ("task", "task", "mine.py:Mine", 'task.task: "mine.py:Mine" is not known here'),
    ("task", "task", "file", 'task.task: "file" is not known here'),
    ("task", "base", 1, "task.base: an integer in 2..20000, got 1"),
    ("task", "base", "10", 'task.base: an integer in 2..20000, got "10"'),
    ("task", "maximum", 2**53, "task.maximum: an integer in 2..9007199254740991"),
    ("task", "maximum", 2000, "weights: tensor 'embed_inputs.positions.weight' needs shape [10,32], has [16,32]"),
    ("task", "framing", "new", 'task.framing: "new" is not known here; none, published are'),
    ("task", "tokens", "bytes", 'configuration: the field "tokens" of \'task\' is not known here'),
    ("model", "family", "mamba", 'model.family: "mamba" is not known here; transformer, lstm, gru are'),
    ("model", "family", "lstm", "weights: unknown tensor"),
    ("model", "encoder_layers", 10**9, "model.encoder_layers: an integer in 1..256, got 1000000000"),
    ("model", "encoder_layers", 256, "weights: tensor 'encoder.1.attention.qkv.weight' is missing"),
    ("model", "encoder_dim", 65_536, "weights: tensor 'embed_inputs.tokens.weight' needs shape [15,65536], has [15,32]"),
    ("model", "decoder_dim", 0.5, "model.decoder_dim: an integer in 1..65536, got 0.5"),
    ("model", "decoder_heads", 5, "model.decoder_heads must divide decoder_dim: 5 does not divide 32"),
    ("model", "encoder_heads", 0, "model.encoder_heads must divide encoder_dim"),
    ("model", "decoder_layers", None, "model.decoder_layers is missing in the configuration"),
    ("model", "positions", 8, "model.positions: at least 16 for this task, base and maximum, got 8"),
    ("model", "positions", 999_999, "weights: tensor 'embed_inputs.positions.weight' needs shape [999999,32]"),
    ("model", "cross_query", "both", 'model.cross_query: "both" is not known here; state, input are'),
    ("model", "norm_epsilon", "x" * 10**6, 'model.norm_epsilon: a number in 1e-12..0.1, got "xxx'),
    ("model", "activation", "gelu", 'configuration: the field "activation" of \'model\' is not known here'),
    ("model", "__proto__", {"family": "gru"}, 'configuration: the field "__proto__" of \'model\' is not known here'),
]


def test_what_it_cannot_do_is_refused_by_name(case: Case, checks: Checks) -> None:
    checks.add(case)
    sound = json.loads(case.config.model_dump_json())
    configs: list[object] = [sound | {section: sound[section] | {name: value}} for section, name, value, _ in WRONG]
    configs += [None, [], "x", {}, {"task": sound["task"]}, {"task": sound["task"], "model": []}]
    words = [text for _, _, _, text in WRONG] + ["configuration: no section"] * 6
    checks.files["configs"] = json.dumps(configs).encode()
    found = checks.tab.page.evaluate("""async (weights) => {
        const configs = await (await fetch("/data/configs")).json();
        return checks.refusals(configs.map((config) => ({ weights, config })));
    }""", f"{case.name}.safetensors")
    for expected, refusal in zip(words, found, strict=True):
        assert refusal is not None and refusal[0] and refusal[1].startswith(expected), (expected, refusal)
        assert len(refusal[1]) < 300, refusal


def test_weights_that_lead_nowhere_are_refused(checks: Checks) -> None:
    """Finite weights whose logits are not."""
    case = case_of("gru", 10)
    for weight in case.model.parameters():
        weight.data.fill_(3e38)
    checks.add(case)
    config = json.loads(case.config.model_dump_json())
    ((is_refusal, message),) = checks.run("refusals", [{"weights": f"{case.name}.safetensors", "config": config}])
    assert is_refusal and message == "weights: the logits that they lead to are not finite"
