"""Lines as vLLM logs them, of three versions: what the lab reads as a trace."""

from __future__ import annotations

PARAMS = "SamplingParams(n=1, temperature=0.7, seed=None, stop=['max_tokens=1'], max_tokens=100, min_tokens=0)"


def log_of(*messages: str) -> list[str]:
    """Messages as vLLM prints them: the level and the second of each stand before it."""
    lines = []
    for number, message in enumerate(messages):
        level, second, said = message.split("|", 2)
        file = "[logger.py:49]" if number % 2 else "[v1/.../serve/utils/request_logger.py:58]"
        lines.append(f"(APIServer pid=90458) {level} 02-28 23:59:{second} {file} {said}\n")
    return ["INFO:     Started server process [90458]\n", *lines, 'INFO:     10.0.0.1 - "POST /v1/x HTTP/1.1" 200 OK\n']


def answered(*requests: str) -> list[str]:
    """Requests of one token each, one after the other, as vLLM 0.10 logs them."""
    messages = []
    for request in requests:
        received = (
            f"Received request {request}: prompt: 'x', params: {PARAMS}, prompt_token_ids: [1], lora_request: None."
        )
        messages += [
            f"INFO|01|{received}",
            f"INFO|02|Generated response {request}: output: 'y', output_token_ids: [2], finish_reason: stop",
        ]
    return log_of(*messages)
