"""`fairpool up` in front of engines that run: with the credential and certificate that Secrets in the files hold."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import openai
from support.certificates import Authority
from support.engine import engine_process
from support.processes import descendants
from support.up import Up, certificate, eventually, pool, secret, up, weight, write

SEARCH, ENGINE = "key-of-search-51c0", "key-of-engine-e0e0"
KEYS = secret(search=SEARCH)


def completion(url: str, authority: Authority | None = None) -> openai.types.chat.ChatCompletion:
    verify = True if authority is None else authority.trusted()
    with (
        httpx.Client(verify=verify) as client,
        openai.OpenAI(base_url=url, api_key=SEARCH, max_retries=0, http_client=client) as tenant,
    ):
        return tenant.chat.completions.create(
            model="sim", max_tokens=5, messages=[{"role": "user", "content": "Hello"}]
        )


def asked_by_pool(authority: Authority | None) -> dict:
    """The pool, whose engines are over TLS and ask for a key; itself over TLS if an authority signs for it."""
    made = pool(gateway={} if authority is None else {"tls": {"certificateRef": {"name": "pair"}}})
    made["spec"]["endpoints"]["credentialRef"] = {"name": "engine"}
    made["spec"]["endpoints"]["tls"] = {"caCertificateRef": {"name": "engine"}, "serverName": "engine.local"}
    return made


@asynccontextmanager
async def over_tls(url: str, context: ssl.SSLContext) -> AsyncIterator[str]:
    """The same engine over TLS."""
    host, port = url.removeprefix("http://").split(":")
    ways: set[asyncio.Task[None]] = set()

    async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65536):
                sink.write(data)
        sink.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(host, int(port))
        ways.update({asyncio.create_task(copy(reader, back)), asyncio.create_task(copy(there, writer))})

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await asyncio.gather(*ways)


async def test_engines_get_their_credential_and_tenants_see_the_certificate(tmp_path):
    authority = Authority(tmp_path)
    files = tmp_path / "files"
    files.mkdir()
    write(files / "pool.yaml", asked_by_pool(authority), weight("search"))
    write(files / "keys.yaml", KEYS, certificate(authority.sign("127.0.0.1")))
    engine = secret("engine", use="engine", api_key=ENGINE, ca__crt=authority.pem.decode())
    write(files / "engine.yaml", engine)
    async with (
        engine_process("--api-key", ENGINE) as process,
        over_tls(process.url, authority.serving()) as url,
    ):
        await asyncio.to_thread(serve_and_edit, files, authority, url, engine)


def serve_and_edit(files: Path, authority: Authority, endpoint: str, engine: dict) -> None:
    with up("-f", files, "--endpoint", endpoint) as running:
        url = running.url()
        assert url.startswith("https://")
        assert completion(url, authority).choices
        assert_nothing_is_told(running)

        so_far = len(running.said)
        (files / "engine.yaml").unlink()
        told = running.says(
            r"pool.yaml:\d+: ResolvedRefs=False \(SecretNotFound\): Secret default/engine", after=so_far
        )
        assert "The last good configuration stays in force, but tenants, keys, " in told.string
        assert completion(url, authority).choices

        so_far = len(running.said)
        write(files / "engine.yaml", engine)
        write(files / "pool.yaml", asked_by_pool(None), weight("search"))
        plain = running.says(r"^Pool default/llama, in \S+: (http://\S+)$", after=so_far)[1]
        assert completion(plain).choices

        directory = Path(running.says(r"^  files +(\S+)$")[1])
        assert not (directory / "tls").exists()
        edit_the_key(files, directory, engine, running)
        assert completion(plain).choices


def edit_the_key(files: Path, directory: Path, engine: dict, running: Up) -> None:
    """Have another key of the Secret: what the gateway reads stays until it reads the other."""

    def there() -> set[str]:
        return {path.name for path in (directory / "engine").iterdir() if not path.name.startswith(".")}

    edited = asked_by_pool(None)
    edited["spec"]["endpoints"]["credentialRef"]["key"] = "next"
    [gateway] = descendants(running.process.pid)
    os.kill(gateway, signal.SIGSTOP)
    so_far = len(running.said)
    write(files / "engine.yaml", {**engine, "stringData": {**engine["stringData"], "next": ENGINE}})
    write(files / "pool.yaml", edited, weight("search", weight=200))
    running.says(r"tenant search +weight +200 ", after=so_far)
    assert there() == {"api-key", "next"}
    os.kill(gateway, signal.SIGCONT)
    eventually(lambda: there() == {"next"})
    assert not [line for line in running.said if "cannot be read" in line]


def assert_nothing_is_told(running: Up) -> None:
    """Neither of the keys is printed, on a command line, or where others can read it."""
    directory = Path(running.says(r"^  files +(\S+)$")[1])
    assert ENGINE not in "\n".join(running.said)
    assert not any(ENGINE in command for command in descendants(running.process.pid).values())
    assert ENGINE not in (directory / "pool.json").read_text()
    credential = Path(json.loads((directory / "pool.json").read_text())["endpointCredential"]["fromFile"])
    assert credential.read_text() == ENGINE
    assert credential.stat().st_mode & 0o777 == 0o600


async def test_an_endpoint_that_is_not_there_is_told_of_and_the_other_serves(tmp_path):
    write(tmp_path / "all.yaml", pool(), weight("search"), KEYS)
    async with engine_process() as gone:
        pass
    async with engine_process() as there:

        def serve() -> None:
            with up("-f", tmp_path, "--endpoint", f"llama={there.url}", "--endpoint", f"llama={gone.url}") as running:
                running.says(r"^default/llama: endpoint endpoint-1@\S+ fails its probe")
                assert completion(running.url()).choices

        await asyncio.to_thread(serve)


def test_resources_can_come_through_the_standard_input(tmp_path):
    engines = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "engines"}}
    path = write(tmp_path / "all.yaml", pool(), engines, weight("search"), KEYS)
    with path.open("rb") as stream, up("-f", "-", "--simulate", "1", stdin=stream) as running:
        running.says("^Ctrl-C ends everything")
        assert running.said[0] == "1 resource of other kinds, which are not looked at"
        assert completion(running.url()).choices


def test_a_pipe_is_read_once_and_not_followed(tmp_path):
    path = write(tmp_path / "all.yaml", pool(), weight("search"), KEYS)
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as stream:
        stream.write(path.read_bytes())
    with os.fdopen(reading, "rb") as stream, up("-f", "/dev/stdin", "--simulate", "1", stdin=stream) as running:
        assert running.says("Ctrl-C ends everything").start() == 0
        assert completion(running.url()).choices
