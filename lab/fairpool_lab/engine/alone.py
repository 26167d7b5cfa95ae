"""How long a request takes in an engine that does nothing else: what its slowdown among others is measured against.

The model's steps added up, in one formula: the prompt in chunks as large as a step, whose last one brings the first
token of the answer, and then a step for each further token. Without a prefix cache.
"""

from __future__ import annotations

from fairpool_lab.engine.batching import Limits


def seconds_alone(limits: Limits, prompt_tokens: int, output_tokens: int) -> float:
    """From its submission to its last token."""
    chunk = limits.max_num_batched_tokens
    chunks = -(-prompt_tokens // chunk)
    further = max(0, output_tokens - 1)
    context = chunk * chunks * (chunks - 1) // 2 + further * prompt_tokens + further * (further - 1) // 2
    return (
        (chunks + further) * (limits.step_base + limits.step_per_sequence)
        + limits.step_per_context_token * context
        + prompt_tokens / limits.prefill_tokens_per_second
    )
