"""Logs as traces: the gateway's decision log, and what vLLM prints of requests."""

from __future__ import annotations

import re

import pytest
from support import lab_pool
from support.vllm_logs import PARAMS, answered, log_of

from fairpool_lab import traces
from fairpool_lab.errors import TraceInvalid
from fairpool_lab.traces import TraceRequest, vllm_log


class TestDecisionLog:
    TRACE = (TraceRequest(3.0, "a", 10, 5), TraceRequest(3.5, "b", 20, 1), TraceRequest(4.0, "a", 1, 9))

    def test_what_tenants_asked_for_comes_back_from_its_first_event_on(self):
        lines = [line.decode() for line in lab_pool.run(self.TRACE, weights={}, slots=1)]
        assert [(request.arrival, request.tenant, request.tokens) for request in traces.parse(lines)] == [
            (request.arrival - 3, request.tenant, request.tokens) for request in self.TRACE
        ]

    def test_what_did_not_tell_its_use_is_left_out(self):
        lines = [line.decode() for line in lab_pool.run(self.TRACE, weights={}, slots=1)]
        silent = [
            re.sub(r'"used":\{[^}]*\}', '"used":null', line) if '"request":"r1"' in line else line for line in lines
        ]
        assert [request.tenant for request in traces.parse(silent)] == ["a", "a"]

    def test_a_log_that_is_not_whole_is_refused_with_its_line(self):
        lines = [line.decode() for line in lab_pool.run(self.TRACE, weights={}, slots=1)]
        with pytest.raises(TraceInvalid, match=r"trace:3: event 1 is expected here, not 2"):
            traces.parse([*lines[:2], *lines[3:]])

    def test_a_log_whose_beginning_is_missing_is_known_for_one(self):
        lines = [line.decode() for line in lab_pool.run(self.TRACE, weights={}, slots=1)]
        with pytest.raises(TraceInvalid, match=r"trace:1: the first line is not a header: the beginning of the log is"):
            traces.parse(lines[1:])


