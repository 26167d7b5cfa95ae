"""`fairpool lab report`: decision logs of gateways as one page."""

from __future__ import annotations

import pytest
from support import lab_pool

from fairpool_lab import traces
from fairpool_lab.cli import main
from fairpool_lab.policies.arrival_order import ArrivalOrder


@pytest.fixture
def logs(tmp_path):
    trace = traces.busiest(traces.read(traces.EXCERPT), 30)
    for name, order in (("before", {"ordering": ArrivalOrder}), ("after", {})):
        lines = lab_pool.run(trace, weights=traces.weights(trace), slots=3, **order)
        (tmp_path / f"{name}.jsonl").write_bytes(b"".join(lines))
    return tmp_path


def test_several_stand_side_by_side(logs, capsys):
    page = logs / "page.html"
    assert main(["lab", "report", str(logs / "before.jsonl"), str(logs / "after.jsonl"), "--html", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "<h1>Decisions in before.jsonl and after.jsonl</h1>" in text
    assert text.count("<h3>before.jsonl</h3>") == text.count("<h3>after.jsonl</h3>") == 5
    assert "pool miniature" in text
    assert ", 3 slots" in text
    assert f"Charts are in {page}." in capsys.readouterr().out


def test_slots_that_were_never_all_taken_are_told(logs):
    page = logs / "page.html"
    assert main(["lab", "report", str(logs / "after.jsonl"), "--slots", "30", "--html", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert ", 30 slots" in text
    assert "<td>10.0%</td>" in text  # Utilisation while somebody waits: all three of them.


def test_a_log_in_which_nothing_happened_yet_has_a_page(logs):
    (logs / "new.jsonl").write_bytes((logs / "after.jsonl").read_bytes().splitlines(keepends=True)[0])
    assert main(["lab", "report", str(logs / "new.jsonl"), "--html", str(logs / "page.html")]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.jsonl"], "none.jsonl: cannot be read: No such file"),
        (["after.jsonl", "--slots", "0"], "--slots: must be positive, not 0"),
    ],
)
def test_what_cannot_be_used_is_said(logs, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(logs)
    assert main(["lab", "report", *arguments, "--html", "page.html"]) == 2
    assert message in capsys.readouterr().err
    assert not (logs / "page.html").exists()
