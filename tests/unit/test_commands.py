"""Every command in the pages is run by a test, as it is written, or is in a short list of those that cannot be."""

import re

import pytest
from support.commands import (
    ELSEWHERE,
    IN_SHORT,
    MENTIONED,
    NEEDS_MORE,
    all_commands,
    in_sentences,
    mentioned,
    pages_to_run,
    run_by_a_page,
    targets,
)
from support.pages import ROOT, blocks, pages

from fairpool_lab.studies import STUDIES

LANGUAGES = {"sh", "yaml", "python", "nginx", "text"}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_says_what_it_is_so_that_no_command_hides(page):
    assert {block.language for block in blocks(page)} <= LANGUAGES


def test_the_lists_name_commands_that_there_are_each_once():
    firsts = [block.first for block in all_commands()]
    for first in [*ELSEWHERE, *IN_SHORT, *NEEDS_MORE]:
        assert firsts.count(first) == 1
    assert len({*ELSEWHERE, *IN_SHORT, *NEEDS_MORE}) == len(ELSEWHERE) + len(IN_SHORT) + len(NEEDS_MORE)


def test_what_another_test_runs_is_run_by_a_test_that_is_there():
    for path in (*ELSEWHERE.values(), *IN_SHORT.values()):
        assert (ROOT / path).exists()


def test_every_study_has_its_command_in_a_page_and_is_made_in_short_by_a_test():
    assert {first.split()[3] for first in IN_SHORT} == STUDIES.keys()


def test_what_cannot_be_run_is_the_smallest_part():
    assert len(NEEDS_MORE) <= len(all_commands()) // 5
    assert all(NEEDS_MORE.values())


def test_all_others_are_run():
    run = [block for each in (True, False) for found in pages_to_run(with_kubectl=each).values() for block in found]
    assert sorted(run, key=repr) == sorted(run_by_a_page(), key=repr)
    assert len(run) + len(ELSEWHERE) + len(IN_SHORT) + len(NEEDS_MORE) == len(all_commands())


def test_what_is_only_mentioned_is_in_a_page():
    assert mentioned() == MENTIONED.keys()


def test_no_command_in_a_sentence_that_is_run_has_something_of_the_readers_in_it():
    run = [command for each in (True, False) for found in in_sentences(with_kubectl=each).values() for command in found]
    assert run
    assert [command for command in run if {"NAME", "PATH", "DIRECTORY", "FILE", "POOL"} & set(command.split())] == []


def test_what_make_is_asked_for_is_in_the_makefile():
    there = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    asked = targets()
    assert {page: missing for page, named in asked.items() if (missing := named - there)} == {}
    assert {"demo", "test", "bench-load"} <= asked["README.md"]
    assert {"image", "engine-image"} <= asked["docs/platform.md"]
