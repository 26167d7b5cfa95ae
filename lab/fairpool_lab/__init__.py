"""The laboratory: simulated engines, replays of real traces and the measures of fairness. Not in the image."""
