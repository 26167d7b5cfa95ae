"""A pool on fake time: the product's dispatcher under any policy, in front of models of inference engines."""

from fairpool_lab.simulation.demand import Ask, Clients, of_trace
from fairpool_lab.simulation.engines import ContinuousBatching, Engine, FixedService
from fairpool_lab.simulation.estimates import ESTIMATORS
from fairpool_lab.simulation.request import End, SimulatedRequest
from fairpool_lab.simulation.run import Run, Service
from fairpool_lab.simulation.scenario import PATIENT, Replace, Reweigh, Scenario
from fairpool_lab.simulation.simulator import simulate

__all__ = [
    "ESTIMATORS",
    "PATIENT",
    "Ask",
    "Clients",
    "ContinuousBatching",
    "End",
    "Engine",
    "FixedService",
    "Replace",
    "Reweigh",
    "Run",
    "Scenario",
    "Service",
    "SimulatedRequest",
    "of_trace",
    "simulate",
]