class TestVllm:
    def test_0_10_lists_the_prompts_tokens_with_the_request_and_those_of_an_answer_at_its_end(self):
        lines = log_of(
            f"INFO|01|Received request chatcmpl-1: prompt: 'prompt_token_ids: [9]', params: {PARAMS}, "
            "prompt_token_ids: [1, 2, 3], prompt_embeds shape: None, lora_request: None.",
            "INFO|03|Generated response chatcmpl-1: output: 'output_token_ids: [1]', "
            "output_token_ids: [4, 5], finish_reason: stop",
        )
        assert traces.parse(lines) == (TraceRequest(0.0, "all", 3, 2, max_tokens=100),)

    def test_later_ones_list_the_prompts_tokens_beside_it_and_a_stream_token_by_token(self):
        lines = log_of(
            "DEBUG|01|Request chatcmpl-1 details: prompt: 'hi', prompt_token_ids: [1, 2], prompt_embeds shape: None.",
            f"INFO|01|Received request chatcmpl-1: params: {PARAMS}, lora_request: None.",
            "DEBUG|02|Request cmpl-2-0 details: prompt: 'hi', prompt_token_ids: [1], prompt_embeds shape: None.",
            f"INFO|02|Received request cmpl-2-0: params: {PARAMS}, lora_request: None.",
            "INFO|02|Generated response cmpl-2-0: output: 'x', output_token_ids: (7, 8, 9), finish_reason: length",
            "INFO|03|Generated response chatcmpl-1 (streaming delta): output: 'a', output_token_ids: [4], "
            "finish_reason: None",
            "INFO|04|Generated response chatcmpl-1 (streaming delta): output: 'b', output_token_ids: [5], "
            "finish_reason: stop",
            "INFO|04|Generated response chatcmpl-1 (streaming complete): output: 'ab', output_token_ids: None, "
            "finish_reason: streaming_complete",
        )
        assert [(found.arrival, found.input_tokens, found.output_tokens) for found in traces.parse(lines)] == [
            (0.0, 2, 2),
            (1.0, 1, 3),
        ]

    def test_0_32_lists_the_answers_tokens_beside_it_too(self):
        lines = log_of(
            "DEBUG|01|Request chatcmpl-1 details: prompt: None, prompt_token_ids: [1, 2], prompt_embeds shape: None.",
            f"INFO|01|Received request chatcmpl-1: params: {PARAMS}, lora_request: None.",
            "DEBUG|02|Generated response chatcmpl-1 details: output_token_ids: [4, 5, 6]",
            "INFO|02|Generated response chatcmpl-1: output: 'abc', finish_reason: stop",
        )
        assert traces.parse(lines) == (TraceRequest(0.0, "all", 2, 3, max_tokens=100),)

    def test_what_a_tenant_says_is_not_taken_for_the_log(self):
        said = "INFO 01-01 00:00:00 [x.py:1] Received request evil: prompt_token_ids: [1], output_token_ids: [1]"
        lines = log_of(
            f"DEBUG|01|Request chatcmpl-1 details: prompt: '{said}', prompt_token_ids: [1, 2], prompt_embeds: None.",
            f"INFO|01|Received request chatcmpl-1: params: {PARAMS}, lora_request: None.",
            "DEBUG|02|Generated response chatcmpl-1 details: output_token_ids: [4, 5, 6]",
            f"INFO|02|Generated response chatcmpl-1: output: '{said}', finish_reason: stop",
        )
        assert traces.parse(lines) == (TraceRequest(0.0, "all", 2, 3, max_tokens=100),)

    def test_colours_are_looked_through_and_an_embedding_writes_nothing(self):
        line = (
            "\x1b[0;36m(APIServer pid=7)\x1b[0;0m \x1b[32mINFO\x1b[0m "
            "\x1b[90m02-13 11:33:33\x1b[0m \x1b[90m[request_logger.py:4]\x1b[0m "
            "Received request embd-1-0: prompt: 'x', params: PoolingParams(dimensions=None), "
            "prompt_token_ids: [1, 2], lora_request: None.\n"
        )
        assert traces.parse([line]) == (TraceRequest(0.0, "all", 2, 0),)

    def test_the_tenant_may_stand_in_the_requests_id(self, tmp_path):
        path = tmp_path / "vllm.log"
        path.write_text("".join(answered("chatcmpl-team-a-77", "chatcmpl-team-b-78")), encoding="utf-8")
        found = traces.read(path, tenant_of=re.compile(r"^chatcmpl-(.+)-\d+$"))
        assert [request.tenant for request in found] == ["team-a", "team-b"]
        with pytest.raises(TraceInvalid, match=r"vllm\.log:2: the pattern finds no tenant in .* chatcmpl-team-a-77"):
            traces.read(path, tenant_of=re.compile(r"user-(\d+)"))

    def test_a_request_without_an_answer_was_cancelled_or_failed_and_is_left_out(self):
        lines = [line for line in answered("chatcmpl-1", "chatcmpl-2") if "Generated response chatcmpl-1" not in line]
        assert len(traces.parse(lines)) == 1

    def test_lines_of_several_processes_may_be_out_of_order_by_a_moment(self):
        first, second = answered("chatcmpl-a"), answered("chatcmpl-b")
        later = [line.replace("23:59:01", "23:59:03") for line in second]
        assert [request.arrival for request in traces.parse([*later, *first])] == [0, 2]

    def test_midnight_and_the_end_of_a_year_pass(self):
        days = ("12-31 23:59:59", "01-01 00:00:01", "01-02 00:00:01")
        lines = [re.sub(r"02-28 23:59:..", day, line) for day in days for line in answered(f"chatcmpl-{day[:5]}")]
        assert [request.arrival for request in traces.parse(lines)] == [0, 2, 86_402]

    @pytest.mark.parametrize(
        ("missing", "words"),
        [
            ("request", r"trace: vllm logged no request here: start vLLM with VLLM_LOGGING_LEVEL=DEBUG"),
            ("Generated response", r"trace: the tokens of no answer are told: start vLLM with"),
            ("prompt_token_ids", r"trace:2: request chatcmpl-1 tells no tokens of its prompt: start vLLM with"),
        ],
    )
    def test_what_the_log_lacks_is_said_with_how_to_have_it(self, missing, words):
        lines = [line.replace(missing, "something") for line in answered("chatcmpl-1")]
        with pytest.raises(TraceInvalid, match=f"(?i){words}"):
            traces.parse(lines)

    def test_how_to_log_is_listed(self):
        assert vllm_log.HOW_TO_LOG in [source for _, source in traces.FORMATS]
