"""What is written while the event loop goes round once is written together and in order; nothing waits for longer."""

import asyncio

import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from fairpool_gateway.writes import Writes


class Writer:
    """Notes when it writes, among others."""

    def __init__(self, name, written):
        self._name = name
        self._written = written

    def write_out(self):
        self._written.append(self._name)


@pytest.fixture
def written():
    return []


@pytest.fixture
def writes():
    return Writes()


@pytest.fixture
def add(writes, written):
    return lambda *names: [writes.add(Writer(name, written)) for name in names]


class TestWhereOneThingComes:
    async def test_what_is_written_for_it_is_written_at_once(self, writes, add, written):
        writes.came()
        add("an answer")
        assert written == ["an answer"]

    async def test_that_is_so_each_time(self, writes, add, written):
        for number in range(3):
            writes.came()
            add(number)
        assert written == [0, 1, 2]


class TestWhereSeveralThingsCome:
    async def test_what_is_written_for_them_is_written_together(self, writes, add, written):
        writes.came()
        writes.came()
        add("first", "second")
        assert not written
        await asyncio.sleep(0)
        assert written == ["first", "second"]

    async def test_it_waits_for_no_more_than_came(self, writes, add, written):
        for _ in range(5):
            writes.came()
        add("the only one")
        await asyncio.sleep(0)
        assert written == ["the only one"]

    async def test_what_they_set_going_is_written_together_too(self, writes, add, written):
        writes.came()
        writes.came()
        add("first", "second")
        await asyncio.sleep(0)
        add("third", "fourth")
        assert written == ["first", "second"]
        await asyncio.sleep(0)
        assert written == ["first", "second", "third", "fourth"]

    async def test_once_they_are_over_what_comes_alone_waits_once_and_then_no_more(self, writes, add, written):
        writes.came()
        writes.came()
        add("first", "second")
        await asyncio.sleep(0)
        writes.came()
        add("alone")
        await asyncio.sleep(0)
        writes.came()
        add("at once")
        assert written == ["first", "second", "alone", "at once"]

    async def test_a_writer_that_is_added_while_others_write_writes_after_them(self, writes, written):
        class Prompting(Writer):
            def write_out(self):
                super().write_out()
                writes.add(Writer("prompted", written))

        writes.came()
        writes.came()
        writes.add(Prompting("prompting", written))
        writes.add(Writer("next", written))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert written == ["prompting", "next", "prompted"]

    async def test_a_writer_that_fails_takes_no_other_with_it(self, writes, add, written):
        class Failing(Writer):
            def write_out(self):
                raise RuntimeError("the connection is gone")

        said = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context["exception"]))
        writes.came()
        writes.came()
        add("before")
        writes.add(Failing("failing", written))
        add("after")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert written == ["before", "after"]
        assert [str(error) for error in said] == ["the connection is gone"]


steps = st.lists(st.sampled_from(["came", "add", "gather", "round"]), max_size=20)
"""What happens to a loop's writes, one after another."""


async def is_sound(kind, steps):
    """Whether all was written in order, and after each round of the loop nothing was left."""
    writes, written, given_so_far = kind(), [], 0
    for step in [*steps, "round"]:
        if step == "came":
            writes.came()
        elif step == "round":
            await asyncio.sleep(0)
            if written != list(range(given_so_far)):
                return False
        else:
            getattr(writes, step)(Writer(given_so_far, written))
            given_so_far += 1
    return True


class TestWhateverComes:
    @given(steps=steps)
    def test_it_is_written_in_order_and_waits_for_one_round_at_most(self, steps):
        assert asyncio.run(is_sound(Writes, steps))

    def test_what_waits_longer_is_caught(self):
        class Late(Writes):
            def gather(self, writer):
                if not self._writers:
                    loop = asyncio.get_running_loop()
                    loop.call_soon(loop.call_soon, self._write)
                self._writers.append(writer)

        assert find(steps, lambda steps: not asyncio.run(is_sound(Late, steps))) == ["gather"]

    def test_so_is_what_passes_others(self):
        class Passing(Writes):
            def add(self, writer):
                writer.write_out()

        assert find(steps, lambda steps: not asyncio.run(is_sound(Passing, steps))) == ["gather", "add"]
