"""Every study is asked for by one command, which says what it takes before anything runs."""

from __future__ import annotations

import pytest

from fairpool_lab import traces
from fairpool_lab.cli import main
from fairpool_lab.studies import STUDIES, Traces, quietly

TOO_MANY_OR_FEW = {Traces.NONE: 1, Traces.ONE: 2, Traces.SOME: 0}


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_more_or_fewer_traces_than_a_study_is_of_are_refused(study, tmp_path, capsys):
    number = TOO_MANY_OR_FEW[study.traces]
    given = ["--trace", *[str(traces.EXCERPT)] * number] if number else []
    assert main(["lab", "study", study.name, "--out", str(tmp_path), *given]) == 2
    assert f"--trace: the study {study.name} is of {study.traces.value}, and {number} are given" in (
        capsys.readouterr().err
    )
    assert list(tmp_path.iterdir()) == []


def test_there_is_no_other(capsys):
    with pytest.raises(SystemExit):
        main(["lab", "study", "everything"])
    assert ", ".join(map(repr, sorted(STUDIES))) in capsys.readouterr().err


def test_who_walks_quietly_goes_through_all_in_order():
    assert list(quietly([3, 1, 2], str)) == [3, 1, 2]
