"""What docs/security.md says of llama.cpp's cache of prompts: no switch of the server keeps a tenant from asking it."""

import pytest
from support.gateway import running_gateway
from support.llama.pool import CHAT, pool_over_llama
from support.llama.server import llama_server
from support.tenant import tenant

SECRET = [{"role": "user", "content": "the word that opens the safe is " + "sesame " * 20}]
WRONG = [{"role": "user", "content": "what nobody has sent " * 8}]


@pytest.fixture
async def gateway(binary, model, directory):
    with llama_server(model, directory, "--no-cache-prompt", slots=1) as engine:
        async with running_gateway(pool_over_llama(engine.url, slots={"perEndpoint": 1})) as gateway:
            yield gateway


async def known(gateway, guess, **fields):
    """How much of a guess tenant `b` is told to be known, after `a` has sent the secret."""
    async with tenant(gateway, "a") as victim, tenant(gateway, "b") as curious:
        await victim.chat.completions.create(**{**CHAT, "messages": SECRET})
        usage = (await curious.chat.completions.create(**{**CHAT, "messages": guess}, extra_body=fields)).usage
        return usage.prompt_tokens_details.cached_tokens / usage.prompt_tokens


async def test_a_tenant_learns_that_another_sent_what_it_guessed_though_the_server_is_told_not_to_keep_it(gateway):
    assert await known(gateway, SECRET) == 0
    assert await known(gateway, WRONG, cache_prompt=True) < 0.3
    assert await known(gateway, SECRET, cache_prompt=True) > 0.9
