"""The process with a certificate: what it says, what it follows, and that it ends."""

import asyncio
import json
import signal
import ssl

import httpx
import pytest
from support.certificates import Authority
from support.config import key_of, pool_document
from support.engine import running_engine
from support.files import by_swapping
from support.gateway_process import gateway_process

from fairpool_gateway.main import main

QUESTION = {"model": "sim", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 3}


def pair(authority):
    made = authority.sign("127.0.0.1")
    return {"tls.crt": made.cert_chain_pems[0].bytes(), "tls.key": made.private_key_pem.bytes()}


def pool(tmp_path, url):
    path = tmp_path / "pool.json"
    document = pool_document(models=["sim"], tenants=[{"name": "a"}], endpoints=[{"name": "e", "url": url}])
    path.write_text(json.dumps(document))
    return path


async def ask(url, context):
    async with httpx.AsyncClient(base_url=url, verify=context) as client:
        headers = {"authorization": f"Bearer {key_of('a')}"}
        return await client.post("/v1/chat/completions", json=QUESTION, headers=headers)


async def test_tenants_are_served_over_tls_with_the_certificate_that_the_files_hold_now_and_the_admin_port_is_plain(
    tmp_path,
):
    old, new = Authority(tmp_path, "old"), Authority(tmp_path, "new")
    volume = tmp_path / "volume"
    by_swapping(volume, pair(old))
    files = ("--tls-certificate", str(volume / "tls.crt"), "--tls-key", str(volume / "tls.key"))
    async with running_engine() as engine, gateway_process(pool(tmp_path, engine.url), *files) as gateway:
        assert gateway.url.startswith("https://")
        assert gateway.admin_url.startswith("http://")
        assert (await ask(gateway.url, old.trusted())).status_code == 200
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"{gateway.admin_url}/readyz")).json()["status"] == "serving"
        by_swapping(volume, pair(new))
        await gateway.says("the certificate in .* is in force for new connections")
        assert (await ask(gateway.url, new.trusted())).status_code == 200
        gateway.signal(signal.SIGTERM)
        assert await gateway.ended() == 0
        assert not [line for line in gateway.said if " ERROR " in line or " WARNING " in line]


async def test_a_client_that_keeps_its_connection_open_does_not_keep_the_process(tmp_path):
    authority = Authority(tmp_path)
    by_swapping(tmp_path / "volume", pair(authority))
    files = [str(tmp_path / "volume" / name) for name in ("tls.crt", "tls.key")]
    async with gateway_process(
        pool(tmp_path, "http://127.0.0.1:1"), "--tls-certificate", files[0], "--tls-key", files[1], "--no-in-pod"
    ) as gateway:
        host, port = gateway.url.removeprefix("https://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), ssl=authority.trusted())
        gateway.signal(signal.SIGTERM)
        assert await reader.read() == b""
        writer.close()
        assert await gateway.ended() == 0


class TestTheOptions:
    @pytest.mark.parametrize("option", ["--tls-certificate", "--tls-key"])
    def test_go_together(self, tmp_path, capsys, option):
        with pytest.raises(SystemExit) as ended:
            main(["--config", str(tmp_path / "pool.yaml"), option, "file"])
        assert ended.value.code == 2
        assert "--tls-certificate and --tls-key go together" in capsys.readouterr().err

    def test_with_files_that_cannot_be_used_end_it_in_words(self, tmp_path, capsys):
        (tmp_path / "tls.crt").write_text(ssl.DER_cert_to_PEM_cert(b"no certificate"))
        files = ("--tls-certificate", str(tmp_path / "tls.crt"), "--tls-key", str(tmp_path / "tls.key"))
        assert main(["--config", str(pool(tmp_path, "http://127.0.0.1:1")), "--port", "0", *files]) == 1
        told = capsys.readouterr().err
        assert f"fairpool-gateway: {tmp_path / 'tls.key'} cannot be read: No such file or directory" in told
