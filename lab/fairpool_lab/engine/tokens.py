"""What the engine reads and writes: counts of tokens, lengths of answers and their text, all from a seed.

Text is counted by its bytes: `bytes_per_token` (4) make a token, rounded up per message or prompt. A chat adds 4
tokens a message and 3 for the answer's opening. Each token of an answer is four ASCII bytes, three letters and a
space, so what goes out counts the same when it comes back in.

Unless a request fixes its length, an answer ends after each token with probability 1 / `mean_output_tokens`: lengths
are geometric. Length and words are drawn from the seed, the prompt and the index of the choice; nothing else takes
part, so the same request gets the same answer on every engine of that seed.
"""

from __future__ import annotations

import math
from base64 import b64encode
from dataclasses import dataclass, field
from hashlib import blake2b
from struct import pack, unpack
from typing import Final

from fairpool_lab.errors import SettingsInvalid

MESSAGE_TOKENS: Final = 4
"""What the chat template adds to each message."""

REPLY_TOKENS: Final = 3
"""What the chat template adds once, to open the answer."""

WORD_BYTES: Final = 4
"""Bytes of text per token of an answer."""

EMBEDDING_SIZE: Final = 32

_CONSONANTS, _VOWELS = b"bdfgklmnprstvz", b"aeiou"
_VOCABULARY = 4096


@dataclass(frozen=True, slots=True)
class Language:
    """How one engine counts and speaks."""

    seed: int = 0
    bytes_per_token: float = 4.0
    mean_output_tokens: float = 200.0
    _words: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.bytes_per_token <= 0:
            raise SettingsInvalid(f"bytes_per_token must be positive, not {self.bytes_per_token}")
        if self.mean_output_tokens < 1:
            raise SettingsInvalid(f"mean_output_tokens must be at least 1, not {self.mean_output_tokens}")
        object.__setattr__(self, "_words", b"".join(_word(self.seed, i) for i in range(_VOCABULARY)))

    def count(self, text_bytes: int) -> int:
        """Tokens in so many bytes of text."""
        return math.ceil(text_bytes / self.bytes_per_token)

    def draw(self, prompt: bytes, index: int) -> int:
        """64 bits that belong to this prompt and choice, from which the rest of the answer follows."""
        digest = blake2b(prompt, digest_size=8, key=pack("<q", self.seed), salt=pack("<Q", index))
        return int.from_bytes(digest.digest(), "little")

    def output_length(self, drawn: int, least: int, most: int) -> tuple[int, str]:
        """How long the answer gets, within [least, most], and the reason why it ends there."""
        chance = ((drawn >> 11) + 0.5) / (1 << 53)
        length = 1
        if self.mean_output_tokens > 1:
            length += int(math.log(chance) / math.log1p(-1 / self.mean_output_tokens))
        length = max(length, least)
        return (length, "stop") if length < most else (most, "length")

    def text(self, drawn: int, start: int, end: int) -> bytes:
        """Tokens `start` to `end` of the answer; ASCII that needs no escape in JSON."""
        first = (drawn + start) % _VOCABULARY
        last = first + end - start
        words = self._words
        if last > _VOCABULARY:
            words *= -(-last // _VOCABULARY)
        return words[first * WORD_BYTES : last * WORD_BYTES]


def embedding(drawn: int) -> list[float]:
    """A vector of length one that belongs to the text."""
    raw = blake2b(drawn.to_bytes(8, "little"), digest_size=EMBEDDING_SIZE).digest()
    values = [byte - 127.5 for byte in raw]
    length = math.hypot(*values)
    return [value / length for value in values]


def embedding_base64(vector: list[float]) -> str:
    """The vector as OpenAI's `encoding_format: base64`: little-endian single floats."""
    return b64encode(pack(f"<{len(vector)}f", *vector)).decode()


def token_ids(text: bytes, count: int) -> list[int]:
    """Ids for `/tokenize`: one for each token, from the bytes it stands for."""
    size = -(-len(text) // count) if count else 1
    return [unpack("<H", blake2b(text[i * size : (i + 1) * size], digest_size=2).digest())[0] for i in range(count)]


def _word(seed: int, index: int) -> bytes:
    a, b, c = blake2b(pack("<qI", seed, index), digest_size=3).digest()
    return bytes(
        (_CONSONANTS[a % len(_CONSONANTS)], _VOWELS[b % len(_VOWELS)], _CONSONANTS[c % len(_CONSONANTS)], 0x20)
    )
