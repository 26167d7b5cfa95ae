"""The load generator: its counts add up, no error is hidden, and a server that keeps it waiting is measured late."""

from __future__ import annotations

import asyncio
import json
import socket
import time

import pytest
from support.load_programs import load, question, refused
from support.odd_server import OK, odd_server

CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
STALL = 1.0


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def stamp(at: int) -> bytes:
    return b'data: {"content": "@%019d "}\n\n' % at


async def well(_):
    return OK


def adds_up(seen):
    errors = {kind: number for kind, number in seen["errors"].items() if kind != "unsent"}
    assert seen["begun"] == seen["answered"] + sum(errors.values())
    return {kind: number for kind, number in seen["errors"].items() if number}


class TestCounts:
    async def test_as_many_are_answered_as_were_asked(self, tmp_path):
        async with odd_server(well) as server:
            body = question(tmp_path, "fair?")
            seen = await load(server.port, "--connections", "8", "--seconds", "0.3", *body)
        assert adds_up(seen) == {}
        assert seen["begun"] == len(server.asked) == seen["statuses"]["200"] == seen["latency"]["count"] > 8
        assert {json.loads(asked.body)["messages"][0]["content"] for asked in server.asked} == {"fair?"}
        assert server.connections == 8

    async def test_what_is_asked_while_it_warms_up_is_not_measured(self, tmp_path):
        async with odd_server(well) as server:
            seen = await load(server.port, "--seconds", "0.2", "--warmup", "0.3", *question(tmp_path, "fair?"))
        assert adds_up(seen) == {}
        assert 0 < seen["latency"]["count"] < seen["begun"] == len(server.asked)

    async def test_keys_are_used_in_turn(self, tmp_path):
        (tmp_path / "keys").write_text("one\ntwo\nthree\n")
        async with odd_server(well) as server:
            await load(server.port, "--seconds", "0.2", "--keys", str(tmp_path / "keys"))
        used = [asked.headers["authorization"] for asked in server.asked]
        turns = ["Bearer one", "Bearer two", "Bearer three"]
        assert used == [turns[number % 3] for number in range(len(used))]
        assert len(used) > 3

    async def test_large_bodies_come_as_often_as_was_said_and_are_told_apart(self, tmp_path):
        large = tmp_path / "large"
        large.write_bytes(b"x" * (1 << 20))
        share = ("--large-body", str(large), "--large-share", "0.2")
        async with odd_server(well) as server:
            seen = await load(server.port, "open", "--rate", "300", "--seconds", "0.5", "--connections", "64", *share)
        assert adds_up(seen) == {}
        sizes = [len(asked.body) for asked in server.asked]
        assert seen["large"] == sizes.count(1 << 20) == seen["large_latency"]["count"]
        assert sizes.count(0) == seen["latency"]["count"]
        assert 0.05 < seen["large"] / len(sizes) < 0.4

    async def test_every_request_may_have_a_connection_of_its_own(self):
        async with odd_server(well) as server:
            seen = await load(server.port, "--churn", "--connections", "4", "--seconds", "0.2")
        assert adds_up(seen) == {}
        assert server.connections == len(server.asked) == seen["answered"]
        assert {asked.headers["connection"] for asked in server.asked} == {"close"}
        assert len(server.peers) == min(250, server.connections)

    async def test_connections_may_begin_one_after_another(self):
        began = []

        async def first_of_each(asked):
            began.append(time.monotonic())
            await asyncio.sleep(1)
            return OK

        async with odd_server(first_of_each) as server:
            seen = await load(server.port, "--connections", "10", "--seconds", "0.6", "--ramp", "0.5")
        assert adds_up(seen) == {}
        assert server.connections == 10
        assert began[9] - began[0] >= 0.4

    async def test_the_same_seed_asks_at_the_same_moments(self, tmp_path):
        async def sizes(seed):
            (tmp_path / "large").write_bytes(b"x")
            async with odd_server(well) as server:
                arguments = ("--rate", "500", "--seconds", "0.4", "--connections", "64", "--seed", seed)
                large = ("--large-body", str(tmp_path / "large"), "--large-share", "0.3")
                seen = await load(server.port, "open", *arguments, *large)
            return seen["begun"], seen["large"]

        first = await sizes("1")
        assert await sizes("1") == first
        assert await sizes("2") != first
        assert first[0] == pytest.approx(500 * 0.4, rel=0.3)


