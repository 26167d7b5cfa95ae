"""Workloads: requests of the size that they say, which tell the endpoint what to do, by options that the load knows."""

from __future__ import annotations

import json
import re

import pytest
from support.load_programs import refused

from fairpool_lab.bench import workloads
from fairpool_lab.bench.workloads import ALL, Kind


@pytest.mark.parametrize("workload", ALL, ids=lambda workload: workload.name)
class TestEach:
    def test_its_requests_have_about_1_kb_and_large_ones_1_mb(self, workload):
        assert 1000 <= len(workload.body(950)) <= 1100
        assert 1 << 20 <= len(workload.body(workloads.LARGE)) <= (1 << 20) + 200

    def test_the_prompt_begins_with_what_the_endpoint_is_told(self, workload):
        request = json.loads(workload.body(950))
        assert request["messages"][0]["content"].startswith(workload.prompt + "fair ")
        assert request.get("stream", False) == (workload.kind is Kind.STREAM) == ("events=" in workload.prompt)

    def test_the_load_knows_its_options_and_has_its_files(self, workload, tmp_path):
        command = workload.command(tmp_path)
        _, usage = refused()
        assert {option for option in command if option.startswith("--")} <= set(re.findall(r"--[a-z-]+", usage))
        assert command[0] in re.search(r"\[(\w+\|\w+\|\w+)\]", usage)[1].split("|")
        keys = (tmp_path / f"{workload.tenants}.keys").read_text().splitlines()
        assert len(set(keys)) == len(keys) == workload.tenants
        assert len(list(tmp_path.glob("*.json"))) == 1 + bool(workload.large)


def test_streams_last_until_all_that_is_watched_is_over():
    for workload in (workloads.STREAMS, workloads.MORE_STREAMS):
        events, rate = (int(number) for number in re.findall(r"=(\d+)", workload.prompt))
        assert events / rate >= workload.warmup + workload.seconds
        assert str(events) in workload.arguments


def test_names_are_told_apart():
    assert len({workload.name for workload in ALL}) == len(ALL)
