"""The gateway with nothing that comes by the clock: what a request costs, and nothing that falls due meanwhile.

All on a request's way is the gateway's own, as `make bench` has it. What is left out is probes, the admin port, and
uvicorn's ten looks a second whether it is to end: for a program that is fifty times slower they come between any two
requests, so that no count would be another's.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import Final

import uvloop

from fairpool_gateway.app.gateway import Gateway
from fairpool_gateway.app.server import address_of, listen, tenant_server
from fairpool_gateway.config import PoolConfig
from fairpool_lab.bench.subjects import TENANTS, pool

SLOTS: Final = 1000


async def serve(endpoint: int) -> None:
    """Serve `TENANTS` tenants in front of an endpoint's port, until the process ends."""
    server = tenant_server(Gateway(PoolConfig.model_validate(pool(endpoint, tenants=TENANTS, slots=SLOTS))))
    server.config.load()
    with listen("127.0.0.1", 0) as port:
        await server.startup([port])
        gc.collect()
        gc.freeze()
        print(f"listening on {address_of(port)}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
