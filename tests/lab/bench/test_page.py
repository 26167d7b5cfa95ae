"""`docs/performance.md`: what is measured is written anew, what people wrote stays, and the charts can be read."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from support.bench import measured, results, seen

from fairpool_lab.bench import charts, page
from fairpool_lab.bench.results import Spread
from fairpool_lab.errors import FileInvalid

SVG = "{http://www.w3.org/2000/svg}"


def run(per_second=1000.0):
    found = results(
        [
            measured("nginx", "a-64", number, seen(per_second=per_second * number, p50=800.0, p99=3000.0))
            for number in (1, 2, 3)
        ]
        + [measured("fairpool", "c-200", 1, seen(events=20_000, lateness=700.0, errors={"cut": 1}), cpu=0.3)]
    )
    found.left_out["envoy"] = "there is no package\nfor this machine"
    return found


class TestThePage:
    def test_it_has_each_figure_its_range_and_what_was_left_out(self, tmp_path):
        page.write(run(), tmp_path / "performance.md")
        text = (tmp_path / "performance.md").read_text()
        row = ["2,000 (1,000 to 3,000)", "0.800 (0.800 to 0.800)", "3.00 (3.00 to 3.00)", "5,000 (5,000 to 5,000)"]
        assert f"| nginx | {' | '.join(row)} | 1,024 " in text
        assert "| fairpool | 1.50 (1.50 to 1.50) | 0.700 (0.700 to 0.700) | 0.700 (0.700 to 0.700) |" in text
        assert "envoy is left out: there is no package for this machine" in text
        assert "in 3 interleaved rounds" in text
        assert "| 0.700 (0.700 to 0.700) | met |" in text
        assert "| not measured | |" in text

    def test_it_shows_the_charts_that_it_drew_and_no_other(self, tmp_path):
        page.write(run(), tmp_path / "performance.md")
        text = (tmp_path / "performance.md").read_text()
        drawn = sorted(path.name for path in (tmp_path / "performance").iterdir())
        assert drawn == ["events.svg", "lateness.svg", "requests.svg"]
        assert all(f"](performance/{name})" in text for name in drawn)
        assert text.count(".svg)") == len(drawn)

    def test_a_new_run_leaves_what_people_wrote(self, tmp_path):
        path = tmp_path / "performance.md"
        page.write(run(), path)
        path.write_text(path.read_text().replace("# Performance\n", "# Performance\n\nBefore.\n") + "\nAfter.\n")
        page.write(run(7000.0), path)
        text = path.read_text()
        assert text.startswith("# Performance\n\nBefore.\n")
        assert text.endswith("\nAfter.\n")
        assert "14,000" in text
        assert "2,000 (" not in text

    def test_a_page_without_the_marks_is_left_alone(self, tmp_path):
        path = tmp_path / "performance.md"
        path.write_text("# Mine\n")
        with pytest.raises(FileInvalid, match="two marks"):
            page.write(run(), path)
        assert path.read_text() == "# Mine\n"


class TestCharts:
    def test_dots_lie_on_their_lines_in_the_order_of_their_values_and_inside(self):
        dots = [
            charts.Dot("one", Spread(10.0, 5.0, 20.0), ours=False),
            charts.Dot("two", Spread(1_000.0, 900.0, 100_000.0), ours=True),
            charts.Dot("<three>", Spread(0.0, 0.0, 0.5), ours=False),
        ]
        svg = ET.fromstring(charts.chart("Something & more", dots))
        rows = [group for group in svg.iter(f"{SVG}g") if "row" in group.attrib["class"]]
        centres = []
        for row in rows:
            line, circle = row.find(f"{SVG}line"), row.find(f"{SVG}circle")
            low, high, at = float(line.attrib["x1"]), float(line.attrib["x2"]), float(circle.attrib["cx"])
            assert 0 < low <= at <= high < charts.WIDTH
            centres.append(at)
        assert centres[2] < centres[0] < centres[1]
        assert [row.find(f"{SVG}text").text for row in rows] == ["one", "two", "<three>"]
        assert ["ours" in row.attrib["class"] for row in rows] == [False, True, False]
        assert svg.find(f"{SVG}title").text == "Something & more"
        assert "two: 1,000" in svg.find(f"{SVG}desc").text
