"""The process: told by its file and its signals, and telling in its logs what it does but never what it is sent."""

import asyncio
import json
import signal
import socket
import subprocess
import sys

import httpx
import openai
import pytest
from support.config import key_of, pool_document
from support.engine import running_engine
from support.gateway_process import gateway_process, started_gateway
from support.scripted_endpoint import PATIENCE, until

from fairpool_gateway.app.server import address_of, listen
from fairpool_gateway.main import main
from fairpool_lab import decisions
from fairpool_lab.cli import main as lab

SECRET = "the-prompt-that-nobody-else-may-read"
TENANTS = [{"name": "a", "weight": 1}, {"name": "b", "weight": 3}]


@pytest.fixture
def config(tmp_path):
    """Writes a configuration into a file, over what is there; returns its path."""

    def write(*urls, **fields):
        path = tmp_path / "pool.json"
        endpoints = [{"name": f"e{number}", "url": url} for number, url in enumerate(urls or ["http://127.0.0.1:1"])]
        document = pool_document(**{"models": ["sim"], "tenants": TENANTS, "endpoints": endpoints, **fields})
        path.with_suffix(".new").write_text(json.dumps(document))
        path.with_suffix(".new").replace(path)
        return path

    return write


class TestCheck:
    def check(self, path):
        return main(["--config", str(path), "--check"])

    def test_a_good_file_is_said_to_be_good(self, config, capsys):
        path = config()
        assert self.check(path) == 0
        assert capsys.readouterr().out == f"{path}: good. Pool llama, 2 tenants, 1 endpoints.\n"

    def test_each_problem_is_named_with_its_place_in_the_file(self, config, capsys):
        path = config(tenants=[{"name": "a", "weight": 5000}], slots={"perEndpont": 3})
        assert self.check(path) == 2
        said = capsys.readouterr()
        assert not said.out
        first, *problems = said.err.splitlines()
        assert first == f"{path} cannot be used:"
        assert [line.split(": ")[0] for line in problems] == ["  tenants[0].weight", "  slots.perEndpont"]

    def test_a_file_that_is_not_there_is_said_so(self, tmp_path, capsys):
        assert self.check(tmp_path / "none.yaml") == 2
        assert "there is no such file" in capsys.readouterr().err

    def test_the_command_ends_with_that_status(self, config):
        command = [sys.executable, "-m", "fairpool_gateway", "--check", "--config", str(config(pool=3))]
        checked = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert checked.returncode == 2
        assert "\n  pool: " in checked.stderr
        assert "Traceback" not in checked.stderr


class TestStart:
    def start(self, path, *arguments):
        return main(["--config", str(path), "--port", "0", "--admin-port", "0", *arguments])

    def test_a_bad_configuration_is_not_served(self, config):
        assert self.start(config(pool=3)) == 2

    def test_a_port_that_is_taken_is_said_so(self, config, capsys):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            assert self.start(config(), "--port", str(port)) == 1
        said = f"fairpool-gateway: cannot listen on 127.0.0.1 port {port}: Address already in use"
        assert capsys.readouterr().err.startswith(said)

    async def test_on_every_address_answers_over_both_versions_of_ip_and_asks_endpoints_of_both(self, config):
        async with running_engine(host="::1") as six, running_engine() as four:
            path = config(f"http://[::1]:{six.port}", four.url, tenants=[{"name": "a", "weight": 1}])
            async with gateway_process(path, "--host", "::", "--admin-host", "::") as gateway:
                assert gateway.url.startswith("http://[::]:")
                for host in ("127.0.0.1", "[::1]"):
                    gateway.url, gateway.admin_url = (
                        f"http://{host}:{url.rpartition(':')[2]}" for url in (gateway.url, gateway.admin_url)
                    )
                    await ask(gateway, "a", times=2)
                    assert (await seen(gateway.admin_url, "/readyz")).status_code == 200
                assert all([six.tokens(), four.tokens()])

    def test_on_every_address_says_so_as_urls_have_it(self):
        with listen("::", 0) as listening:
            assert address_of(listening) == f"[::]:{listening.getsockname()[1]}"

    def test_on_every_address_is_had_without_ipv6_too(self, monkeypatch):
        monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
        with listen("::", 0) as listening:
            assert listening.family == socket.AF_INET
            socket.create_connection(("127.0.0.1", listening.getsockname()[1]), PATIENCE).close()

    def test_a_decision_log_that_cannot_be_written_is_said_so(self, config, tmp_path, capsys):
        path = tmp_path / "none" / "decisions.jsonl"
        assert self.start(config(), "--decision-log", str(path)) == 1
        assert f"cannot write the decision log {path}: No such file or directory" in capsys.readouterr().err


