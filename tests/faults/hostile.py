"""Hostile files: forged checksums, pickles that would leave a mark if they were ever loaded, and mutations of every format.

Whoever sends a run folder can make its checksums right; so the tests do.
"""

from __future__ import annotations

import gzip
import io
import json
import pickle
import random
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gcdformer.runs.files import sha256
from gcdformer.runs.folder import FILES, HEADER, checkpoint_path, checkpoint_steps
from gcdformer.runs.metrics import to_text


class Mark:
    """Unpickling this writes a file."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, str]]:
        return _write, (self.path, "executed")


def _write(path: str, text: str) -> None:
    Path(path).write_text(text)


def pickles(mark: Path) -> dict[str, bytes]:
    """Payloads by name; each of them, loaded by its own loader with code allowed, leaves the mark."""
    payload = Mark(mark)
    found = {f"pickle-{protocol}": pickle.dumps(payload, protocol) for protocol in (0, 2, 5)}
    buffers = [io.BytesIO() for _ in range(4)]
    torch.save({"model": payload}, buffers[0])
    torch.save({"model": payload}, buffers[1], _use_new_zipfile_serialization=False)
    np.save(buffers[2], np.array([payload], dtype=object), allow_pickle=True)
    np.savez(buffers[3], **{"natural.gcd": np.array([payload], dtype=object)})
    names = ("torch-zip", "torch-legacy", "npy", "npz")
    found |= {name: buffer.getvalue() for name, buffer in zip(names, buffers, strict=True)}
    found["gzip"] = gzip.compress(found["pickle-5"])
    return found


def forge_checkpoint(path: Path, step: int, files: dict[str, bytes]) -> None:
    """Replace files of a checkpoint and make its checksums right."""
    place = checkpoint_path(path, step)
    for name, data in files.items():
        (place / name).write_bytes(data)
    if "SHA256SUMS" not in files:
        (place / "SHA256SUMS").write_text("".join(f"{sha256((place / name).read_bytes())}  {name}\n" for name in FILES))


def forge_every_checkpoint(path: Path, files: dict[str, bytes]) -> None:
    for step in checkpoint_steps(path):
        forge_checkpoint(path, step, files)


def forge_config(path: Path, body: bytes) -> None:
    (path / "config.toml").write_bytes(f"{HEADER}{sha256(body)}\n".encode() + body)


def forge_tables(path: Path, data: bytes) -> None:
    """Replace the last epoch's prediction tables, and the checksum in its metrics line."""
    lines = [json.loads(text) for text in (path / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        line.pop("sha256")
    lines[-1]["predictions_sha256"] = sha256(data)
    (path / "predictions" / f"epoch-{len(lines):05d}.npz").write_bytes(data)
    (path / "metrics.jsonl").write_text("".join(map(to_text, lines)))


def scramble(data: bytes, rng: random.Random) -> bytes:
    """A few bytes changed, cut out, doubled or put in."""
    out = bytearray(data)
    for _ in range(rng.randrange(1, 6)):
        place = rng.randrange(len(out) + 1)
        match rng.randrange(5):
            case 0:
                out[place:place + 1] = bytes([rng.randrange(256)])
            case 1:
                del out[place:place + rng.randrange(1, 40)]
            case 2:
                out[place:place] = out[place:place + rng.randrange(1, 40)]
            case 3:
                out[place:place] = rng.choice([b"\x00", b"\xff\xfe", b"\n", b'"', b"{" * 50, b"9" * 400, b"\x1b[2J"])
            case 4:
                del out[place:]
    return bytes(out)


def bad_toml(body: str, rng: random.Random) -> bytes:
    lines = body.splitlines()
    place = rng.randrange(len(lines))
    key = lines[place].partition(" = ")[0]
    if rng.random() < 0.4:
        return scramble(body.encode(), rng)
    if " = " not in lines[place]:
        lines[place] = rng.choice(["[task", "[[task]]", "[x]", "[gcdformer.x.y]", "\x00", "task = 3"])
    else:
        value = rng.choice(["nan", "inf", "-1", "9" * 30, "9" * 5000, "[" * 3000, "[" * 200 + "]" * 200, '"x"', "true", "{}",
                            "[]", '"""', "65536", "20000", "0", '"' + "x" * 9999 + '"', '"\\u001b[2J"', "1e400"])
        lines[place] = rng.choice([f"{key} = {value}", f"{lines[place]}\n{lines[place]}", f"{key}2 = 1", f"{key}.x = 1"])
    return "\n".join(lines).encode()


def bad_metrics(text: str, rng: random.Random) -> bytes:
    if rng.random() < 0.4:
        return scramble(text.encode(), rng)
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        line.pop("sha256")
    victim = rng.choice(lines)
    key = rng.choice(list(victim))
    match rng.randrange(3):
        case 0:
            del victim[key]
        case 1:
            victim[key] = rng.choice([None, "x", -1, 10**40, [], {}, [["x"]], {"entered": 3}, True, 1e308, [0.5], "\x1b[2J"])
        case 2:
            lines.insert(rng.randrange(len(lines)), victim)
    return "".join(map(to_text, lines)).encode()


def bad_safetensors(data: bytes, rng: random.Random) -> bytes:
    """A header that lies, with the same tensors behind it."""
    size = struct.unpack("<Q", data[:8])[0]
    header, tensors = json.loads(data[8:8 + size]), data[8 + size:]
    names = [name for name in header if name != "__metadata__"]
    victim = header[rng.choice(names)]
    match rng.randrange(9):
        case 0:
            return struct.pack("<Q", rng.choice([0, 1, size - 1, size + 1, 2**31, 2**40, 2**63, 2**64 - 1])) + data[8:]
        case 1:
            victim["shape"] = rng.choice([[2**40], [2**32, 2**32], [-1], [0], ["x"], None, [1] * 5000, [0, 2**60], []])
        case 2:
            victim["data_offsets"] = rng.choice([[0, 2**50], [5, 4], [-1, 4], [0, 0], [0], None, [2**63, 2**63 + 4]])
        case 3:
            victim["dtype"] = rng.choice(["F64", "I32", "BOOL", "OBJECT", "", None, "F8_E4M3", 3])
        case 4:
            name = rng.choice(["x" * 100_000, "", "__metadata__", "\u0000", "../../x"])
            header[name] = rng.choice([victim, {}, None, {"a": 1}])
        case 5:
            del header[rng.choice(names)]
        case 6:
            return data[:8] + scramble(data[8:8 + size], rng) + tensors
        case 7:
            text = rng.choice([b"[" * 100_000, b'{"a":' * 20_000, b"null", b"{}", b'"x"', b"\xff\xfe", b""])
            return struct.pack("<Q", len(text)) + text + tensors
        case 8:
            return data[:rng.randrange(len(data))]
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + tensors


def bad_tables(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.4:
        return scramble(data, rng)
    with np.load(io.BytesIO(data)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    key = rng.choice(list(arrays))
    match rng.randrange(5):
        case 0:
            del arrays[key]
        case 1:
            arrays[key] = rng.choice([arrays[key].astype(np.float64), arrays[key][:-1], arrays[key][None], -arrays[key] - 9,
                                      np.array(3), arrays[key].astype("S9"), np.empty(0, np.int64), arrays[key][::-1]])
        case 2:
            arrays = {name.replace("natural", "other"): value for name, value in arrays.items()}
        case 3:
            return bomb(key)
        case 4:
            arrays = {}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def bomb(key: str) -> bytes:
    """An array of 400 MB of zeros in 400 KB."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<i8", "fortran_order": False, "shape": (50_000_000,)})
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(f"{key}.npy", "w") as file:
        file.write(head.getvalue())
        for _ in range(400):
            file.write(bytes(1_000_000))
    return packed.getvalue()


def bad_csv(rng: random.Random) -> bytes:
    rows = ["a,b,prediction", *(f"{i + 1},{2 * i + 2},{i + 1}" for i in range(50))]
    text = "\n".join(rows) + "\n"
    if rng.random() < 0.4:
        return scramble(text.encode(), rng)
    cell = rng.choice(["x", "1.5", "nan", "-3", "0", str(2**63), "9" * 5000, "1e5", "\x00", '"', "\x1b[2J", "1,2,3,4",
                       "x" * 200_000])
    place = rng.randrange(len(rows))
    rows[place] = rng.choice([f"{cell},2,3", f"1,{cell},3", cell, f"1,2,{cell}x", "a,b", "a,a,b,prediction"])
    return "\n".join(rows).encode(rng.choice(["utf-8", "utf-16"]))


def bad_int2int(rng: random.Random) -> bytes:
    rows = [f"V2 + {i % 9 + 1} {i % 10} + {i % 9 + 1} {i % 10}\t+ {i % 9 + 1} {i % 10}" for i in range(50)]
    if rng.random() < 0.4:
        return scramble(("\n".join(rows) + "\n").encode(), rng)
    word = rng.choice(["x", "-1", "10", "007", "V2", "V1", "9 " * 40, "\x00", "\r", "", "\t", "\n", "\x1b[2J", "+", "- 0",
                       "9" * 5000, "x" * 200_000, "\u0663"])
    place = rng.randrange(len(rows))
    rows[place] = rng.choice([f"V2 + {word} + 3\t+ 1", f"V2 + 4 + 2\t+ {word}", word, f"{word} + 4 + 2\t+ 2",
                              "V2 + 4 + 2\t+ 1"])
    return ("\n".join(rows) + "\n").encode(rng.choice(["utf-8", "utf-16", "utf-8"]))


def bad_examples(rng: random.Random) -> bytes:
    return bad_csv(rng).replace(b"prediction", b"gcd")


def bad_reference(saved: dict[str, Any], rng: random.Random) -> bytes:
    """A checkpoint of the published code whose contents lie, or whose bytes are changed."""
    top = {key: dict(value) if isinstance(value, dict) else value for key, value in saved.items()}
    side = top[rng.choice(["encoder", "decoder"])]
    name = rng.choice(list(side))
    match rng.randrange(6):
        case 0:
            side[name] = rng.choice([torch.zeros(0), torch.zeros(3), torch.tensor(1.0), side[name].long(), None, "x",
                                     side[name] / 0, torch.sparse_coo_tensor(size=(2, 2)), torch.zeros(1).expand(2**40)])
        case 1:
            del side[name]
        case 2:
            side[rng.choice(["x" * 9999, "layers.99.ffn.lin1.weight", "\x1b[2J", "module.x"])] = torch.zeros(2)
        case 3:
            key = rng.choice(["base", "maxint", "enc_emb_dim", "n_enc_layers", "n_dec_heads", "n_words", "batch_size"])
            top["params"][key] = rng.choice([None, "x", -1, 0, 2**70, 1.5, [], True, 65_536])
        case 4:
            top[rng.choice(list(top))] = rng.choice([None, 3, "x", [], {}])
    buffer = io.BytesIO()
    torch.save(top, buffer)
    data = buffer.getvalue()
    return scramble(data, rng) if rng.random() < 0.3 else data


def bad_parquet(data: bytes, rng: random.Random) -> bytes:
    return scramble(data, rng)


def endless(make: Callable[[random.Random], bytes], rng: random.Random) -> Iterator[bytes]:
    while True:
        yield make(rng)
