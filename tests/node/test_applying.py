"""From `kubectl apply` to the first answer, on a node with nothing of the pool on it before."""

import ssl
import time
from dataclasses import replace

import httpx
import trustme
from support.cluster.client import POD
from support.cluster.resources import key_secret
from support.node import engines
from support.node.asking import first_answer, until
from support.node.installation import NAMESPACE, OPERATOR
from support.node.load import question


class TestTheOperator:
    async def test_is_told_of_edits_and_does_not_only_look_for_them(self, installed, admin):
        """Its watches stay open: an edit is known at once, not at the next list."""
        pods = await admin.list(POD, NAMESPACE, labelSelector=f"app.kubernetes.io/name={OPERATOR}")
        async with httpx.AsyncClient(trust_env=False) as http:
            for pod in pods:
                said = (await http.get(f"http://{pod['status']['podIP']}:8081/metrics")).text
                assert "fairpool_operator_watch_restarts_total 0.0" in said


class TestAPool:
    async def test_that_is_applied_answers_its_tenants_through_its_service(self, pool, tell):
        began = time.monotonic()
        await pool.apply(pool.documents(2))
        url = await pool.url()
        for key in pool.keys.values():
            assert await first_answer(url, key)
        tell(f"from kubectl apply (engines too) to the first answer: {time.monotonic() - began:.1f} s")
        await pool.ready()
        shown = await pool.kubectl.table("fairpool", "sim", "-n", pool.namespace)
        assert shown[0]["READY"] == "True"

    async def test_with_a_certificate_and_with_engines_that_ask_for_a_key_reads_both_in_its_pod(self, pool):
        """They are files of Secrets, read by a user without a name."""
        authority, name = trustme.CA(), f"sim-fairpool.{pool.namespace}.svc"
        leaf = authority.issue_cert(name)
        certificate = {
            "tls.crt": leaf.cert_chain_pems[0].bytes().decode(),
            "tls.key": leaf.private_key_pem.bytes().decode(),
        }
        spec = {
            "endpoints": {
                "selector": {"matchLabels": dict(engines.LABELS)},
                "targetPorts": [{"number": engines.PORT}],
                "credentialRef": {"name": "engine-key"},
            },
            "gateway": {"tls": {"certificateRef": {"name": "certificate"}}},
        }
        pool = replace(pool, spec=spec, keys={})
        await pool.apply(
            [
                key_secret(pool.namespace, "engine-key", "the-engines-key", label="engine"),
                key_secret(pool.namespace, "certificate", "", label="tls", **certificate),
                *pool.documents(1, "--api-key", "the-engines-key"),
            ]
        )
        await pool.ready()
        await pool.reports(endpointsReady=1)
        url = (await pool.url()).replace("http://", "https://")
        trust = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
        headers = {"authorization": f"Bearer {pool.keys['search']}"}

        async def answered():
            asked = {key: value for key, value in question(4).items() if key != "extra_body"}
            sent = await http.post(
                f"{url}/chat/completions", json=asked, headers=headers, extensions={"sni_hostname": name}
            )
            return sent.status_code == 200

        async with httpx.AsyncClient(verify=trust, trust_env=False) as http:
            await until(answered)
