"""What the lab says of the paper: an index of it in its order, then every claim, table and measured run by itself."""

from __future__ import annotations

import json
import threading

import pytest

from gcdformer.errors import UserError
from gcdformer.lab.cache import Once
from gcdformer.lab.paper import PAGE, Reproduction
from gcdformer.paper import SECTIONS, TABLES
from gcdformer.paper.claims import ALL
from gcdformer.paper.comparison import count_tables
from gcdformer.paper.ledger import ledger_entries


@pytest.fixture(scope="module")
def paper() -> Reproduction:
    return PAGE.get()


def test_the_index_is_small_and_in_the_order_of_the_paper(paper: Reproduction) -> None:
    index = paper.index()
    assert len(json.dumps(index)) < 10_000, "it is all that the first view waits for"
    assert [claim["name"] for claim in index["claims"]] == list(ALL) and all(claim["count"] for claim in index["claims"])
    listed = [table for section in index["sections"] for table in section["tables"]]
    assert [table["number"] for table in listed] == [TABLES[name].in_paper for part in SECTIONS for name in part.tables]
    assert [table["number"] for table in listed[:5]] == ["Table 1", "Table 2", "Table 3", "Figure 1", "Figure 2"]


def test_counts_are_those_of_the_command(paper: Reproduction) -> None:
    counts, index = count_tables(ledger_entries()).to_json(), paper.index()
    values = {table["number"]: table["values"] for section in index["sections"] for table in section["tables"]}
    for table in counts["tables"]:
        agree, differ, missing = (values[table["number"]][kind] for kind in ("agree", "differ", "missing"))
        assert (agree, agree + differ, agree + differ + missing) == (table["agree"], table["measured"], table["cells"])
    total = index["values"]
    assert total == {"agree": counts["agree"], "differ": counts["measured"] - counts["agree"],
                     "missing": counts["cells"] - counts["measured"]}


def test_every_table_and_figure_is_there_by_its_number(paper: Reproduction) -> None:
    drawn = set()
    for name, table in TABLES.items():
        view = paper.table(table.in_paper.lower().replace(" ", "-"))
        assert view["name"] == name and len(view["cells"]) == sum(view["values"].values()) == len(table.published)
        for cell in view["cells"]:
            assert (cell["ours"] is None) == (cell["agrees"] is None) and (cell["run"] is None or cell["ours"])
        assert {cell["run"] for cell in view["cells"] if cell["run"]} <= {run["name"] for run in view["runs"]}
        assert bool(view["values"]["missing"]) == (view["command"] is not None)
        drawn |= {name} if view["drawn"] else set()
        for curve in view["drawn"]:
            columns = list(curve["columns"].values())
            assert len({len(column) for column in columns}) == 1  # type: ignore[arg-type]
            assert set(curve["prime_powers"].values()) <= set(curve["columns"]["examples"])
    assert {"learning_curves", "mix", "grok_loss"} <= drawn == {name for name, table in TABLES.items() if table.curves}
    first, second = paper.table("table-1"), paper.table("table-2")
    assert first["before"] is None and first["after"] == {"id": "table-2", "number": "Table 2"}
    assert second["before"] == {"id": "table-1", "number": "Table 1"}
    with pytest.raises(UserError, match="no Table 99"):
        paper.table("table-99")


def test_every_claim_has_evidence_that_names_runs_of_the_ledger(paper: Reproduction) -> None:
    for name in ALL:
        parts = [part for line in paper.claim(name)["evidence"] for part in line]
        runs = {part["text"] for part in parts if not isinstance(part, str) and part["kind"] == "run"}
        assert runs and runs <= set(paper.entries)
    with pytest.raises(UserError, match="unknown claim"):
        paper.claim("none")


def test_a_run_of_the_ledger_is_a_run_with_its_last_epoch(paper: Reproduction) -> None:
    for name in (paper.table("table-20")["cells"][0]["run"], paper.table("table-9")["runs"][0]["name"]):
        assert name is not None
        entry, view = paper.entries[name], paper.run(name)
        assert view["columns"]["n_correct"] == entry.curve.get("n_correct", [None] * len(entry.curve["epoch"]))
        assert view["repeat"] == entry.command and view["checkpoints"] == [] and view["behind"]
        if entry.explanation is None:
            assert view["last"] is None and not view["has_gcd"]
            continue
        last = view["last"]
        assert last is not None and last["D"] == entry.correct == view["D"][-1]
        assert [len(known) for known in view["D"]] == entry.curve["n_correct"]
        assert last["certified"] == entry.explanation.certified and len(last["f"]) == 100
    with pytest.raises(UserError, match="the ledger has none called 'none'"):
        paper.run("none")


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
        thread.join(100)
    assert len(calls) == 1 and len(found) == 2 and found[0] is found[1] is page.get()
