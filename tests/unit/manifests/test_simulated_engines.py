"""The simulated engines of the component run as they are told, and a pool finds them."""

from support.manifests import MANIFESTS, documents

from fairpool_lab.engine.__main__ import settings_from

[ENGINES] = documents(MANIFESTS / "components" / "simulated-engines" / "engines.yaml")
[CONTAINER] = ENGINES["spec"]["template"]["spec"]["containers"]


def test_their_command_is_the_labs_engine_with_arguments_that_it_knows():
    assert CONTAINER["command"] == ["python", "-m", "fairpool_lab.engine"]
    settings = settings_from(CONTAINER["args"])
    assert (settings.host, settings.models) == ("0.0.0.0", ("sim",))
    assert settings.port == CONTAINER["ports"][0]["containerPort"]


def test_each_asks_for_a_gpu():
    assert CONTAINER["resources"]["limits"]["nvidia.com/gpu"] == 1
