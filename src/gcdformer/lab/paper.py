"""The reproduction tables for the page: published values beside ours, where any were measured."""

from __future__ import annotations

from typing import Any


def paper_tables() -> list[dict[str, Any]]:
    """The tables that were reproduced, as `gcdformer reproduce --json` gives them; there is no such verb yet, so none."""
    return []
