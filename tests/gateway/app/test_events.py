"""A stream passes byte for byte, and where it breaks, what went out ends after a whole event."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.answers import split

from fairpool_gateway.app.dialect import ANTHROPIC, OPENAI
from fairpool_gateway.app.events import LONGEST, WholeEvents, can_be_appended_to

EVENTS = st.sampled_from(["data: {}", "event: x\ndata: y", ": ping", "data: " + "z" * 40]).map(str.encode)


@st.composite
def streams(draw):
    """The bytes of some events, by one of the ways in which lines may end, and the same in pieces."""
    newline = draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    events = draw(st.lists(EVENTS, min_size=1, max_size=5))
    wire = b"".join(event.replace(b"\n", newline) + newline * 2 for event in events)
    return newline * 2, wire, split(wire, draw(st.lists(st.integers(0, len(wire)), max_size=8)))


class PassesAsItComes(WholeEvents):
    """Negative control."""

    def take(self, data):
        return data


def check_ends_after_a_whole_event(kind, stream):
    end, _, pieces = stream
    events = kind()
    went = b""
    for piece in pieces:
        went += events.take(piece)
        assert not went or went.endswith(end)


class TestWholeEvents:
    @given(streams())
    def test_every_byte_of_a_whole_stream_passes(self, stream):
        _, wire, pieces = stream
        events = WholeEvents()
        assert b"".join(events.take(piece) for piece in pieces[:-1]) + events.last(pieces[-1]) == wire

    @given(streams())
    def test_at_every_moment_what_went_ends_after_a_whole_event(self, stream):
        check_ends_after_a_whole_event(WholeEvents, stream)

    def test_negative_control_is_caught(self):
        with pytest.raises(AssertionError):
            check_ends_after_a_whole_event(PassesAsItComes, (b"\n\n", b"", [b"data: {}\n\nda", b"ta: {}\n\n"]))

    @given(streams())
    def test_an_event_passes_as_soon_as_it_is_whole(self, stream):
        end, _, pieces = stream
        events = WholeEvents()
        came = went = b""
        for piece in pieces:
            came += piece
            went += events.take(piece)
            assert came.rfind(end) < len(went)

    def test_an_event_beyond_the_bound_is_passed_on_as_it_comes(self):
        events = WholeEvents()
        assert events.take(b"data: ") == b""
        assert len(events.take(b"x" * LONGEST)) == LONGEST + 6
        assert events.take(b"y") == b"y"
        assert events.take(b"z\n\ndata:") == b"z\n\n"


class TestBroken:
    def test_the_beginning_of_an_event_gives_way_to_the_error(self):
        events = WholeEvents()
        assert events.take(b'data: {"a": 1}\n\ndata: {"b"') == b'data: {"a": 1}\n\n'
        last = events.broken(OPENAI.broken("it broke"))
        assert last.startswith(b"data: ")
        assert last.endswith(b"\n\n")
        assert json.loads(last[6:])["error"]["message"] == "it broke"

    def test_anthropics_client_is_told_in_its_own_form(self):
        first, second, *rest = ANTHROPIC.broken("it broke").split(b"\n")
        assert (first, rest) == (b"event: error", [b"", b""])
        assert json.loads(second.removeprefix(b"data: "))["error"]["message"] == "it broke"

    def test_after_an_event_that_was_too_long_to_hold_the_error_still_begins_anew(self):
        events = WholeEvents()
        events.take(b"data: " + b"x" * LONGEST)
        events.take(b"y")
        assert events.broken(b"data: x\n\n") == b"\n\ndata: x\n\n"

    def test_once_such_an_event_has_ended_nothing_goes_before_the_error(self):
        events = WholeEvents()
        events.take(b"data: " + b"x" * LONGEST)
        events.take(b"\n\n")
        assert events.broken(b"data: x\n\n") == b"data: x\n\n"


class TestWhatCanBeAppendedTo:
    @pytest.mark.parametrize("media_type", [b"text/event-stream", b"Text/Event-Stream; charset=utf-8"])
    def test_a_stream_of_events(self, media_type):
        assert can_be_appended_to([(b"content-type", media_type)])
        assert can_be_appended_to([(b"content-type", media_type), (b"content-encoding", b"identity")])

    @pytest.mark.parametrize("header", [(b"content-encoding", b"gzip"), (b"content-length", b"10")])
    def test_not_one_that_is_compressed_or_has_a_length(self, header):
        assert not can_be_appended_to([(b"content-type", b"text/event-stream"), header])

    @pytest.mark.parametrize("media_type", [b"application/json", b"", b"text/event-streams"])
    def test_nothing_else(self, media_type):
        assert not can_be_appended_to([(b"content-type", media_type)])
