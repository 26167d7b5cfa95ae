"""Crowds that mean no good, or too much of it: what a gateway has to stand while others are served.

`stage` runs a gateway, an endpoint and a neighbour, each as a process of its own; `scenarios` lists the crowds;
`trial` sends one onto the stage and measures. Tests and `make bench-load` run the same scenarios.
"""
