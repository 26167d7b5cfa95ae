"""A gateway behind a certificate of files, for tests: what the files hold, and whoever connects to it once."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from support.certificates import Authority
from support.gateway import RunningGateway, running_gateway
from support.scripted_endpoint import PATIENCE
from support.tenant import pool_over

from fairpool_gateway.app.certificate import Certificate

HOST: Final = "127.0.0.1"


def pair(authority: Authority, *names: str) -> dict[str, bytes]:
    """What a certificate's files hold."""
    made = authority.sign(*(names or (HOST,)))
    return {
        "tls.crt": b"".join(each.bytes() for each in made.cert_chain_pems),
        "tls.key": made.private_key_pem.bytes(),
    }


def of(volume: Path) -> Certificate:
    """The certificate in a directory's files."""
    return Certificate(volume / "tls.crt", volume / "tls.key")


@contextlib.asynccontextmanager
async def secured_gateway(certificate: Certificate, *endpoints: Any, **fields: Any) -> AsyncIterator[RunningGateway]:
    """A gateway over endpoints that has it."""
    async with running_gateway(pool_over(*endpoints, **fields), certificate=certificate) as gateway:
        yield gateway


async def handshake(
    gateway: RunningGateway, context: ssl.SSLContext, name: str | None = None
) -> tuple[ssl.SSLObject, bytes]:
    """Connect once; returns what was agreed on, and the gateway's certificate."""
    async with asyncio.timeout(PATIENCE):
        _, writer = await asyncio.open_connection(HOST, gateway.port, ssl=context, server_hostname=name or HOST)
    agreed = writer.get_extra_info("ssl_object")
    writer.transport.abort()
    return agreed, agreed.getpeercert(binary_form=True)
