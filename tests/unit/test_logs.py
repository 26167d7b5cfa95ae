"""Log lines: for people and programs, one a second in a flood, and never with what others' exceptions say."""

import asyncio
import io
import json
import logging
import re
import subprocess
import sys

import pytest

from fairpool_gateway.errors import UpstreamBroken
from fairpool_gateway.logs import CollapsingHandler, JsonFormatter, TextFormatter, log_unhandled

SECRET = "a-prompt-that-nobody-may-read"


class Log:
    """A logger of its own, with what it wrote; `now` is its clock."""

    def __init__(self, formatter):
        self.now = 100.0
        self.stream = io.StringIO()
        self.handler = CollapsingHandler(self.stream, clock=lambda: self.now)
        self.handler.setFormatter(formatter)
        self.logger = logging.getLogger("the.logger")
        self.logger.setLevel(logging.INFO)
        self.logger.addHandler(self.handler)

    def close(self):
        self.logger.removeHandler(self.handler)
        self.handler.close()

    @property
    def lines(self):
        return self.stream.getvalue().splitlines()

    @property
    def objects(self):
        return [json.loads(line) for line in self.lines]


@pytest.fixture
def text():
    log = Log(TextFormatter())
    yield log
    log.close()


@pytest.fixture
def as_json():
    log = Log(JsonFormatter())
    yield log
    log.close()


def broken(secret=SECRET):
    raise ValueError(secret)


class TestForms:
    def test_text_has_time_level_origin_and_message(self, text):
        text.logger.info("serving %s", "llama")
        (line,) = text.lines
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO the\.logger serving llama", line)

    def test_json_has_them_as_fields_and_what_the_record_is_about(self, as_json):
        as_json.logger.warning("no %s", "luck", extra={"tenant": "a", "reason": "queue_full", "request": None})
        (line,) = as_json.objects
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
        assert line == {
            "level": "warning",
            "logger": "the.logger",
            "message": "no luck",
            "tenant": "a",
            "reason": "queue_full",
        }

    def test_whatever_a_message_holds_a_record_is_one_line_of_json(self, as_json):
        as_json.logger.info("two\nlines and %s", '"quotes"\x00')
        assert [line["message"] for line in as_json.objects] == ['two\nlines and "quotes"\x00']


class TestExceptions:
    def failed(self, log):
        try:
            try:
                broken()
            except ValueError as error:
                raise UpstreamBroken("closed too early", answered=False) from error
        except UpstreamBroken:
            log.logger.exception("it failed")
        return log.stream.getvalue()

    @pytest.mark.parametrize("form", ["text", "as_json"])
    def test_where_they_come_from_and_what_they_are_but_what_only_our_own_say(self, form, request):
        told = self.failed(request.getfixturevalue(form))
        assert "UpstreamBroken: closed too early" in told
        assert "ValueError" in told
        assert "in broken" in told
        assert SECRET not in told

    async def test_the_event_loop_tells_that_a_callback_failed_and_not_what_on(self, text):
        loop, failed = asyncio.get_running_loop(), asyncio.Event()
        loop.set_exception_handler(lambda *about: (log_unhandled(*about), failed.set()))
        logging.getLogger("asyncio").addHandler(text.handler)
        try:
            loop.call_soon(broken, SECRET)
            await failed.wait()
        finally:
            logging.getLogger("asyncio").removeHandler(text.handler)
        assert text.lines[0].endswith("ERROR asyncio Exception in callback")
        assert "ValueError" in text.lines[-1]
        assert SECRET not in text.stream.getvalue()


class TestFloods:
    def test_one_line_a_second_with_its_number(self, as_json):
        for number in range(1000):
            as_json.now = 100.0 + number / 400
            as_json.logger.info("refused %s", number, extra={"reason": "queue_full"})
        as_json.handler.close()
        assert [(line["message"], line.get("count", 1)) for line in as_json.objects] == [
            ("refused 0", 1),
            ("refused 400", 400),
            ("refused 800", 400),
            ("refused 999", 199),
        ]

    def test_in_text_the_number_is_at_the_end(self, text):
        for _ in range(3):
            text.logger.info("refused")
        text.now += 1
        text.logger.info("refused")
        assert [line.partition("refused")[2] for line in text.lines] == ["", " (3 of this kind)"]

    def test_another_reason_level_or_line_of_code_is_another_kind(self, text):
        for reason in ("queue_full", "queue_timeout"):
            text.logger.info("refused", extra={"reason": reason})
        text.logger.warning("refused", extra={"reason": "queue_full"})
        text.logger.info("something else")
        assert len(text.lines) == 4

    def test_the_end_of_a_flood_is_told_though_nothing_comes_any_more(self):
        said = run(ENDING_FLOOD)
        assert re.findall(r"flood.*", said) == ["flood", "flood (9 of this kind)", "flood", "flood (4 of this kind)"]


class TestLevels:
    @pytest.mark.parametrize(
        ("level", "said"),
        [
            ("debug", "own-d own-i own-w lib-w"),
            ("info", "own-i own-w lib-w"),
            ("warning", "own-w lib-w"),
            ("error", ""),
        ],
    )
    def test_what_is_below_the_level_is_not_said_and_of_libraries_only_warnings_are(self, level, said):
        assert re.findall(r"own-.|lib-.", run(LEVELS.replace("LEVEL", level))) == said.split()


def run(code):
    """What a program of its own logs."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=20).stderr


LEVELS = """
import logging, sys
from fairpool_gateway import logs
logs.set_up(sys.stderr, "text", "LEVEL")
for name, logger in (("own", logging.getLogger("fairpool_gateway.any")), ("lib", logging.getLogger("uvicorn.error"))):
    logger.debug(name + "-d")
    logger.info(name + "-i")
    logger.warning(name + "-w")
"""

ENDING_FLOOD = """
import logging, sys, threading
from fairpool_gateway import floods, logs
floods.PERIOD = 0.05
logs.set_up(sys.stderr, "text", "info")
for _ in range(10):
    logging.info("flood")
ended = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
for thread in ended:
    thread.join()
logging.getLogger().handlers[0]._floods._kinds.clear()
for _ in range(5):
    logging.info("flood")
"""
