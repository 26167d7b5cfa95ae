"""The sample of llama.cpp as its Deployment starts the server, but on a model that is here."""

import re
import subprocess

import httpx
import pytest
from support.llama.build import cached
from support.llama.server import llama_process
from support.manifests import MANIFESTS, container_of, documents, of_kind

SAMPLE = documents(MANIFESTS / "samples" / "llama-cpp.yaml")
ARGUMENTS = container_of(*of_kind(SAMPLE, "Deployment"))["args"]
POOL = of_kind(SAMPLE, "FairPool")[0]["spec"]


@pytest.fixture
def server(binary, model, directory):
    fetched = ARGUMENTS.index("--hf-repo")
    here = [*ARGUMENTS[:fetched], "--model", str(model), *ARGUMENTS[fetched + 2 :], "--port", "0", "--threads", "1"]
    with llama_process((str(cached()), *here), directory) as server:
        yield server


def test_every_option_is_one_of_the_servers(binary):
    told = subprocess.run([cached(), "--help"], capture_output=True, text=True, check=True).stdout
    assert {each for each in ARGUMENTS if each.startswith("-")} <= set(re.findall(r"--[a-z-]+", told))


def test_it_lists_the_pools_model_and_runs_as_many_requests_as_the_pool_sends(server):
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        assert [each["id"] for each in client.get("/v1/models").json()["data"]] == POOL["models"]
        assert len(client.get("/slots").json()) == POOL["slots"]["perEndpoint"]
        assert client.get("/health").status_code == client.get("/metrics").status_code == 200
