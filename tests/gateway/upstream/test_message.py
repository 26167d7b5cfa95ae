"""An answer says the same however its bytes are cut; what is no answer is told so."""

import pytest
from hypothesis import Phase, find, given, settings
from support.answers import answers, is_read_faithfully, split

from fairpool_gateway.errors import UpstreamBroken
from fairpool_gateway.upstream.message import MAX_HEAD, Message


class TakesTheLastPieceOfTheReason(Message):
    def on_status(self, reason):
        self.reason = reason


class KeepsHeadersOfInterimAnswers(Message):
    def on_message_begin(self):
        self.reason = b""


class TakesAnInterimAnswerForTheEnd(Message):
    def on_message_complete(self):
        self.complete = True


class TakesTrailersForHeaders(Message):
    def on_header(self, name, value):
        self.headers.append((name.lower(), value))


class DropsAllButTheLastPieceOfASegment(Message):
    def on_body(self, data):
        self._pieces.clear()
        super().on_body(data)


class MergesRepeatedHeaders(Message):
    def on_headers_complete(self):
        super().on_headers_complete()
        self.headers = list(dict(self.headers).items())


class NeverEndsWithTheConnection(Message):
    def feed_eof(self):
        pass


class ReusesWhateverCame(Message):
    def on_headers_complete(self):
        super().on_headers_complete()
        self.reusable = True


BROKEN = [
    TakesTheLastPieceOfTheReason,
    KeepsHeadersOfInterimAnswers,
    TakesAnInterimAnswerForTheEnd,
    TakesTrailersForHeaders,
    DropsAllButTheLastPieceOfASegment,
    MergesRepeatedHeaders,
    NeverEndsWithTheConnection,
    ReusesWhateverCame,
]


class TestAnswerInAnySegments:
    @settings(max_examples=300, deadline=None)
    @given(answers())
    def test_gives_the_same_status_headers_and_body(self, answer):
        assert is_read_faithfully(answer)

    @pytest.mark.parametrize("broken", BROKEN)
    def test_negative_control_is_caught(self, broken):
        find(
            answers(),
            lambda answer: not is_read_faithfully(answer, broken),
            settings=settings(
                max_examples=2000, database=None, derandomize=True, deadline=None, phases=[Phase.generate]
            ),
        )


def read(wire, *, bodiless=False, cuts=()):
    message = Message(bodiless=bodiless)
    for segment in split(wire, cuts):
        message.feed(segment)
    return message


class TestFraming:
    @pytest.mark.parametrize("coding", [b"gzip", b"chunked, gzip", b"xchunked"])
    def test_coding_that_does_not_end_in_chunked_lasts_until_close(self, coding):
        message = read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + coding + b"\r\n\r\n5\r\n")
        assert not message.complete
        message.feed_eof()
        assert message.complete
        assert message.take() == b"5\r\n"

    @pytest.mark.parametrize("framing", [b"Content-Length: 5", b"Transfer-Encoding: chunked"])
    def test_end_of_the_connection_does_not_complete_a_framed_body(self, framing):
        message = read(b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + framing + b"\r\n\r\n")
        message.feed_eof()
        assert not message.complete

    def test_end_of_the_connection_does_not_complete_a_head(self):
        message = read(b"HTTP/1.1 200 OK\r\nConnection: close\r\n")
        message.feed_eof()
        assert not message.complete

    def test_answer_to_head_is_complete_with_its_headers(self):
        message = read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", bodiless=True)
        assert message.complete
        assert message.reusable
        assert message.take() == b""

    def test_body_of_an_answer_to_head_is_not_taken_for_one(self):
        message = read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", bodiless=True)
        assert message.complete
        assert not message.reusable
        assert message.take() == b""

    def test_interim_answer_does_not_complete_an_answer_to_head(self):
        assert not read(b"HTTP/1.1 100 Continue\r\n\r\n", bodiless=True).complete

    def test_old_protocol_is_not_reused(self):
        message = read(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        assert message.complete
        assert not message.reusable


class TestBytesAfterTheEnd:
    @pytest.mark.parametrize("extra", [b"x", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad", b"H"])
    def test_belong_to_no_answer_and_spoil_the_connection(self, extra):
        message = read(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood" + extra)
        assert message.complete
        assert not message.reusable
        assert message.status == 200
        assert message.headers == [(b"content-length", b"4")]
        assert message.take() == b"good"


class TestGarbage:
    @pytest.mark.parametrize(
        "wire",
        [
            b"<html>hello</html>",
            b"\x16\x03\x01\x02\x00",
            b"HTTP/1.1 abc OK\r\n\r\n",
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
            b"HTTP/1.1 099 Odd\r\n\r\n",
            b"HTTP/1.1 600 Odd\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"HTTP/1.1 200 OK\r\nX-Folded: a\r\n b\r\n\r\n",
            b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        ],
    )
    def test_is_refused_as_an_answer_that_broke(self, wire):
        with pytest.raises(UpstreamBroken, match=r"no HTTP: ..") as caught:
            read(wire)
        assert caught.value.answered


def assert_refused_when_repeated(message, segment):
    for _ in range((MAX_HEAD - message.received) // len(segment)):
        message.feed(segment)
    with pytest.raises(UpstreamBroken, match="bytes of headers"):
        message.feed(segment)


class TestHeadIsBounded:
    START = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"

    def head(self, size):
        return self.START + b"X-Long: " + b"a" * (size - len(self.START) - 14) + b"\r\n\r\nhi"

    @pytest.mark.parametrize("cuts", [(), range(0, MAX_HEAD, 1000)])
    def test_head_of_the_greatest_size_is_read(self, cuts):
        assert read(self.head(MAX_HEAD), cuts=cuts).complete

    @pytest.mark.parametrize("cuts", [(), range(0, MAX_HEAD, 1000)])
    def test_greater_head_is_refused(self, cuts):
        with pytest.raises(UpstreamBroken, match="bytes of headers"):
            read(self.head(MAX_HEAD + 100), cuts=cuts)

    def test_long_body_in_the_segment_of_the_head_does_not_count(self):
        wire = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (2 * MAX_HEAD) + bytes(2 * MAX_HEAD)
        assert read(wire).complete

    @pytest.mark.parametrize(
        "start",
        [
            b"HTTP/1.1 200 OK\r\nX-Endless: ",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Endless-Trailer: ",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;extension=",
        ],
    )
    def test_what_never_ends_is_refused_before_long(self, start):
        assert_refused_when_repeated(read(start), b"a" * 1000)

    def test_interim_answers_without_end_are_refused_before_long(self):
        assert_refused_when_repeated(read(b""), b"HTTP/1.1 100 Continue\r\n\r\n")

    def test_framing_alone_never_adds_up_over_a_long_stream(self):
        message = read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(MAX_HEAD // 5 + 1):
            message.feed(b"1\r\n")
            message.feed(b"a\r\n")
            message.take()
        assert not message.complete
