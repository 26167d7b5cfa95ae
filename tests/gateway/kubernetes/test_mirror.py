"""A copy of objects is as true as the last fresh list, whatever a watch tells, loses or denies."""

import asyncio
import contextlib
import logging

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from support.fake_time import on_fake_time
from support.scripted_endpoint import PATIENCE, until

from fairpool_gateway.cluster import Change, Metadata, Mirror, Thing
from fairpool_gateway.errors import ClusterError, ClusterExpired

SEARCH = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
FIND = settings(SEARCH, max_examples=1000, database=None, derandomize=True, phases=[Phase.generate])


def thing(name, uid="1"):
    return Thing(Metadata(name, uid))


class Scripted:
    """A source that does in each round what it is told to; after the last round it is silent.

    A round is a list, or the error of one, and what the watch after it brings.
    """

    def __init__(self, *rounds):
        self._rounds = iter(rounds)
        self._watch = ()
        self.lists = 0
        self.over = asyncio.Event()

    async def list(self):
        self.lists += 1
        try:
            listed, self._watch = next(self._rounds)
        except StopIteration:
            self.over.set()
            await asyncio.Event().wait()
        if isinstance(listed, Exception):
            raise listed
        return listed, str(self.lists)

    async def watch(self, version, seconds):
        yield None
        for change in self._watch:
            if isinstance(change, Exception):
                raise change
            yield change


@contextlib.asynccontextmanager
async def mirrored(source, mirror_class=Mirror, relist_seconds=0.0):
    """A mirror at work, and what it told so far: names and uids."""
    told = []
    mirror = mirror_class(
        source,
        "things",
        lambda objects: told.append({(each.metadata.name, each.metadata.uid) for each in objects.values()}),
        relist_seconds=relist_seconds,
    )
    task = asyncio.create_task(mirror.follow())
    try:
        yield mirror, told
    finally:
        task.cancel()
        await asyncio.wait([task])


async def told_by(*rounds, mirror_class=Mirror):
    source = Scripted(*rounds)
    async with mirrored(source, mirror_class) as (_, told):
        await asyncio.wait_for(source.over.wait(), PATIENCE)
    return told


class TestTheCopy:
    async def test_is_what_was_listed_and_what_has_changed_since(self):
        told = await told_by(([thing("a")], [Change(thing("b")), Change(thing("a"), gone=True)]))
        assert told == [{("a", "1")}, {("a", "1"), ("b", "1")}, {("b", "1")}]

    async def test_is_told_of_even_if_it_is_empty(self):
        assert await told_by(([], [])) == [set()]

    async def test_is_not_told_of_again_while_it_stays_the_same(self):
        assert await told_by(([thing("a")], [Change(thing("a"))]), ([thing("a")], [])) == [{("a", "1")}]

    async def test_loses_what_a_fresh_list_has_not_though_no_watch_ever_said_so(self):
        assert (await told_by(([thing("a"), thing("b")], []), ([thing("b")], [])))[-1] == {("b", "1")}

    async def test_has_the_later_of_two_of_one_name(self):
        told = await told_by(([thing("a")], [Change(thing("a", "2")), Change(thing("a"), gone=True)]))
        assert told[-1] == {("a", "2")}

    async def test_stays_while_nothing_can_be_listed(self):
        away = ClusterError("away")
        assert await told_by(([thing("a")], [away]), (away, []), (away, [])) == [{("a", "1")}]

    async def test_is_made_anew_when_the_watch_is_too_old(self):
        told = await told_by(([thing("a")], [ClusterExpired("too old")]), ([thing("b")], []))
        assert told[-1] == {("b", "1")}

    async def test_survives_a_fault_of_who_is_told(self, caplog):
        source = Scripted(([thing("a")], []), ([thing("b")], []))
        told = []

        def seen(objects):
            told.append(set(objects))
            raise KeyError("a fault")

        task = asyncio.create_task(Mirror(source, "things", seen, relist_seconds=0).follow())
        await asyncio.wait_for(source.over.wait(), PATIENCE)
        task.cancel()
        assert told == [{"a"}, {"b"}]
        assert "a fault of the gateway ended the watch of things" in caplog.text

    async def test_is_told_of_again_until_it_was_taken(self):
        source = Scripted(*[([thing("a")], [])] * 4)
        told = []

        def seen(objects):
            told.append(set(objects))
            if len(told) < 3:
                raise KeyError("a fault")

        mirror = Mirror(source, "things", seen, relist_seconds=0)
        task = asyncio.create_task(mirror.follow())
        await asyncio.wait_for(source.over.wait(), PATIENCE)
        task.cancel()
        assert told == [{"a"}] * 3
        assert (mirror.problem, mirror.has_listed) == (None, True)

    async def test_is_told_of_again_where_a_change_was_not_taken(self):
        told = []

        def seen(objects):
            told.append(set(objects))
            if len(told) == 2:
                raise KeyError("a fault")

        source = Scripted(([thing("a")], [Change(thing("b"))]), ([thing("a"), thing("b")], []))
        task = asyncio.create_task(Mirror(source, "things", seen, relist_seconds=0).follow())
        await asyncio.wait_for(source.over.wait(), PATIENCE)
        task.cancel()
        assert told == [{"a"}, {"a", "b"}, {"a", "b"}]


