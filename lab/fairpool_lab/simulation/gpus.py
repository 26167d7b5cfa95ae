"""GPUs that a simulated endpoint may be, each number with its source: Llama-2-7B in 16 bits on A10G, A100 and H100.

The model has 6.74 billion parameters, so 13.48 GB of weights, and 32 layers of width 4096, so 2 x 32 x 4096 x 2 bytes
of KV for a token (Touvron et al., "Llama 2", arXiv 2307.09288).

**A10G** (24 GB, 600 GB/s) is the machine of the VTC paper, as its authors measured it. Their artifact
(github.com/Ying1123/VTC-artifact, commit 192c2e2) has fitted the milliseconds that a request of x input and y output
tokens takes of a batch that fills 10,000 tokens of KV: `cost_func` in fair_bench/plot/visualize.py, by
fair_bench/profile_cost_function.py. It is

    0.21001891 x + 0.10075395 y + 0.0039868 x y + 0.00324733 y^2 + 1.14601454

If a step of B = 10,000 / (x + y) requests lasts `base + s B + c (tokens of context)`, that is
`y s + (base / 10,000) (x y + y^2) + c (x y + y^2 / 2)` after the prompt. So s = 0.10075 ms,
c = 2 (0.0039868 - 0.00324733) = 0.001479 ms and base = 10,000 (0.0039868 - c) = 25.08 ms: the weights are read at 90 %
of the bandwidth, KV at 59 %. A token of a prompt takes 0.21 ms; the constant is left out. The pool of 10,000 tokens,
the 3,072 tokens of a batch and its 1,000 requests are what that profile was made with.

**A100** (80 GB, 2,039 GB/s) and **H100** (SXM, 80 GB, 3,350 GB/s), by NVIDIA's datasheets. Vidur
(github.com/microsoft/vidur, commits bee57da and e26eb8f) has measured the operators of one layer of this model, in
data/profiling/compute/{a100,h100}/meta-llama/Llama-2-7b-hf/mlp.csv, without tensor parallelism. The sums of their
medians, `add` twice, for 1, 64 and 4,096 tokens are 0.292, 0.305 and 8.2255 ms on the A100 and 0.176, 0.185 and
2.623 ms on the H100. Of 32 layers, the first is the base, the step from it to the second is what 63 sequences add, and
to the third what 4,095 tokens of prompts take. That leaves out the CPU, and attention: KV is taken to be read at 59 %
of the bandwidth as on the A10G, which is assumed and not measured. KV fills what 0.9 of the memory leaves beside the
weights, which vLLM long took by default (`gpu_memory_utilization`; of late 0.92, vllm/config/cache.py). The sequences
and tokens of a step are its defaults for a server on such a GPU (vllm/engine/arg_utils.py).

The length of a sequence is limited by KV alone, for traces of other models are replayed too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fairpool_lab.engine.batching import Limits

_WEIGHTS = 6.74e9 * 2
_KV_OF_A_TOKEN = 2 * 32 * 4096 * 2
_LAYERS = 32
_KV_EFFICIENCY = 0.59


@dataclass(frozen=True, slots=True)
class Gpu:
    """One kind of GPU.

    Attributes:
        name: what it is called.
        limits: what it can do.
        slots: how many requests it may have at once without a queue inside it: where KV is scarce, as many as it holds
            of 400 tokens each; the product's default otherwise.
        source: where that is from, in one line.
    """

    name: str
    limits: Limits
    slots: int
    source: str


def _of_layers(seqs: int, batch: int, bandwidth: float, layer: tuple[float, float, float]) -> Limits:
    """A GPU with 80 GB: its bandwidth in bytes per second, and the seconds of a layer for 1, 64 and 4,096 tokens."""
    kv_tokens = int((0.9 * 80e9 - _WEIGHTS) / _KV_OF_A_TOKEN)
    one, of_64, of_4096 = layer
    return Limits(
        max_num_seqs=seqs,
        max_num_batched_tokens=batch,
        max_model_len=kv_tokens,
        kv_tokens=kv_tokens,
        prefill_tokens_per_second=4095 / (_LAYERS * (of_4096 - one)),
        step_base=_LAYERS * one,
        step_per_sequence=_LAYERS * (of_64 - one) / 63,
        step_per_context_token=_KV_OF_A_TOKEN / (_KV_EFFICIENCY * bandwidth),
    )


def _of_fit(x: float, y: float, xy: float, yy: float) -> Limits:
    """A GPU by the terms of the VTC paper's artifact's fit, in milliseconds."""
    pool = 10_000
    context = 2 * (xy - yy)
    return Limits(
        max_num_seqs=1000,
        max_num_batched_tokens=3072,
        max_model_len=pool,
        kv_tokens=pool,
        prefill_tokens_per_second=1000 / x,
        step_base=pool * (xy - context) / 1000,
        step_per_sequence=y / 1000,
        step_per_context_token=context / 1000,
    )


_LISTED: Final = (
    Gpu(
        "a10g",
        _of_fit(x=0.21001891, y=0.10075395, xy=0.0039868, yy=0.00324733),
        25,
        "Llama-7B on an A10G as the VTC paper's artifact measured it (Ying1123/VTC-artifact, cost_func)",
    ),
    Gpu(
        "a100",
        _of_layers(256, 2048, 2039e9, (0.292e-3, 0.305e-3, 8.2255e-3)),
        64,
        "Llama-2-7B on an A100 80 GB from Vidur's profile of its layers and NVIDIA's datasheet",
    ),
    Gpu(
        "h100",
        _of_layers(1024, 8192, 3350e9, (0.176e-3, 0.185e-3, 2.623e-3)),
        64,
        "Llama-2-7B on an H100 SXM from Vidur's profile of its layers and NVIDIA's datasheet",
    ),
)

GPUS: Final[Mapping[str, Gpu]] = {gpu.name: gpu for gpu in _LISTED}
"""Every GPU by its name."""
