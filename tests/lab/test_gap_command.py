"""`fairpool lab gap FILE`: the verdict in words and in the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import lab_pool

from fairpool_gateway.sfq import Q, Scheduler
from fairpool_lab import traces
from fairpool_lab.cli import main
from fairpool_lab.policies.arrival_order import ArrivalOrder


@pytest.fixture(scope="module")
def logs(tmp_path_factory) -> dict[str, Path]:
    trace = traces.busiest(traces.read(traces.EXCERPT), 120)
    weights = traces.weights(trace)
    found = {}
    for name, ordering in (("fair", Scheduler), ("arrival", ArrivalOrder)):
        found[name] = tmp_path_factory.mktemp("logs") / f"{name}.jsonl"
        found[name].write_bytes(b"".join(lab_pool.run(trace, weights=weights, ordering=ordering)))
    return found


def test_a_fair_run_is_within_the_bound(logs, capsys):
    assert main(["lab", "gap", str(logs["fair"])]) == 0
    assert "Within the bound over every interval" in capsys.readouterr().out


def test_order_of_arrival_exceeds_it(logs, capsys):
    assert main(["lab", "gap", str(logs["arrival"]), "--pairs", "3"]) == 1
    said = capsys.readouterr().out
    assert "The bound is exceeded by" in said
    assert "\x1b" not in said


def test_the_worst_gap_is_told_in_units_and_in_tokens_per_weight(logs, capsys):
    main(["lab", "gap", str(logs["arrival"]), "--json"])
    worst = json.loads(capsys.readouterr().out)["worst"]
    main(["lab", "gap", str(logs["arrival"])])
    said = capsys.readouterr().out
    for units in (worst["gap"], worst["bound"]):
        assert f"{units:,} units" in " ".join(said.split())
        assert f"{units / Q:,.1f}" in said
        assert str(units) in said


def test_json_tells_every_pair(logs, capsys):
    assert main(["lab", "gap", str(logs["fair"]), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["pool"], told["q"], told["within_bound"], told["exceeded"]) == ("miniature", Q, True, 0)
    assert told["worst"] == told["pairs"][0]["greatest"]
    assert all(pair["tightest"]["gap"] <= pair["tightest"]["bound"] for pair in told["pairs"])


def test_a_log_without_competition_is_within_the_bound(tmp_path, capsys):
    path = tmp_path / "quiet.jsonl"
    path.write_bytes(b"".join(lab_pool.run([traces.TraceRequest(0.0, "a", 1, 1)], weights={})))
    assert main(["lab", "gap", str(path)]) == 0
    assert "no tenant was dispatched while another was backlogged" in capsys.readouterr().out


def test_a_bad_file_ends_with_status_2_and_names_file_and_line(logs, tmp_path, capsys):
    path = tmp_path / "cut.jsonl"
    path.write_bytes(logs["fair"].read_bytes()[:1000])
    assert main(["lab", "gap", str(path)]) == 2
    outcome = capsys.readouterr()
    assert outcome.out == ""
    assert outcome.err.startswith(f"fairpool: {path}:")
    assert "cut off" in outcome.err


def test_a_missing_file_ends_with_status_2(tmp_path, capsys):
    assert main(["lab", "gap", str(tmp_path / "none")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_wrong_option_ends_with_status_2(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["lab", "gap"])
    assert ended.value.code == 2
    assert "FILE" in capsys.readouterr().err
