"""What a request asks of the engine, read from its body; or the refusal that vLLM would answer.

Reading is partial: fields that change neither length nor form of an answer are ignored, as vLLM ignores unknown
ones. What comes out has been checked against the model's length, so that the batcher takes every sequence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple, TypeVar

import msgspec

from fairpool_lab.engine.decoding import decode
from fairpool_lab.engine.tokens import MESSAGE_TOKENS, REPLY_TOKENS, Language
from fairpool_lab.errors import Refusal


class Prompt(NamedTuple):
    """One text to be read: its tokens, and what tells it from others."""

    tokens: int
    identity: bytes


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for tokens, understood.

    Attributes:
        model: the name under which it asks.
        prompts: the texts to read, each of which gets `n` answers.
        n: answers per prompt; 0 where only the prompt is read.
        least: the least length of an answer.
        most: the greatest; None for whatever the model has room for.
        stream: whether the answer goes out in events.
        include_usage: whether a stream ends with its usage.
        continuous_usage: whether each event carries it.
        base64: whether vectors go out as base64.
        label: the body's `user`.
    """

    model: str
    prompts: tuple[Prompt, ...]
    n: int = 1
    least: int = 1
    most: int | None = None
    stream: bool = False
    include_usage: bool = False
    continuous_usage: bool = False
    base64: bool = False
    label: str = ""

    @property
    def prompt_tokens(self) -> int:
        """Tokens of all prompts together, each counted once whatever `n` is."""
        return sum(prompt.tokens for prompt in self.prompts)


class _Part(msgspec.Struct):
    type: str = "text"
    text: str = ""


class _Message(msgspec.Struct):
    role: str = "user"
    content: str | list[_Part] | None = None
    output: str | None = None
    tool_calls: msgspec.Raw = msgspec.Raw()


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class _Body(msgspec.Struct, kw_only=True):
    """What the bodies of all paths have in common."""

    model: str | None = None
    user: str | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    temperature: float | None = None
    n: int | None = None
    max_tokens: int | None = None
    min_tokens: int | None = None
    ignore_eos: bool | None = None


class _Chat(_Body):
    messages: list[_Message]
    max_completion_tokens: int | None = None
    tools: msgspec.Raw = msgspec.Raw()


class _Completion(_Body):
    prompt: str | list[str | int | list[int]]


class _Embedding(_Body):
    input: str | list[str | int | list[int]]
    encoding_format: str | None = None


class _Responses(_Body):
    input: str | list[_Message]
    instructions: str | None = None
    max_output_tokens: int | None = None
    tools: msgspec.Raw = msgspec.Raw()


class _Messages(_Body):
    messages: list[_Message]
    max_tokens: int
    system: str | list[_Part] | None = None
    tools: msgspec.Raw = msgspec.Raw()


class _Tokenize(_Body):
    prompt: str | None = None
    messages: list[_Message] | None = None


B = TypeVar("B", bound=_Body)

_CHAT: Final = msgspec.json.Decoder(_Chat)
_COMPLETION: Final = msgspec.json.Decoder(_Completion)
_EMBEDDING: Final = msgspec.json.Decoder(_Embedding)
_RESPONSES: Final = msgspec.json.Decoder(_Responses)
_MESSAGES: Final = msgspec.json.Decoder(_Messages)
_TOKENIZE: Final = msgspec.json.Decoder(_Tokenize)

_TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text", "refusal"})


