"""`fairpool lab calibrate FILE`: what is proposed, on what grounds, and what a trace cannot tell."""

from __future__ import annotations

import json

import msgspec
import pytest

from fairpool_lab import traces
from fairpool_lab.cli import main
from fairpool_lab.policies import POLICIES
from fairpool_lab.simulation import Ask, FixedService, Scenario, simulate


@pytest.fixture
def log(tmp_path):
    """The decision log of a server for which a token of an answer is three times the work of one of a prompt."""
    asks = [
        Ask(each.arrival, each.tenant, max(1, each.input_tokens), each.output_tokens)
        for each in traces.busiest(traces.read(traces.EXCERPT), 60)
    ]
    server = Scenario(lambda: FixedService(1500.0, lambda used: used.input + 3 * used.output), asks, slots=1)
    run = simulate(server, POLICIES["sfq"].factory)
    path = tmp_path / "decisions.jsonl"
    lines = (run.log.header, *run.log.events)
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return str(path)


def test_a_decision_log_tells_the_weights(log, capsys):
    assert main(["lab", "calibrate", log, "--engine", "fixed:1500", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["input_weight"], told["output_weight"]) == (1, 3)
    assert told["rates"]["explained"] == pytest.approx(1)
    assert told["rates"]["input"] == pytest.approx(1 / 1500)


def test_the_estimators_are_tried_on_it(log, capsys):
    assert main(["lab", "calibrate", log, "--engine", "fixed:1500", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    tried = {each["estimator"]: each for each in told["estimators"]}
    assert tried["oracle"]["error"] == tried["oracle"]["bias"] == 0
    assert tried["TenantAverage"]["error"] > 0
    assert told["max_tokens_drawn"]
    assert told["output_estimator"] == "TenantAverage"


def test_people_get_lines_to_paste(log, capsys):
    assert main(["lab", "calibrate", log, "--engine", "fixed:1500"]) == 0
    said = capsys.readouterr().out
    assert "cost: {inputWeight: 1, outputWeight: 3, outputEstimator: TenantAverage}" in said
    assert "explains 100% of how the times differ" in said
    assert "MaxTokensRatio is tried with limits of our own, and so not proposed." in said


def test_where_limits_are_told_the_ratio_may_be_proposed(tmp_path, capsys):
    path = tmp_path / "trace.csv"
    rows = [f"{n * 0.05:.2f},{'ab'[n % 2]},20,{8 * (1 + n * 7 % 50)},{16 * (1 + n * 7 % 50)}" for n in range(300)]
    path.write_text("\n".join(["arrival_s,tenant,input_tokens,output_tokens,max_tokens", *rows]), encoding="utf-8")
    assert main(["lab", "calibrate", str(path), "--engine", "fixed:3000", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    tried = {each["estimator"]: each for each in told["estimators"]}
    assert tried["MaxTokensRatio"]["error"] < 0.1 < tried["TenantAverage"]["error"]
    assert not told["max_tokens_drawn"]
    assert (told["rates"], told["input_weight"], told["output_weight"]) == (None, 1, 2)


def test_a_trace_without_times_says_so(capsys):
    assert main(["lab", "calibrate", str(traces.EXCERPT), "--engine", "fixed:1400"]) == 0
    assert "This trace tells no times" in capsys.readouterr().out


def test_a_file_that_is_no_trace_is_named(tmp_path, capsys):
    path = tmp_path / "nothing.csv"
    path.write_text("", encoding="utf-8")
    assert main(["lab", "calibrate", str(path)]) == 2
    assert f"{path}: " in capsys.readouterr().err
