"""What a form says about its cost: fields by what they say, files by their bytes, and no form is too strange."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartParser
from support.forms import BOUNDARY, CONTENT_TYPE, form_of, part, recording

from fairpool_gateway.cost import Api, Shape, read_shape
from fairpool_gateway.cost.form import FILE_BYTES_PER_TOKEN
from fairpool_gateway.cost.upload import LONGEST_FIELD, MOST_PARTS
from fairpool_gateway.errors import InvalidRequest


def shape(body: bytes, content_type: bytes = CONTENT_TYPE, api: Api = Api.TRANSCRIPTIONS) -> Shape:
    return read_shape(api, body, content_type)


class TestRecordings:
    def test_the_file_counts_by_its_bytes_and_the_fields_as_text(self):
        found = shape(recording(bytes(100_000), prompt="names: Ada", language="en"))
        assert found == Shape("sim", False, 12, -(-100_000 // FILE_BYTES_PER_TOKEN), 1, None, True)

    @pytest.mark.parametrize("api", [Api.TRANSCRIPTIONS, Api.TRANSLATIONS])
    def test_a_stream_and_a_limit_are_read(self, api: Api):
        found = shape(recording(stream="true", max_completion_tokens="40"), api=api)
        assert (found.stream, found.max_tokens) == (True, 40)

    @pytest.mark.parametrize(
        ("word", "stream"), [("True", True), ("1", True), ("on", True), ("false", False), ("0", False), ("", False)]
    )
    def test_yes_and_no_have_many_forms(self, word: str, stream: bool):
        assert shape(recording(stream=word)).stream is stream

    @pytest.mark.parametrize("limit", ["", "0", "-1", "ten", "2.5", "1e9", "9" * 400])
    def test_a_limit_that_is_none_is_ignored(self, limit: str):
        assert shape(recording(max_completion_tokens=limit)).max_tokens is None

    def test_an_empty_file_costs_nothing_and_any_other_a_token_at_least(self):
        assert shape(recording(b"")).input_tokens == 0
        assert shape(recording(b"x")).input_tokens == 1

    def test_files_may_hold_anything(self):
        for audio in (b"\r\n" * 99, b"--" + BOUNDARY[:-1], b"\r\n--" + BOUNDARY[:-1] + b"x", bytes(range(256))):
            assert shape(recording(audio)).input_tokens == -(-len(audio) // FILE_BYTES_PER_TOKEN)

    @pytest.mark.parametrize(
        "content_type",
        [
            b"multipart/form-data; boundary=" + BOUNDARY,
            b'Multipart/Form-Data;charset=utf-8; boundary="' + BOUNDARY + b'"',
            b"multipart/form-data;boundary=" + BOUNDARY,
        ],
    )
    def test_the_boundary_is_found_however_it_is_written(self, content_type: bytes):
        assert shape(recording(), content_type).model == "sim"

    def test_a_path_that_the_pool_lets_pass_may_take_one_without_a_model(self):
        found = shape(form_of(part("prompt", "a hat"), part("image", bytes(512), "cat.png")), api=Api.EXTRA)
        assert found == Shape("", False, 5, 2, 1, None, True)

    def test_or_with_one(self):
        assert shape(recording(n="3"), api=Api.EXTRA).choices == 3


class TestRefused:
    @pytest.mark.parametrize(
        "content_type",
        [
            b"",
            b"application/json",
            b"multipart/form-data",
            b"multipart/mixed; boundary=x",
            b"multipart/form-data; boundary=",
        ],
    )
    def test_what_does_not_say_that_it_is_a_form(self, content_type: bytes):
        with pytest.raises(InvalidRequest):
            shape(recording(), content_type)

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"{}",
            b"--",
            recording()[:-10],
            recording().replace(b"\r\n", b"\n"),
            form_of(b"no header"),
            form_of(b"X-Other: 1\r\n\r\nvalue"),
            form_of(b"Content-Disposition: form-data\r\n\r\nvalue"),
            form_of(b"Content-Disposition: form-data; name*=utf-8''model\r\n\r\nsim"),
            form_of(b"A: 1\r\n" * 50 + part("model", "sim")),
            form_of(b"A: " + b"1" * 10_000 + b"\r\n" + part("model", "sim")),
        ],
    )
    def test_what_is_no_form_or_breaks_off(self, body: bytes):
        with pytest.raises(InvalidRequest) as refusal:
            shape(body)
        assert refusal.value.param is None

    @pytest.mark.parametrize(
        ("parts", "param"),
        [
            ([part("file", b"x", "a.wav")], "model"),
            ([part("model", "sim"), part("model", "sim")], "model"),
            ([part("model", "sim"), part("model", "other", "model.txt")], "model"),
            ([part("model", "sim", "model.txt")], "model"),
            ([part("model", b"\xff")], "model"),
            ([part("model", "x" * (LONGEST_FIELD + 1))], "model"),
            ([part("model", "sim"), part("stream", "perhaps")], "stream"),
            ([part("model", "sim"), part("priority", "-5")], "priority"),
            ([part("model", "sim"), part("background", "true")], "background"),
        ],
    )
    def test_what_cannot_be_ordered_would_overtake_or_says_two_things(self, parts: list[bytes], param: str):
        with pytest.raises(InvalidRequest) as refusal:
            shape(form_of(*parts))
        assert refusal.value.param == param
        assert param in refusal.value.message

    def test_but_not_to_overtake_in_a_pool_that_allows_it(self):
        form = form_of(part("model", "sim"), part("priority", "-5"), part("background", "true"))
        assert read_shape(Api.TRANSCRIPTIONS, form, CONTENT_TYPE, may_overtake=True).model == "sim"

    def test_but_not_what_some_clients_send_empty(self):
        assert shape(recording(priority="", background="false")).model == "sim"

    def test_nothing_of_it_is_logged(self, caplog: pytest.LogCaptureFixture):
        with pytest.raises(InvalidRequest):
            shape(form_of(b"s\x00ecret: 1\r\n\r\nsecret"))
        assert caplog.records == []


class TestHowLongItTakes:
    """A form is read on the one thread that serves everybody."""

    @pytest.mark.parametrize(
        ("boundary", "again"),
        [
            (b"a", b"\r\n--a\r\n\r\n"),
            (b"a", b"\r\n--ax"),
            (BOUNDARY, b"\r\n--" + BOUNDARY + b"-x"),
            (BOUNDARY, b"\r\n--" + BOUNDARY + b"\r\n" + part("a", "")),
        ],
    )
    def test_one_of_countless_parts_is_refused_before_it_is_parsed(self, boundary: bytes, again: bytes):
        body = b"--" + boundary + b"\r\n" + part("model", "sim") + again * ((2 << 20) // len(again))
        began = time.process_time()
        with pytest.raises(InvalidRequest, match="too many parts"):
            shape(body, b"multipart/form-data; boundary=" + boundary)
        assert time.process_time() - began < 0.05

    def test_as_many_as_any_client_sends_are_read(self):
        fields = {f"field{number}": "x" for number in range(MOST_PARTS - 3)}
        assert shape(recording(**fields)).text_bytes == MOST_PARTS - 3


async def model_as_engines_read_it(body: bytes) -> str | None:
    """What the parser of vLLM's web framework makes of a form."""

    async def stream() -> AsyncIterator[bytes]:
        yield body

    form = await MultiPartParser(Headers({"content-type": CONTENT_TYPE.decode()}), stream()).parse()
    try:
        model = form.get("model")
        return model if isinstance(model, str) else None
    finally:
        await form.close()


