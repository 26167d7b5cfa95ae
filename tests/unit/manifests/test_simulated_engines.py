"""The simulated engines of the component run as they are told, and a pool finds them."""

import math

from support.manifests import MANIFESTS, documents

from fairpool_lab.engine.__main__ import settings_from

[ENGINES] = documents(MANIFESTS / "components" / "simulated-engines" / "engines.yaml")
POD = ENGINES["spec"]["template"]["spec"]
[CONTAINER] = POD["containers"]


def test_their_command_is_the_labs_engine_with_arguments_that_it_knows():
    assert CONTAINER["command"] == ["python", "-m", "fairpool_lab.engine"]
    settings = settings_from(CONTAINER["args"])
    assert (settings.host, settings.models) == ("0.0.0.0", ("sim",))
    assert settings.port == CONTAINER["ports"][0]["containerPort"]


def test_each_asks_for_a_gpu():
    assert CONTAINER["resources"]["limits"]["nvidia.com/gpu"] == 1


def test_a_pod_that_is_deleted_finishes_99_answers_of_100_before_its_engine_is_told_to_end():
    settings = settings_from(CONTAINER["args"])
    tokens = settings.language.mean_output_tokens * math.log(100)  # for lengths are geometric
    step = settings.limits.step_base + settings.limits.max_num_seqs * settings.limits.step_per_sequence
    waits = CONTAINER["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert tokens * step / settings.speed < waits < POD["terminationGracePeriodSeconds"]
