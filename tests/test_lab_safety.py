"""What the lab refuses: names that lead out, other hosts and pages, hostile requests; and damaged runs shown as damaged."""

from __future__ import annotations

import random
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcdformer import Run
from gcdformer.lab.catalogue import Catalogue, UnknownRun
from gcdformer.lab.network import Guard
from gcdformer.runs.metrics import to_text
from lab_process import Lab, make_runs


@pytest.fixture(scope="module")
def root(trained: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(tmp_path_factory.mktemp("lab-runs"), trained)


@pytest.fixture(scope="module")
def lab(root: Path) -> Iterator[Lab]:
    with Lab(root) as lab:
        yield lab


OUTSIDE = [
    "..",
    "%2e%2e",
    "..%2f..%2fetc",
    "%2e%2e%2ftiny",
    "..%5ctiny",
    "link",
    "notes",
    ".hidden",
    "tiny%2f..%2ftiny",
    "%00",
    "tiny%00",
    "sweep",
    "sweep%2fgru",
    "/etc",
    "~",
    "..~..~etc",
    "%c0%ae%c0%ae",
    "example%2f..%2ftiny",
    "tiny/",
    ".",
]


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_name_leads_out_of_the_folder(lab: Lab, name: str) -> None:
    for target in (
        f"/api/runs/{name}",
        f"/api/runs/{name}/epochs/1",
        f"/api/runs/{name}/ask?a=1&b=1",
        f"/api/runs/{name}/model",
        f"/api/runs/{name}/weights",
        f"/static/{name}/passwd",
        f"/static/../{name}",
        "/static/%2e%2e/%2e%2e/config.py",
    ):
        status, body, _ = lab.request(target)
        assert status in (307, 400, 404, 405), (target, status, body[:200])


def test_a_run_that_becomes_a_link_is_gone(trained: Run, tmp_path: Path) -> None:
    outside = Path(shutil.copytree(trained.path, tmp_path / "outside"))
    (tmp_path / "runs" / "sweep").mkdir(parents=True)
    shutil.copytree(trained.path, tmp_path / "runs" / "sweep" / "run")
    shutil.copytree(trained.path, tmp_path / "runs" / "other")
    catalogue = Catalogue(tmp_path / "runs")
    assert catalogue.find("sweep~run").name == "sweep/run"
    shutil.rmtree(tmp_path / "runs" / "sweep" / "run")
    (tmp_path / "runs" / "sweep" / "run").symlink_to(outside)
    with pytest.raises(UnknownRun):
        catalogue.find("sweep~run")
    assert catalogue.find("other").name == "other"


def test_only_our_own_names_and_pages(lab: Lab) -> None:
    here = f"127.0.0.1:{lab.port}"
    assert lab.request("/api/runs", headers={"Host": "evil.example"})[0] == 421
    assert lab.request("/", headers={"Host": f"evil.example:{lab.port}"})[0] == 421
    assert lab.request("/api/runs", headers={"Host": f"localhost:{lab.port}"})[0] == 200
    assert lab.request("/api/runs", headers={"Host": here, "Origin": "http://evil.example"})[0] == 403
    assert lab.request("/api/runs", headers={"Host": here, "Origin": "null"})[0] == 403
    assert lab.request("/api/runs", headers={"Host": here, "Origin": f"http://{here}"})[0] == 200
    assert lab.request("/api/runs", headers={"Host": here, "Sec-Fetch-Site": "cross-site"})[0] == 403
    _, _, headers = lab.request("/")
    assert "default-src 'self'" in headers["content-security-policy"] and headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("bound", "host", "ours"),
    [
        ("127.0.0.1", "192.168.1.5:80", False),
        ("127.0.0.1", "[::1]:80", True),
        ("127.0.0.1", "", False),
        ("0.0.0.0", "192.168.1.5:80", True),
        ("0.0.0.0", "evil.example", False),
        ("lab.local", "lab.local:99", True),
        ("127.0.0.1", "[", False),
        ("127.0.0.1", "localhost.evil", False),
    ],
)
def test_host_names(bound: str, host: str, ours: bool) -> None:
    assert Guard(lambda *_: None, bound).is_ours(host) is ours  # type: ignore[arg-type, return-value]


def test_training_is_off_unless_allowed(lab: Lab) -> None:
    for method, target, body in (
        ("GET", "/api/trainings", None),
        ("POST", "/api/trainings", b"{}"),
        ("DELETE", "/api/trainings/x", None),
    ):
        status, text, _ = lab.request(target, method, body, {"Content-Type": "application/json"})
        assert status == 403 and b"--allow-training" in text