NAMES = st.sampled_from(
    ["model", "stream", "priority", "n", "max_completion_tokens", "file", "prompt", "\u00e9", 'a"b']
)
VALUES = st.binary(max_size=20) | st.sampled_from([b"sim", b"true", b"3", b"\r\n--", BOUNDARY, b"\r\n--" + BOUNDARY])
PARTS = st.builds(part, NAMES, VALUES, st.none() | st.sampled_from(["a.wav", "", "\u00e9.wav"]))
FORMS = st.lists(PARTS, max_size=5).map(lambda parts: form_of(*parts)) | st.lists(PARTS, max_size=3).map(
    lambda parts: form_of(part("model", "sim"), *parts)
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    body = draw(FORMS)
    at = draw(st.integers(0, len(body)))
    return body[:at] + draw(st.binary(max_size=4) | st.just(b"--" + BOUNDARY)) + body[at + draw(st.integers(0, 4)) :]


def trusting(api: Api, body: bytes, content_type: bytes) -> Shape:
    """As somebody in a hurry would write it."""
    boundary = content_type.split(b"boundary=")[1]
    fields = {}
    for each in body.split(b"--" + boundary)[1:-1]:
        head, value = each.split(b"\r\n\r\n", 1)
        fields[head.split(b'name="')[1].split(b'"')[0]] = value
    return Shape(fields[b"model"].decode(), False, len(body), 0, 1, None, generates=True)


def breaks(read: Any, body: bytes) -> bool:
    """Whether anything but a sound shape or a refusal comes out."""
    for api in (Api.TRANSCRIPTIONS, Api.EXTRA):
        try:
            found = read(api, body, CONTENT_TYPE)
        except InvalidRequest:
            continue
        except Exception:
            return True
        if found.text_bytes + found.input_tokens > len(body) or found.choices < 1:
            return True
    return False


class TestWhateverTheBytes:
    @settings(max_examples=300, deadline=None)
    @given(FORMS | damaged() | st.binary(max_size=40))
    def test_a_shape_or_a_refusal_comes_out(self, body: bytes):
        assert not breaks(read_shape, body)

    @given(
        st.binary(max_size=30)
        | st.text(max_size=20).map(lambda text: b"multipart/form-data; boundary=" + text.encode())
    )
    def test_whatever_the_content_type(self, content_type: bytes):
        for api in (Api.TRANSCRIPTIONS, Api.EXTRA):
            try:
                shape(recording(), content_type, api)
            except InvalidRequest:
                continue

    @settings(max_examples=200, deadline=None)
    @given(FORMS | damaged())
    def test_an_engine_sees_the_same_model(self, body: bytes):
        try:
            found = shape(body)
        except InvalidRequest:
            return
        assert asyncio.run(model_as_engines_read_it(body)) == found.model

    @pytest.mark.parametrize("body", [b"{}", form_of(part("file", b"x", "a.wav")), form_of(part("model", b"\xff"))])
    def test_a_reader_that_trusts_the_form_is_caught(self, body: bytes):
        assert breaks(trusting, body)