class TestErrors:
    @pytest.mark.parametrize(
        ("kind", "said"),
        [
            ("lost", None),
            ("cut", b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\nconnection: close\r\n\r\nok"),
            ("cut", CHUNKED.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n") + chunk(b"ok")),
            ("malformed", b"SSH-2.0-OpenSSH_9.2\r\n"),
            ("status", b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n"),
        ],
    )
    async def test_each_has_its_kind(self, kind, said):
        async def now_and_then(asked):
            return said if asked.number % 3 == 2 else OK

        async with odd_server(now_and_then) as server:
            seen = await load(server.port, "--connections", "4", "--seconds", "0.3")
        assert adds_up(seen) == {kind: sum(asked.number % 3 == 2 for asked in server.asked)}
        assert seen["latency"]["count"] == seen["answered"] < seen["begun"]

    async def test_nobody_listens(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        seen = await load(port, "open", "--rate", "100", "--seconds", "0.2")
        assert seen["begun"] > 0 == seen["answered"]
        assert adds_up(seen) == {"connect": seen["begun"]}

    async def test_an_answer_that_ends_with_its_connection_is_one(self):
        async def until_closed(asked):
            asked.writer.write(b"HTTP/1.1 200 OK\r\n\r\nok")
            await asked.writer.drain()

        async with odd_server(until_closed) as server:
            seen = await load(server.port, "--seconds", "0.2")
        assert adds_up(seen) == {}
        assert seen["answered"] == len(server.asked) > 0

    async def test_what_is_not_answered_in_time_and_what_could_not_be_sent_are_both_counted(self):
        async def never(_):
            await asyncio.sleep(60)

        async with odd_server(never) as server:
            seen = await load(
                server.port, "open", "--rate", "100", "--connections", "3", "--seconds", "0.5", "--timeout", "0.6"
            )
        errors = adds_up(seen)
        assert errors.keys() == {"timeout", "unsent"}
        assert 35 < sum(errors.values()) < 70

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("sideways",), "usage: load"),
            (("--rate", "fast"), "fast is no number of 0 or more"),
            (("--seconds", "0"), "usage: load"),
            (("--body", "/nowhere"), "/nowhere: No such file"),
            (("--connections", "1000000000"), "descriptors are needed"),
        ],
    )
    def test_what_cannot_be_asked_is_said(self, arguments, said):
        status, complained = refused("--port", "1", *arguments)
        assert status == 2
        assert said in complained


class TestCoordinatedOmission:
    """A server stalls once, for a second. Whoever waits for it before asking again sees one slow answer of many."""

    @staticmethod
    def stalls_once():
        until = None

        async def answer(asked):
            nonlocal until
            if asked.number == 20:
                until = time.monotonic() + STALL
            if until is not None and (rest := until - time.monotonic()) > 0:
                await asyncio.sleep(rest)
            return OK

        return answer

    async def test_an_open_loop_counts_from_when_requests_were_due(self):
        async with odd_server(self.stalls_once()) as server:
            seen = await load(server.port, "open", "--rate", "200", "--seconds", "1", "--connections", "1")
        assert adds_up(seen) == {}
        assert seen["latency"]["p50"] > STALL / 5 * 1e6
        assert seen["sent_late"]["p50"] > STALL / 5 * 1e6
        assert seen["latency"]["max"] >= STALL * 1e6

    async def test_a_closed_loop_would_have_hidden_it(self):
        async with odd_server(self.stalls_once()) as server:
            seen = await load(server.port, "--seconds", "1.5", "--connections", "1")
        assert seen["latency"]["p50"] < STALL / 5 * 1e6
        assert seen["latency"]["max"] >= STALL * 1e6


class TestStreams:
    async def test_events_are_as_late_as_they_say_wherever_pieces_end(self):
        late = 0.5

        async def stream(asked):
            sent = b"".join(chunk(stamp(time.monotonic_ns() - int(late * 1e9))) for _ in range(10))
            whole = CHUNKED + sent + chunk(b"data: [DONE] a@b @12 @@\n\n") + b"0\r\n\r\n"
            for at in range(0, len(whole), 37):
                asked.writer.write(whole[at : at + 37])
                await asked.writer.drain()
                await asyncio.sleep(0)
            return b""

        async with odd_server(stream) as server:
            options = ("--connections", "5", "--events", "10", "--seconds", "20")
            seen = await load(server.port, "streams", *options, "--ramp", "0.1")
        assert adds_up(seen) == {}
        assert (seen["begun"], seen["events"], len(server.asked)) == (5, 50, 5)
        assert seen["first_byte"]["count"] == 5

    async def test_lateness_is_against_the_time_in_the_event(self):
        held = 0.3

        async def stream(_):
            event = chunk(stamp(time.monotonic_ns()))
            await asyncio.sleep(held)
            return CHUNKED + event + b"0\r\n\r\n"

        async with odd_server(stream) as server:
            seen = await load(server.port, "streams", "--connections", "3", "--events", "1", "--seconds", "20")
        assert adds_up(seen) == {}
        assert seen["event_lateness"]["count"] == 3
        assert seen["event_lateness"]["p50"] >= held * 1e6
        assert seen["first_byte"]["p50"] >= held * 1e6

    async def test_a_stream_that_lacks_events_or_its_end_is_no_answer(self):
        async def stream(asked):
            whole = CHUNKED + chunk(stamp(time.monotonic_ns()))
            asked.writer.write(whole if asked.number % 2 else whole + b"0\r\n\r\n")
            await asked.writer.drain()

        async with odd_server(stream) as server:
            seen = await load(server.port, "streams", "--connections", "6", "--events", "2", "--seconds", "1")
        assert adds_up(seen) == {"cut": 3, "short": 3}
        assert seen["events"] == 6