objects = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3).map(
    lambda named: [thing(name, uid) for name, uid in named.items()]
)
changes = st.lists(
    st.builds(Change, st.builds(thing, st.sampled_from("abc"), st.sampled_from("12")), st.booleans())
    | st.sampled_from([ClusterError("away"), ClusterExpired("old")]),
    max_size=4,
)
scripts = st.lists(st.tuples(objects | st.just(ClusterError("away")), changes), min_size=1, max_size=5)


def ends_as_the_last_list_says(mirror_class, script):
    """With a last fresh list and a silent watch, that list is all there is."""
    last = [thing("a", "3")]
    told = asyncio.run(told_by(*script, (last, []), mirror_class=mirror_class))
    return told[-1] == {("a", "3")}


class Adding(Mirror):
    """Takes a list for more of the same, as one does who trusts the watch for the rest."""

    def _replace(self, objects):
        super()._replace({**(self._objects or {}), **objects})


class TestWhateverAWatchTells:
    @given(scripts)
    @SEARCH
    def test_the_last_list_is_what_counts(self, script):
        assert ends_as_the_last_list_says(Mirror, script)

    def test_that_check_catches_a_mirror_that_never_forgets(self):
        assert find(scripts, lambda script: not ends_as_the_last_list_says(Adding, script), settings=FIND)


AWAY = ClusterError("away")


class Timed(Scripted):
    """Notes when it is asked for a list; a number in what a watch brings is a silence of so many seconds."""

    def __init__(self, *rounds):
        super().__init__(*rounds)
        self.listed = []

    async def list(self):
        self.listed.append(asyncio.get_running_loop().time())
        return await super().list()

    async def watch(self, version, seconds):
        yield None
        for each in self._watch:
            if isinstance(each, Exception):
                raise each
            await asyncio.sleep(each)


def lists_of(source):
    """When it was asked for a list, on fake time, by a mirror whose pauses are as long as they may be."""

    async def main():
        task = asyncio.create_task(
            Mirror(source, "things", lambda _: None, relist_seconds=600, chance=lambda: 1.0).follow()
        )
        await source.over.wait()
        task.cancel()
        await asyncio.wait([task])

    on_fake_time(main())
    return source.listed


