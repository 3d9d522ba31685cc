"""The certificate by size and order, and the mechanism, in the lab: what the API sends, and what a person sees."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter

from gcdformer import Run, explain, load_run
from gcdformer.cli import main
from gcdformer.explanation.rules import readable
from gcdformer.explanation.statistics import CERTIFIED_FIDELITY
from gcdformer.lab.bands import BandsView
from gcdformer.lab.catalogue import EXAMPLES, GROKKING, Catalogue, ListedRun
from gcdformer.lab.places import MechanismView, more_files
from gcdformer.lab.views import epoch_view
from gcdformer.mechanism.analysis import prepare
from gcdformer.mechanism.counterfactuals import Swaps
from gcdformer.mechanism.interchange import Place
from gcdformer.runs.explain import explain_run
from gcdformer.runs.mechanism import saved_mechanism
from lab_browser import Tab, needs_browser, open_browser, open_tab, sync_api  # noqa: F401 - two are fixtures
from lab_process import Lab

pytestmark = pytest.mark.processes
BANDS = "/api/runs/grok/bands?epoch=26"


@pytest.fixture(scope="module")
def lab(trained: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("bands")
    shutil.copytree(GROKKING, folder / "grok")
    shutil.copytree(trained.path, folder / "tiny")
    with Lab(folder) as lab:
        yield lab


def test_the_lab_judges_bands_as_explain_does(lab: Lab) -> None:
    sent, expected = lab.get(BANDS), explain(load_run(GROKKING))
    assert TypeAdapter(BandsView).validate_python(sent, strict=True) == sent
    assert sent["verdict"] == expected.verdict and "; not below 1,000" in sent["limits"]
    assert sent["wanted"] == CERTIFIED_FIDELITY
    kept = ("name", "n", "gcds", "fidelity", "accuracy", "holds")
    assert [{key: band[key] for key in kept} for band in sent["bands"]] == [band.to_json() for band in expected.bands]
    assert "the weights of epoch 3 are not kept" in lab.get("/api/runs/grok/bands?epoch=3", 400)["error"]


@pytest.mark.parametrize("run", EXAMPLES)
def test_every_epoch_is_explained_as_explain_does(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With the history of the run: what does not rise is not being learned. The command says it in the same words."""
    entry = EXAMPLES[run]
    catalogue = Catalogue(entry.path)
    last = load_run(entry.path).metrics[-1]["epoch"]
    for epoch in range(1, last + 1):
        view = epoch_view(catalogue, entry, epoch)
        expected = explain(entry.path, checkpoint=epoch, bands=False).to_json()
        for key in ("D", "being_learned", "form", "why", "certified", "verdict", "grokked", "fidelity", "accuracy", "E"):
            assert view[key] == expected[key], (epoch, key)  # type: ignore[literal-required]
        assert any(rule["mark"] == "no" for rule in view["rules"]) != all(r["holds"] for r in expected["rules"].values())
    assert main(["explain", str(entry.path), "--no-bands", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {key: said[key] for key in expected} == json.loads(json.dumps(expected))


def test_a_saved_mechanism_is_sent_if_it_is_of_these_weights(lab: Lab, tmp_path: Path) -> None:
    sent = lab.get("/api/runs/grok/mechanism")
    described = TypeAdapter(MechanismView)
    assert json.loads(described.dump_json(described.validate_python(sent))) == sent
    assert sent["missing"] is None and sent["mechanism"] == json.loads((GROKKING / "mechanism.json").read_text())
    assert sent["sentences"][0] == "2 is read off the last digit."
    missing = lab.get("/api/runs/tiny/mechanism")
    assert missing["mechanism"] is None and missing["command"] == "gcdformer mechanism runs/tiny"
    shutil.copytree(GROKKING, tmp_path / "other")
    found = json.loads((GROKKING / "mechanism.json").read_text())
    with Lab(tmp_path) as other:
        for change, words in ({"weights_sha256": "0" * 64}, "other weights"), ({"epoch": 3}, "not kept"):
            (tmp_path / "other" / "mechanism.json").write_text(json.dumps(found | change))
            sent = other.get("/api/runs/other/mechanism")
            assert sent["mechanism"] is None and words in sent["missing"]
        (tmp_path / "other" / "mechanism.json").write_text("{}")
        assert other.get("/api/runs/other/mechanism", 422)["damaged"]


def test_the_bundled_mechanism_is_small_and_read_without_torch() -> None:
    assert (GROKKING / "mechanism.json").stat().st_size < 150_000
    read = ("import sys; from gcdformer.lab.catalogue import EXAMPLES; from gcdformer.lab.places import mechanism_view; "
            "view = mechanism_view(EXAMPLES['example-grokking']); print(view['missing'], 'torch' in sys.modules)")
    assert subprocess.run([sys.executable, "-c", read], capture_output=True, text=True, check=True).stdout == "None False\n"


def test_an_export_has_both_and_says_where_it_cannot(tmp_path: Path) -> None:
    path = Path(shutil.copytree(GROKKING, tmp_path / "run"))
    (path / "mechanism.json").write_text("{}")
    next(path.rglob("model.safetensors")).write_bytes(b"damaged")
    made = dict(more_files(ListedRun("run", "run", path), [26]))
    assert made["bands/26.json"] == {"error": "The weights of epoch 26 are not as gcdformer writes them."}
    assert made["mechanism.json"]["missing"] == "The one that was made is damaged." and str(tmp_path) not in str(made)
    made = dict(more_files(EXAMPLES["example-grokking"], [26]))
    assert set(made) == {"bands/26.json", "mechanism.json"}
    assert made["bands/26.json"]["bands"] and made["mechanism.json"]["mechanism"]


@needs_browser
def test_bands_beside_the_rules(tab: Tab, lab: Lab) -> None:
    """They come when the section is in sight; an epoch without weights says that it has none."""
    page = tab.open(lab.url + "#/run/grok")
    section = page.locator(".bands-section")
    assert not [url for url in tab.fetched if "/bands?" in url], "nothing waits for them"
    section.scroll_into_view_if_needed()
    certified = "Certified on uniform pairs of 1..65,535; not below 1,000"
    sync_api.expect(section.locator(".band-verdict")).to_contain_text(certified)
    sent = lab.get(BANDS)["bands"]
    rows = section.locator("tbody tr")
    assert [row.locator("th").inner_text() for row in rows.all()] == [band["name"] for band in sent]
    assert [row.locator("td").nth(1).inner_text() for row in rows.all()] == [band["shown"] for band in sent]
    assert section.locator(".band-bar.no").count() == sum(band["holds"] is False for band in sent) > 0
    page.locator("#epoch").fill("9")
    sync_api.expect(section.locator(".bands")).to_have_text(
        "Sizes and orders were not judged: the weights of epoch 9 are not kept. Those of epoch 26 are.")
    page.locator("#epoch").fill("26")
    sync_api.expect(rows).to_have_count(len(sent))
    assert len([url for url in tab.fetched if "/bands?" in url]) == 1, "asked for once"


@needs_browser
def test_a_mechanism_and_its_swaps(tab: Tab, lab: Lab) -> None:
    page = tab.open(lab.url + "#/run/grok")
    page.get_by_role("link", name="Where its divisors live").click()
    page.locator(".places").first.wait_for()
    found = lab.get("/api/runs/grok/mechanism")["mechanism"]
    cell = page.get_by_role("button", name="encoder.0.residual.feed_forward, second-to-last digit of a: removes 3 in 65")
    assert cell.inner_text() == "65"
    cell.focus()
    page.keyboard.press("Enter")
    assert cell.get_attribute("aria-pressed") == "true"
    three = next(prime for prime in found["primes"] if prime["p"] == 3)
    swaps = [[text.replace(",", "") for text in row.locator("td").all_inner_texts()]
             for row in page.locator(".swaps tbody tr").all()]
    keys = ("a", "b", "swapped", "before", "expected")
    there = three["answers"]["encoder.0.residual.feed_forward"][found["positions"].index("second-to-last digit of a")]
    assert swaps == [[*(str(swap[key]) for key in keys), str(there[str(number)])]
                     for number, swap in enumerate(three["examples"])] and len(swaps) == 10
    assert page.locator(".clock").count() == len(found["primes"]) == 2
    assert page.locator(".clock").nth(1).locator("circle").count() == len(three["clock"]["digits"]) == 255
    assert page.locator(".clock").nth(1).locator(".multiple").count() == 85
    assert page.locator(".overlap tbody .share-cell").all_inner_texts() == ["1.00", "0.00", "0.00", "1.00"]
    before = page.locator(".places tbody tr").count()
    page.get_by_label("also places that move nothing").check()
    assert page.locator(".places tbody tr").count() > before
    assert "fresh weights move 0 %" in page.locator(".findings").inner_text()
    assert page.get_by_role("heading", name="Through training").count() == 0, "one checkpoint only"


@needs_browser
def test_a_mechanism_with_an_alarm_and_through_training(tab: Tab, tmp_path: Path) -> None:
    shutil.copytree(GROKKING, tmp_path / "grok")
    found = json.loads((GROKKING / "mechanism.json").read_text())
    moment = {"epoch": 26, "learned": True, "adding": 0.99, "residues": 0.5, "chance": 0.01}
    before = moment | {"epoch": 20, "learned": False}
    found["through_training"] = {"2": [before, moment], "3": [before, moment]}
    found |= {"alarms": ["fresh weights move the answer"], "verdict": "not found"}
    (tmp_path / "grok" / "mechanism.json").write_text(json.dumps(found))
    with Lab(tmp_path) as lab:
        page = tab.open(lab.url + "#/mechanism/grok")
        assert page.locator(".clock").count() == 2 and page.locator(".findings .no").count() == 1
        history = page.get_by_role("region", name="Primes through training")
        shares = "99.0\u00a0%, 50\u00a0%"
        assert history.locator("tbody td").all_inner_texts() == [shares, shares, f"{shares}, in D", f"{shares}, in D"]


@needs_browser
def test_a_run_without_a_mechanism_names_the_command(tab: Tab, lab: Lab) -> None:
    page = tab.open(lab.url + "#/mechanism/tiny")
    assert "Nobody has looked yet" in page.locator(".missing").inner_text()
    assert page.locator(".command").inner_text() == "gcdformer mechanism runs/tiny"


def test_a_flip_says_what_the_rules_predict_and_what_came_out(lab: Lab) -> None:
    """Both directions, and at every place of a prime that is spread."""
    removed, added = (lab.get(f"/api/runs/grok/flip?p=3&a={a}&b=2604") for a in (1398, 1400))
    assert (removed["before"], removed["expected"]) == (6, 2) and (added["before"], added["expected"]) == (4, 12)
    assert [one["answer"] for one in (removed, added)] == [2, 12]
    assert removed["swapped"] % 3 and added["swapped"] % 3 == 0
    assert removed["places"] == ["second-to-last digit of a", "last digit of a"]
    for target, words in (("grok/flip?p=5&a=10&b=20", "they are 2, 3"), ("grok/flip?p=2&a=5&b=7", "does not divide 7"),
                          ("tiny/flip?p=2&a=10&b=20", "not known where p is carried"),
                          ("grok/flip?p=2&a=5&b=70000", "65535")):
        assert words in lab.get(f"/api/runs/{target}", 400)["error"], target


IN_PAGE = """async ([id, pairs]) => {
  const [{ Asker }, api] = await Promise.all([import("/static/asker.js"), import("/static/api.js")]);
  const [{ body: run }, { mechanism: found }] = await Promise.all([api.oneRun(id), api.mechanismOf(id)]);
  const asker = new Asker(run);
  const flip = (p, a, b) => asker.flip(found, p, a, b).catch(({ message }) => ({ message }));
  return Promise.all(pairs.flatMap(([a, b]) => found.primes.map(({ p }) => flip(p, a, b))));
}"""


@needs_browser
@pytest.mark.parametrize("name", ["example", "example-grokking"])
def test_the_page_flips_as_the_server_would_with_the_same_operand(tab: Tab, tmp_path: Path, name: str) -> None:
    """The operand differs from a in divisibility by p alone; exchanged by PyTorch, its values lead to the same answer."""
    run = load_run(EXAMPLES[name].path)
    rng = np.random.default_rng(0)
    pairs = (rng.integers(1, run.config.task.maximum // 60, (12, 2)) * rng.choice([6, 10, 12, 30, 60], (12, 1))).tolist()
    with Lab(tmp_path) as lab:
        flips = tab.open(lab.url).evaluate(IN_PAGE, [name, [*pairs, [7, 11]]])
        assert not any("/flip?" in url for url in tab.fetched)
        tab.page.goto("about:blank")
    found = saved_mechanism(run)
    assert found is not None
    analysis = prepare(run.predictor(), explain_run(run), 10, 0)
    rules, primes = analysis.rules.model, {prime.p: prime for prime in found.primes}
    done = [flip for flip in flips if "swapped" in flip]
    refused = [flip["message"] for flip in flips if "swapped" not in flip]
    assert len(done) >= 12 and all("the rules do not look" in message for message in refused[-len(primes):])
    for flip in done:
        a, b, swapped, p = (flip[key] for key in ("a", "b", "swapped", "p"))
        before, expected = (rules.answers_to(np.array([math.gcd(operand, b)])) for operand in (a, swapped))
        assert (flip["before"], flip["expected"]) == (before[0], expected[0]) and before != expected
        assert int(np.lcm(before[0], expected[0])) == p * int(np.gcd(before[0], expected[0]))
        swap = Swaps(np.array([[a, b]]), np.array([[swapped, b]]), before, expected)
        place = Place(primes[p].whole.site, tuple(primes[p].whole.positions))
        assert readable(int(analysis.exchange.answers(swap, [place])[0].answers[0])) == flip["answer"], flip
    assert sum(flip["answer"] == flip["expected"] for flip in done) >= 0.6 * len(done)


@needs_browser
def test_flip_divisibility_of_the_question(tab: Tab, lab: Lab) -> None:
    page = tab.open(lab.url + "#/ask/grok?a=1398&b=2604")
    flip = page.locator(".flip")
    flip.get_by_role("button", name="Flip divisibility by 3 of a").click()
    sync_api.expect(flip.locator(".flip-result")).to_contain_text("The rules say 2 instead of 6, and 2 came out.")
    assert "flip=3" in page.url, "so that a link shows it"
    page.locator("#b").fill("2605")
    sync_api.expect(flip.locator(".flip-result")).to_be_empty()
    flip.get_by_role("button", name="Flip divisibility by 3 of a").click()
    sync_api.expect(flip.locator(".flip-result")).to_contain_text("the rules do not look at it")
    tab.problems[:] = [problem for problem in tab.problems if "status of 400" not in problem]
    page = tab.open(lab.url + "#/ask/tiny")
    assert page.locator(".flip").get_by_role("link").get_attribute("href") == "#/mechanism/tiny"
