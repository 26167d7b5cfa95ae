"""Benchmarks: ratios between things measured in one run; the seconds they print are this machine's."""
