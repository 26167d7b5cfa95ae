"""The same events give the same dispatches in every process, whatever its hash seed (§7.3)."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[2]
PROGRAM = """
import sys
from fairpool_gateway.decision_log import DecisionLog
from fairpool_gateway.sfq import Scheduler
from support import sfq_broken
from support.sfq_events import Arrive, Ask, Remove, Reweigh, long_run, price
from support.sfq_history import History

weights = {"b": 300, "c": 1}
kind = getattr(sfq_broken, sys.argv[1]) if len(sys.argv) > 1 else Scheduler
scheduler = kind(price, weights=weights)
log = DecisionLog(sys.stdout.buffer.write, pool="p", weights=weights, default_weight=100)
run = History(scheduler)
for now, event in enumerate(long_run(11, 3000)):
    run.play([event])
    moment = run.moments[-1]
    match moment.event:
        case "arrive":
            log.arrive(now, moment.tenant, scheduler.weight(moment.tenant), str(run.numbers), event.cost)
        case "dispatch":
            log.dispatch(now, moment.decision, str(moment.decision.request.number), moment.v, "e")
        case "remove":
            log.remove(now, moment.tenant, "r")
        case "reset":
            log.reset(now, moment.v)
for meter in scheduler.meters():
    print(meter)
"""


def log_of(seed, *broken):
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(TESTS)}
    ran = subprocess.run([sys.executable, "-c", PROGRAM, *broken], env=environment, capture_output=True, check=True)
    return ran.stdout


def test_two_processes_write_the_same_bytes():
    first = log_of("1")
    assert first.count(b'"dispatch"') > 500
    assert log_of("2") == first


def test_ties_that_go_as_a_set_yields_them_are_caught():
    assert len({log_of(str(seed), "TiesInAnyOrder") for seed in range(1, 4)}) > 1
