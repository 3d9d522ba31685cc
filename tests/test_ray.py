"""The Ray launcher on a real cluster of two nodes on 127.0.0.1, and what happens when its parts are killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import tiny_config
from gcdformer import train
from leftovers import is_running
from sweeps import Gate, finish, left_running, same_as_uninterrupted, start_sweep, wait_for, write_sweep

pytestmark = pytest.mark.processes

os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # read when Ray is imported: stay on 127.0.0.1
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
cluster_utils = pytest.importorskip("ray.cluster_utils")
NODE = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 80 * 2**20, "include_dashboard": False}


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A head and a second node, each with one CPU, on 127.0.0.1 only; stopped whatever happens."""
    before = listening()
    nodes = cluster_utils.Cluster(initialize_head=True, head_node_args=dict(NODE))
    try:
        nodes.add_node(**NODE)
        assert [node.node_ip_address for node in nodes.list_all_nodes()] == ["127.0.0.1", "127.0.0.1"]
        sockets = {address for address in listening() - before if "ray" in owner(address)}
        assert sockets and {address.split(":")[0] for address in sockets} <= LOOPBACK
        yield nodes
    finally:
        nodes.shutdown()


def listening() -> set[str]:
    """Local addresses of all listening TCP sockets of this machine, as the kernel writes them (hexadecimal)."""
    found = set()
    for name in ("tcp", "tcp6"):
        for row in Path("/proc/net", name).read_text().splitlines()[1:]:
            local, state = row.split()[1], row.split()[3]
            if state == "0A":
                found.add(local.split(":")[0] + ":" + local.split(":")[1])
    return found


LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads /proc")
def test_a_sweep_on_a_cluster_of_its_own(tmp_path: Path) -> None:
    """Without an address a cluster is started, on 127.0.0.1 only, and stopped; killed and stopped trials resume."""
    file, out, gate = tmp_path / "sweep.toml", tmp_path / "out", Gate(tmp_path)
    write_sweep(file, rates=[1e-3], seeds=1, epochs=8, gate=gate)
    before = listening()
    driver = start_sweep(file, out, "--engine", "ray")
    killed, = gate.held(1)
    ray_sockets = {address for address in listening() - before if "ray" in owner(address)}
    assert ray_sockets and {address.split(":")[0] for address in ray_sockets} <= LOOPBACK
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: not is_running(killed))
    gate.held(1)  # it runs again
    driver.send_signal(signal.SIGTERM)
    code, output = finish(driver)
    assert code == 75 and "SIGTERM: the trials save and stop" in output and "failed" not in output, output
    assert not left_running(out)
    wait_for(lambda: not {address for address in listening() - before if "ray" in owner(address)})
    gate.open()
    code, output = finish(start_sweep(file, out))  # by the other launcher: a run is a run
    assert code == 0 and "1 trials: 1 finished" in output, output
    same_as_uninterrupted(out, tmp_path / "whole", 1, 8)


def owner(address: str) -> str:
    """The command of the process that owns a listening socket; empty if it is gone or not ours."""
    inodes = {row.split()[9] for name in ("tcp", "tcp6") for row in Path("/proc/net", name).read_text().splitlines()[1:]
              if row.split()[1] == address}
    for path in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            target = str(path.readlink())
            if target.startswith("socket:[") and target[8:-1] in inodes:
                return (path.parent.parent / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue
    return ""


def test_a_cluster_that_cannot_start_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path / ("long" * 30)))  # too long for the names of Ray's sockets
    file = write_sweep(tmp_path / "sweep.toml", rates=[1e-3], seeds=1)
    code, output = finish(start_sweep(file, tmp_path / "out", "--engine", "ray"))
    assert code == 2 and output.splitlines()[-1].startswith("gcdformer: ray: no cluster could be started"), output
    assert "Traceback" not in output


@pytest.mark.scale
def test_signals_save_and_the_same_command_goes_on(cluster: Any, tmp_path: Path) -> None:
    file, out, gate = tmp_path / "sweep.toml", tmp_path / "out", Gate(tmp_path)
    write_sweep(file, rates=[1e-3], seeds=3, epochs=12, gate=gate)
    words = ("--engine", "ray", "--address", cluster.address)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        driver = start_sweep(file, out, *words)
        gate.held(2)
        driver.send_signal(number)
        code, output = finish(driver)
        assert code == 75 and f"{number.name}: the trials save and stop" in output and "failed" not in output, output
        assert not left_running(out)
    gate.open()
    code, output = finish(start_sweep(file, out, *words))
    assert code == 0 and "3 trials: 3 finished" in output, output
    same_as_uninterrupted(out, tmp_path / "whole", 3, 12)