async def ask(gateway, name, times=1, *, key=None, fault=None):
    """A tenant's question with a secret in it, so many times at once; returns the answers."""
    headers = {} if fault is None else {"x-engine-fault": fault}
    client = openai.AsyncOpenAI(
        base_url=f"{gateway.url}/v1", api_key=key or key_of(name), max_retries=0, default_headers=headers
    )
    question = {"model": "sim", "messages": [{"role": "user", "content": SECRET}], "max_tokens": 20}
    async with client:
        answers = await asyncio.gather(*(client.chat.completions.create(**question) for _ in range(times)))
    return {answer.choices[0].message.content for answer in answers}


async def seen(url, path):
    async with httpx.AsyncClient(base_url=url) as client:
        return await client.get(path)


def weights_in(log):
    """What a decision log that is still being written says of weights."""
    lines = log.read_bytes().splitlines(keepends=True)
    events = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return [(event["tenant"], event["weight"]) for event in events if event["event"] == "weight"]


async def test_edits_of_the_file_are_in_force_soon_and_broken_ones_change_nothing(config, tmp_path):
    log = tmp_path / "decisions.jsonl"
    path = config()
    async with gateway_process(path, "--decision-log", str(log)) as gateway:
        began = asyncio.get_running_loop().time()
        config(tenants=[{"name": "a", "weight": 7}, TENANTS[1]])
        await gateway.says("an edit of .* is in force")
        assert asyncio.get_running_loop().time() - began < 2
        await until(lambda: weights_in(log) == [("a", 7)])

        path.write_text("pool: [")
        await gateway.says("cannot be used, the last good configuration stays in force: .*pool.json")
        ready = await seen(gateway.admin_url, "/readyz")
        assert ready.status_code == 200
        assert ready.json()["config"].startswith("the last good configuration stays in force: ")
        assert "fairpool_config_current 0.0" in (await seen(gateway.admin_url, "/metrics")).text
        models = httpx.Request("GET", f"{gateway.url}/v1/models", headers={"authorization": f"Bearer {key_of('b')}"})
        async with httpx.AsyncClient() as client:
            assert (await client.send(models)).status_code == 200

        config(tenants=[TENANTS[0]])
        await until(lambda: sum("is in force" in line for line in gateway.said) == 2)
        assert "config" not in (await seen(gateway.admin_url, "/readyz")).json()
        async with httpx.AsyncClient() as client:
            assert (await client.send(models)).status_code == 401
        gateway.signal(signal.SIGTERM)
        assert await gateway.ended() == 0


async def test_it_ends_in_order_and_its_decision_log_is_whole_and_holds_no_secret(config, tmp_path):
    log = tmp_path / "decisions.jsonl"
    async with running_engine() as engine:
        path = config(engine.url, slots={"perEndpoint": 2})
        async with gateway_process(path, "--no-in-pod", "--decision-log", str(log)) as gateway:
            answers = await ask(gateway, "a", 15)
            assert all(each == answers for each in await asyncio.gather(ask(gateway, "a", 15), ask(gateway, "b", 15)))
            with pytest.raises(openai.AuthenticationError):
                await ask(gateway, "a", key=f"{SECRET}-key")
            with pytest.raises(openai.APIConnectionError):
                await ask(gateway, "a", fault="truncate")
            last = asyncio.create_task(ask(gateway, "b", fault="slow:30"))
            await engine.until(lambda now: now.running == 1)
            gateway.signal(signal.SIGTERM)
            await gateway.says("draining")
            assert await last == answers
            assert await gateway.ended() == 0
    whole = decisions.read(log)
    kinds = [type(event) for event in whole.events]
    assert kinds.count(decisions.Arrive) == kinds.count(decisions.Dispatch) == kinds.count(decisions.Complete) == 47
    assert lab(["lab", "gap", str(log)]) == 0
    for text in (log.read_text(), "\n".join(gateway.said)):
        assert SECRET not in text
        assert key_of("a") not in text
    assert not [line for line in gateway.said if "Traceback" in line or "Exception" in line]


