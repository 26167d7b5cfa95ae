"""`fairpool up` with real processes on loopback: what a first user does, edits, and how it ends."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import openai
import pytest
import trustme
from support.processes import descendants, held
from support.up import PROMISE, Up, certificate, eventually, pool, secret, up, weight, write

from fairpool_lab.up.state import MARKER, headers

SEARCH, BATCH, MINI = "key-of-search-51c0", "key-of-batch-9f27", "key-of-mini-77aa"
KEYS = secret(search=SEARCH, batch=BATCH, mini=MINI)
OVER_TLS = {"tls": {"certificateRef": {"name": "pair"}}}


class Place:
    """A directory of resources, and the program that serves them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.up: Up

    def write(self, name: str, *resources) -> Path:
        return write(self.directory / f"{name}.yaml", *resources)

    def weights(self) -> dict[str, int | None]:
        shown = httpx.get(f"{self.up.admin_url()}/debug/tenants").json()["tenants"]
        return {each["tenant"]: each.get("weight") for each in shown if each["tenant"]}

    def completion(self, key: str = SEARCH, url: str | None = None, **options):
        client = openai.OpenAI(base_url=url or self.up.url(), api_key=key, max_retries=0)
        asked = {"model": "sim", "max_tokens": 5, "messages": [{"role": "user", "content": "Hello"}], **options}
        return client.chat.completions.create(**asked)

    def knows(self, key: str, url: str) -> bool:
        """Whether a key is somebody's there."""
        with openai.OpenAI(base_url=url, api_key=key, max_retries=0) as client:
            try:
                client.models.list()
            except openai.AuthenticationError:
                return False
        return True


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two pools, one simulated engine each."""
    place = Place(tmp_path_factory.mktemp("resources"))
    place.write("keys", KEYS)
    place.write("llama", pool(), weight("search", weight=300), weight("batch", weight=100))
    place.write("mini", pool("mini"), weight("mini", of="mini"))
    with up("-f", place.directory, "--simulate", "1") as place.up:
        place.up.says(r"Ctrl-C ends everything")
        yield place


class TestServing:
    def test_a_key_from_a_secret_of_the_files_gets_an_answer(self, place):
        assert place.completion().usage.completion_tokens == 5

    def test_tenants_are_shown_with_their_weights_and_shares(self, place):
        said = "\n".join(place.up.said)
        assert re.search(r"tenant search +weight +300 +75\.0%", said)
        assert re.search(r"tenant batch +weight +100 +25\.0%", said)

    def test_each_pool_has_a_gateway_of_its_own(self, place):
        assert place.up.url("default/mini") != place.up.url()
        assert place.completion(MINI, place.up.url("default/mini")).choices
        with pytest.raises(openai.AuthenticationError):
            place.completion(MINI)

    def test_the_program_that_it_prints_runs_as_it_is(self, place):
        begun = place.up.said.index("  from openai import OpenAI")
        program = "\n".join(line.strip() for line in place.up.said[begun : begun + 3])
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
        assert len(ran.stdout.split()) > 3

    def test_the_command_that_it_prints_names_a_file_with_the_tenants_headers(self, place):
        curl = place.up.says(r"curl -sS -H @(\S+) -H 'Content-Type: application/json' (\S+)")
        name, value = Path(curl[1]).read_text().splitlines()[0].split(": ", 1)
        body = place.up.says(r"^ +-d '(.+)'$")[1]
        answer = httpx.post(curl[2], headers={name: value, "Content-Type": "application/json"}, content=body)
        assert answer.status_code == 200

    def test_no_key_is_printed_or_on_a_command_line_and_nobody_else_can_read_the_files(self, place):
        children = descendants(place.up.process.pid)
        assert len(children) == 4
        for key in (SEARCH, BATCH, MINI):
            assert key not in "\n".join(place.up.said)
            assert not any(key in command for command in children.values())
        directory = Path(place.up.says(r"^  files +(\S+)$")[1])
        assert directory.parent.stat().st_mode & 0o777 == 0o700
        assert directory.stat().st_mode & 0o777 == 0o700
        config = directory / "pool.json"
        assert config.stat().st_mode & 0o777 == 0o600
        assert SEARCH not in config.read_text()
        assert {path.stat().st_mode & 0o777 for path in (directory / "keys").iterdir()} == {0o600}


class TestEdits:
    def test_a_weight_is_in_force_within_a_second(self, place):
        place.write("llama", pool(), weight("search", weight=500), weight("batch", weight=100))
        eventually(lambda: place.weights()["search"] == 500, within=3 * PROMISE)
        place.up.says(r"tenant search +weight +500 +83\.3%")

    def test_what_is_invalid_is_told_with_file_and_line_and_changes_nothing(self, place):
        so_far = len(place.up.said)
        file = place.write("llama", pool(), weight("search", weight=5000), weight("batch", weight=200))
        line = 1 + file.read_text().splitlines().index("  weight: 5000")
        told = place.up.says(rf"^{re.escape(str(file))}:{line}: .*weight.*", after=so_far)
        assert "last good edition stays in force" in told[0]
        eventually(lambda: place.weights()["batch"] == 200)
        assert place.weights()["search"] == 500

    def test_a_file_that_is_no_yaml_takes_nothing_away(self, place):
        so_far = len(place.up.said)
        file = place.directory / "llama.yaml"
        file.write_text("kind: FairPool\nspec: {\n")
        place.up.says(rf"^{re.escape(str(file))}:\d+: .*YAML", after=so_far)
        assert place.completion().choices
        place.write("llama", pool(), weight("search", weight=300), weight("batch", weight=100))
        eventually(lambda: place.weights()["search"] == 300)

    def test_a_pool_whose_secret_is_in_no_file_is_told_and_served_as_before(self, place):
        so_far = len(place.up.said)
        over_tls = pool(gateway={"tls": {"certificateRef": {"name": "pair"}}})
        place.write("llama", over_tls, weight("search", weight=300), weight("batch", weight=100))
        told = place.up.says(r"ResolvedRefs=False \(SecretNotFound\): Secret default/pair .*", after=so_far)
        assert "The last good configuration stays in force, but tenants, keys, " in told[0]
        assert place.completion().choices
        place.write("llama", pool(), weight("search", weight=350), weight("batch", weight=100))
        eventually(lambda: place.weights()["search"] == 350)

    def test_a_directory_that_is_moved_away_for_a_while_takes_nothing_away(self, place):
        so_far = len(place.up.said)
        away = place.directory.rename(place.directory.with_name("away"))
        place.up.says(r"^there is no file or directory \S+: everything stays as it is$", after=so_far)
        assert place.completion().choices
        away.rename(place.directory)
        place.write("llama", pool(), weight("search", weight=400), weight("batch", weight=100))
        eventually(lambda: place.weights()["search"] == 400)

    def test_directories_that_come_and_go_meanwhile_are_no_fault(self, place):
        for _ in range(100):
            teams = [place.directory / f"team-{number}" / "pools" for number in range(20)]
            for team in teams:
                team.mkdir(parents=True)
            for team in teams:
                shutil.rmtree(team.parent)
        place.write("llama", pool(), weight("search", weight=600), weight("batch", weight=100))
        eventually(lambda: place.weights()["search"] == 600)

    def test_a_tenant_of_a_pool_that_there_is_not_is_told_so(self, place):
        so_far = len(place.up.said)
        place.write("lost", weight("lost", of="lama"))
        place.up.says(r"^Pool default/lama, in none of the files: not served$", after=so_far)
        place.up.says(
            r"lost.yaml:6: ResolvedRefs=False \(PoolNotFound\): There is no FairPool default/lama", after=so_far
        )
        (place.directory / "lost.yaml").unlink()

    def test_the_end_of_a_key_is_told_of_when_it_comes(self, place):
        so_far = len(place.up.said)
        end = (datetime.now(UTC) + timedelta(seconds=2)).isoformat(timespec="seconds").replace("+00:00", "Z")
        keys = [{"name": "first", "secretKeyRef": {"name": "keys", "key": "mini"}, "notAfter": end}]
        place.write("mini", pool("mini"), weight("mini", of="mini", apiKeys=keys))
        place.up.says(r"ResolvedRefs=False \(KeysEnded\): Every key has ended", after=so_far)
        url = place.up.url("default/mini")
        assert not place.knows(MINI, url)
        place.write("mini", pool("mini"), weight("mini", of="mini"))
        eventually(lambda: place.knows(MINI, url))

    def test_a_tenant_that_is_removed_is_one_no_more(self, place):
        place.write("llama", pool(), weight("search", weight=300))
        eventually(lambda: not place.knows(BATCH, place.up.url()))

    def test_other_models_are_simulated_by_other_engines_and_nothing_else_restarts(self, place):
        gateways = {pid for pid, command in descendants(place.up.process.pid).items() if "fairpool_gateway" in command}
        place.write("llama", pool(models=["large"]), weight("search", weight=300))
        with openai.OpenAI(base_url=place.up.url(), api_key=SEARCH, max_retries=0) as client:
            eventually(lambda: [model.id for model in client.models.list()] == ["large"])
        assert place.completion(model="large").choices
        assert gateways <= descendants(place.up.process.pid).keys()

    def test_a_pool_comes_and_goes_and_the_others_stay(self, place):
        so_far = len(place.up.said)
        place.write("third", pool("third"), weight("batch", of="third"))
        url = place.up.says(r"^Pool default/third, in \S+: (\S+)$", after=so_far)[1]
        assert place.completion(BATCH, url).choices
        third = {pid: command for pid, command in descendants(place.up.process.pid).items() if "third" in command}
        assert len(third) == 1
        with held(third) as staying:
            (place.directory / "third.yaml").unlink()
            place.up.says(r"^Pool default/third is gone", after=so_far)
            assert staying() == []
        keys = Path(place.up.says(r"^  files +(\S+third)$", after=so_far)[1]) / "keys"
        eventually(lambda: not keys.exists())
        assert place.completion(MINI, place.up.url("default/mini")).choices

    def test_a_pool_that_goes_and_comes_back_finishes_what_it_runs_and_delays_no_edit_of_another(self, place):
        so_far = len(place.up.said)
        third = pool("third"), weight("batch", of="third")
        place.write("third", *third)
        url = place.up.says(r"^Pool default/third, in \S+: (http\S+)$", after=so_far)[1]
        stream = place.completion(BATCH, url, max_tokens=16_000, stream=True)
        next(stream)
        (place.directory / "third.yaml").unlink()
        place.up.says(r"^Pool default/third is gone", after=so_far)
        so_far = len(place.up.said)
        place.write("third", *third)
        place.up.says(r"^Pool default/third, in \S+: not served$", after=so_far)
        place.up.says(r"^  what it ran before is being finished first$", after=so_far)
        place.write("llama", pool(models=["large"]), weight("search", weight=250))
        eventually(lambda: place.weights()["search"] == 250)
        next(stream)
        stream.close()
        url = place.up.says(r"^Pool default/third, in \S+: (http\S+)$", after=so_far)[1]
        assert place.completion(BATCH, url).choices
        so_far = len(place.up.said)
        (place.directory / "third.yaml").unlink()
        place.up.says(r"^Pool default/third has ended\.$", after=so_far)

    @pytest.mark.parametrize(
        ("name", "change", "into", "weighs"),
        [
            ("idle", [], "not served$", 260),
            (
                "secure",
                [weight("batch", of="secure"), certificate(trustme.CA().issue_cert("127.0.0.1"))],
                "https:",
                270,
            ),
        ],
    )
    def test_a_pool_finishes_what_it_runs_before_its_change_and_delays_no_edit_of_another(
        self, place, name, change, into, weighs
    ):
        place.write(name, pool(name), weight("batch", of=name))
        url = place.up.url(f"default/{name}")
        stream = place.completion(BATCH, url, max_tokens=16_000, stream=True)
        next(stream)
        so_far = len(place.up.said)
        place.write(name, pool(name, gateway=OVER_TLS if change else {}), *change)
        place.up.says(r"^  what it ran before is being finished first$", after=so_far)
        place.write("llama", pool(models=["large"]), weight("search", weight=weighs))
        eventually(lambda: place.weights()["search"] == weighs)
        next(stream)
        stream.close()
        place.up.says(rf"^Pool default/{name}, in \S+: {into}", after=so_far)
        (place.directory / f"{name}.yaml").unlink()
        place.up.says(rf"^Pool default/{name} has ended\.$", after=so_far)


class TestTheEnd:
    def test_ctrl_c_finishes_what_runs_and_ends_everything(self, tmp_path):
        place = Place(tmp_path)
        place.write("all", pool(), weight("search"), KEYS)
        with up("-f", tmp_path, "--simulate", "2") as place.up:
            stream = place.completion(max_tokens=150, stream=True)
            next(stream)
            files = Path(place.up.says(r"^  files +(\S+)$")[1]).parent
            with held(descendants(place.up.process.pid)) as staying:
                place.up.signal(signal.SIGINT)
                assert [event.choices[0].finish_reason for event in stream][-1] == "length"
                assert place.up.ended() == 130
                assert staying() == []
            assert not files.exists()
            assert place.up.said[-1] == "fairpool: interrupted; every process has ended"

    @pytest.mark.parametrize("gone", [False, True])
    def test_a_second_one_waits_for_nothing_not_even_for_a_pool_that_is_gone(self, tmp_path, gone):
        place = Place(tmp_path)
        place.write("all", pool(), weight("search"), KEYS)
        with up("-f", tmp_path, "--simulate", "1", "--drain-seconds", "600") as place.up:
            stream = place.completion(max_tokens=16_000, stream=True)
            next(stream)
            if gone:
                place.write("all", KEYS)
                place.up.says(r"^Pool default/llama is gone; what it runs is being finished\.$")
            place.up.signal(signal.SIGTERM)
            place.up.says(r"^Finishing what waits and runs, for 600 s at most")
            place.up.signal(signal.SIGTERM)
            assert place.up.ended() == 143
            ends = []
            with contextlib.suppress(openai.APIError, httpx.HTTPError):
                ends += [event.choices[0].finish_reason for event in stream]
            assert "length" not in ends

    @pytest.mark.parametrize("program", ["fairpool_gateway", "fairpool_lab.engine"])
    def test_what_ends_by_itself_ends_it_and_is_named(self, tmp_path, program):
        write(tmp_path / "all.yaml", pool(), weight("search"), KEYS)
        with up("-f", tmp_path, "--simulate", "1") as running:
            running.url()
            pid = next(pid for pid, command in descendants(running.process.pid).items() if program in command)
            os.kill(pid, signal.SIGKILL)
            assert running.ended() == 1
            called = {"fairpool_gateway": "the gateway", "fairpool_lab.engine": "simulated engine 0"}[program]
            running.says(rf"^fairpool: {called} of default/llama ended by SIGKILL while it was needed")

    def test_what_is_kept_at_the_end_has_no_key_in_it(self, tmp_path):
        write(tmp_path / "all.yaml", pool(), weight("search"), KEYS)
        kept = tmp_path / "kept"
        with up("-f", tmp_path / "all.yaml", "--simulate", "1", "--state", kept) as running:
            running.url()
            assert SEARCH in (kept / "default.llama" / headers("search")).read_text()
        names = {str(path.relative_to(kept)) for path in kept.rglob("*") if path.is_file()}
        assert names == {f"default.llama/{name}" for name in (MARKER, "pool.json", "gateway.log", "engine-0.log")}
        assert not any(SEARCH in (kept / name).read_text() for name in names)
