"""An outcome distribution from a file: frequencies follow its weights, examples are functions of (seed, n), runs notice
changes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from conftest import tiny_config
from gcdformer import Config, Problem, Stream, UserError, load_exported, load_run, train
from gcdformer.cli import main
from gcdformer.numbers.distributions import read_weights

MAXIMUM = 1000


def weights_of(path: Path, weights: dict[int, float]) -> str:
    path.write_text("k,weight\n" + "".join(f"{k},{weight!r}\n" for k, weight in weights.items()))
    return str(path)


def stream_of(name: str, **leaves: object) -> Stream:
    config = Config().derive(maximum=MAXIMUM, operands="uniform", outcomes="weights", weights_file=name, **leaves)
    return Stream.of(config, Problem.of(config))


@given(st.dictionaries(st.integers(1, 300), st.floats(1e-3, 1e3), min_size=1, max_size=12), st.integers(0, 2**32))
@settings(max_examples=25)
def test_frequencies_follow_the_weights(tmp_path_factory: pytest.TempPathFactory, weights: dict[int, float],
                                        seed: int) -> None:
    """Chi-square over the k that are listed; no other k is drawn."""
    name = weights_of(tmp_path_factory.mktemp("w") / "w.csv", weights)
    pairs = stream_of(name, seed=seed).examples(0, 20_000)
    k, counts = np.unique(np.gcd(pairs[:, 0], pairs[:, 1]), return_counts=True)
    assert set(k.tolist()) <= set(weights) and pairs.min() >= 1 and pairs.max() <= MAXIMUM
    total = sum(weights.values())
    expected = {one: 20_000 * weight / total for one, weight in weights.items()}
    seen = dict(zip(k.tolist(), counts.tolist(), strict=True))
    cells = [one for one, count in expected.items() if count >= 10]
    rest = 20_000 - sum(expected[one] for one in cells)
    observed, wanted = [seen.get(one, 0) for one in cells], [expected[one] for one in cells]
    if rest >= 10:
        observed, wanted = [*observed, 20_000 - sum(observed)], [*wanted, rest]
    if len(wanted) > 1:
        scale = sum(observed) / sum(wanted)
        assert stats.chisquare(observed, [scale * count for count in wanted]).pvalue > 1e-7


@given(st.integers(0, 20_000), st.integers(1, 3000), st.integers(0, 2**62))
@settings(max_examples=25)
def test_example_n_is_a_function_of_seed_and_n(tmp_path_factory: pytest.TempPathFactory, start: int, count: int,
                                               seed: int) -> None:
    name = weights_of(tmp_path_factory.mktemp("w") / "w.csv", {1: 1.0, 6: 3.5, 49: 0.25})
    whole = stream_of(name, seed=seed).examples(0, start + count)
    assert np.array_equal(stream_of(name, seed=seed).examples(start, start + count), whole[start:])


def test_wrong_weights_are_noticed(tmp_path: Path) -> None:
    pairs = stream_of(weights_of(tmp_path / "w.csv", {1: 1.0, 2: 1.0, 3: 2.0})).examples(0, 20_000)
    counts = np.bincount(np.gcd(pairs[:, 0], pairs[:, 1]))[1:]
    assert stats.chisquare(counts, [5000, 5000, 10_000]).pvalue > 1e-7
    assert stats.chisquare(counts, np.full(3, 20_000 / 3)).pvalue < 1e-7


def test_the_order_of_the_lines_and_their_scale_do_not_matter(tmp_path: Path) -> None:
    weights = {5: 2.0, 1: 4.0, 30: 1.0}
    one = read_weights(weights_of(tmp_path / "a.csv", weights), 100)
    path = tmp_path / "b.csv"
    path.write_text("\ufeff30, 1e300\n1,4e300\n\n 5 ,2e300")
    other = read_weights(str(path), 100)
    assert np.allclose(one[0], other[0]) and one[1] != other[1] and len(one[0]) == 30 and one[0].sum() == pytest.approx(1)


BAD = [("", "no weights"), ("k,weight\n", "no weights"), ("1\n", "line 1"), ("1,2,3\n", "line 1"), ("1,1\n0,1\n", "line 2"),
       ("1,0\n", "positive"), ("1,-2\n", "positive"), ("1,nan\n", "positive"), ("1,inf\n", "positive"),
       ("1,x\n", "positive"), ("1.5,1\n", "integer in 1..1000"), ("-1,1\n", "integer in 1..1000"), ("1001,1\n", "1..1000"),
       ("1,1\n1,2\n", "1 has a weight already"), ("9" * 5000 + ",1\n", "line 1"), ("k,p\n1,1\n", "line 1")]


@pytest.mark.parametrize(("text", "word"), BAD, ids=range(len(BAD)))
def test_a_bad_file_names_its_line(text: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "w.csv"
    path.write_text(text)
    out = tmp_path / "run"
    for words in (["sample", "--count", "5"], ["sample", "--out", str(out)], ["describe", "--no-timing"],
                  ["train", "--out", str(out), "--max-epochs", "1"]):
        code = main([*words, "--max", "1000", "--outcomes", "weights", "--weights-file", str(path)])
        shown, err = capsys.readouterr()
        assert code == 2 and shown == "" and word in err and "w.csv" in err and len(err.splitlines()) == 1
    assert not out.exists()
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="UTF-8"):
        read_weights(str(path), 10)
    with pytest.raises(UserError, match="cannot be read"):
        read_weights(str(tmp_path / "nowhere.csv"), 10)


def test_the_verbs_take_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = weights_of(tmp_path / "w.csv", {6: 1.0, 10: 1.0})
    flags = ["--max", "1000", "--outcomes", "weights", "--weights-file", name]
    assert main(["sample", "--count", "50", *flags]) == 0
    rows = [line.split(",") for line in capsys.readouterr().out.splitlines()[1:]]
    assert {row[2] for row in rows} == {"6", "10"}
    assert main(["describe", "--no-timing", "--json", *flags]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"] > 0


def test_a_run_is_what_its_weights_are(tmp_path: Path) -> None:
    """The content counts, not the name; a trained model is read and exported without the file."""
    first = tmp_path / "first.csv"
    config = tiny_config(outcomes="weights", weights_file=weights_of(first, {1: 2.0, 2: 1.0, 5: 1.0}), max_epochs=1)
    run = train(config, tmp_path / "run")
    assert "weights_file_sha256" in run.made_by and config.data.outcomes_in_words == "first.csv-weighted"
    moved = first.rename(tmp_path / "moved.csv")
    train(config.replace(weights_file=str(moved), max_epochs=2), run.path)
    assert len(load_run(run.path).metrics) == 2
    assert np.array_equal(load_run(run.path).stream.examples(0, 100), run_examples(config, moved))
    other = weights_of(tmp_path / "other.csv", {1: 2.0, 2: 1.0})
    with pytest.raises(UserError, match="weights_file .it holds something else"):
        train(config.replace(weights_file=other, max_epochs=3), run.path)
    with pytest.raises(UserError, match="another configuration: outcomes"):
        train(config.derive(outcomes="uniform", max_epochs=3), run.path)
    weights_of(moved, {1: 1.0})
    with pytest.raises(UserError, match="has changed since"):
        load_run(run.path).stream  # noqa: B018
    moved.unlink()
    assert load_run(run.path).predict(4, 6) == load_run(run.path).predict([4], [6])[0]
    assert main(["export", str(run.path), "--to", str(tmp_path / "exported")]) == 0
    assert load_exported(tmp_path / "exported").predict(4, 6) == load_run(run.path).predict(4, 6)
    assert str(tmp_path) not in (tmp_path / "exported" / "config.json").read_text()


def run_examples(config: Config, path: Path) -> np.ndarray:
    here = config.replace(weights_file=str(path))
    return Stream.of(here, Problem.of(here)).examples(0, 100)
