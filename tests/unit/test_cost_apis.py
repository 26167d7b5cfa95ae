"""What a body says about its cost, for the APIs beside OpenAI's chat: nothing that an engine may read counts zero."""

import json
from typing import Any

import pytest

from fairpool_gateway.cost import Api, CostModel, Estimator, Shape, Used, read_shape
from fairpool_gateway.cost.api import FIELDS
from fairpool_gateway.cost.body import DRAWN_TOKENS, SPOKEN_TOKENS_PER_BYTE
from fairpool_gateway.cost.size import FILE_TOKENS, IMAGE_TOKENS, MESSAGE_BYTES
from fairpool_gateway.errors import InvalidRequest


def shape(api: Api, **fields: Any) -> Shape:
    return read_shape(api, json.dumps({"model": "m", **fields}, separators=(",", ":")).encode())


def said(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


class TestMessages:
    def test_count_the_system_prompt_the_conversation_and_the_tools(self):
        tools = [{"name": "f", "input_schema": {"type": "object"}}]
        found = shape(Api.MESSAGES, system="be brief", messages=[said("hello")], tools=tools, max_tokens=9)
        plain = shape(Api.MESSAGES, messages=[said("hello")])
        assert plain.text_bytes == 5 + MESSAGE_BYTES
        assert found.text_bytes >= plain.text_bytes + 8 + len('{"name":"f"}')
        assert (found.max_tokens, found.choices, found.generates) == (9, 1, True)

    def test_a_system_prompt_may_have_parts(self):
        parts = [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}]
        assert shape(Api.MESSAGES, system=parts).text_bytes == 8 + MESSAGE_BYTES

    @pytest.mark.parametrize(
        ("part", "text", "tokens"),
        [
            ({"type": "text", "text": "hello"}, 5, 0),
            ({"type": "thinking", "thinking": "hm", "signature": "x" * 99}, len('"hm"'), 0),
            ({"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}}, len('"f"{"a":1}'), 0),
            ({"type": "tool_result", "tool_use_id": "1", "content": "seven"}, 5, 0),
            ({"type": "tool_result", "tool_use_id": "1", "content": ""}, 0, 0),
            ({"type": "tool_result", "content": [{"type": "text", "text": "seven"}]}, 5, 0),
            ({"type": "tool_result", "content": [{"type": "image", "source": {"type": "url"}}]}, 0, IMAGE_TOKENS),
            ({"type": "image", "source": {"type": "base64", "data": "A" * 9000}}, 0, IMAGE_TOKENS),
            ({"type": "image", "source": {"type": "text", "data": ""}}, 0, IMAGE_TOKENS),
            ({"type": "document", "source": {"type": "base64", "data": "A" * 9000}}, 0, FILE_TOKENS),
            ({"type": "document", "source": "x"}, 0, FILE_TOKENS),
            ({"type": "document", "source": {"type": "text", "data": "hello"}}, len('"hello"'), 0),
            ({"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "hello"}]}}, 5, 0),
            ({"type": "search_result", "source": "url", "content": [{"type": "text", "text": "hello"}]}, 5, 0),
        ],
    )
    def test_count_parts_of_all_kinds(self, part: Any, text: int, tokens: int):
        found = shape(Api.MESSAGES, messages=[said([part])])
        assert (found.text_bytes - MESSAGE_BYTES, found.input_tokens) == (text, tokens)


class TestPairs:
    """An engine reads the query again with each document."""

    @pytest.mark.parametrize("documents", ["documents", "texts"])
    def test_a_query_is_read_with_each_document(self, documents: str):
        found = shape(Api.RERANK, query="query", **{documents: ["one", "three", "seven"]})
        assert (found.text_bytes, found.generates) == (3 * 5 + 3 + 5 + 5, False)

    def test_documents_may_be_objects(self):
        documents = [{"text": "one"}, {"text": "three"}]
        assert shape(Api.RERANK, query="query", documents=documents).text_bytes == 2 * 5 + 3 + 5

    def test_or_parts_of_one_with_images_among_them(self):
        parts = [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {"url": "x"}}]
        found = shape(Api.RERANK, query="query", documents={"content": parts})
        assert (found.text_bytes, found.input_tokens) == (2 * 5 + 3, IMAGE_TOKENS)

    def test_more_documents_than_are_looked_into_count_all_the_same(self):
        body = b'{"model":"m","query":"query","documents":[' + b",".join([b"{}"] * 30_000) + b"]}"
        assert read_shape(Api.RERANK, body).text_bytes >= 30_000 * 5

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("text_1", "text_2"),
            ("data_1", "data_2"),
            ("queries", "documents"),
            ("queries", "items"),
            ("query", "items"),
        ],
    )
    def test_scores_have_many_names_for_both_sides(self, one: str, other: str):
        assert shape(Api.SCORE, **{one: "query", other: ["one", "three"]}).text_bytes == 2 * 5 + 3 + 5
        assert shape(Api.SCORE, **{one: ["one", "three"], other: "query"}).text_bytes == 2 * 5 + 3 + 5

    def test_as_many_on_both_sides_are_read_once(self):
        assert shape(Api.SCORE, text_1=["one", "two"], text_2=["three", "seven"]).text_bytes == 3 + 3 + 5 + 5

    def test_token_numbers_count_exactly(self):
        assert shape(Api.SCORE, query=[1, 2, 3], items=[[1], [2, 3]]).input_tokens == 2 * 3 + 3

    @pytest.mark.parametrize(
        "fields", [{}, {"query": "query"}, {"documents": ["one"]}, {"query": None, "documents": 3}]
    )
    def test_half_a_pair_is_passed_on_and_counted(self, fields: Any):
        assert shape(Api.RERANK, **fields).text_bytes >= len(json.dumps(fields.get("query") or "")) - 2


class TestOthers:
    @pytest.mark.parametrize("api", [Api.CLASSIFY, Api.POOLING])
    def test_what_is_pooled_is_read_and_generates_nothing(self, api: Api):
        found = shape(api, input=["hello", "you"])
        assert (found.text_bytes, found.choices, found.generates) == (8, 1, False)
        assert shape(api, messages=[said("hello")]).text_bytes == 5 + MESSAGE_BYTES
        assert shape(api, input=[1, 2, 3]).input_tokens == 3

    def test_data_for_a_plugin_counts_by_its_length(self):
        assert shape(Api.POOLING, data={"a": [1, 2]}).text_bytes == len('{"a":[1,2]}')

    @pytest.mark.parametrize("fields", [{"prompt": "hello"}, {"content": "hello"}, {"text": "hello"}])
    def test_what_is_to_be_split_into_tokens_is_read(self, fields: Any):
        found = shape(Api.TOKENIZE, **fields)
        assert (found.text_bytes, found.generates) == (5, False)

    def test_so_is_a_conversation(self):
        assert shape(Api.TOKENIZE, messages=[said("hello")]).text_bytes == 5 + MESSAGE_BYTES

    def test_tokens_that_are_to_be_joined_are_counted(self):
        assert shape(Api.DETOKENIZE, tokens=[1, 2, 3]).input_tokens == 3

    def test_speech_costs_what_it_takes_to_say_the_text(self):
        short, long = (shape(Api.SPEECH, input="x" * size, instructions="calmly") for size in (10, 1000))
        assert (short.text_bytes, long.text_bytes, short.generates) == (16, 1006, False)
        assert long.input_tokens - short.input_tokens == 990 * SPOKEN_TOKENS_PER_BYTE

    @pytest.mark.parametrize(
        ("fields", "megapixels"),
        [
            ({}, 1),
            ({"n": 3}, 3),
            ({"size": "1024x1024"}, 1),
            ({"size": "512x512", "n": 2}, 2),
            ({"size": "2048x1024", "n": 2}, 4),
            ({"size": "1025x1024"}, 2),
            ({"size": "99999x99999"}, 9537),
            ({"size": "auto"}, 1),
            ({"size": 7}, 1),
            ({"size": "0x0"}, 1),
            ({"n": None}, 1),
            ({"n": -1}, 1),
        ],
    )
    def test_images_cost_what_they_take_to_draw(self, fields: Any, megapixels: int):
        found = shape(Api.IMAGES, prompt="a cat", **fields)
        assert (found.text_bytes, found.input_tokens) == (5, megapixels * DRAWN_TOKENS)
        assert not found.generates

    def test_what_their_making_used_teaches_what_they_cost(self):
        estimator, found = Estimator(CostModel(output_weight=1)), shape(Api.IMAGES, prompt="a cat")
        for _ in range(300):
            estimator.learn("t", found, Used(5, 1000))
        assert estimator.estimate("t", found) == pytest.approx(1005, rel=0.05)

    @pytest.mark.parametrize("api", [api for api in Api if api is not Api.EXTRA])
    def test_all_need_a_model_and_refuse_to_overtake(self, api: Api):
        for body in (b"{}", b'{"model":"m","priority":-1}', b'{"model":"m","background":true}'):
            with pytest.raises(InvalidRequest):
                read_shape(api, body)


JSON_APIS = [api for api in Api if not FIELDS[api].upload]
READ = [
    (api, field)
    for api in JSON_APIS
    for field in sorted({"messages", *FIELDS[api].reads, *FIELDS[api].each, *FIELDS[api].with_each})
]
CONTENT = [
    "hello",
    ["hello"],
    [1, 2, 3],
    [[1, 2], [3]],
    {"a": "hello"},
    [{"type": "text", "text": "hello"}],
    [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA"}}]}],
    [{"type": "image_url", "image_url": {"url": "data:AAAA"}}],
    {"content": [{"type": "image_url", "image_url": {"url": "data:AAAA"}}]},
    [[["hello"]]],
    ["hello", 1, None, {}],
    12345678,
    True,
]
NO_LIMIT = [None, 0, -1, "10", 2.5, 1e40, 1 << 31, 10**400, True, [], {"a": 1}]


class TestEveryApi:
    @pytest.mark.parametrize(("api", "field"), READ, ids=lambda value: getattr(value, "name", value))
    def test_whatever_an_engine_may_read_costs_something(self, api: Api, field: str):
        nothing = shape(api)
        for value in CONTENT:
            found = shape(api, **{field: value})
            assert found.text_bytes + found.input_tokens > nothing.text_bytes + nothing.input_tokens, value

    @pytest.mark.parametrize(("api", "field"), READ, ids=lambda value: getattr(value, "name", value))
    def test_twice_as_much_costs_more(self, api: Api, field: str):
        for value in ("hello", ["hello"], [1, 2], [said("hello")]):
            once, twice = shape(api, **{field: value}), shape(api, **{field: value * 2})
            assert twice.text_bytes + twice.input_tokens > once.text_bytes + once.input_tokens

    @pytest.mark.parametrize("api", JSON_APIS)
    def test_a_limit_counts_if_it_is_one(self, api: Api):
        assert shape(api).max_tokens is None
        for name in FIELDS[api].limits:
            assert shape(api, **{name: 7}).max_tokens == 7
            assert [shape(api, **{name: value}).max_tokens for value in NO_LIMIT] == [None] * len(NO_LIMIT)

    @pytest.mark.parametrize("api", JSON_APIS)
    def test_so_does_a_number_of_answers(self, api: Api):
        for name in FIELDS[api].choices:
            numbers = {3: 3, "3": 3, None: 1, 0: 1, -5: 1, "two": 1, 2.5: 1, 10**400: 16_384}
            assert {value: shape(api, **{name: value}).choices for value in numbers} == numbers

    def test_what_generates_is_told_from_what_does_not(self):
        silent = ["EMBEDDINGS", "RERANK", "SCORE", "CLASSIFY", "POOLING", "SPEECH", "IMAGES", "TOKENIZE", "DETOKENIZE"]
        assert {api.name for api in Api if not FIELDS[api].generates} == set(silent)


class TestExtra:
    """A path that the pool lets pass, of which nothing is known."""

    def test_every_byte_counts(self):
        body = b'{"text": "hello", "sampling_params": {"max_new_tokens": 3}}'
        assert read_shape(Api.EXTRA, body) == Shape("", False, len(body), 0, 1, None, True)

    def test_what_looks_like_a_chat_is_read_like_one(self):
        image = {"type": "image_url", "image_url": {"url": "data:" + "A" * 9000}}
        found = shape(Api.EXTRA, messages=[said([image])], n=2, max_tokens=7, stream=True)
        assert (found.model, found.stream, found.choices, found.max_tokens) == ("m", True, 2, 7)
        assert found.input_tokens == IMAGE_TOKENS
        assert MESSAGE_BYTES < found.text_bytes < 100

    def test_a_prompt_of_tokens_too(self):
        found = shape(Api.EXTRA, prompt=[[1, 2], [3]])
        assert (found.input_tokens, found.choices) == (3, 2)

    def test_a_small_known_field_does_not_hide_a_large_unknown_one(self):
        assert shape(Api.EXTRA, prompt="x", text="y" * 5000).text_bytes > 5000

    def test_one_that_is_no_json_counts_by_its_length(self):
        found = read_shape(Api.EXTRA, b"\x00" * 5000, b"application/octet-stream")
        assert found == Shape("", False, 5000, 0, 1, None, True)

    def test_nothing_costs_nothing(self):
        assert read_shape(Api.EXTRA, b"", b"").text_bytes == 0

    @pytest.mark.parametrize("content_type", [b"", b"application/json", b"text/json", b"application/x+JSON"])
    def test_what_says_that_it_is_json_has_to_be(self, content_type: bytes):
        for body in (b"{", b"[]", b'{"a": NaN}', '{"model": "m"}'.encode("utf-16")):
            with pytest.raises(InvalidRequest):
                read_shape(Api.EXTRA, body, content_type)

    @pytest.mark.parametrize("body", [b'{"priority": -1}', b' \n{"priority": -1}', b'\xef\xbb\xbf{"priority": -1}'])
    def test_what_looks_like_json_is_held_to_it_whatever_it_says(self, body: bytes):
        with pytest.raises(InvalidRequest):
            read_shape(Api.EXTRA, body, b"text/plain")
