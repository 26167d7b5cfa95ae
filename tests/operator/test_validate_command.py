"""`fairpool-operator validate`: what it prints, where it looks, and how it ends."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time

import pytest
from support.cluster.definitions import ROOT
from support.permissions import minded

from fairpool_operator.main import main

GOOD = """\
apiVersion: fairpool.dev/v1alpha1
kind: FairPool
metadata: {name: llama}
spec:
  endpoints: {selector: {matchLabels: {app: vllm}}, targetPorts: [{number: 8000}]}
"""
BAD = """\
apiVersion: fairpool.dev/v1alpha1
kind: TenantWeight
metadata: {name: search}
spec:
  poolRef: {name: llama}
  weight: 0
"""
ELSEWHERE = BAD.replace("weight: 0", "weight: 300").replace("name: llama", "name: elsewhere")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A directory that holds a pool and a tenant that is wrong, and is the current one."""
    (tmp_path / "team").mkdir()
    (tmp_path / "pool.yaml").write_text(GOOD)
    (tmp_path / "team" / "tenant.yml").write_text("# A comment.\n---\n" + BAD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(capsys, *arguments):
    """The exit status, and the lines that were printed."""
    status = main(["validate", *arguments])
    said = capsys.readouterr()
    return status, (said.out or said.err).splitlines()


class TestText:
    def test_names_file_line_resource_and_field(self, repository, capsys):
        status, (found, summary) = ran(capsys, "-f", ".")
        assert status == 1
        assert found == (
            "team/tenant.yml:8: TenantWeight default/search: spec.weight: Invalid value: 0: "
            "spec.weight in body should be greater than or equal to 1"
        )
        assert summary == "2 resources in 2 files: 1 error, 0 warnings"

    def test_shows_in_another_way_what_the_terminal_cannot(self, repository):
        (repository / "pool.yaml").write_text(GOOD.replace("spec:", "spec:\n  weiß: 1"))
        command = [sys.executable, "-m", "fairpool_operator", "validate", "-f", "pool.yaml"]
        ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
        found = subprocess.run(command, env=ascii_only, capture_output=True, text=True, timeout=60, check=False)
        assert (found.returncode, found.stderr) == (1, "")
        assert "spec.wei\\xdf" in found.stdout

    def test_says_that_a_warning_is_one(self, repository, capsys):
        (repository / "team" / "tenant.yml").write_text(ELSEWHERE)
        status, (found, summary) = ran(capsys, "-f", ".", "-n", "inference")
        assert status == 0
        assert found.startswith("team/tenant.yml:5: warning: TenantWeight inference/search: spec.poolRef: FairPool ")
        assert summary == "2 resources in 2 files: 0 errors, 1 warning"

    def test_names_a_namespace_without_one(self, repository, capsys):
        (repository / "pool.yaml").write_text("{apiVersion: v1, kind: Namespace, metadata: {name: team}}\n---\n" * 2)
        found = ran(capsys, "-f", "pool.yaml")[1][0]
        assert found.startswith("pool.yaml:3: warning: Namespace team: is at pool.yaml:1 too")

    def test_of_what_is_no_resource_names_file_and_line(self, repository, capsys):
        (repository / "pool.yaml").write_text("a: [\n")
        status, (found, *_) = ran(capsys, "-f", "pool.yaml")
        assert (status, found[:29]) == (1, "pool.yaml:2: is not YAML: whi")


class TestThePageAboutIt:
    def test_shows_what_is_said(self, tmp_path, monkeypatch, capsys):
        page = (ROOT / "docs" / "validate.md").read_text(encoding="utf-8")
        file, printed = (page.split(f"```{kind}\n")[1].split("```")[0] for kind in ("yaml", "text"))
        monkeypatch.chdir(tmp_path)
        (tmp_path / "tenants.yaml").write_text(file)
        assert ran(capsys, "-f", "tenants.yaml") == (1, printed.splitlines())


class TestJson:
    def test_has_the_same_in_fields(self, repository, capsys):
        status, lines = ran(capsys, "-f", ".", "-o", "json")
        told = json.loads("\n".join(lines))
        assert status == 1
        assert told["findings"] == [
            {
                "file": "team/tenant.yml",
                "line": 8,
                "severity": "error",
                "kind": "TenantWeight",
                "namespace": "default",
                "name": "search",
                "path": "spec.weight",
                "message": "Invalid value: 0: spec.weight in body should be greater than or equal to 1",
            }
        ]
        assert told["counts"] == {"files": 2, "resources": 2, "otherResources": 0, "errors": 1, "warnings": 0}


class TestWhereItLooks:
    def test_is_in_files_and_directories_that_are_given(self, repository, capsys):
        assert ran(capsys, "-f", "pool.yaml") == (0, ["1 resource in 1 file: 0 errors, 0 warnings"])
        assert ran(capsys, "-f", "pool.yaml", "-f", "team")[1][-1] == "2 resources in 2 files: 1 error, 0 warnings"

    def test_is_the_standard_input_for_a_dash(self, monkeypatch, capsys):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
        status, (found, _) = ran(capsys, "-f", "-")
        assert (status, found[:24]) == (1, "-:6: TenantWeight defaul")

    @pytest.mark.parametrize(
        "sample", sorted((ROOT / "manifests" / "samples").glob("*.yaml")), ids=lambda path: path.stem
    )
    def test_every_sample_is_valid(self, sample, capsys):
        status, lines = ran(capsys, "-f", str(sample))
        assert status == 0, lines

    def test_so_are_all_of_them_at_once(self, capsys):
        assert ran(capsys, "-f", str(ROOT / "manifests" / "samples"))[0] == 0


class TestTheEnd:
    def test_is_1_for_warnings_where_they_are_asked_for(self, repository, capsys):
        (repository / "team" / "tenant.yml").write_text(ELSEWHERE)
        assert ran(capsys, "-f", ".")[0] == 0
        assert ran(capsys, "-f", ".", "--strict")[0] == 1

    def test_is_2_where_there_is_no_such_file(self, repository, capsys):
        status, (said,) = ran(capsys, "-f", "nothing")
        assert (status, said) == (2, "fairpool-operator validate: there is no file or directory nothing")

    def test_is_2_where_a_directory_holds_nothing_to_look_at(self, repository, capsys):
        (repository / "empty").mkdir()
        status, (said,) = ran(capsys, "-f", "empty")
        assert (status, said) == (2, "fairpool-operator validate: there is no .yaml or .yml file in empty")

    @pytest.mark.parametrize("text", ["", "# Nothing.\n", "---\n---\n", "apiVersion: v1\nkind: List\nitems: []\n"])
    def test_is_2_where_there_is_no_resource(self, monkeypatch, capsys, text):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        status, (said,) = ran(capsys, "-f", "-")
        assert (status, said) == (2, "fairpool-operator validate: there is no resource in -")

    def test_is_1_where_a_directory_cannot_be_looked_into(self, repository, capsys):
        (repository / "team").chmod(0)
        with minded():
            status, lines = ran(capsys, "-f", ".")
        assert (status, lines[0]) == (1, "team:1: cannot be read: Permission denied")

    def test_is_2_where_the_library_for_cel_is_not_installed(self, repository):
        without = "import sys; sys.modules['cel_expr_python'] = None; from fairpool_operator.main import main; "
        ended = subprocess.run(
            [sys.executable, "-c", without + "sys.exit(main(['validate', '-f', '.']))"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 2
        assert (
            ended.stderr
            == "fairpool-operator validate: this needs a library for CEL: pip install '.[validate]' in a checkout\n"
        )

    @pytest.mark.parametrize(("output", "why"), [("/dev/full", "No space left on device"), ("a pipe", "Broken pipe")])
    def test_is_2_where_nobody_reads_it(self, repository, output, why):
        if output == "a pipe":
            reading, writing = os.pipe()
            os.close(reading)
        else:
            writing = os.open(output, os.O_WRONLY)
        code = "import sys; from fairpool_operator.main import main; sys.exit(main(['validate', '-f', '.']))"
        try:
            ended = subprocess.run(
                [sys.executable, "-c", code], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
            )
        finally:
            os.close(writing)
        said = f"fairpool-operator validate: what was found cannot be printed: {why}\n"
        assert (ended.returncode, ended.stderr) == (2, said)

    def test_comes_soon_and_without_what_only_the_operator_needs(self, repository):
        code = (
            "import sys; from fairpool_operator.main import main; status = main(['validate', '-f', '.']); "
            "print({'kopf', 'kubernetes', 'fastapi', 'aiohttp'} & sys.modules.keys()); sys.exit(status)"
        )
        began = time.monotonic()
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stdout.splitlines()[-1]) == (1, "set()")
        assert time.monotonic() - began < 6  # three times what is promised


class TestAnOption:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["-f", ""], "the path is empty: is a variable unset?"),
            (["-f", ".", "-n", ""], "no namespace can be called '': is a variable unset?"),
            (["-f", ".", "-n", "Team_A"], "no namespace can be called 'Team_A': is a variable unset?"),
        ],
    )
    def test_that_means_nothing_ends_it_with_2(self, capsys, arguments, said):
        with pytest.raises(SystemExit) as ended:
            main(["validate", *arguments])
        assert ended.value.code == 2
        assert said in capsys.readouterr().err
