"""`make bench-counts`: what costs 8 % more is told from what costs the same, whoever else uses the machine."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from fairpool_lab.bench import backlog, counts
from fairpool_lab.bench.counts import BUILD, REQUEST, TOLERANCE, decision, of_decisions, of_requests, worse
from fairpool_lab.errors import FileInvalid, MachineLacks

HERE = Path(__file__).parent
FEWEST, *_, MOST = map(decision, backlog.TENANTS)
GOOD = {REQUEST: 600_000.0, FEWEST: 14_000.0, MOST: 19_000.0}

counted = pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")


class TestWhatIsWorse:
    def test_the_same_and_a_little_more_are_not(self):
        assert worse(GOOD, GOOD) == []
        assert worse(GOOD | {REQUEST: GOOD[REQUEST] * 1.04}, GOOD) == []

    def test_a_tenth_more_is_and_both_figures_are_told(self):
        (line,) = worse(GOOD | {REQUEST: GOOD[REQUEST] * 1.1}, GOOD)
        assert line == "a request: 660,000 instructions, and 600,000 were recorded"

    def test_growth_beyond_its_bound_is_even_where_nothing_was_recorded(self):
        (line,) = worse(GOOD | {MOST: 9 * GOOD[FEWEST]}, {})
        assert line == "a decision, 100,000 tenants backlogged: 9.0 times that with the fewest"


class TestTheRecord:
    def test_is_of_each_build_and_of_all_that_is_counted(self):
        for recorded in counts.read().values():
            assert recorded.keys() == {REQUEST, *map(decision, backlog.TENANTS)}

    def test_of_this_build_is_written_anew_and_others_stay(self, tmp_path):
        path = tmp_path / "counted.json"
        path.write_text('{"another": {"a request": 1}}', encoding="utf-8")
        counts.record(GOOD, path)
        assert counts.read(path) == {"another": {"a request": 1}, BUILD: GOOD}

    def test_that_is_none_is_named(self, tmp_path):
        with pytest.raises(FileInvalid, match=r"none\.json: is no record of counts"):
            counts.read(tmp_path / "none.json")


class TestTheCommand:
    @pytest.fixture
    def found(self, monkeypatch, tmp_path):
        """What the command counts, as long as it is not told otherwise: exactly what is recorded."""
        found = dict(GOOD)

        async def counted(_):
            return found

        monkeypatch.setattr(counts, "counted", counted)
        record = tmp_path / "counted.json"
        record.write_text("{}", encoding="utf-8")
        monkeypatch.setattr(counts.read, "__defaults__", (record,))
        monkeypatch.setattr(counts.record, "__defaults__", (record,))
        return found

    def test_passes_with_what_was_recorded(self, found, capsys):
        assert counts.main(["--record"]) == counts.main([]) == 0
        assert "1.000" in capsys.readouterr().out

    def test_fails_with_more_and_says_what_to_do(self, found, capsys):
        counts.main(["--record"])
        found[REQUEST] *= 1.1
        assert counts.main([]) == 1
        said = " ".join(capsys.readouterr().out.split())
        assert "a request: 660,000 instructions, and 600,000 were recorded" in said
        assert "RECORD=1" in said

    def test_says_so_where_nothing_was_recorded_for_this_build(self, found, capsys):
        assert counts.main([]) == 0
        assert f"Nothing was recorded for {BUILD}" in capsys.readouterr().out

    def test_names_what_the_machine_lacks(self, monkeypatch, capsys):
        async def uncounted(_):
            raise MachineLacks("there is no valgrind: apt-get install valgrind")

        monkeypatch.setattr(counts, "counted", uncounted)
        assert counts.main([]) == 2
        assert "apt-get install valgrind" in capsys.readouterr().out


@counted
class TestCounting:
    async def test_a_body_that_is_read_once_more_is_seen(self, tmp_path):
        plain, wasteful = await both(of_requests, tmp_path, "wasteful_gateway.py")
        assert wasteful[REQUEST] > TOLERANCE * plain[REQUEST]

    async def test_one_more_heap_in_a_decision_is_seen_and_nothing_in_the_same_decision(self, tmp_path):
        async def of_few(directory, *program):
            return await of_decisions(directory, *program, sizes=[100])

        plain, wasteful = await both(of_few, tmp_path, "wasteful_scheduler.py")
        assert wasteful[FEWEST] > TOLERANCE * plain[FEWEST]
        assert await of_few(tmp_path / "again") == pytest.approx(plain, rel=0.01)


async def both(of, directory, script):
    places = [directory / name for name in ("plain", "wasteful", "again")]
    for place in places:
        place.mkdir()
    return await asyncio.gather(of(places[0]), of(places[1], [str(HERE / script)]))
