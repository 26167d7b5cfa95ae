"""How the engine counts and speaks: exact, from the seed, and as long as it is told to."""

import json
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpool_lab.engine.requests import RequestReader
from fairpool_lab.engine.tokens import Language, embedding, token_ids
from fairpool_lab.errors import Refusal, SettingsInvalid

LANGUAGE = Language(seed=1)
READER = RequestReader(("sim",), LANGUAGE, 1000)


def chat(*messages: object, **fields: object) -> bytes:
    return json.dumps({"messages": list(messages), **fields}).encode()


@given(st.integers(0, 2**64 - 1), st.integers(0, 9000), st.integers(0, 9000))
def test_a_text_is_four_ascii_bytes_a_token_wherever_it_is_cut(drawn, a, b):
    start, end = sorted((a, b))
    text = LANGUAGE.text(drawn, start, end)
    assert len(text) == 4 * (end - start)
    assert text.isascii()
    middle = (start + end) // 2
    assert text == LANGUAGE.text(drawn, start, middle) + LANGUAGE.text(drawn, middle, end)
    assert LANGUAGE.count(len(text)) == end - start


@given(st.integers(0, 2**64 - 1), st.integers(1, 500), st.integers(1, 500))
def test_a_length_lies_within_its_bounds_and_says_why_it_ends(drawn, a, b):
    least, most = sorted((a, b))
    length, ending = LANGUAGE.output_length(drawn, least, most)
    assert least <= length <= most
    assert ending == ("length" if length == most else "stop")


def test_lengths_have_the_mean_that_was_asked_for():
    lengths = [LANGUAGE.output_length(LANGUAGE.draw(b"prompt", i), 1, 1 << 40)[0] for i in range(4000)]
    assert statistics.mean(lengths) == pytest.approx(LANGUAGE.mean_output_tokens, rel=0.05)
    assert Language(mean_output_tokens=1).output_length(5, 1, 10) == (1, "stop")


def test_draws_differ_by_seed_prompt_and_choice_and_by_nothing_else():
    draws = [
        Language(seed=seed).draw(prompt, index) for seed in (0, 1, -1) for prompt in (b"a", b"b") for index in (0, 1)
    ]
    assert len(set(draws)) == len(draws)
    assert Language(seed=1).draw(b"a", 0) == LANGUAGE.draw(b"a", 0)


def test_a_vector_and_ids_belong_to_their_text():
    assert embedding(1) == embedding(1) != embedding(2)
    assert len(token_ids(b"hello", 2)) == 2
    assert token_ids(b"", 0) == []


class TestPrompts:
    @pytest.mark.parametrize(
        ("body", "tokens"),
        [
            (chat({"role": "user", "content": "x" * 40}), 10 + 4 + 3),
            (chat({"role": "user", "content": "é" * 20}), 10 + 4 + 3),
            (chat({"role": "user", "content": [{"type": "text", "text": "x" * 40}]}), 10 + 4 + 3),
            (chat({"role": "system", "content": "x"}, {"role": "user", "content": "x"}), 2 * (1 + 4) + 3),
            (chat({"role": "assistant", "content": None, "tool_calls": [{"id": 1}]}), 3 + 4 + 3),
            (chat({"role": "user", "content": ""}, tools=[{"type": "function"}]), 4 + 3 + 6),
        ],
    )
    def test_a_chat_counts_its_text_and_its_template(self, body, tokens):
        assert READER.chat(body).prompt_tokens == tokens

    def test_bytes_per_token_can_be_another(self):
        reader = RequestReader(("sim",), Language(bytes_per_token=1.5), 1000)
        assert reader.completion(b'{"prompt": "xxxx"}').prompt_tokens == 3

    def test_who_speaks_makes_a_difference_to_the_answer(self):
        asks = [READER.chat(chat({"role": role, "content": "x"})) for role in ("user", "assistant")]
        assert asks[0].prompts != asks[1].prompts

    @pytest.mark.parametrize("prompt", [[], [1, [2]], [1, "x"]])
    def test_a_prompt_of_no_or_mixed_kinds_is_refused(self, prompt):
        with pytest.raises(Refusal):
            READER.completion(json.dumps({"prompt": prompt}).encode())


class TestLengths:
    @pytest.mark.parametrize(
        ("fields", "least", "most"),
        [
            ({}, 1, None),
            ({"max_tokens": 50}, 1, 50),
            ({"max_tokens": None, "n": None, "stream": None}, 1, None),
            ({"max_tokens": 50, "max_completion_tokens": 20}, 1, 20),
            ({"max_tokens": 50, "ignore_eos": True}, 50, 50),
            ({"max_tokens": 50, "min_tokens": 50}, 50, 50),
            ({"min_tokens": 7}, 7, None),
        ],
    )
    def test_bounds_come_from_the_request(self, fields, least, most):
        ask = READER.chat(chat({"content": "x"}, **fields))
        assert (ask.least, ask.most) == (least, most)

    @pytest.mark.parametrize(
        "fields", [{"max_tokens": 1000}, {"min_tokens": 9, "max_tokens": 8}, {"n": 0}, {"max_tokens": 1.5}]
    )
    def test_what_cannot_be_is_refused(self, fields):
        with pytest.raises(Refusal):
            READER.chat(chat({"content": "x"}, **fields))

    def test_a_prompt_must_leave_room_for_a_token_but_not_if_it_is_only_read(self):
        assert READER.completion(json.dumps({"prompt": [1] * 999}).encode()).prompt_tokens == 999
        with pytest.raises(Refusal, match="at least 1001 input tokens"):
            READER.completion(json.dumps({"prompt": [1] * 1000}).encode())
        assert READER.embedding(json.dumps({"input": [1] * 1000}).encode()).prompt_tokens == 1000


@pytest.mark.parametrize("settings", [{"bytes_per_token": 0}, {"mean_output_tokens": 0.5}])
def test_a_language_that_cannot_be_spoken_is_refused(settings):
    with pytest.raises(SettingsInvalid):
        Language(**settings)