class TestWhatGoesTogether:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ((), "one of the arguments --config --config-secret is required"),
            (("--config", "f", "--config-secret", "s"), "not allowed with argument --config"),
            (("--config-secret", "s", "--namespace", "n"), "--config-secret and --pool go together"),
            (("--config", "f", "--pool", "p"), "--config-secret and --pool go together"),
            (("--config-secret", "s", "--pool", "p"), "--config-secret needs --namespace"),
            (("--config-secret", "s", "--pool", "p", "--namespace", "n", "--check"), "--check needs --config"),
            (("--config", "f", "--tls-key", "k"), "--tls-certificate and --tls-key go together"),
        ],
    )
    def test_is_told_with_the_command_line(self, arguments, said, capsys):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
        assert said in capsys.readouterr().err

    def test_pods_are_found_only_in_a_namespace_that_is_named(self, config, capsys):
        found = {"selector": {"matchLabels": {"app": "vllm"}}, "targetPorts": [{"number": 8000}]}
        path = config(endpoints=[], discovery=found)
        assert main(["--config", str(path), "--port", "0", "--admin-port", "0"]) == 2
        assert "discovery: pods can be found in a namespace only: name it with --namespace" in capsys.readouterr().err

    def test_a_namespace_needs_a_way_to_its_api_server(self, config, capsys, monkeypatch):
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        assert main(["--config", str(config()), "--port", "0", "--admin-port", "0", "--namespace", "n"]) == 1
        assert "this is no pod, and no --kubeconfig is given" in capsys.readouterr().err


class TestAnOptionThatIsNotKnown:
    NEWER = ("--drain", SECRET, f"--engine-key={SECRET}", "--of-the-next-release", "--http2_streams=5")
    WITH_NEWER_VALUES = (
        "--log-format",
        SECRET,
        f"--drain-seconds={SECRET}",
        "--no-in-pod=5",
        "--log-level",
        "--port=0",
    )

    def test_ends_a_gateway_that_a_person_starts(self, config, capsys):
        with pytest.raises(SystemExit) as ended:
            main(["--config", str(config()), "--check", "--in-pod", "--drain", "5"])
        assert ended.value.code == 2
        assert "unrecognized arguments: --drain 5" in capsys.readouterr().err

    @pytest.mark.parametrize("operators", [(), ("--pool=p", "--namespace=n", "--config-secret=s")])
    def test_is_which_pool_it_serves_and_ends_any_gateway(self, operators, capsys):
        with pytest.raises(SystemExit) as ended:
            main([*operators, "--config"])
        assert ended.value.code == 2
        assert "argument --config: " in capsys.readouterr().err

    def test_nor_its_value_ends_a_gateway_that_a_person_starts(self, config, capsys):
        with pytest.raises(SystemExit) as ended:
            main(["--config", str(config()), "--check", "--log-format", "logfmt"])
        assert ended.value.code == 2
        assert "argument --log-format: invalid choice: 'logfmt'" in capsys.readouterr().err

    async def test_of_a_newer_operator_is_told_without_its_value_and_ends_nothing(self, tmp_path):
        operators = ("--config-secret", "s", "--pool", "p", "--namespace", "n", "--kubeconfig", str(tmp_path / "none"))
        async with started_gateway(*operators, *self.NEWER, *self.WITH_NEWER_VALUES) as gateway:
            assert await gateway.ended() == 1
        of_options, of_values, *_, end = gateway.said
        assert of_options.endswith(
            "WARNING fairpool_gateway.main left out, for this version does not know it:"
            " --drain, --engine-key, --of-the-next-release, --http2_streams"
        )
        assert of_values.endswith(
            "WARNING fairpool_gateway.main left out, for this version does not know its value:"
            " --log-format, --drain-seconds, --in-pod, --log-level"
        )
        assert end.startswith("fairpool-gateway: ")
        assert SECRET not in "".join(gateway.said)
