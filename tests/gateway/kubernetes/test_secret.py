"""Each content of the configuration's Secret is judged once, in order; what cannot be used changes nothing."""

import asyncio
import base64
import contextlib
import gzip

import pytest
from support.config import pool_config
from support.scripted_endpoint import PATIENCE

from fairpool_gateway.cluster import Change, Metadata
from fairpool_gateway.config import dump
from fairpool_gateway.configwatch import SecretFollower
from fairpool_gateway.configwatch.secret import Secret, content_of, hash_of

NAME = "llama-fairpool-config"


def packed(text):
    return base64.b64encode(gzip.compress(text)).decode()


def secret(text=None, version="1", data=None):
    data = {"config.json.gz": packed(text)} if text is not None else data
    return Secret(Metadata(NAME, "uid", resource_version=version), data)


def weighing(weight):
    return dump(pool_config(default_weight=weight)).encode()


class Following:
    """A follower of a Secret that the test writes, and what it tells: weights and hashes, or problems."""

    def __init__(self, in_force):
        self._changes = asyncio.Queue()
        self._told = asyncio.Queue()
        self.listed = []
        self.resource = None
        self.follower = SecretFollower(
            self._source,
            "inference",
            NAME,
            applied=lambda config, digest: self._told.put_nowait((config.default_weight, digest)),
            refused=lambda problem: self._told.put_nowait(problem.problems),
            in_force=in_force,
        )

    def _source(self, resource):
        self.resource = resource
        return self

    async def list(self):
        return self.listed, "1"

    async def watch(self, version, seconds):
        yield None
        while True:
            yield await self._changes.get()

    def write(self, written, *, gone=False):
        self._changes.put_nowait(Change(written, gone))

    async def told(self):
        return await asyncio.wait_for(self._told.get(), PATIENCE)

    def nothing_more(self):
        return self._told.empty()


@contextlib.asynccontextmanager
async def following(*listed, in_force=None):
    made = Following(in_force)
    made.listed = list(listed)
    task = asyncio.create_task(made.follower.follow())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.wait([task])


class TestTheSecret:
    async def test_is_asked_for_by_its_name_and_in_the_query_too_as_its_role_allows(self):
        async with following(secret(weighing(1))) as made:
            assert made.resource.path == "/api/v1/namespaces/inference/secrets"
            assert made.resource.query == {"fieldSelector": f"metadata.name={NAME}"}
            assert await made.told() == (1, hash_of(weighing(1)))

    async def test_is_applied_as_often_as_it_changes_and_no_oftener(self):
        async with following(secret(weighing(1))) as made:
            assert await made.told() == (1, hash_of(weighing(1)))
            made.write(secret(weighing(1), version="2"))
            made.write(secret(weighing(2), version="3"))
            assert await made.told() == (2, hash_of(weighing(2)))
            assert made.nothing_more()

    async def test_that_changes_faster_than_it_can_be_judged_is_what_it_was_last(self):
        async with following(secret(weighing(1)), in_force=hash_of(weighing(1))) as made:
            for weight in range(2, 50):
                made.write(secret(weighing(weight), version=str(weight)))
            seen = [await made.told()]
            while seen[-1][0] != 49:
                seen.append(await made.told())
            assert seen == sorted(seen)

    async def test_is_not_applied_if_it_is_in_force(self):
        async with following(secret(weighing(1)), in_force=hash_of(weighing(1))) as made:
            made.write(secret(weighing(2), version="2"))
            assert (await made.told())[0] == 2

    async def test_that_goes_and_comes_back_as_it_was_is_said_to_be_in_force_again(self):
        async with following(secret(weighing(1))) as made:
            assert (await made.told())[0] == 1
            made.write(secret(weighing(1)), gone=True)
            assert await made.told() == [f"Secret inference/{NAME}: there is no such Secret"]
            made.write(secret(weighing(1), version="2"))
            assert (await made.told())[0] == 1

    async def test_that_is_not_there_is_said_so_at_once(self):
        async with following() as made:
            assert await made.told() == [f"Secret inference/{NAME}: there is no such Secret"]
            assert made.follower.problem is None


class TestContentThatCannotBeUsed:
    async def test_is_refused_once_with_its_reasons_however_often_the_secret_is_touched(self):
        async with following(secret(b'{"pool": 3}')) as made:
            refused = await made.told()
            assert refused[0].startswith("pool: must be text, not 3")
            made.write(secret(b'{"pool": 3}', version="2"))
            made.write(secret(weighing(2), version="3"))
            assert (await made.told())[0] == 2

    async def test_may_have_fields_from_the_future(self):
        text = weighing(5).replace(b"{", b'{"carry": true, ', 1)
        async with following(secret(text)) as made:
            assert (await made.told())[0] == 5

    @pytest.mark.parametrize(
        ("field", "why"),
        [
            (b'"version": 2', "version: must be 1, the only version that this gateway reads, not 2"),
            (b'"authentication": {"type": "OfAFarRelease"}', "authentication.type: "),
        ],
    )
    async def test_of_a_release_too_far_ahead_leaves_the_last_one_in_force(self, field, why):
        async with following(secret(weighing(1))) as made:
            assert await made.told() == (1, hash_of(weighing(1)))
            made.write(secret(b'{"pool": "llama", ' + field + b"}", version="2"))
            [problem] = await made.told()
            assert problem.startswith(why)
            made.write(secret(weighing(1), version="3"))
            assert await made.told() == (1, hash_of(weighing(1)))

    @pytest.mark.parametrize(
        ("data", "why"),
        [
            (None, "has no config.json.gz"),
            ({"other": ""}, "has no config.json.gz"),
            ({"config.json.gz": "%%%"}, "its config.json.gz is not gzipped"),
            ({"config.json.gz": base64.b64encode(b"{}").decode()}, "its config.json.gz is not gzipped"),
            ({"config.json.gz": base64.b64encode(gzip.compress(b"{}" * 999)[:-9]).decode()}, "cut off"),
            ({"config.json.gz": packed(b"\0" * ((64 << 20) + 1))}, "larger than 64 MiB"),
        ],
    )
    def test_is_named_in_words(self, data, why):
        assert why in content_of(secret(data=data))

    async def test_is_refused_if_it_is_no_text(self):
        async with following(secret(b"\xff\xfe")) as made:
            assert await made.told() == [f"Secret inference/{NAME}: is not a text in UTF-8"]