def hostile_requests(seed: int, count: int) -> Iterator[tuple[str, str, bytes | None, dict[str, str]]]:
    """Requests nobody should send, from a seed: wrong numbers, names, methods, bodies, headers."""
    rng = random.Random(seed)
    numbers = [
        "0",
        "-1",
        "1e9",
        "NaN",
        "9" * 30,
        "",
        "٣",
        "0x10",
        "1;drop",
        "%00",
        "null",
        "1&a=2",
        "🙂".encode().hex(),
        "2147483648",
        "5",
    ]
    names = [
        *OUTSIDE,
        "tiny",
        "long",
        "damaged",
        "comparison",
        "a" * 290,
        "a" * 500,
        "%F0%9F%99%82",
        "%",
        "%zz",
        "'--",
        "<script>",
        "tiny?x=1",
    ]
    paths = [
        "/api/runs/{n}",
        "/api/runs/{n}/epochs/{i}",
        "/api/runs/{n}/ask?a={i}&b={j}",
        "/api/runs/{n}/ask?a={i}&b={j}&epoch={i}",
        "/api/{n}",
        "/api/runs/{n}/surprise?epoch={i}",
        "/api/runs/{n}/ask?a=10&b=20&prior={i}&share={j}",
        "/api/runs/{n}/model?epoch={i}",
        "/api/runs/{n}/weights?epoch={i}",
        "/{n}",
        "/static/{n}",
        "/static/{n}/{n}",
        "/api/trainings/{n}",
        "/api/trainings",
        "/api/runs",
        "/api/paper",
        "/api/paper/tables/{n}",
        "/api/paper/claims/{n}",
        "/api/paper/runs/{n}",
    ]
    bodies = [
        None,
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"base": 1e400}',
        b'{"base": -1}',
        b'{"base": "30"}',
        b"\xff\xfe",
        b"[" * 5000,
        b"x" * 20_000,
        b'{"base": 30, "extra": 1}',
        b'{"outcomes": "power"}',
        b'{"minutes": 1e9}',
        b'{"operands": "../x"}',
        b'{"base": NaN}',
    ]
    for _ in range(count):
        path = rng.choice(paths)
        target = path.format(n=rng.choice(names), i=rng.choice(numbers), j=rng.choice(numbers))
        target = "".join(c if 33 <= ord(c) < 127 else f"%{ord(c) % 256:02X}" for c in target)
        headers = {
            "Content-Type": rng.choice(
                ["application/json", "text/plain", "multipart/form-data", "application/x-www-form-urlencoded", ";"]
            )
        }
        if rng.random() < 0.2:
            headers[
                rng.choice(
                    ["Host", "Origin", "If-None-Match", "Range", "Accept-Encoding", "Sec-Fetch-Site", "X-Forwarded-Host"]
                )
            ] = rng.choice(["", "*", "evil", "bytes=0-1", "gzip;q=x", "\x80\xff", "a" * 3000])
        yield (
            rng.choice(["GET", "GET", "GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS", "TRACE", "PATCH"]),
            target,
            rng.choice(bodies),
            headers,
        )


def test_a_thousand_hostile_requests(root: Path) -> None:
    """With training allowed, so that every door is there; no order among them may start one."""
    seen: dict[int, int] = {}
    with Lab(root, allow_training=True) as lab:
        for method, target, body, headers in hostile_requests(8, 1000):
            status, answer, _ = lab.request(target, method, body, headers)
            assert status < 500, (method, target, body, headers, answer[:300])
            assert b"Traceback" not in answer
            seen[status] = seen.get(status, 0) + 1
        assert lab.get("/api/trainings")["trainings"] == []
        assert sum(count for status, count in seen.items() if 400 <= status < 500) > 700, seen
        assert lab.get("/api/runs/tiny")["name"] == "tiny"


def test_a_broken_request_line_does_not_hurt(lab: Lab) -> None:
    for bytes_sent in (
        b"GET\r\n\r\n",
        b"\x00" * 100,
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"POST /api/trainings HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", lab.port), timeout=100) as connection:
            connection.sendall(bytes_sent)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(400)
            assert not answer or answer.split()[1][:1] == b"4", answer
    assert lab.get("/api/about")["training"] is False


@pytest.mark.parametrize(
    "damage", ["config", "metrics", "metrics-types", "predictions", "checkpoint", "no-metrics", "no-config", "gone"]
)
def test_a_damaged_run_shows_as_damaged_and_the_rest_works(trained: Run, tmp_path: Path, damage: str) -> None:
    folder = Path(shutil.copytree(trained.path, tmp_path / "hurt"))
    shutil.copytree(trained.path, tmp_path / "whole")
    if damage == "config":
        (folder / "config.toml").write_bytes(b"\xff" * 50)
    elif damage == "metrics":
        (folder / "metrics.jsonl").write_text('{"epoch": 1}\n')
    elif damage == "metrics-types":
        (folder / "metrics.jsonl").write_text(to_text({"epoch": "one", "accuracy": [], "D": 5}))
    elif damage == "predictions":
        (folder / "predictions" / "epoch-00003.npz").write_bytes(b"PK")
    elif damage == "checkpoint":
        for path in (folder / "checkpoints").rglob("model.safetensors"):
            path.write_bytes(path.read_bytes()[:-1])
    elif damage == "no-metrics":
        (folder / "metrics.jsonl").unlink()
    elif damage == "no-config":
        (folder / "config.toml").unlink()
    else:
        shutil.rmtree(folder / "checkpoints")
        shutil.rmtree(folder / "predictions")
    with Lab(tmp_path) as lab:
        listed = {run["id"]: run for run in lab.get("/api/runs")["runs"]}
        assert listed["whole"]["damaged"] is None and listed["whole"]["epochs"] == 3
        assert bool(listed["hurt"]["damaged"]) == (damage in ("config", "metrics", "metrics-types", "no-config"))
        ends = ("", "/epochs/3", "/ask?a=10&b=20", "/surprise", "/model", "/weights")
        codes = [lab.request(f"/api/runs/hurt{end}")[0] for end in ends]
        assert all(code < 500 for code in codes) and any(code >= 400 for code in codes), codes
        assert lab.get("/api/runs/whole/ask?a=10&b=20")["truth"] == 10
