"""In a pod the API server, its authority and the token are where a kubelet puts them."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from kubernetes.aio.config import incluster_config

from fairpool_gateway.cluster import Resource
from fairpool_gateway.cluster.client import connect
from fairpool_gateway.discovery import Pod
from fairpool_gateway.errors import ClusterError


@pytest.fixture
async def token(account, tmp_path, monkeypatch):
    """The file of the pod's token, beside all else that a pod has."""
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]
    access = await account("gateway", rules=rules)
    files = {"SERVICE_TOKEN_FILENAME": access.token.encode(), "SERVICE_CERT_FILENAME": access.authority}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        monkeypatch.setattr(incluster_config, name, str(tmp_path / name))
    url = urlsplit(access.url)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", url.hostname)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(url.port))
    return Path(tmp_path / "SERVICE_TOKEN_FILENAME")


async def test_they_are_found_and_a_token_that_is_replaced_is_used(pods, namespace, token):
    await pods.add("a")
    good = token.read_text()
    token.write_text("no token at all")
    source = Resource(f"/api/v1/namespaces/{namespace}/pods", {}, Pod)
    cluster = await connect(None)
    try:
        with pytest.raises(ClusterError, match=r"\(401\)"):
            await cluster.source(source).list()
        token.write_text(good)
        _let_a_minute_pass(cluster)
        listed, _ = await cluster.source(source).list()
        assert [pod.metadata.name for pod in listed] == ["a"]
    finally:
        await cluster.aclose()


def _let_a_minute_pass(cluster):
    """The library reads the file again once a minute has passed since it did."""
    hook = cluster._client.configuration.refresh_api_key_hook
    loader = next(cell.cell_contents for cell in hook.__closure__)
    loader.token_expires_at -= loader._token_refresh_period * 2
