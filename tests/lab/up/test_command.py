"""`fairpool up`, where it cannot start: one line says what to do, and nothing was started."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest
import trustme
from support.processes import descendants
from support.up import certificate, pool, secret, weight, write

from fairpool_lab.cli import main

KEYS = secret(search="key-of-search-51c0")


@pytest.fixture
def refused(tmp_path, capsys):
    """What is printed where these resources and options are refused: standard output, and the one line of errors."""

    def refused(*resources, options=("--simulate", "1")) -> tuple[str, str]:
        write(tmp_path / "all.yaml", *resources)
        assert main(["up", "-f", str(tmp_path), "--port", "0", "--admin-port", "0", *options]) == 2
        assert descendants(os.getpid()) == {}
        said = capsys.readouterr()
        assert said.err.count("\n") == 1
        assert "key-of-search" not in said.out + said.err
        return said.out, said.err

    return refused


def test_files_without_a_pool(refused):
    out, err = refused(weight("search"), KEYS)
    assert "ResolvedRefs=False (PoolNotFound): There is no FairPool default/llama." in out
    assert err.startswith("fairpool: there is no FairPool that can be used in ")


def test_a_certificate_that_does_not_fit_its_key(refused, tmp_path):
    one, other = (certificate(trustme.CA().issue_cert("127.0.0.1"))["stringData"] for _ in range(2))
    pair = {"tls__crt": one["tls.crt"], "tls__key": other["tls.key"]}
    served = pool(gateway={"tls": {"certificateRef": {"name": "pair"}}})
    _, err = refused(served, weight("search"), KEYS, secret("pair", use="tls", **pair))
    place = f"{tmp_path / 'all.yaml'}:1"
    assert err.startswith(f"fairpool: {place}: the certificate that spec.gateway.tls names cannot be used: ")


def test_a_directory_that_is_not_there(tmp_path, capsys):
    assert main(["up", "-f", str(tmp_path / "none"), "--simulate", "1"]) == 2
    assert capsys.readouterr().err == f"fairpool: there is no file or directory {tmp_path / 'none'}\n"


def test_a_pool_that_no_server_would_take_is_told_of_with_its_line(refused, tmp_path):
    out, err = refused(pool(defaultWeight=0), weight("search"), KEYS)
    assert out.startswith(f"{tmp_path / 'all.yaml'}:14: ")
    assert "defaultWeight" in out
    assert err.startswith("fairpool: there is no FairPool that can be used in ")


def test_a_pool_whose_secret_is_not_there_is_told_of_in_the_words_of_its_condition(refused, tmp_path):
    served = pool(gateway={"tls": {"certificateRef": {"name": "pair"}}})
    out, err = refused(served, weight("search"), KEYS)
    place = f"{tmp_path / 'all.yaml'}:16: "
    assert f"  {place}ResolvedRefs=False (SecretNotFound): Secret default/pair is not there" in out
    assert err == "fairpool: no pool can be served as it is: correct what is said above\n"


def test_fields_that_do_not_go_together_are_told_of_as_a_server_does(refused, tmp_path):
    out, _ = refused(pool(queue={"maxBytes": "1Mi", "maxRequestBytes": "2Mi"}), weight("search"), KEYS)
    assert out.startswith(
        f"{tmp_path / 'all.yaml'}:14: FairPool default/llama: spec.queue: Invalid value: maxBytes must"
    )


def test_a_field_that_there_is_not_is_told_of(refused, tmp_path):
    out, _ = refused(pool(), weight("search", wieght=300), KEYS)
    assert out.startswith(f"{tmp_path / 'all.yaml'}:27: TenantWeight default/search: spec.wieght: unknown field\n")


def test_a_pool_that_nobody_could_use(refused):
    out, err = refused(pool(), weight("search"))
    assert "no tenant has a key, so nobody could send a request" in out
    assert "ResolvedRefs=False (SecretNotFound): Key first: Secret default/keys is not there" in out
    assert err == "fairpool: no pool can be served as it is: correct what is said above\n"


def test_no_word_on_where_engines_are(refused):
    _, err = refused(pool(), weight("search"), KEYS, options=())
    assert err.startswith("fairpool: say where engines are: --endpoint URL for each that runs, ")


def test_an_endpoint_that_is_no_url(refused):
    _, err = refused(pool(), weight("search"), KEYS, options=("--endpoint", "gpu-0:8000"))
    assert err.startswith("fairpool: --endpoint: must be http://HOST:PORT or https://HOST:PORT")


def test_an_endpoint_that_could_be_of_either_of_two_pools(refused):
    options = ("--endpoint", "http://127.0.0.1:8000")
    _, err = refused(pool(), pool("mini"), weight("search"), KEYS, options=options)
    assert err.startswith("fairpool: --endpoint: there are several pools, default/llama, default/mini: say whose")


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("-n", "Team_A", "no namespace can be called 'Team_A': is a variable unset?"),
        ("-n", "", "no namespace can be called '': is a variable unset?"),
        ("-f", "", "the path is empty: is a variable unset?"),
        ("--state", "", "the path is empty: is a variable unset?"),
    ],
)
def test_what_comes_of_a_variable_that_is_unset(tmp_path, capsys, option, value, problem):
    with pytest.raises(SystemExit) as ended:
        main(["up", "-f", str(tmp_path / "none"), "--simulate", "1", option, value])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f": {problem}\n")


@pytest.mark.parametrize(("option", "value"), [("--port", "70000"), ("--admin-port", "-1")])
def test_a_port_that_cannot_be(refused, option, value):
    _, err = refused(pool(), weight("search"), KEYS, options=("--simulate", "1", option, value))
    assert err == f"fairpool: {option}: must be a number from 0 to 65000\n"


@pytest.mark.parametrize("seconds", ["-5", "3601"])
def test_an_end_that_takes_no_time_that_there_is(refused, seconds):
    _, err = refused(pool(), weight("search"), KEYS, options=("--simulate", "1", "--drain-seconds", seconds))
    assert err == "fairpool: --drain-seconds: must be a number from 0 to 3600\n"


def test_a_port_that_is_taken(refused):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        _, err = refused(pool(), weight("search"), KEYS, options=("--simulate", "1", "--port", str(port)))
    where = f"127.0.0.1 port {port}: Address already in use"
    assert err == f"fairpool: cannot listen on {where}. Give another with --port; 0: the kernel chooses\n"


def test_a_host_that_there_is_not(refused):
    _, err = refused(pool(), weight("search"), KEYS, options=("--simulate", "1", "--host", "::nowhere"))
    assert err.startswith("fairpool: cannot listen on ::nowhere port 0: ")
    assert "Unknown error" not in err


def test_nothing_that_only_tables_need_has_to_be_installed(tmp_path):
    without = "import sys; sys.modules['rich'] = None; from fairpool_lab.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", without, "up", "-f", str(tmp_path / "none"), "--simulate", "1"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (2, f"fairpool: there is no file or directory {tmp_path / 'none'}\n")


def test_a_place_for_its_files_that_is_none(refused, tmp_path):
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    _, err = refused(pool(), weight("search"), KEYS, options=("--simulate", "1", "--state", str(tmp_path / "taken")))
    assert err.startswith(f"fairpool: {tmp_path / 'taken'} is no directory that can be written to: ")


def test_lines_that_nobody_reads_any_more_end_nothing():
    script = "from fairpool_lab.commands.up import say; say('a'); say('b'); say('c'); raise SystemExit(7)"
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(
            [sys.executable, "-c", script], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writing)
    assert (ran.returncode, ran.stderr) == (7, "")
