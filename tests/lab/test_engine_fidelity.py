"""The engine answers what vLLM 0.32 answered: each recorded request is sent again and the answers are compared.

A field may be missing where no client reads it; one that is there stands where vLLM has it and holds the same kind of
value. Texts, ids, dates and counts of tokens are the engine's own; everything else is equal, error bodies to the
letter but where the words are those of a library that vLLM checks its bodies with.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.engine import running_engine

RECORDED = Path(__file__).parent / "recorded_vllm"

OWN = {
    "id", "item_id", "created", "created_at", "content", "text", "delta", "system_fingerprint", "root", "permission",
    "prompt_tokens", "total_tokens", "input_tokens", "completion_tokens",
}  # fmt: skip
"""Fields whose values differ from engine to engine."""

MAY_BE_MISSING = {
    "routed_experts", "prompt_text", "ec_transfer_params", "metrics", "input_messages", "output_messages", "prompt",
    "kv_transfer_params", "presence_penalty", "frequency_penalty", "max_tool_calls", "top_logprobs", "prompt_token_ids",
    "input_tokens_per_turn", "cached_tokens_per_turn", "tool_output_tokens", "output_tokens_per_turn",
    "tool_output_tokens_per_turn",
}  # fmt: skip
"""Fields that no client reads."""

CUT, LONG = "...(cut)...", "x" * 100_000
"""What stands in a recorded request for a text that is too long for the model, and such a text."""

LIBRARY_WORDS = {"err_bad_json", "err_json_array", "err_temp_type", "err_empty", "err_no_messages"}


@dataclass(frozen=True)
class Exchange:
    """One recorded request and its answer."""

    method: str
    path: str
    request_headers: dict[str, str]
    request_body: str
    status: int
    headers: dict[str, str]
    body: str


def recorded(name: str) -> Exchange:
    head, _, body = (RECORDED / f"{name}.txt").read_text().partition("\n\n")
    request, sent, answer, *headers = head.split("\n")
    method, path, extra = request.removeprefix("> ").split(" ", 2)
    return Exchange(
        method=method,
        path=path,
        request_headers={"content-type": "application/json"} | json.loads(extra.lower() or "{}"),
        request_body=sent.removeprefix("> ").replace(CUT, LONG),
        status=int(answer.split()[1]),
        headers=dict(line.removeprefix("< ").split(": ", 1) for line in headers),
        body=body,
    )


def same_kind(ours: Any, theirs: Any, where: str) -> None:
    if isinstance(theirs, dict):
        assert isinstance(ours, dict), where
        assert not ours.keys() - theirs.keys(), f"{where}: vLLM has no such field"
        assert not theirs.keys() - ours.keys() - MAY_BE_MISSING, f"{where}: a field is missing"
        assert list(ours) == [key for key in theirs if key in ours], f"{where}: another order"
        for key, value in ours.items():
            if key in OWN and not isinstance(value, dict | list):
                assert type(value) is type(theirs[key]), f"{where}.{key}"
            elif key != "permission":
                same_kind(value, theirs[key], f"{where}.{key}")
    elif isinstance(theirs, list):
        assert isinstance(ours, list), where
        assert len(ours) == len(theirs), where
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            same_kind(one, other, f"{where}[{index}]")
    else:
        assert ours == theirs, where


def events(body: str) -> list[Any]:
    """The events of a stream: their names where they have any, and their data."""
    parsed = []
    for block in body.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        data = fields.pop("data")
        parsed.append(fields | {"data": data if data == "[DONE]" else json.loads(data)})
    return parsed


async def answer_to(exchange: Exchange) -> httpx.Response:
    async with running_engine("tiny") as engine, httpx.AsyncClient(base_url=engine.url) as client:
        return await client.request(
            exchange.method, exchange.path, content=exchange.request_body, headers=exchange.request_headers
        )


ALL = sorted(path.stem for path in RECORDED.glob("*.txt"))
STREAMS = [name for name in ALL if "text/event-stream" in recorded(name).headers.get("content-type", "")]


@pytest.mark.parametrize("name", ALL)
async def test_status_and_headers_are_those_of_vllm(name):
    exchange = recorded(name)
    answer = await answer_to(exchange)
    assert answer.status_code == exchange.status
    assert set(answer.headers) == set(exchange.headers)
    for header in ("content-type", "vary", "server", "allow", "transfer-encoding"):
        assert answer.headers.get(header) == exchange.headers.get(header)


@pytest.mark.parametrize("name", [name for name in ALL if name not in {*STREAMS, *LIBRARY_WORDS}])
async def test_a_body_is_that_of_vllm(name):
    exchange = recorded(name)
    answer = await answer_to(exchange)
    if exchange.body:
        same_kind(answer.json(), json.loads(exchange.body), "body")
    else:
        assert not answer.content


@pytest.mark.parametrize("name", sorted(LIBRARY_WORDS))
async def test_an_unreadable_body_is_refused_in_the_same_form(name):
    exchange = recorded(name)
    ours, theirs = (await answer_to(exchange)).json()["error"], json.loads(exchange.body)["error"]
    assert ours["message"].startswith("1 validation error:\n")
    assert ours | {"message": ""} == theirs | {"message": ""}


@pytest.mark.parametrize("name", [name for name in STREAMS if name != "responses_stream"])
async def test_a_stream_is_that_of_vllm_event_by_event(name):
    exchange = recorded(name)
    same_kind(events((await answer_to(exchange)).text), events(exchange.body), "event")


async def test_a_stream_of_responses_has_the_events_of_vllm_though_their_number_differs():
    exchange = recorded("responses_stream")
    ours, theirs = events((await answer_to(exchange)).text), events(exchange.body)
    assert [event["data"].pop("sequence_number") for event in ours] == list(range(len(ours)))
    by_name = {event["event"]: event for event in theirs}
    for event in ours:
        expected = by_name[event["event"]]
        expected["data"].pop("sequence_number", None)
        same_kind(event, expected, event["event"])
    assert list(dict.fromkeys(event["event"] for event in ours)) == list(by_name)


@pytest.mark.parametrize(("name", "identity"), [("request_id", "my-id-123"), ("request_id_stream", "my-id-124")])
async def test_the_request_id_becomes_the_answers_id(name, identity):
    answer = await answer_to(recorded(name))
    assert f'"id":"chatcmpl-{identity}"' in answer.text


def test_a_difference_is_caught():
    theirs = {"a": 1, "b": {"c": [1, "x"]}}
    same_kind({"a": 1, "b": {"c": [1, "x"]}}, theirs, "body")
    for ours in (
        {"a": 1},
        {"a": 1, "b": {"c": [1]}},
        {"a": 2, "b": {"c": [1, "x"]}},
        {"b": {"c": [1, "x"]}, "a": 1},
        {"a": 1, "b": {"c": [1, "x"]}, "d": None},
    ):
        with pytest.raises(AssertionError):
            same_kind(ours, theirs, "body")
