"""Files that are either the old one or the new one, whatever happens in between. Knows bytes, paths and JSON, no run."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from gcdformer.errors import DamagedFile, UserError

T = TypeVar("T")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """A disk that is full, read-only or gone is not a defect: one line names the file and says what is left."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}; what was saved before is whole, "
                        "the same command resumes from it when this is fixed") from error


def sync_folder(path: Path) -> None:
    """Make renames in this folder durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_synced(path: Path, data: bytes) -> None:
    """Write a new file; a link in its place is removed, not followed."""
    path.unlink(missing_ok=True)
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, data: bytes, *, shared: bool = False) -> None:
    """Write beside, sync, rename. A `shared` file has no lock: several may write it at once, and one of them is the last."""
    temporary = path.with_name(f".{path.name}.{token_hex(4)}.new" if shared else f".{path.name}.new")
    with writing(path):
        try:
            write_synced(temporary, data)
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def replace_folder(path: Path, files: dict[str, bytes]) -> None:
    """Write a folder with its SHA256SUMS beside, sync, rename; a folder of that name is replaced.

    A process killed between taking the old folder away and putting the new one in its place leaves both, whole and
    hidden: `recover_folders` brings one back.
    """
    temporary = path.with_name(f".{path.name}.new")
    sums = "".join(f"{sha256(data)}  {name}\n" for name, data in files.items())
    with writing(path):
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            temporary.mkdir(parents=True)
            for name, data in {**files, "SHA256SUMS": sums.encode()}.items():
                write_synced(temporary / name, data)
            sync_folder(temporary)
        except OSError:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        old = hide_folder(path) if path.exists() else None
        temporary.replace(path)
        sync_folder(path.parent)
        if old is not None:
            shutil.rmtree(old, ignore_errors=True)


def hide_folder(path: Path) -> Path:
    """Take a folder out of sight, so that a half-removed one is never taken for a whole one; where it is now."""
    old = path.with_name(f".{path.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    path.replace(old)
    return old


def remove_folder(path: Path) -> None:
    shutil.rmtree(hide_folder(path), ignore_errors=True)


def recover_folders(parent: Path, wanted: list[str]) -> None:
    """Undo what a kill left half done: a whole hidden folder takes its place if that is empty; the rest is removed."""
    for suffix in (".new", ".old"):
        for hidden in sorted(parent.glob(f".*{suffix}")):
            place = parent / hidden.name.removeprefix(".").removesuffix(suffix)
            try:
                read_folder(hidden, wanted)
                whole = not place.exists()
            except DamagedFile:
                whole = False
            if whole:
                with writing(place):
                    hidden.replace(place)
            else:
                shutil.rmtree(hidden, ignore_errors=True)


def read_folder(path: Path, wanted: list[str]) -> dict[str, bytes]:
    """The files of a folder, each checked against SHA256SUMS; `DamagedFile` names the first that fails."""
    sums = read_sums(path, wanted)
    return {name: read_checked(path / name, sums[name]) for name in wanted}


def read_sums(path: Path, wanted: list[str]) -> dict[str, str]:
    """The digests of a folder's files, by name."""
    sums_path = path / "SHA256SUMS"
    try:
        *lines, rest = sums_path.read_bytes().decode("ascii").split("\n")
        sums = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    except (OSError, ValueError):
        raise DamagedFile(f"{sums_path}: missing or unreadable") from None
    if set(sums) != set(wanted) or len(lines) != len(wanted) or rest:
        raise DamagedFile(f"{sums_path}: does not list exactly {', '.join(wanted)}")
    return sums


def read_checked(path: Path, digest: str) -> bytes:
    """A file that has this digest; else `DamagedFile`."""
    try:
        data = path.read_bytes()
    except OSError:
        raise DamagedFile(f"{path}: missing or unreadable") from None
    if sha256(data) != digest:
        raise DamagedFile(f"{path}: does not match its checksum")
    return data


def require_folder(path: Path) -> None:
    if not path.is_dir():
        raise UserError(f"{path}: there is no such run folder")


def write_json(path: Path, value: dict[str, Any]) -> None:
    """What was measured of a run, beside it; read by `read_json`."""
    replace_file(path, (json.dumps(value, allow_nan=False) + "\n").encode(), shared=True)


def read_json(path: Path, adapter: TypeAdapter[T], command: str) -> T | None:
    """None if there is none; `DamagedFile` names the command that writes it anew."""
    try:
        return adapter.validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise DamagedFile(f"{path}: not readable; `{command}` writes it anew ({str(error).splitlines()[0]})") from None
