"""docs/tenants.md: its programs work as they are written, and its times are the gateway's."""

import asyncio
import os
import re
import sys

import pytest
from support.config import key_of
from support.engine import running_engine
from support.gateway import running_gateway
from support.pages import PAGES, blocks, section
from support.scripted_endpoint import PATIENCE
from support.tenant import pool_over

from fairpool_gateway.app.server import UNREAD_SECONDS
from fairpool_gateway.config import QueueSettings, TimeoutSettings

PAGE = PAGES / "tenants.md"
PROGRAMS = [block for block in blocks(PAGE) if block.language == "python"]
MODEL = "meta-llama/Llama-3.3-70B-Instruct"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.first)
async def test_a_program_is_answered_as_it_is_written(program):
    async with running_engine(MODEL) as engine, running_gateway(pool_over(engine.url, models=[MODEL])) as gateway:
        environment = {
            "OPENAI_BASE_URL": f"{gateway.url}/v1",
            "OPENAI_API_KEY": key_of("a"),
            "ANTHROPIC_BASE_URL": gateway.url,
            "ANTHROPIC_API_KEY": key_of("a"),
            "NO_PROXY": "*",
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", program.text),
            env={**os.environ, **environment},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            said, complained = await asyncio.wait_for(process.communicate(), 10 * PATIENCE)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode == 0, complained.decode()
        assert said.strip()
        assert gateway.outcomes["answered"] == 1


def test_the_programs_are_both_clients():
    assert [block.first for block in PROGRAMS] == ["from openai import OpenAI", "from anthropic import Anthropic"]


class TestTheTimes:
    rows = re.findall(r"^\| (.+?) \| (\d+) s \|", section(PAGE, "Time-outs"), re.MULTILINE)

    def test_are_the_defaults(self):
        queue, timeouts = QueueSettings(), TimeoutSettings()
        wanted = [queue.timeout, timeouts.first_byte, timeouts.first_byte_unary, timeouts.idle, UNREAD_SECONDS]
        assert [float(seconds) for _, seconds in self.rows] == wanted

    def test_that_clients_need_are_the_sums(self):
        queue, timeouts = QueueSettings(), TimeoutSettings()
        text = PAGE.read_text(encoding="utf-8")
        assert f"above {queue.timeout + timeouts.first_byte_unary:.0f} s" in text
        assert f"{queue.timeout + timeouts.first_byte:.0f} s or an error" in text
        advised = {int(each) for each in re.findall(r"timeout=(\d+)\)", text)}
        assert min(advised) > queue.timeout + timeouts.first_byte_unary
