"""Durations, sizes and instants are written with their units or time zones, and read back as what they were."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from fairpool_gateway.config.quantities import (
    format_duration,
    format_instant,
    format_size,
    parse_duration,
    parse_instant,
    parse_size,
)

milliseconds = st.integers(1, 24 * 3_600_000)
sizes = st.integers(1, 1 << 40) | st.integers(1, 1024).map(lambda number: number << 30)


class TestDurations:
    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("500ms", 0.5),
            ("45s", 45),
            ("10m", 600),
            ("1h", 3600),
            ("1m30s", 90),
            ("24h", 86400),
            ("1h1m1s1ms", 3661.001),
        ],
    )
    def test_are_numbers_with_units(self, text, seconds):
        assert parse_duration(text) == seconds

    @pytest.mark.parametrize(
        "text", ["", "s", "1.5s", "-1s", "45", "45 s", "1d", "100000s", "1s\n", "1s1s1s1s1s", "٤s"]
    )
    def test_in_another_form_are_refused_with_examples(self, text):
        with pytest.raises(ValueError, match="must be a duration such as 500ms, 45s, 10m or 1m30s, not "):
            parse_duration(text)

    @pytest.mark.parametrize("number", [45, 0.5, 0, -1])
    def test_without_a_unit_are_refused_for_they_could_mean_anything(self, number):
        with pytest.raises(ValueError, match=f"has no unit: write {number}s if you mean seconds"):
            parse_duration(number)

    @pytest.mark.parametrize("text", ["0s", "0h0m", "25h", "24h1ms"])
    def test_have_bounds(self, text):
        with pytest.raises(ValueError, match=f"must be 1ms to 24h, not {text}"):
            parse_duration(text)

    @given(milliseconds)
    def test_are_read_back_as_they_were_written(self, ms):
        assert parse_duration(format_duration(ms / 1000)) == ms / 1000

    def test_that_comparison_catches_a_writer_that_rounds(self):
        assert find(milliseconds, lambda ms: parse_duration(f"{-(-ms // 1000)}s") != ms / 1000) == 1

    @pytest.mark.parametrize(("seconds", "text"), [(45.0, "45s"), (90.0, "1m30s"), (0.5, "500ms"), (86400.0, "24h")])
    def test_are_written_in_the_largest_units(self, seconds, text):
        assert format_duration(seconds) == text


class TestSizes:
    @pytest.mark.parametrize(
        ("value", "size"),
        [(65536, 65536), ("65536", 65536), ("512Ki", 512 << 10), ("32Mi", 32 << 20), ("1G", 10**9), ("2k", 2000)],
    )
    def test_are_bytes_with_or_without_a_suffix(self, value, size):
        assert parse_size(value) == size

    @pytest.mark.parametrize(
        "value", ["", "Mi", "1.5Gi", "32MB", "32mi", "1K", "32 Mi", "-1", "1e6", 1.5, None, True, []]
    )
    def test_in_another_form_are_refused_with_examples(self, value):
        with pytest.raises(ValueError, match="must be a size such as 65536, 512Ki, 32Mi or 1G, not "):
            parse_size(value)

    @pytest.mark.parametrize("value", [0, -1, "0Mi", "2Ti", 10**30])
    def test_have_bounds(self, value):
        with pytest.raises(ValueError, match="must be 1 to 1Ti, not "):
            parse_size(value)

    @given(sizes)
    def test_are_read_back_as_they_were_written(self, size):
        assert parse_size(format_size(size)) == size

    def test_that_comparison_catches_a_writer_that_rounds(self):
        assert find(sizes, lambda size: parse_size(f"{max(1, size >> 10)}Ki") != size) == 1

    @pytest.mark.parametrize(("size", "text"), [(32 << 20, "32Mi"), (10**9, "1G"), (1025, "1025"), (1 << 40, "1Ti")])
    def test_are_written_as_short_as_can_be(self, size, text):
        assert format_size(size) == text


MIDNIGHT = datetime(2027, 1, 1, tzinfo=UTC)
moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001 - by timezones


class TestInstants:
    @pytest.mark.parametrize(
        ("text", "instant"),
        [
            ("2027-01-01T00:00:00Z", MIDNIGHT),
            ("2027-01-01t00:00:00z", MIDNIGHT),
            ("2027-01-01 00:00:00Z", MIDNIGHT),
            ("2027-01-01T02:00:00+02:00", MIDNIGHT),
            ("2026-12-31T18:30:00-05:30", MIDNIGHT),
            ("2027-01-01T00:00:00.5Z", MIDNIGHT + timedelta(milliseconds=500)),
            ("2027-01-01T00:00:00.123456789Z", MIDNIGHT + timedelta(microseconds=123456)),
        ],
    )
    def test_mean_the_same_moment_in_whatever_time_zone_they_are_written(self, text, instant):
        assert parse_instant(text) == instant

    @given(moments)
    def test_are_read_back_as_they_were_written(self, moment):
        assert parse_instant(format_instant(moment)) == moment

    def test_that_comparison_catches_a_writer_that_drops_fractions(self):
        assert find(moments, lambda moment: parse_instant(f"{moment:%Y-%m-%dT%H:%M:%SZ}".zfill(20)) != moment)

    def test_are_written_in_utc(self):
        assert format_instant(parse_instant("2027-01-01T02:00:00+02:00")) == "2027-01-01T00:00:00Z"
