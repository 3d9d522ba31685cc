"""requirements.lock: what the core needs, at the versions of constraints.txt, each file by its hash, and no host."""

from __future__ import annotations

import re
import tomllib

from conftest import ROOT

LOCK = (ROOT / "requirements.lock").read_text()
NAME = re.compile(r"^([A-Za-z0-9._-]+)")


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    found = (line.split("==") for line in text.splitlines() if "==" in line and not line.startswith((" ", "#")))
    return {canonical(name): version.split()[0] for name, version, *_ in found}


def test_every_core_dependency_is_locked_at_its_constraint() -> None:
    locked, constrained = pins(LOCK), pins((ROOT / "constraints.txt").read_text())
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for requirement in wanted:
        match = NAME.match(requirement)
        assert match and canonical(match.group()) in locked, requirement
    assert {name: locked[name] for name in locked.keys() & constrained.keys()} == {
        name: constrained[name] for name in locked.keys() & constrained.keys()}


def test_every_line_has_hashes_and_no_host() -> None:
    entries = re.split(r"\n(?=\S)", LOCK.strip())
    assert len(entries) > 20
    for entry in entries:
        assert re.fullmatch(r"[a-z0-9-]+==\S+( ; [^\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+", entry), entry[:200]
    assert "://" not in LOCK and "@" not in LOCK