class TestTime:
    async def test_a_watch_that_goes_on_for_ever_does_not_keep_a_list_from_being_made(self):
        class Endless(Scripted):
            async def watch(self, version, seconds):
                yield None
                await asyncio.sleep(seconds)

        source = Endless(*[([], [])] * 3)
        async with mirrored(source, relist_seconds=0.01):
            await asyncio.wait_for(source.over.wait(), PATIENCE)
            assert source.lists == 4

    @pytest.mark.parametrize(
        "attempt",
        [(AWAY, []), ([], [AWAY])],
        ids=["whose list fails", "whose watch breaks as soon as the server agreed to it"],
    )
    def test_a_source_that_fails_at_once_is_asked_less_and_less_often(self, attempt):
        listed = lists_of(Timed(*[attempt] * 7))
        assert listed == pytest.approx([0.0, 0.2, 0.6, 1.4, 3.0, 6.2, 11.2, 16.2])

    def test_a_source_whose_watch_lasted_is_asked_again_soon(self):
        broken = ([], [AWAY])
        listed = lists_of(Timed(*[broken] * 3, ([], [6.0, AWAY]), broken))
        assert listed == pytest.approx([0.0, 0.2, 0.6, 1.4, 7.6, 8.0])

    async def test_pauses_differ_between_gateways(self):
        least = Mirror(Scripted(), "things", lambda _: None, chance=lambda: 0.0)
        assert [least._pause() for _ in range(3)] == [0.1, 0.2, 0.4]


class TestWhatIsSaidOfIt:
    async def test_is_a_problem_until_it_is_followed_and_whenever_it_is_not(self, caplog):
        caplog.set_level(logging.INFO, "fairpool_gateway")
        away = ClusterError("the API server cannot be reached: no route")
        source = Scripted((away, []), (away, []), ([], [away]), ([], []))
        async with mirrored(source) as (mirror, _):
            assert mirror.problem == "has not been listed yet"
            await asyncio.wait_for(source.over.wait(), PATIENCE)
            assert mirror.problem is None
        lost = (
            "things cannot be followed, what was seen last stays in force: the API server cannot be reached: no route"
        )
        assert caplog.messages == [lost, "things are followed", lost, "things are followed"]

    @pytest.mark.parametrize("watch", [[], [Change(thing("a"))]])
    async def test_is_no_problem_while_a_watch_goes_on(self, watch):
        class Open(Scripted):
            async def watch(self, version, seconds):
                async for change in super().watch(version, seconds):
                    yield change
                await asyncio.Event().wait()

        async with mirrored(Open(([], watch)), relist_seconds=60) as (mirror, _):
            await until(lambda: mirror.problem is None)

    async def test_is_a_problem_while_no_list_comes_to_its_end(self):
        old = ClusterExpired("the continue parameter is too old")
        source = Scripted(([thing("a")], []), (old, []), (old, []))
        async with mirrored(source) as (mirror, told):
            await asyncio.wait_for(source.over.wait(), PATIENCE)
            assert mirror.problem == "its lists are too old before they end: the continue parameter is too old"
        assert told == [{("a", "1")}]

    async def test_is_no_problem_where_lists_are_had_and_no_watch_ever_begins(self):
        source = NoWatch(*[([thing("a")], ClusterExpired("too old"))] * 3)
        async with mirrored(source) as (mirror, _):
            await asyncio.wait_for(source.over.wait(), PATIENCE)
            assert (mirror.problem, mirror.has_listed) == (None, True)

    async def test_is_what_keeps_a_watch_from_being_made_however_many_lists_are_had(self, caplog):
        caplog.set_level(logging.INFO, "fairpool_gateway")
        source = NoWatch(*[([thing("a")], ClusterError("forbidden"))] * 3)
        async with mirrored(source) as (mirror, _):
            await asyncio.wait_for(source.over.wait(), PATIENCE)
            assert mirror.problem == "forbidden"
        assert caplog.messages == [
            "things are followed",
            "things cannot be followed, what was seen last stays in force: forbidden",
        ]


class NoWatch(Scripted):
    """A source whose watches never begin; a round is a list and the error of the watch after it."""

    async def watch(self, version, seconds):
        raise self._watch
        yield
