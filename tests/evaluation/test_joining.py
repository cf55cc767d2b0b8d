"""A cluster is joined and left, or the reason why not is told soon."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from diffassemble.core import InputError
from diffassemble.evaluation import joining
from diffassemble.evaluation.joining import joined

with_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is an optional part")


def descendants(process: int) -> set[int]:
    """The processes that a process has started, and those that they have."""
    found = set()
    for folder in Path(f"/proc/{process}/task").iterdir():
        for child in map(int, (folder / "children").read_text().split()):
            found |= {child} | descendants(child)
    return found


def running(process: int) -> bool:
    stat = Path(f"/proc/{process}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def refused(address: str) -> str:
    """What is told of an address that can't be joined."""
    with pytest.raises(InputError) as caught, joined(address):
        pass
    return str(caught.value)


def test_without_ray_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert 'pip install "diffassemble[cluster]"' in refused("local")


@with_ray
def test_what_listens_but_is_not_ray_is_told_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "SECONDS_TO_JOIN", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert refused(address).startswith(f"--ray {address}: no cluster answers there (no word of Ray's within")


@with_ray
@pytest.mark.parametrize("address", ["hello", "host:", ":6379", "host:99999", "ray://host:10001", ""])
def test_what_is_no_address_is_told(address: str) -> None:
    assert "an address is HOST:PORT, auto or local" in refused(address)


@with_ray
def test_the_command_tells_it_in_one_line(pictures: list[Path], command: Callable[..., Any]) -> None:
    told = command("evaluate", "--data", pictures[0].parent, "--solver", "gallagher", "--ray", "127.0.0.1:1")
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("diffassemble: --ray 127.0.0.1:1: no cluster answers there (")
    assert told.err.count("\n") == 1


@with_ray
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are looked up where Linux lists them")
@pytest.mark.slow
def test_a_cluster_that_is_joined_hides_no_silent_address_and_leaves_no_process(
    capfd: pytest.CaptureFixture[str],
) -> None:
    before = descendants(os.getpid())
    with joined("local", 1) as ray:
        started = descendants(os.getpid()) - before
        assert started
        assert ray.cluster_resources()["CPU"] == 1
        assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
        join = "import sys; from diffassemble.evaluation.joining import joined\nwith joined(sys.argv[1]): print('in')"
        address = ray.get_runtime_context().gcs_address
        told = subprocess.run([sys.executable, "-c", join, address], capture_output=True, text=True)
        assert (told.stdout, told.stderr) == ("in\n", "")
        begin = time.perf_counter()
        assert refused("127.0.0.1:1").startswith("--ray 127.0.0.1:1: no cluster answers there (")
        assert time.perf_counter() - begin < 10
    deadline = time.monotonic() + 20
    while any(map(running, started)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(running, started))
    assert capfd.readouterr() == ("", "")
