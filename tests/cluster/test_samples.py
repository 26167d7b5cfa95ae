"""The samples, as people apply them."""

from pathlib import Path

import pytest

SAMPLES = sorted((Path(__file__).parents[2] / "manifests" / "samples").glob("*.yaml"))


@pytest.mark.usefixtures("crds")
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
async def test_a_sample_can_be_applied_and_applied_again(kubectl, sample):
    assert "created" in await kubectl("apply", "-f", str(sample))
    again = await kubectl("apply", "-f", str(sample))
    assert {line.split()[-1] for line in again.splitlines()} == {"unchanged"}
