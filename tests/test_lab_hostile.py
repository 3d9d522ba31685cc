"""Exported data that someone has tampered with: the page shows an error, or texts as texts; it runs no script of theirs."""

from __future__ import annotations

import json
import random
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from gcdformer.lab.catalogue import EXAMPLE
from gcdformer.lab.export import export_runs
from lab_browser import Tab, needs_browser, open_browser, open_tab  # noqa: F401 - fixtures
from test_lab_export import static_host

pytestmark = [needs_browser, pytest.mark.processes]
CASES = 50
SCRIPT = "window.hacked = 1"
TEXTS = [f'<img src=x onerror="{SCRIPT}">', f'"><script>{SCRIPT}</script>', f"javascript:{SCRIPT}",
         f"</script><script>{SCRIPT}//", f"<svg onload='{SCRIPT}'>", f'" onmouseover="{SCRIPT}" x="', "__proto__", "\\u202e"]
VALUES: list[Any] = [None, True, -1, 0, 0.5, 1e308, -1e308, 2**53, [], {}, [None], {"toString": 1}, "", "x" * 3000]
VIEWS = ["#/run/example", "#/ask/example?a=160&b=120", "#/runs", "#/compare?runs=example", "#/run/example?only=grid",
         "#/ask/example?a=160&b=120&prior=50", "#/paper", "#/paper/table-4", "#/ledger/base-30_seed-0_fast-4-10epochs"]
FOUND = """() => ({
  hacked: window.hacked ?? null,
  elements: document.querySelectorAll("main :is(img, script, iframe, object, embed)").length,
  links: [...document.querySelectorAll("[href]")].filter((link) => link.protocol === "javascript:").length,
  handlers: [...document.querySelectorAll("main *")]
    .filter((element) => element.getAttributeNames().some((name) => name.startsWith("on"))).length,
  said: document.querySelector("main").innerText.length > 0,
})"""


def tampered(data: bytes, rng: random.Random) -> bytes:
    """JSON with some values replaced or left out. Texts are replaced by texts more often, as they get further."""
    value = json.loads(data)
    for _ in range(rng.choice([1, 3, 10])):
        place, key = value, rng.choice(list(value))
        while isinstance(place[key], dict | list) and place[key] and rng.random() < 0.9:
            place = place[key]
            key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if isinstance(place, dict) and rng.random() < 0.1 and len(place) > 1:
            del place[key]
        else:
            place[key] = deepcopy(rng.choice(TEXTS if isinstance(place[key], str) or rng.random() < 0.3 else VALUES))
    return json.dumps(value).encode()


def broken(data: bytes, rng: random.Random) -> bytes:
    """Weights with some bytes changed, cut short or of NaN."""
    kind = rng.randrange(4)
    if kind == 0:
        return data[:rng.randrange(len(data))]
    place = rng.randrange(12) if kind == 1 else rng.randrange(600) if kind == 2 else rng.randrange(4000, len(data) - 64)
    return data[:place] + (b"\xff" * 64 if kind == 3 else rng.randbytes(rng.randrange(1, 9))) + data[place + 8:]


@pytest.mark.parametrize("seed", range(4))
def test_tampered_data_never_run(tab: Tab, tmp_path: Path, seed: int) -> None:
    export_runs([EXAMPLE], tmp_path / "site")
    folder = tmp_path / "site" / "data"
    names = ["about.json", "runs.json", "runs/0/run.json", "runs/0/epochs/40.json", "runs/0/models/40.json",
             "runs/0/models/40.safetensors", "paper.json", "paper/tables/table-4.json",
             "paper/runs/base-30_seed-0_fast-4-10epochs.json"]
    files = {name: (folder / name).read_bytes() for name in names}
    rng = random.Random(seed)
    now: dict[str, bytes] = {}
    pattern = re.compile(f"/data/({'|'.join(map(re.escape, names))})$")
    tab.page.route(pattern, lambda route: route.fulfill(body={**files, **now}[route.request.url.partition("/data/")[2]]))
    with static_host(tmp_path / "site") as url:
        for case in range(CASES):
            now.clear()
            for name in rng.sample(names, rng.choice([1, 1, 2])):
                now[name] = broken(files[name], rng) if name.endswith("tensors") else tampered(files[name], rng)
            view = VIEWS[case % len(VIEWS)]
            page = tab.open(url + view)
            found = page.evaluate(FOUND)
            assert found == {"hacked": None, "elements": 0, "links": 0, "handlers": 0, "said": True}, (case, view, now)
        assert not any("hacked" in url for url in tab.fetched)
        tab.page.goto("about:blank")  # figures of the last case may still be drawn, and complain
    tab.problems.clear()
