"""Finding the files that resources are in: what cannot be read is told, and what moves meanwhile is found."""

from __future__ import annotations

import io
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.permissions import minded
from support.processes import PATIENCE

from fairpool_operator.errors import CannotStart
from fairpool_operator.manifests import STDIN, files, read


@pytest.fixture
def repository(tmp_path):
    """A directory with a file in a directory of its own."""
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "tenant.yaml").write_text("kind: A\n")
    return tmp_path


def kinds(found):
    return [each.kind for each in found.documents]


def told(found):
    return [(each.file, each.message) for each in found.problems]


class TestFiles:
    def test_are_found_below_directories_in_order_and_hidden_ones_left_out(self, tmp_path):
        for name in ("b.yaml", "a/z.yml", ".git/c.yaml", "a/.d.yaml", "e.json", "f.yaml.bak"):
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("kind: A\n")
        found = read([tmp_path])
        assert [str(file.relative_to(tmp_path)) for file in found.files] == ["a/z.yml", "b.yaml"]
        assert [each.file for each in found.documents] == list(found.files)

    def test_that_are_named_are_read_whatever_they_are_called_and_once(self, tmp_path):
        path = tmp_path / "pool.json"
        path.write_text(json.dumps({"kind": "A"}))
        assert [each.object for each in read([path, path]).documents] == [{"kind": "A"}]

    def test_may_be_the_standard_input(self, monkeypatch):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"kind: A\n")))
        assert [(each.file, each.kind) for each in read([STDIN]).documents] == [(STDIN, "A")]

    def test_may_be_links(self, repository):
        (repository / "link.yaml").symlink_to(repository / "team" / "tenant.yaml")
        assert kinds(read([repository])) == ["A", "A"]

    def test_are_no_pipes_and_no_directories(self, repository):
        os.mkfifo(repository / "pipe.yaml")
        (repository / "link-to-pipe.yaml").symlink_to(repository / "pipe.yaml")
        (repository / "directory.yaml").mkdir()
        (repository / "link-to-directory.yaml").symlink_to(repository / "team")
        assert [file.name for file in read([repository]).files] == ["tenant.yaml"]

    def test_that_are_pipes_once_they_are_opened_are_not_waited_for(self, repository, monkeypatch):
        pipe = repository / "pipe.yaml"
        os.mkfifo(pipe)
        looks = iter([True])
        monkeypatch.setattr(files, "_is_read", lambda path: path.is_file() or next(looks, False))
        with ThreadPoolExecutor() as pool:
            found = pool.submit(read, [repository])
            try:
                assert [file.name for file in found.result(PATIENCE).files] == ["tenant.yaml"]
            finally:
                os.close(os.open(pipe, os.O_RDWR))  # whoever waits for a writer has one


class TestWhatCannotBeRead:
    def test_is_told_of_what_is_not_there(self, tmp_path):
        with pytest.raises(CannotStart, match=f"there is no file or directory {tmp_path / 'nothing'}"):
            read([tmp_path / "nothing"])

    def test_is_a_problem_of_a_file_that_is_no_text(self, tmp_path):
        path = tmp_path / "a.yaml"
        path.write_bytes(b"a: 1\nb: \xff\n")
        assert [(each.line, each.message[:12]) for each in read([path]).problems] == [(2, "is not UTF-8")]

    def test_is_a_problem_of_a_directory_below(self, repository):
        (repository / "team").chmod(0)
        with minded():
            found = read([repository])
        assert (kinds(found), told(found)) == ([], [(repository / "team", "cannot be read: Permission denied")])

    def test_is_a_problem_of_each_file_where_a_directory_shows_names_only(self, repository):
        (repository / "team").chmod(0o400)
        with minded():
            found = read([repository])
        assert told(found) == [(repository / "team" / "tenant.yaml", "cannot be read: Permission denied")]

    def test_is_a_problem_of_a_link_that_leads_nowhere(self, repository):
        link = repository / "link.yaml"
        link.symlink_to(repository / "nothing")
        found = read([repository])
        assert (kinds(found), told(found)) == (["A"], [(link, "is a link that leads nowhere: mend or remove it")])

    def test_is_nothing_where_it_is_hidden(self, repository):
        hidden = (repository / "team").rename(repository / ".team")
        hidden.chmod(0)
        with minded():
            assert told(read([repository])) == []

    @pytest.mark.parametrize("closed", ["", "team"], ids=["above it", "itself"])
    def test_is_no_beginning_where_it_is_the_directory_that_was_named(self, repository, closed):
        (repository / closed).chmod(0)
        with minded(), pytest.raises(CannotStart, match="team cannot be looked into: Permission denied"):
            read([repository / "team"])


class TestWhatMovesMeanwhile:
    """The kernel does as it does; what somebody else does at that moment is done right before it is asked."""

    @pytest.fixture
    def before_listing(self, monkeypatch):
        """Have something done before a directory is listed."""

        def have(act):
            scandir = os.scandir

            def acted(path):
                act(Path(path))
                return scandir(path)

            monkeypatch.setattr(os, "scandir", acted)

        return have

    def test_is_found_where_it_went(self, repository, before_listing):
        def moved(path):
            if path.name == "team":
                path.rename(repository / "moved")

        before_listing(moved)
        found = read([repository])
        assert (found.files, kinds(found), told(found)) == ((repository / "moved" / "tenant.yaml",), ["A"], [])

    def test_is_found_where_it_went_when_a_file_was_there_at_the_listing(self, repository, monkeypatch):
        read_at_once = files._at_once

        def moved(path):
            if path.name == "tenant.yaml":
                path.rename(path.with_name("moved.yaml"))
            return read_at_once(path)

        monkeypatch.setattr(files, "_at_once", moved)
        found = read([repository])
        assert (found.files, told(found)) == ((repository / "team" / "moved.yaml",), [])

    def test_is_a_problem_where_it_never_stays(self, repository, before_listing):
        numbers = iter(range(1000))

        def moved(path):
            if path.name.startswith("team"):
                path.rename(repository / f"team-{next(numbers)}")

        before_listing(moved)
        ((path, message),) = told(read([repository]))
        assert (path.parent, message) == (repository, "cannot be read: No such file or directory")

    def test_is_told_where_it_is_the_directory_that_was_named(self, repository, before_listing):
        before_listing(lambda path: path.rename(repository / "moved"))
        with pytest.raises(CannotStart, match="team cannot be looked into: No such file or directory"):
            read([repository / "team"])

    def test_leaves_of_the_standard_input_what_was_read(self, repository, before_listing, monkeypatch):
        before_listing(lambda path: path.name == "team" and path.rename(repository / "moved"))
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"kind: B\n")))
        assert kinds(read([STDIN, repository])) == ["B", "A"]
