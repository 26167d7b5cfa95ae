"""Which Secrets are in force: those that a server would store, after an edit too, and that an operator would see."""

from __future__ import annotations

import pytest
from support.up import secret, weight

from fairpool_operator.view import PoolKey

LLAMA = PoolKey("default", "llama")
TLS_WITHOUT_KEYS = {**secret("pair", use="tls"), "type": "kubernetes.io/tls"}
ENCRYPTED = {**secret("more", more="ENC[AES256_GCM,data:abc]"), "sops": {"version": "3.9.0"}}


def test_a_secret_whose_label_is_no_text_stays_as_it_was(files):
    files.write("keys", secret(search="key-of-search"))
    assert files.taken() == []
    path = files.directory / "keys.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("'true'", "true"), encoding="utf-8")
    [problem] = files.taken()
    assert problem.startswith("keys.yaml:6: Secret default/keys: metadata.labels.fairpool.dev/keys: ")
    assert "must be of type string: put it in quotes (its last good edition stays in force)" in problem
    assert ("default", "keys") in files.resources.store().view(LLAMA).secrets


def test_an_encrypted_secret_is_told_of(files):
    files.write("keys", {**secret(search="ENC[AES256_GCM,data:abc]"), "sops": {"version": "3.9.0"}})
    [problem] = files.taken()
    assert problem.startswith("keys.yaml:9: Secret default/keys: sops: its values are encrypted: decrypt it")


def test_values_of_secrets_are_had_from_either_field_and_without_space_around_them(files):
    plain = secret(api_key=" sk-1\n")
    files.write("keys", plain, {**secret("second"), "stringData": None, "data": {"api-key": "c2stMg=="}})
    assert files.taken() == []
    assert files.resources.value("default", "keys", "api-key") == b"sk-1"
    assert files.resources.value("default", "second", "api-key") == b"sk-2"
    assert files.resources.value("default", "second", "other") == b""
    assert files.resources.value("default", "third", "api-key") == b""


def test_a_secret_that_is_not_in_base64_is_told_of_without_its_value(files):
    files.write("keys", {**secret("keys"), "stringData": None, "data": {"api-key": "sk-hunter2!"}})
    [problem] = files.taken()
    assert problem.startswith("keys.yaml:9: Secret default/keys: data[api-key]: has to be in base64")
    assert "hunter2" not in problem


def test_a_secret_that_a_server_would_refuse_is_told_of_where_it_is_written(files):
    files.write("keys", secret(**{"api key": "sk-1"}))
    [problem] = files.taken()
    line = files.line_of("keys", "api key:")
    assert problem.startswith(
        f"keys.yaml:{line}: Secret default/keys: data[api key]: Invalid value: a valid config key must consist of"
    )


@pytest.mark.parametrize("refused", [TLS_WITHOUT_KEYS, ENCRYPTED], ids=["without keys", "encrypted"])
def test_one_that_is_refused_keeps_other_secrets_from_being_removed_and_nothing_else(files, refused):
    files.write("keys", secret(search="key-of-search"))
    assert files.taken() == []
    files.write("keys", refused)
    files.write("tenants", weight("search", weight=300))
    problem, *_, stays = files.taken()
    place = problem.partition(" ")[0]
    assert place.startswith("keys.yaml:")
    assert stays == f"{place} 1 resource that is found in no file stays until this is corrected: Secret default/keys"
    assert files.weights() == {"search": 300}


def test_each_that_stays_is_told_of_beside_what_is_refused_of_its_kind(files):
    files.write("keys", secret(search="key-of-search"))
    assert files.taken() == []
    files.write("keys", TLS_WITHOUT_KEYS)
    files.write("a", weight("third", weight=5000))
    files.write("tenants", weight("search", weight=300))
    told = files.taken()
    for kind, stays in (("Secret", "keys"), ("TenantWeight", "batch")):
        place = next(each.partition(" ")[0] for each in told if f": {kind} default/" in each)
        why = "1 resource that is found in no file stays until this is corrected"
        assert f"{place} {why}: {kind} default/{stays}" in told


@pytest.mark.parametrize("refused", [TLS_WITHOUT_KEYS, ENCRYPTED], ids=["without keys", "encrypted"])
def test_one_without_the_label_is_not_looked_at_whatever_is_in_it(files, refused):
    files.write("keys", secret(search="key-of-search"))
    assert files.taken() == []
    for labels in (None, {"app": "other"}):
        files.write("keys", {**refused, "metadata": {**refused["metadata"], "labels": labels}})
        assert files.taken() == []
    assert not files.resources.store().view(LLAMA).secrets


IMMUTABLE = {**secret(search="key-of-search"), "immutable": True}


@pytest.mark.parametrize(
    ("edited", "field", "problem"),
    [
        ({**IMMUTABLE, "stringData": {"search": "another"}}, "stringData:", "data: Forbidden: field is immutable when"),
        ({**IMMUTABLE, "immutable": False}, "immutable:", "immutable: Forbidden: field is immutable when"),
        ({**IMMUTABLE, "immutable": None}, "immutable:", "immutable: Forbidden: field is immutable when"),
        ({**IMMUTABLE, "type": "any/other"}, "type:", "type: Invalid value: field is immutable"),
    ],
)
def test_what_is_immutable_of_one_stays_as_it_was(files, edited, field, problem):
    files.write("keys", IMMUTABLE)
    assert files.taken() == []
    files.write("keys", edited)
    [told] = files.taken()
    assert told.startswith(f"keys.yaml:{files.line_of('keys', field)}: Secret default/keys: {problem}")
    assert told.endswith("(its last good edition stays in force)")
    assert files.resources.value("default", "keys", "search") == b"key-of-search"


@pytest.mark.parametrize("written", [None, ""])
def test_the_type_of_one_cannot_be_left_out_once_it_has_another_than_without(files, written):
    typed = {**secret(search="key-of-search"), "type": "any/other"}
    files.write("keys", typed)
    assert files.taken() == []
    files.write("keys", {**typed, "type": written})
    [told] = files.taken()
    assert ": Secret default/keys: type: Invalid value: field is immutable" in told
    files.write("keys", {**typed, "stringData": {"search": "another"}})
    assert files.taken() == []
    assert files.resources.value("default", "keys", "search") == b"another"


def test_all_else_of_an_immutable_one_can_be_edited_and_it_can_be_made_anew(files):
    files.write("keys", IMMUTABLE)
    assert files.taken() == []
    edited = {**IMMUTABLE, "metadata": {**IMMUTABLE["metadata"], "annotations": {"for": "search"}}}
    files.write("keys", {**edited, "stringData": None, "data": {"search": "a2V5LW9mLXNlYXJjaA=="}})
    assert files.taken() == []
    (files.directory / "keys.yaml").unlink()
    assert files.taken() == []
    files.write("keys", secret(search="another"))
    assert files.taken() == []
    assert files.resources.value("default", "keys", "search") == b"another"
