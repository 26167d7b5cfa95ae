"""One request while the engine works for it: its choices, what of them has been sent, and what they have used.

A stream sends events of `tokens_per_event` tokens and the end of each choice; where its events are cut depends on
the counts of tokens alone, not on when anybody looked, so a late wake sends the same events closer together.
"""

from __future__ import annotations

import asyncio

from fairpool_lab.engine.answers import Answered, Dialect
from fairpool_lab.engine.batching import Sequence
from fairpool_lab.engine.requests import Ask, Prompt
from fairpool_lab.engine.tokens import Language

_NEVER = 1 << 62
_ALL = -1


class Choice(Sequence):
    """One answer that is being made: a sequence of the model's, and how much of it has been sent.

    Attributes:
        drawn: what its text follows from.
        ending: why it will end, if nothing cuts it short.
        finish: why it did end.
        sent: its tokens that have gone out, or -1 once its end has.
        wake_at: the count of tokens at which its request has something to send.
    """

    __slots__ = ("drawn", "ending", "finish", "generation", "index", "sent", "wake_at")

    def __init__(
        self, generation: Generation, index: int, prompt: Prompt, drawn: int, length: int, ending: str
    ) -> None:
        super().__init__(prompt.tokens, length)
        self.generation = generation
        self.index = index
        self.drawn = drawn
        self.ending = ending
        self.finish: str | None = None
        self.sent = 0
        self.wake_at = 1 if generation.ask.stream else _NEVER

    @property
    def is_read(self) -> bool:
        """Whether its prompt has been read to the end."""
        return self.generated > 0 or self.finish in ("stop", "length")


class Generation:
    """One request while the engine works for it.

    Attributes:
        gone: the client has left, or nothing has to be sent any more for another reason.
        unfinished: how many of its choices are not at their end.
    """

    __slots__ = ("_every", "_language", "_ready", "_untold", "_waiter", "ask", "choices", "gone", "label", "unfinished")

    def __init__(self, ask: Ask, language: Language, every: int, max_model_len: int, label: str) -> None:
        self.ask = ask
        self.label = label
        self.gone = False
        self._language = language
        self._every = every
        self._ready = False
        self._waiter: asyncio.Future[None] | None = None
        self.choices: list[Choice] = []
        for prompt in ask.prompts:
            for copy in range(max(ask.n, 1)):
                drawn = language.draw(prompt.identity, copy)
                if ask.n:
                    most = max_model_len - prompt.tokens if ask.most is None else ask.most
                    length, ending = language.output_length(drawn, min(ask.least, most), most)
                else:
                    length, ending = 0, "stop"
                self.choices.append(Choice(self, len(self.choices), prompt, drawn, length, ending))
        self.unfinished = self._untold = len(self.choices)

    async def progress(self) -> None:
        """Wait until there is something to send, or nobody to send it to."""
        if not self._ready:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        self._ready = False

    def wake(self) -> None:
        """Let `progress` return."""
        self._ready = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def events(self, dialect: Dialect) -> bytes:
        """What the stream has to say now: events of `tokens_per_event` tokens and ends, the choices taking turns."""
        parts: list[bytes] = []
        open_choices = [choice for choice in self.choices if choice.sent != _ALL]
        while open_choices:
            open_choices = [choice for choice in open_choices if self._tell(choice, dialect, parts)]
        return b"".join(parts)

    def _tell(self, choice: Choice, dialect: Dialect, parts: list[bytes]) -> bool:
        """Add the next event of a choice if there is one; returns whether there may be another."""
        every = self._every
        tokens = choice.total - choice.prompt_tokens
        start = choice.sent
        end = start + every
        if tokens > end or (tokens == end and choice.finish is None):
            parts.append(dialect.delta(choice.index, self._text(choice, start, end), end, None, last=False))
            choice.sent = end
            choice.wake_at = end + every
            return tokens > end
        if choice.finish is not None:
            self._untold -= 1
            text = self._text(choice, start, tokens)
            parts.append(dialect.delta(choice.index, text, tokens, choice.finish, last=not self._untold))
            choice.sent = _ALL
        else:
            choice.wake_at = end
        return False

    def answered(self) -> list[Answered]:
        """All choices with their whole text."""
        return [
            Answered(self._text(choice, 0, choice.generated), choice.generated, choice.finish)
            for choice in self.choices
        ]

    def used(self) -> dict[str, int]:
        """What it has used so far: each prompt once, when it has been read, and every token of its answers."""
        copies = max(self.ask.n, 1)
        return {
            "requests": 1,
            "prompt": sum(choice.prompt_tokens for choice in self.choices[::copies] if choice.is_read),
            "generation": sum(choice.generated for choice in self.choices),
        }

    def _text(self, choice: Choice, start: int, end: int) -> bytes:
        return self._language.text(choice.drawn, start, end)
