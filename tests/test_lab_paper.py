"""What the lab says of the paper: every claim with its verdict, every figure that was measured, made once."""

from __future__ import annotations

import threading

from gcdformer.lab.cache import Once
from gcdformer.lab.paper import PAGE
from gcdformer.paper import TABLES
from gcdformer.paper.claims import ALL


def test_claims_tables_and_figures_are_there() -> None:
    page = PAGE.get()
    assert [claim["name"] for claim in page["claims"]] == list(ALL)
    assert all(claim["evidence"] and claim["count"] for claim in page["claims"])
    tables = {table["name"]: table for table in page["tables"]}
    assert "base_gcd" in tables and all(cell["ours"] for cell in tables["base_gcd"]["cells"])
    drawn = {name for name, table in tables.items() if table["curves"]}
    assert {"learning_curves", "mix", "grok_loss"} <= drawn <= {name for name, table in TABLES.items() if table.curves}
    for curve in (curve for name in drawn for curve in tables[name]["curves"]):
        columns = curve["columns"]
        assert len({len(values) for values in columns.values()}) == 1 and columns["examples"] == sorted(columns["examples"])
        assert set(curve["prime_powers"].values()) <= set(columns["examples"])


def test_two_who_ask_at_once_wait_for_one() -> None:
    """The second comes while the first is at work, and starts nothing of its own."""
    started, finish = threading.Event(), threading.Event()
    calls: list[int] = []

    def slow() -> object:
        calls.append(1)
        started.set()
        assert finish.wait(60)
        return object()

    page, found = Once(slow), list[object]()
    threads = [threading.Thread(target=lambda: found.append(page.get()), daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
        assert started.wait(60)
    finish.set()
    for thread in threads:
        thread.join(60)
    assert len(calls) == 1 and len(found) == 2 and found[0] is found[1] is page.get()
