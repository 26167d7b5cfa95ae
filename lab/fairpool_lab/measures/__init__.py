"""Measures of fairness and of speed, each exact, from the events of a decision log: a run's, or a real gateway's."""