class RequestReader:
    """Reads the bodies of one engine's requests."""

    def __init__(self, models: tuple[str, ...], language: Language, max_model_len: int) -> None:
        self._models = models
        self._language = language
        self._max_model_len = max_model_len

    def chat(self, body: bytes) -> Ask:
        """`/v1/chat/completions`."""
        asked = self._read(_CHAT, body)
        if not asked.messages:
            raise Refusal(400, "Cannot apply chat template to an empty conversation. Provide at least one message.")
        prompt = self._conversation(asked.messages, bytes(asked.tools))
        return self._ask(asked, (prompt,), asked.max_completion_tokens or asked.max_tokens)

    def completion(self, body: bytes) -> Ask:
        """`/v1/completions`."""
        asked = self._read(_COMPLETION, body)
        return self._ask(asked, self._texts(asked.prompt), asked.max_tokens)

    def responses(self, body: bytes) -> Ask:
        """`/v1/responses`."""
        asked = self._read(_RESPONSES, body)
        messages = [_Message(content=asked.input)] if isinstance(asked.input, str) else asked.input
        if asked.instructions:
            messages = [_Message(role="system", content=asked.instructions), *messages]
        prompt = self._conversation(messages, bytes(asked.tools))
        return self._ask(asked, (prompt,), asked.max_output_tokens)

    def messages(self, body: bytes) -> Ask:
        """`/v1/messages`."""
        asked = self._read(_MESSAGES, body)
        messages = asked.messages
        if asked.system:
            messages = [_Message(role="system", content=asked.system), *messages]
        return self._ask(asked, (self._conversation(messages, bytes(asked.tools)),), asked.max_tokens)

    def embedding(self, body: bytes) -> Ask:
        """`/v1/embeddings`."""
        asked = self._read(_EMBEDDING, body)
        prompts = self._texts(asked.input)
        for prompt in prompts:
            self._room(prompt.tokens, 0)
        return Ask(
            model=asked.model or self._models[0],
            prompts=prompts,
            n=0,
            base64=asked.encoding_format == "base64",
            label=asked.user or "",
        )

    def tokenize(self, body: bytes) -> tuple[bytes, int]:
        """`/tokenize`: the text, and how many tokens it has."""
        asked = self._read(_TOKENIZE, body)
        if asked.messages is not None:
            prompt = self._conversation(asked.messages, b"")
            return prompt.identity, prompt.tokens
        text = (asked.prompt or "").encode()
        return text, self._language.count(len(text))

    def _read(self, decoder: msgspec.json.Decoder[B], body: bytes) -> B:
        asked = decode(decoder, body)
        if asked.model and asked.model not in self._models:
            aliases = ", ".join(self._models)
            raise Refusal(
                404,
                f"The model `{asked.model}` does not exist. Valid aliases: {aliases}.",
                kind="NotFoundError",
                param="model",
            )
        return asked

    def _ask(self, asked: _Body, prompts: tuple[Prompt, ...], most: int | None) -> Ask:
        n = 1 if asked.n is None else asked.n
        self._check(asked, n, most)
        for prompt in prompts:
            self._room(prompt.tokens, most)
        least = (most or 1) if asked.ignore_eos else max(asked.min_tokens or 1, 1)
        if most is not None and least > most:
            raise _invalid(
                "min_tokens", least, f"min_tokens must be less than or equal to max_tokens={most}, got {least}."
            )
        options = asked.stream_options or _StreamOptions()
        return Ask(
            model=asked.model or self._models[0],
            prompts=prompts,
            n=n,
            least=least,
            most=most,
            stream=bool(asked.stream),
            include_usage=bool(options.include_usage),
            continuous_usage=bool(options.include_usage and options.continuous_usage_stats),
            label=asked.user or "",
        )

    def _check(self, asked: _Body, n: int, most: int | None) -> None:
        if asked.stream_options is not None and not asked.stream:
            raise Refusal(
                400,
                "Stream options can only be defined when `stream=True`. (parameter=stream_options)",
                param="stream_options",
            )
        if n < 1:
            raise _invalid("n", n, f"n must be at least 1, got {n}.")
        temperature = asked.temperature
        if temperature is not None and temperature < 0:
            raise _invalid("temperature", temperature, f"temperature must be non-negative, got {temperature}.")
        if temperature == 0 and n > 1:
            raise Refusal(400, f"n must be 1 when using greedy sampling, got {n}.")
        if most is not None and most < 1:
            raise _invalid("max_tokens", most, f"max_tokens must be at least 1, got {most}.")
        if most is not None and most > self._max_model_len:
            raise _invalid(
                "max_tokens",
                most,
                f"max_tokens={most} cannot be greater than max_model_len={self._max_model_len}. "
                "Please request fewer output tokens.",
            )

    def _room(self, prompt: int, most: int | None) -> None:
        limit = self._max_model_len
        maximum = f"This model's maximum context length is {limit} tokens. However, "
        if prompt + (most != 0) > limit:
            least = limit + 1
            raise _invalid(
                "input_tokens",
                least,
                f"{maximum}your prompt contains at least {least} input tokens, which exceeds this limit even without "
                "any output tokens. Please reduce the length of the input prompt.",
            )
        if most is not None and prompt + most > limit:
            raise _invalid(
                "input_tokens",
                prompt,
                f"{maximum}you requested {most} output tokens and your prompt contains at least {prompt} input "
                f"tokens, for a total of at least {prompt + most} tokens. Please reduce the length of the input "
                "prompt or the number of requested output tokens.",
            )

    def _conversation(self, messages: list[_Message], tools: bytes) -> Prompt:
        tokens = REPLY_TOKENS + self._language.count(len(tools))
        identity = blake2b(tools, digest_size=16)
        for message in messages:
            text = b"\n".join(self._message(message))
            tokens += MESSAGE_TOKENS + self._language.count(len(text))
            identity.update(b"\0" + message.role.encode() + b"\0" + text)
        return Prompt(tokens, identity.digest())

    def _message(self, message: _Message) -> Iterable[bytes]:
        if isinstance(message.content, str):
            yield message.content.encode()
        else:
            for part in message.content or ():
                if part.type not in _TEXT_PARTS:
                    raise Refusal(400, f"{self._models[0]} is not a multimodal model")
                yield part.text.encode()
        if message.output:
            yield message.output.encode()
        if calls := bytes(message.tool_calls):
            yield calls

    def _texts(self, given: str | list[str | int | list[int]]) -> tuple[Prompt, ...]:
        """One prompt, or several: a text, a list of tokens, or a list of either."""
        if isinstance(given, str):
            return (self._text(given),)
        prompts: list[Prompt] = []
        tokens: list[int] = []
        for item in given:
            if isinstance(item, int):
                tokens.append(item)
            else:
                prompts.append(self._text(item) if isinstance(item, str) else self._tokens(item))
        if tokens and prompts:
            raise Refusal(400, "a prompt is a text, a list of tokens, or a list of texts or of lists of tokens")
        if tokens:
            return (self._tokens(tokens),)
        if not prompts:
            raise Refusal(400, "Please provide at least one prompt")
        return tuple(prompts)

    def _text(self, text: str) -> Prompt:
        encoded = text.encode()
        return Prompt(max(1, self._language.count(len(encoded))), blake2b(encoded, digest_size=16).digest())

    def _tokens(self, tokens: list[int]) -> Prompt:
        return Prompt(max(1, len(tokens)), blake2b(msgspec.msgpack.encode(tokens), digest_size=16).digest())


def _invalid(param: str, value: float, message: str) -> Refusal:
    return Refusal(400, f"{message} (parameter={param}, value={value})", param=param)
