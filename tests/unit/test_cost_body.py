"""What a body says about its cost: counted without decoding, and without ever failing on what a tenant sends."""

import json
from typing import Any

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from fairpool_gateway.cost import Api, Shape, read_shape
from fairpool_gateway.cost.api import FIELDS
from fairpool_gateway.cost.numbers import MOST_CHOICES
from fairpool_gateway.cost.size import AUDIO_TOKENS, FILE_TOKENS, IMAGE_TOKENS, MESSAGE_BYTES, VIDEO_TOKENS, Item
from fairpool_gateway.errors import InvalidRequest


def shape(api: Api, **fields: Any) -> Shape:
    return read_shape(api, json.dumps({"model": "m", **fields}, ensure_ascii=False).encode())


def chat(*messages: Any, **fields: Any) -> Shape:
    return shape(Api.CHAT, messages=list(messages), **fields)


def said(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


class TestChat:
    def test_counts_the_bytes_of_each_message_and_some_for_its_frame(self):
        assert chat(said("hello"), said("世界")).text_bytes == 5 + 6 + 2 * MESSAGE_BYTES

    def test_names_the_model_and_asks_for_one_answer_at_once(self):
        found = chat(said("hello"))
        assert (found.model, found.stream, found.choices, found.max_tokens, found.generates) == (
            "m",
            False,
            1,
            None,
            True,
        )

    def test_counts_escapes_by_their_length_in_json(self):
        assert chat(said("a\nb")).text_bytes == 4 + MESSAGE_BYTES

    def test_counts_the_text_of_parts(self):
        parts = [{"type": "text", "text": "hello"}, {"type": "text", "text": "you"}]
        assert chat(said(parts)).text_bytes == 8 + MESSAGE_BYTES

    @pytest.mark.parametrize(
        ("part", "tokens"),
        [
            ({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}, IMAGE_TOKENS),
            ({"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 9000}}, IMAGE_TOKENS),
            ({"type": "input_audio", "input_audio": {"data": "A" * 9000, "format": "wav"}}, AUDIO_TOKENS),
            ({"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}}, VIDEO_TOKENS),
            ({"type": "file", "file": {"file_data": "A" * 9000}}, FILE_TOKENS),
            ({"image_url": "https://example.org/a.png"}, IMAGE_TOKENS),
            ({"type": "hologram", "hologram": "A" * 9000}, IMAGE_TOKENS),
            ({"type": "image_url", "image_url": {"url": "x"}, "text": ""}, IMAGE_TOKENS),
        ],
    )
    def test_counts_what_is_not_text_by_a_constant_and_never_zero(self, part: Any, tokens: int):
        found = chat(said([part, {"type": "text", "text": "hello"}]))
        assert (found.input_tokens, found.text_bytes) == (tokens, 5 + MESSAGE_BYTES)

    def test_counts_each_image(self):
        image = {"type": "image_url", "image_url": {"url": "x"}}
        assert chat(said([image, image]), said([image])).input_tokens == 3 * IMAGE_TOKENS

    def test_counts_tool_calls_and_reasoning_of_earlier_answers(self):
        calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
        message = {"role": "assistant", "content": None, "tool_calls": calls, "reasoning_content": "hm"}
        assert chat(message).text_bytes == len(json.dumps(calls)) + len('"hm"') + MESSAGE_BYTES

    @pytest.mark.parametrize("field", ["tools", "functions", "response_format"])
    def test_counts_what_else_the_engine_reads(self, field: str):
        value = [{"type": "function", "function": {"name": "f"}}]
        more = chat(said("hello"), **{field: value}).text_bytes - chat(said("hello")).text_bytes
        assert more >= len("function name f")

    def test_measures_a_body_of_countless_objects_by_its_length(self):
        body = b'{"model": "m", "messages": [' + b",".join([b"{}"] * 30_000) + b"]}"
        assert read_shape(Api.CHAT, body).text_bytes == 3 * 30_000 + 1

    def test_looks_into_a_large_body_of_few_objects(self):
        image = {"type": "image_url", "image_url": {"url": "data:" + "A" * 200_000}}
        code = {"type": "text", "text": "{" * 5_000}
        found = chat(said([image, code]))
        assert (found.input_tokens, found.text_bytes) == (IMAGE_TOKENS, 5_000 + MESSAGE_BYTES)


class TestCompletions:
    @pytest.mark.parametrize(
        ("prompt", "text_bytes", "input_tokens", "prompts"),
        [
            ("hello", 5, 0, 1),
            (["hello", "you"], 8, 0, 2),
            (["ends in \\", 'quotes "this"', "plain"], 8 + 2 + 15 + 5, 0, 3),
            ([72, 73, 74], 0, 3, 1),
            ([[72, 73], [74]], 0, 3, 2),
            ([-1], 0, 1, 1),
            ([], 2, 0, 1),
            (None, 0, 0, 1),
        ],
    )
    def test_counts_text_and_token_numbers_of_each_prompt(self, prompt, text_bytes, input_tokens, prompts):
        body = json.dumps({"model": "m", "prompt": prompt}, separators=(",", ":")).encode()
        found = read_shape(Api.COMPLETIONS, body)
        assert (found.text_bytes, found.input_tokens, found.choices) == (text_bytes, input_tokens, prompts)

    def test_each_prompt_gets_as_many_answers_as_asked_for(self):
        assert shape(Api.COMPLETIONS, prompt=["a", "b", "c"], n=2).choices == 6

    def test_answers_that_are_generated_but_not_returned_count_too(self):
        assert shape(Api.COMPLETIONS, prompt="a", n=2, best_of=5).choices == 5

    def test_counts_a_large_token_array_exactly(self):
        assert shape(Api.COMPLETIONS, prompt=list(range(100_000))).input_tokens == 100_000


class TestEmbeddings:
    def test_generate_nothing(self):
        found = shape(Api.EMBEDDINGS, input=["hello", "you"])
        assert (found.generates, found.choices) == (False, 1)

    def test_count_text_token_numbers_and_messages(self):
        assert shape(Api.EMBEDDINGS, input="hello").text_bytes == 5
        assert shape(Api.EMBEDDINGS, input=[[1, 2], [3]]).input_tokens == 3
        assert shape(Api.EMBEDDINGS, messages=[said("hello")]).text_bytes == 5 + MESSAGE_BYTES


class TestResponses:
    def test_count_input_and_instructions(self):
        assert shape(Api.RESPONSES, input="hello", instructions="be brief").text_bytes == 5 + 8

    def test_count_items_of_all_kinds(self):
        items = [
            said([{"type": "input_text", "text": "hello"}, {"type": "input_image", "image_url": "data:AAAA"}]),
            {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "1"},
            {"type": "function_call_output", "call_id": "1", "output": "seven"},
            {"type": "computer_call_output", "output": {"type": "computer_screenshot", "image_url": "data:AAAA"}},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        ]
        found = shape(Api.RESPONSES, input=items)
        assert found.text_bytes == 5 + len('"f"') + len('"{}"') + 5 + 2 + 5 * MESSAGE_BYTES
        assert found.input_tokens == 2 * IMAGE_TOKENS

    def test_have_a_name_of_their_own_for_the_limit(self):
        assert shape(Api.RESPONSES, input="hello", max_output_tokens=9, max_tokens=5).max_tokens == 9


class TestLimits:
    @pytest.mark.parametrize("value", [None, 0, -1, "10", 2.5, 1e40, 1 << 31, 10**400, True, [], {"a": 1}])
    def test_one_that_is_none_is_ignored(self, value: Any):
        assert chat(said("hello"), max_tokens=value).max_tokens is None

    def test_the_newer_name_goes_first_if_it_is_valid(self):
        assert chat(max_completion_tokens=7, max_tokens=5).max_tokens == 7
        assert chat(max_completion_tokens=None, max_tokens=5).max_tokens == 5

    @pytest.mark.parametrize(
        ("value", "choices"),
        [
            (3, 3),
            ("3", 3),
            (3.0, 3),
            (None, 1),
            (0, 1),
            (-5, 1),
            ("two", 1),
            (2.5, 1),
            ([2], 1),
            (10**400, MOST_CHOICES),
        ],
    )
    def test_the_number_of_answers_is_at_least_one_and_bounded(self, value: Any, choices: int):
        assert chat(said("hello"), n=value).choices == choices


class TestRefused:
    @pytest.mark.parametrize(
        "body", [b"", b"[]", b"3", b"null", b"{", b'{"model": "m"}x', b"\xff", b"[" * 100_000, b'{"a":' * 100_000]
    )
    def test_what_is_no_json_object(self, body: bytes):
        with pytest.raises(InvalidRequest):
            read_shape(Api.CHAT, body)

    @pytest.mark.parametrize(
        ("fields", "param"),
        [
            ('"messages": []', "model"),
            ('"model": null', "model"),
            ('"model": 3', "model"),
            ('"model": ["m"]', "model"),
            ('"model": "m", "stream": "yes"', "stream"),
            ('"model": "m", "stream": 1', "stream"),
            ('"model": "m", "priority": 0', "priority"),
            ('"model": "m", "priority": "-5"', "priority"),
            ('"model": "m", "priorit\\u0079": -5', "priority"),
            ('"model": "m", "priority": null, "priority": -5', "priority"),
            ('"model": "m", "background": true', "background"),
            ('"model": "m", "background": "true"', "background"),
            ('"model": "m", "background": 1', "background"),
        ],
    )
    def test_what_cannot_be_ordered_or_would_overtake(self, fields: str, param: str):
        with pytest.raises(InvalidRequest) as refusal:
            read_shape(Api.RESPONSES, f"{{{fields}}}".encode())
        assert refusal.value.param == param
        assert param in refusal.value.message

    @pytest.mark.parametrize("field", ['"priority": -5', '"background": true'])
    def test_but_not_to_overtake_in_a_pool_that_allows_it(self, field: str):
        assert read_shape(Api.RESPONSES, b'{"model": "m", %b}' % field.encode(), may_overtake=True).model == "m"

    def test_nothing_of_a_prompt_is_in_the_refusal(self):
        with pytest.raises(InvalidRequest) as refusal:
            read_shape(Api.CHAT, b'{"model": "m", "messages": [{"content": "secret"}]')
        assert "secret" not in refusal.value.message

    def test_but_not_the_harmless_values_that_some_clients_send(self):
        assert not chat(said("hello"), stream=None, priority=None, background=False).stream
        assert chat(said("hello"), stream=True).stream


class TestOddBodies:
    """The engine judges its own API: what it may refuse is passed on, and counted."""

    @pytest.mark.parametrize(
        "messages",
        ["hello you", {"role": "user", "content": "hello"}, [["hello you"]], [said("hello"), None], 12345678],
    )
    def test_messages_of_a_wrong_type_count_by_their_length(self, messages: Any):
        assert shape(Api.CHAT, messages=messages).text_bytes >= 8

    @pytest.mark.parametrize("content", [12345678, {"text": "hello you"}, ["hello", "you"], [["hello"], "you"], True])
    def test_content_of_a_wrong_type_is_not_free(self, content: Any):
        found = chat(said(content))
        assert found.text_bytes + found.input_tokens > MESSAGE_BYTES

    def test_unknown_fields_cost_nothing(self):
        assert chat(said("hello"), metadata={"a": "b" * 999}) == chat(said("hello"))


leaves = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9)
)
NAMES = {"model", "stream", "priority", "background", "messages", "image_url", *Item.__struct_fields__}
KNOWN = st.sampled_from(sorted(NAMES.union(*(fields.names() for fields in FIELDS.values()))))
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KNOWN, inner, max_size=4), max_leaves=12
)
objects = st.dictionaries(KNOWN | st.text(max_size=3), values, max_size=8).map(lambda body: {"model": "m", **body})
bodies = objects.map(lambda body: json.dumps(body).encode())


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    body = draw(bodies)
    at = draw(st.integers(0, len(body)))
    return body[:at] + draw(st.binary(max_size=4)) + body[at + draw(st.integers(0, 4)) :]


def trusting(api: Api, body: bytes) -> Shape:
    """As somebody in a hurry would write it."""
    fields = json.loads(body)
    text = sum(len(message["content"]) for message in fields.get("messages", []))
    return Shape(fields["model"], bool(fields.get("stream")), text, 0, fields.get("n", 1), None, generates=True)


def breaks(read: Any, api: Api, body: bytes) -> bool:
    """Whether anything but a sound shape or a refusal comes out."""
    try:
        found = read(api, body)
    except InvalidRequest:
        return False
    except Exception:
        return True
    return not (
        isinstance(found.model, str)
        and found.text_bytes >= 0
        and found.input_tokens >= 0
        and isinstance(found.choices, int)
        and found.choices >= 1
        and (found.max_tokens is None or found.max_tokens >= 1)
    )


class TestWhateverTheBytes:
    @settings(max_examples=300, deadline=None)
    @given(api=st.sampled_from(Api), body=bodies | damaged() | st.binary(max_size=40))
    def test_a_shape_or_a_refusal_comes_out(self, api: Api, body: bytes):
        assert not breaks(read_shape, api, body)

    @settings(max_examples=100, deadline=None)
    @given(api=st.sampled_from([api for api in Api if api is not Api.EXTRA]), body=bodies)
    def test_the_same_body_has_the_same_shape_however_it_is_spaced(self, api: Api, body: bytes):
        try:
            found = read_shape(api, body)
        except InvalidRequest:
            return
        spaced = read_shape(api, b" \r\n\t" + body + b" \n")
        assert spaced == found

    def test_a_reader_that_trusts_the_body_is_caught(self):
        with pytest.raises(NoSuchExample):
            find(bodies, lambda body: breaks(read_shape, Api.CHAT, body), settings=settings(max_examples=100))
        assert find(
            bodies, lambda body: breaks(trusting, Api.CHAT, body), settings=settings(max_examples=500, derandomize=True)
        )
