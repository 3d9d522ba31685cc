"""Files that are either the old one or the new one, whatever happens in between. Knows bytes and paths only."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from gcdformer.errors import DamagedFile, UserError


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sync_folder(path: Path) -> None:
    """Make renames in this folder durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, data: bytes) -> None:
    """Write beside, sync, rename."""
    beside = path.with_name(f".{path.name}.new")
    try:
        write_synced(beside, data)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def replace_folder(path: Path, files: dict[str, bytes]) -> None:
    """Write a folder with its SHA256SUMS beside, sync, rename; a folder of that name is replaced."""
    beside = path.with_name(f".{path.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        beside.mkdir(parents=True)
        sums = "".join(f"{sha256(data)}  {name}\n" for name, data in files.items())
        for name, data in {**files, "SHA256SUMS": sums.encode()}.items():
            write_synced(beside / name, data)
        sync_folder(beside)
        if path.exists():
            remove_folder(path)
        beside.replace(path)
    except OSError:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    sync_folder(path.parent)


def remove_folder(path: Path) -> None:
    """Take a folder out of sight first, so that a half-removed one is never taken for a whole one."""
    doomed = path.with_name(f".{path.name}.old")
    shutil.rmtree(doomed, ignore_errors=True)
    path.replace(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def read_folder(path: Path, wanted: list[str]) -> dict[str, bytes]:
    """The files of a folder, each checked against SHA256SUMS; `DamagedFile` names the first that fails."""
    sums_path = path / "SHA256SUMS"
    try:
        lines = sums_path.read_text(encoding="ascii").splitlines()
        sums = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    except (OSError, ValueError):
        raise DamagedFile(f"{sums_path}: missing or unreadable") from None
    if set(sums) != set(wanted):
        raise DamagedFile(f"{sums_path}: does not list exactly {', '.join(wanted)}")
    contents: dict[str, bytes] = {}
    for name in wanted:
        try:
            contents[name] = (path / name).read_bytes()
        except OSError:
            raise DamagedFile(f"{path / name}: missing or unreadable") from None
        if sha256(contents[name]) != sums[name]:
            raise DamagedFile(f"{path / name}: does not match its checksum")
    return contents


def require_folder(path: Path) -> None:
    if not path.is_dir():
        raise UserError(f"{path}: there is no such run folder")
