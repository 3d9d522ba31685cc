"""The report: one file that needs no network, holds what it should, and stays small for long runs."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from conftest import tiny_config
from gcdformer import PredictionTable, Run, load_run, train
from gcdformer.cli import main
from gcdformer.evaluation import score
from gcdformer.explanation import explain_tables
from gcdformer.explanation.sieve import largest_divisor, products
from gcdformer.presets import preset, repeat_command
from gcdformer.report.page import write_report
from gcdformer.runs.folder import RunFolder
from gcdformer.training.loop import score_line


class Outline(HTMLParser):
    """Headings, and anything that would be fetched; complains of tags that are not closed."""

    VOID = {"meta", "br", "link", "img", "input", "hr"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href") and value and not value.startswith(("#", "data:")):
                self.fetched.append(value)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


def check_page(path: Path) -> Outline:
    text = path.read_text()
    outline = Outline(text)
    assert not outline.fetched and not re.search(r"url\(['\"]?http|@import|<script", text)
    assert "prefers-color-scheme: dark" in text and 'name="viewport"' in text
    return outline


def test_report_of_a_run(trained: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report.html"
    assert main(["report", str(trained.path), "--out", str(out), "--figures", str(tmp_path / "figures")]) == 0
    assert check_page(out).headings == ["What it knows", "The rules", "Learning curves", "D over time", "How it was learned",
                                        "True against predicted", "How to repeat it"]
    text = out.read_text()
    assert text.count("<small>") >= 100 and "var(--ink)" in text and "var(--series-1, " in text and "gcdformer train" in text
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {f"{name}.{ending}" for name in ("curves", "raster", "heat-map") for ending in ("svg", "png")}
    assert (tmp_path / "figures" / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert str(out) in capsys.readouterr().out


def test_report_of_several_runs(trained: Run, tmp_path: Path) -> None:
    other = train(tiny_config(seed=1, max_epochs=2), tmp_path / "seed-1")
    write_report(tmp_path / "r.html", [trained, other])
    outline = check_page(tmp_path / "r.html")
    assert "Epoch at which each prime power was learned" in outline.headings and outline.headings.count("The rules") == 2


def test_report_of_another_task(tmp_path: Path) -> None:
    run = train(tiny_config(task="comparison", max_epochs=2), tmp_path / "comparison")
    write_report(run.path / "report.html", [run])
    assert check_page(run.path / "report.html").headings == ["Learning curves", "How to repeat it"]


def test_names_are_escaped(tmp_path: Path) -> None:
    run = train(tiny_config(max_epochs=1), tmp_path / "<b>&run")
    write_report(tmp_path / "r.html", [run])
    assert "<b>&run" not in (tmp_path / "r.html").read_text() and "&lt;b&gt;&amp;run" in (tmp_path / "r.html").read_text()


def long_run(path: Path, epochs: int) -> Run:
    """A run folder of many epochs whose sieve grows: real files, made without training."""
    folder = RunFolder(path)
    path.mkdir()
    folder.write_config(tiny_config())
    tops = [{2: 2}, {2: 4}, {2: 4, 5: 5}, {2: 4, 3: 3, 5: 5}, {2: 8, 3: 9, 5: 25, 7: 7}]
    k = np.repeat(np.arange(1, 101), 20)
    before: list[int] = []
    made = []
    for top in tops:
        known = products(top, 100)
        table = PredictionTable.of(k, k * 3, np.array([largest_divisor(known, int(x)) for x in k]), k)
        tables = {"natural": table, "stratified": table}
        made.append((tables, score(table, table, 0.9), explain_tables(tables, base=10, maximum=1000)))
    for epoch in range(1, epochs + 1):
        tables, scores, found = made[min(epoch * len(tops) // epochs, len(tops) - 1)]
        line = {"epoch": epoch, "step": epoch * 20, "examples": epoch * 320, "loss": 1 / epoch, "test_loss": 1 / epoch,
                **score_line(scores, found, before), "seconds": float(epoch), "throughput": 320.0}
        before = line["D"]
        line["predictions_sha256"] = folder.write_predictions(epoch, tables)
        folder.append_metrics(line)
    return load_run(path)


def test_a_long_run_stays_small(tmp_path: Path) -> None:
    run = long_run(tmp_path / "long", 300)
    write_report(tmp_path / "r.html", [run])
    assert (tmp_path / "r.html").stat().st_size < 5_000_000
    text = (tmp_path / "r.html").read_text()
    assert "learned 3 -&gt; 3, 6" in text and "nothing new" in text and "certified" in text


def test_the_command_to_repeat_gives_the_same_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    from gcdformer.cli import build_parser
    from gcdformer.options import config_from
    for config in (preset("paper-benford-inverse").derive(base=2401, seed=7, max_epochs=3),
                   preset("fast").derive(base=30, operands="uniform", outcomes="natural", lr=1e-3, max_minutes=5),
                   preset("paper-lstm").derive(hidden_dim=2048), tiny_config(fresh_tests=True)):
        words = repeat_command(config, "again").split()
        args = build_parser("train").parse_args(words[1:])
        again = config_from(args)
        assert again.identity() == config.identity() and again.limits == config.limits


def test_the_command_to_repeat_gives_only_what_the_preset_lacks() -> None:
    """A distribution takes its own parameters along: those of `fast` need no flag when the outcomes are natural."""
    config = preset("fast").derive(base=30, operands="uniform", outcomes="natural")
    assert repeat_command(config, "again") == ("gcdformer train fast --out runs/again --base 30 --operands uniform "
                                               "--outcomes natural")
