"""What the tests' node does to control groups of the machine, which another containerd may have made."""

import pytest
from support.node import groups


@pytest.fixture(params=["cpu/k8s.io/cpu.shares", "k8s.io/cpu.weight"])
def weight(request, monkeypatch, tmp_path):
    """The group's weight, of either version of control groups: it was given one already."""
    monkeypatch.setattr(groups, "_MOUNTED", tmp_path)
    weight = tmp_path / request.param
    weight.parent.mkdir(parents=True)
    weight.write_text("512\n")
    return weight


def test_the_group_weighs_more_for_the_tests_alone(weight):
    with groups.weighing():
        assert int(weight.read_text()) > 1024
    assert weight.read_text() == "512\n"


def test_the_weight_comes_back_though_a_test_failed(weight):
    with pytest.raises(ZeroDivisionError), groups.weighing():
        raise ZeroDivisionError
    assert weight.read_text() == "512\n"


def test_a_hierarchy_that_is_mounted_at_two_places_is_one(weight, tmp_path):
    (tmp_path / "a").symlink_to(weight.parent.parent)
    (tmp_path / "z").symlink_to(weight.parent.parent)
    with groups.weighing():
        pass
    assert weight.read_text() == "512\n"
