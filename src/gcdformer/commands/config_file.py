"""The file of `--config`: settings in TOML, as sections like a run's own config.toml or as bare fields.

    base = 30                 # fields are named as the flags are: max = 1000, batch-size = 64, dim = 32

    [training]                # or stand in their section
    lr = 1e-3

A run's own config.toml says everything, so what it does not hold is not set, whatever the preset has. Knows names,
not values: those are checked with the whole configuration.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gcdformer.config import Config, config_leaves, parse_toml
from gcdformer.errors import UserError
from gcdformer.runs.files import sha256
from gcdformer.runs.folder import HEADER
from gcdformer.sweeps.sweep import BOTH_SIDES, SECTION, leaf_name


def read_config_file(path: Path) -> dict[str, Any]:
    """The leaves that the file sets; a `UserError` names the file and a field that does not exist."""
    try:
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"config: {path} cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    first, _, body = text.partition("\n")
    if first.startswith(HEADER) and first != HEADER + sha256(body.encode()):
        raise UserError(f"{path}: does not match the checksum in its first line; if you changed it, remove that line")
    tree = parse_toml(text, str(path))
    made_by = tree.pop("gcdformer", None)
    leaves = {leaf.name: None for leaf in config_leaves() if leaf.optional} if made_by is not None else {}
    for name, value in tree.items():
        if isinstance(value, dict):
            leaves |= section_leaves(path, name, value)
        else:
            leaves |= {known_leaf(path, name): value}
    return leaves


def section_leaves(path: Path, section: str, fields: dict[str, Any]) -> dict[str, Any]:
    if section not in Config.model_fields:
        raise UserError(f"{path}: unknown section '{section}': the sections are {', '.join(Config.model_fields)}")
    found = {}
    for name, value in fields.items():
        leaf = known_leaf(path, name, f"{section}.")
        home = SECTION.get(leaf, "model")
        if home != section:
            raise UserError(f"{path}: unknown field '{section}.{name}': it stands under [{home}]")
        found[leaf] = value
    return found


def known_leaf(path: Path, name: str, where: str = "") -> str:
    leaf = leaf_name(name)
    if leaf not in SECTION and leaf not in BOTH_SIDES:
        raise UserError(f"{path}: unknown field '{where}{name}': the fields are {', '.join(sorted(SECTION))}")
    return leaf
