"""The definitions are found in a checkout, and in what is built from it."""

from __future__ import annotations

import subprocess
import sys
import zipfile

from support.cluster.definitions import ROOT
from support.cluster.definitions import definitions as in_files

from fairpool_operator.definitions import definitions

PRINTED = "import fairpool_operator.definitions as found; print(found.__file__, *found.definitions())"


def test_are_those_of_the_checkout():
    assert list(definitions().values()) == in_files()
    assert list(definitions()) == ["FairPool", "TenantWeight"]


def test_are_in_the_wheel(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    found = subprocess.run(
        [sys.executable, "-c", PRINTED],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "installed")},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert found.startswith(str(tmp_path))
    assert found.split()[1:] == ["FairPool", "TenantWeight"]
