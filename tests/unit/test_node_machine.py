"""What a machine is told that cannot be a node for the tests."""

import pytest
from support.node import machine


@pytest.fixture
def complete(monkeypatch, tmp_path):
    """A machine that has everything; returns how to take a program away."""
    there = set(machine.PROGRAMS)
    monkeypatch.setattr(machine.shutil, "which", lambda name, path=None: name if name in there else None)
    monkeypatch.setattr(machine.os, "geteuid", lambda: 0)
    monkeypatch.setattr(machine.sys, "platform", "linux")
    monkeypatch.setattr(machine, "network_plugins", lambda: tmp_path)
    return there.discard


def test_a_complete_machine_is_told_nothing(complete):
    machine.check()


def test_what_is_missing_is_named_by_its_packages_each_once(complete, monkeypatch):
    for program in ("containerd", "ctr", "nft"):
        complete(program)
    monkeypatch.setattr(machine, "network_plugins", lambda: None)
    with pytest.raises(machine.MachineUnfit, match=r"containerd containernetworking-plugins nftables$"):
        machine.check()


def test_who_is_not_root_is_told_how(complete, monkeypatch):
    monkeypatch.setattr(machine.os, "geteuid", lambda: 1000)
    with pytest.raises(machine.MachineUnfit, match="sudo make test-cluster"):
        machine.check()


def test_other_systems_are_told_that_nodes_run_linux(complete, monkeypatch):
    monkeypatch.setattr(machine.sys, "platform", "darwin")
    with pytest.raises(machine.MachineUnfit, match="Linux"):
        machine.check()
