"""`fairpool-operator run` where it cannot: told in one sentence, with nothing of what is in a file."""

import json

import pytest

from fairpool_operator.main import main

TOKEN = "t0ken-that-nobody-may-see"
UNUSABLE = (
    f"{{: {TOKEN}",
    f"- {TOKEN}",
    json.dumps({"current-context": TOKEN, "contexts": [], "clusters": [], "users": []}),
    json.dumps({"contexts": TOKEN, "clusters": [], "users": []}),
    "",
)


@pytest.mark.parametrize("text", UNUSABLE, ids=["no YAML", "a list", "no such context", "another shape", "empty"])
def test_a_kubeconfig_that_is_none_ends_it_with_its_name(text, tmp_path, capsys):
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    assert main(["run", "--gateway-image", "x", "--own-namespace", "n", "--port", "0", "--kubeconfig", str(path)]) == 1
    said = capsys.readouterr().err
    assert str(path) in said
    assert "Traceback" not in said


@pytest.mark.parametrize("text", UNUSABLE[:2], ids=["no YAML", "a list"])
def test_what_could_be_anything_is_not_repeated(text, tmp_path, capsys):
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    main(["run", "--gateway-image", "x", "--own-namespace", "n", "--port", "0", "--kubeconfig", str(path)])
    assert TOKEN not in capsys.readouterr().err


def test_outside_of_a_pod_it_asks_where_the_lease_is(monkeypatch, capsys):
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    assert main(["run", "--gateway-image", "x"]) == 1
    assert "--own-namespace" in capsys.readouterr().err
