"""A language model of half a megabyte, or more, made of random numbers: what a real engine needs to be one.

One byte of text is one token, and so is each mark that the chat template sets. An answer is made of the letters a to z,
one token each, and never ends by itself, so its length in tokens is the length of its text, and is what was asked for.
The same file comes out every time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from gguf import GGUFWriter, LlamaFileType, TokenType

CONTEXT: Final = 16_384

_MARKS: Final = ("<|bos|>", "<|pad|>", "<|im_start|>", "<|im_end|>")
_BOS, _PAD, _END = 0, 1, 3

_TEMPLATE: Final = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write(path: Path, *, width: int = 64, layers: int = 2) -> Path:
    """Write a model in llama.cpp's format. Wider and deeper ones are slower: 512 and 8 make 85 MB."""
    # A loader wants at least one merge; two spaces are one token.
    space = _characters()[ord(" ")]
    vocabulary = [*_MARKS, *_characters(), space + space]
    heads = max(2, width // 64)
    model = GGUFWriter(path, "llama")
    model.add_name("tiny")
    model.add_file_type(LlamaFileType.ALL_F32)
    model.add_context_length(CONTEXT)
    model.add_embedding_length(width)
    model.add_block_count(layers)
    model.add_feed_forward_length(2 * width)
    model.add_head_count(heads)
    model.add_head_count_kv(heads)
    model.add_rope_dimension_count(width // heads)
    model.add_layer_norm_rms_eps(1e-5)
    model.add_vocab_size(len(vocabulary))
    model.add_tokenizer_model("gpt2")
    model.add_tokenizer_pre("gpt-2")
    model.add_token_list(vocabulary)
    model.add_token_types([TokenType.CONTROL] * len(_MARKS) + [TokenType.NORMAL] * (len(vocabulary) - len(_MARKS)))
    model.add_token_merges([f"{space} {space}"])
    model.add_bos_token_id(_BOS)
    model.add_pad_token_id(_PAD)
    model.add_eos_token_id(_END)
    model.add_add_bos_token(False)
    model.add_chat_template(_TEMPLATE)
    for name, values in _weights(vocabulary, width, layers).items():
        model.add_tensor(name, values.astype(np.float32))
    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_tensors_to_file()
    model.close()
    return path


def _weights(vocabulary: list[str], width: int, layers: int) -> dict[str, np.ndarray[Any, Any]]:
    """Random weights, but for one dimension that is the same everywhere and decides which tokens can come out.

    No layer reads or writes dimension 0, and each token puts the same into it. So the output matrix's column 0 is
    added to every token's chance: large for letters, and small for all else.
    """
    random = np.random.default_rng(7)

    def matrix(rows: int, columns: int) -> np.ndarray[Any, Any]:
        return random.standard_normal((rows, columns)) * 2.4 / width**0.5

    def reading(rows: int) -> np.ndarray[Any, Any]:
        values = matrix(rows, width)
        values[:, 0] = 0
        return values

    def writing(columns: int) -> np.ndarray[Any, Any]:
        values = matrix(width, columns)
        values[0, :] = 0
        return values

    into, out = matrix(len(vocabulary), width) * 0.375 * width**0.5, matrix(len(vocabulary), width)
    into[:, 0] = width**0.5
    out[:, 0] = [30 if len(token) == 1 and "a" <= token <= "z" else -30 for token in vocabulary]
    level = np.ones(width)
    weights = {"token_embd.weight": into, "output_norm.weight": level, "output.weight": out}
    for number in range(layers):
        layer = {
            "attn_norm": level,
            "attn_q": reading(width),
            "attn_k": reading(width),
            "attn_v": reading(width),
            "attn_output": writing(width),
            "ffn_norm": level,
            "ffn_gate": reading(2 * width),
            "ffn_up": reading(2 * width),
            "ffn_down": writing(2 * width),
        }
        weights |= {f"blk.{number}.{name}.weight": values for name, values in layer.items()}
    return weights


def _characters() -> list[str]:
    """The printable character by which this kind of tokenizer writes each byte."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]