@pytest.mark.scale
def test_a_trial_that_is_killed_again_and_again_is_given_up_after_its_retries(cluster: Any, tmp_path: Path) -> None:
    file, out, gate = tmp_path / "sweep.toml", tmp_path / "out", Gate(tmp_path)
    write_sweep(file, rates=[1e-3], seeds=1, epochs=8, gate=gate)
    driver = start_sweep(file, out, "--engine", "ray", "--address", cluster.address, "--retries", 1)
    for _ in range(2):
        killed, = gate.held(1)
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda killed=killed: not is_running(killed))
    code, output = finish(driver)
    assert code == 1 and output.count("resumes from its last checkpoint") == 1 and "1 trials: 1 failed" in output, output


@pytest.mark.scale
def test_twelve_trials_survive_workers_nodes_and_drivers(cluster: Any, tmp_path: Path) -> None:
    """A worker killed, a node removed, the driver killed: 12 of 12 finish exactly once, bit-equal."""
    file, out, gate = tmp_path / "sweep.toml", tmp_path / "out", Gate(tmp_path)
    write_sweep(file, rates=[1e-3, 3e-3], seeds=6, epochs=8, gate=gate)
    words = ("--engine", "ray", "--address", cluster.address)
    driver = start_sweep(file, out, *words)
    killed, _ = gate.held(2)
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: not is_running(killed))
    both = gate.held(2)  # one on each node
    second = next(node for node in cluster.list_all_nodes() if node is not cluster.head_node)
    cluster.remove_node(second, allow_graceful=False)
    wait_for(lambda: sum(map(is_running, both)) < 2)
    cluster.add_node(**NODE)
    orphans = gate.held(2)
    driver.kill()
    finish(driver)
    wait_for(lambda: not any(map(is_running, orphans)))  # Ray ends the tasks of a driver that is gone
    gate.open()
    code, output = finish(start_sweep(file, out, *words))
    assert code == 0 and "12 trials: 12 finished" in output, output
    same_as_uninterrupted(out, tmp_path / "whole", 12, 8)


@pytest.mark.scale
def test_asha_stops_some_and_remembers_it(tmp_path: Path) -> None:
    file, out = tmp_path / "sweep.toml", tmp_path / "out"
    write_sweep(file, rates=[3e-3, 1e-6], seeds=2, epochs=6)
    words = ("--engine", "ray", "--asha", "--asha-reduction", 2)
    code, output = finish(start_sweep(file, out, *words))
    assert code == 0 and " stopped" in output.splitlines()[-2] and " finished" in output.splitlines()[-2], output
    code, again = finish(start_sweep(file, out, *words))
    assert code == 0 and "start" not in again and again.splitlines()[-2] == output.splitlines()[-2]
    code, retried = finish(start_sweep(file, out, "--retry"))
    assert code == 0 and "4 trials: 4 finished" in retried
    same_as_uninterrupted(out, tmp_path / "whole", 4, 6)


@pytest.mark.scale
def test_asha_stops_at_a_signal_and_goes_on(tmp_path: Path) -> None:
    """Tune would take SIGUSR1 for itself, and change to a folder where `init_from` does not lead to the source."""
    gate = Gate(tmp_path)
    train(tiny_config(max_epochs=1), tmp_path / "source")
    file, out = tmp_path / "sweep.toml", tmp_path / "out"
    write_sweep(file, rates=[1e-3], seeds=1, epochs=12, gate=gate)
    file.write_text(file.read_text().replace("warmup = 5", "warmup = 5\ninit_from = 'source'"))
    for number in (signal.SIGUSR1, signal.SIGTERM):
        driver = start_sweep(file, out, "--engine", "ray", "--asha", here=tmp_path)
        held = gate.held(1)
        driver.send_signal(number)
        code, output = finish(driver)
        assert code == 75 and "failed" not in output, output
        wait_for(lambda held=held: not any(map(is_running, held)))
    gate.open()
    code, output = finish(start_sweep(file, out, "--engine", "ray", "--asha", here=tmp_path))
    assert code == 0 and "1 trials: 1 finished" in output.splitlines(), output
