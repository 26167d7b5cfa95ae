"""Dispatchers for tests on fake time: a pool of tenants `a`, `b` and `c` over a few endpoints."""

from support.config import pool_config

from fairpool_gateway.dispatcher import Dispatcher, Grant
from fairpool_gateway.endpoints import EndpointSpec

TENANTS = ("a", "b", "c", "stranger")
WEIGHTS = {"a": 1, "b": 2, "c": 1000}


def spec(number, slots=2):
    return EndpointSpec(f"e{number}", "127.0.0.1", 9000 + number, slots)


def config(weights=None, *, suspended=(), suspend=False, **queue):
    weights = WEIGHTS if weights is None else weights
    return pool_config(
        tenants=[{"name": name, "weight": weight, "suspend": name in suspended} for name, weight in weights.items()],
        suspend=suspend,
        queue=queue,
    )


def dispatcher(*, endpoints=(), dispatcher_class=Dispatcher, log=None, **queue):
    made = dispatcher_class(config(**queue), log=log)
    made.replace_endpoints(0.0, endpoints)
    return made


def granted(actions):
    return [action.request.id for action in actions if isinstance(action, Grant)]
