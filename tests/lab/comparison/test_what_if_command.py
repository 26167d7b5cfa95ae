"""`fairpool lab what-if`: who gains and who loses by an edit, in the pool's own words and by its own rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairpool_lab.cli import main

POOL = """apiVersion: fairpool.dev/v1alpha1
kind: FairPool
metadata: {name: llama}
spec:
  endpoints:
    selector: {matchLabels: {app: llama}}
    targetPorts: [{number: 8000}]
  slots: {perEndpoint: 1}
  queue: {timeout: 10m}
"""
TENANT = """---
apiVersion: fairpool.dev/v1alpha1
kind: TenantWeight
metadata: {{name: {name}}}
spec:
  poolRef: {{name: llama}}
  weight: {weight}
  apiKeys: [{{name: one, secretKeyRef: {{name: nowhere, key: key}}}}]
{more}"""


def files(path: Path, weights: dict[str, int], *, pool: str = POOL) -> str:
    tenants = "".join(TENANT.format(name=name, weight=weight, more="") for name, weight in weights.items())
    path.write_text(pool + tenants, encoding="utf-8")
    return str(path)


@pytest.fixture
def trace(tmp_path):
    lines = [f"{number * 0.1:.1f},{'ab'[number % 2]},100,50" for number in range(400)]
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(["arrival_s,tenant,input_tokens,output_tokens", *lines]), encoding="utf-8")
    return str(path)


@pytest.fixture
def before(tmp_path):
    return files(tmp_path / "before.yaml", {"a": 100, "b": 100})


def what_if(trace, before, after, *more):
    return main(["lab", "what-if", "-f", before, "--edited", after, "--trace", trace, "--engine", "fixed:500", *more])


class TestWhatBecomesOfTenants:
    def test_who_gets_a_greater_weight_gains_and_the_other_loses(self, tmp_path, trace, before, capsys):
        after = files(tmp_path / "after.yaml", {"a": 300, "b": 100})
        assert what_if(trace, before, after) == 0
        said = capsys.readouterr().out
        assert "Gain: a (+25." in said
        assert "Lose: b (-25." in said
        assert "100 → 300" in said

    def test_the_same_files_change_nothing(self, trace, before, capsys):
        assert what_if(trace, before, before) == 0
        said = capsys.readouterr().out
        assert "Gain: nobody." in said
        assert "Lose: nobody." in said
        assert "→" not in said

    def test_programs_get_both_sides(self, tmp_path, trace, before, capsys):
        after = files(tmp_path / "after.yaml", {"a": 300, "b": 100})
        assert what_if(trace, before, after, "--json") == 0
        told = json.loads(capsys.readouterr().out)
        shares = [{each["tenant"]: each["received_share"] for each in told[side]["tenants"]} for side in
                  ("before", "after")]  # fmt: skip
        assert shares[0]["a"] == pytest.approx(0.5, abs=0.02)
        assert shares[1]["a"] == pytest.approx(0.75, abs=0.02)


class TestThePoolsOwnRules:
    def test_a_tenant_that_is_suspended_is_refused_and_the_other_has_everything(self, tmp_path, trace, before, capsys):
        suspended = TENANT.format(name="a", weight=100, more="  suspend: true\n")
        after = files(tmp_path / "after.yaml", {"b": 100}, pool=POOL + suspended)
        assert what_if(trace, before, after, "--json") == 0
        b, a = json.loads(capsys.readouterr().out)["after"]["tenants"]
        assert (b["tenant"], b["received_share"], b["refused"]) == ("b", 1.0, 0)
        assert (a["tenant"], a["received_share"], a["refused"], a["requests"]) == ("a", 0.0, 200, 200)

    def test_a_shorter_queue_refuses_more(self, tmp_path, trace, before, capsys):
        short = POOL.replace("timeout: 10m", "timeout: 10m, perTenant: {maxRequests: 5}")
        after = files(tmp_path / "after.yaml", {"a": 100, "b": 100}, pool=short)
        assert what_if(trace, before, after, "--json") == 0
        told = json.loads(capsys.readouterr().out)
        refused = [sum(each["refused"] for each in told[side]["tenants"]) for side in ("before", "after")]
        assert refused[0] == 0 < refused[1]

    def test_carry_is_simulated_too(self, tmp_path, trace, before, capsys):
        carrying = POOL + "  cost: {carry: true}\n"
        assert what_if(trace, before, files(tmp_path / "after.yaml", {"a": 100, "b": 100}, pool=carrying)) == 0
        said = capsys.readouterr().out
        assert "costs by TenantAverage with carry" in " ".join(said.split())

    def test_more_slots_are_more_throughput(self, tmp_path, trace, before, capsys):
        after = files(
            tmp_path / "after.yaml", {"a": 100, "b": 100}, pool=POOL.replace("perEndpoint: 1", "perEndpoint: 2")
        )
        assert what_if(trace, before, after, "--json") == 0
        told = json.loads(capsys.readouterr().out)
        assert told["after"]["tokens_per_second"] == pytest.approx(2 * told["before"]["tokens_per_second"], rel=0.05)

    def test_who_is_not_known_is_left_out_and_named(self, tmp_path, trace, before, capsys):
        after = files(tmp_path / "after.yaml", {"a": 100})
        assert what_if(trace, before, after) == 0
        said = capsys.readouterr().out
        assert "It does not know b, whose requests are left out." in said
        assert "Gain: a (+5" in said


class TestMistakes:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "has to hold one FairPool, and holds 0"),
            (POOL + "---\n" + POOL.replace("name: llama", "name: other"), "has to hold one FairPool, and holds 2"),
            (POOL.replace("perEndpoint: 1", "perEndpoint: none"), "after.yaml:8: "),
            (POOL, "no request is of a tenant that pool llama knows, which are nobody"),
        ],
    )
    def test_files_that_are_no_pool_for_this_trace_are_refused(self, tmp_path, trace, before, content, message, capsys):
        path = tmp_path / "after.yaml"
        path.write_text(content, encoding="utf-8")
        assert what_if(trace, before, str(path)) == 2
        assert message in capsys.readouterr().err

    def test_a_file_that_is_not_there_is_named(self, tmp_path, trace, before, capsys):
        assert what_if(trace, before, str(tmp_path / "nowhere")) == 2
        assert "nowhere" in capsys.readouterr().err
