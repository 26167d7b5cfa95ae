"""An edit of the file is noticed however it was made, and a broken one leaves the last good configuration in force."""

import asyncio
import contextlib
import shutil

import pytest
from support.config import pool_config
from watchfiles import Change

from fairpool_gateway.config import dump
from fairpool_gateway.configwatch import follow, read
from fairpool_gateway.configwatch.file import Follower, Place
from fairpool_gateway.errors import ConfigInvalid

SOON = 10.0
"""Seconds after which a test gives up; an edit is noticed within about a tenth of one."""


def weighing(weight):
    """A configuration that differs by its default weight."""
    return pool_config(default_weight=weight)


class Told:
    """What a follower was told, in order: default weights where applied, problems where refused."""

    def __init__(self):
        self._queue = asyncio.Queue()

    def applied(self, config):
        self._queue.put_nowait(config.default_weight)

    def refused(self, problem):
        self._queue.put_nowait(problem.problems)

    async def next(self):
        return await asyncio.wait_for(self._queue.get(), SOON)

    def so_far(self):
        told = []
        with contextlib.suppress(asyncio.QueueEmpty):
            while True:
                told.append(self._queue.get_nowait())
        return told


@contextlib.asynccontextmanager
async def following(path):
    """Follow a file as long as the block runs; what was told so far has been taken once the first look was had."""
    told, stop = Told(), asyncio.Event()
    task = asyncio.create_task(follow(path, applied=told.applied, refused=told.refused, stop=stop))
    try:
        yield told
    finally:
        stop.set()
        await asyncio.wait_for(task, SOON)


def write(path, weight):
    path.write_text(dump(weighing(weight)))


def replace(path, weight):
    """As careful editors do: a new file, renamed over the old one."""
    beside = path.with_name("beside")
    write(beside, weight)
    beside.replace(path)


def swap(volume, weight):
    """As a kubelet does: a new directory, and the symlink `..data` replaced by one that leads to it."""
    old = (volume / "..data").readlink() if (volume / "..data").exists() else None
    version = volume / f"..version_{weight}"
    version.mkdir()
    write(version / "pool.yaml", weight)
    (volume / "..data_tmp").symlink_to(version.name)
    (volume / "..data_tmp").rename(volume / "..data")
    if old:
        shutil.rmtree(volume / old)


class TestAnEditIsNoticed:
    async def test_when_the_file_is_written_in_place(self, tmp_path):
        path = tmp_path / "pool.yaml"
        write(path, 1)
        async with following(path) as told:
            for weight in (1, 2, 3):
                write(path, weight)
                assert await told.next() == weight

    async def test_when_another_file_is_renamed_over_it(self, tmp_path):
        path = tmp_path / "pool.yaml"
        write(path, 1)
        async with following(path) as told:
            for weight in (1, 2, 3):
                replace(path, weight)
                assert await told.next() == weight

    async def test_when_a_kubelet_swaps_its_symlink(self, tmp_path):
        swap(tmp_path, 1)
        (tmp_path / "pool.yaml").symlink_to("..data/pool.yaml")
        async with following(tmp_path / "pool.yaml") as told:
            assert await told.next() == 1
            for weight in (2, 3):
                swap(tmp_path, weight)
                assert await told.next() == weight

    async def test_when_it_is_a_symlink_and_the_file_elsewhere_is_edited(self, tmp_path):
        for name in ("here", "there"):
            (tmp_path / name).mkdir()
        path, real = tmp_path / "here" / "pool.yaml", tmp_path / "there" / "real.yaml"
        path.symlink_to(real)
        write(real, 1)
        async with following(path) as told:
            for weight in (1, 2):
                write(real, weight)
                assert await told.next() == weight

    async def test_when_the_file_appears_only_later(self, tmp_path):
        path = tmp_path / "not" / "yet" / "pool.yaml"
        async with following(path) as told:
            assert await told.next() == [f"{path}: there is no such file"]
            path.parent.mkdir(parents=True)
            write(path, 1)
            assert await told.next() == 1

    async def test_when_the_file_is_deleted_and_comes_back(self, tmp_path):
        path = tmp_path / "pool.yaml"
        write(path, 1)
        async with following(path) as told:
            assert await told.next() == 1
            path.unlink()
            assert await told.next() == [f"{path}: there is no such file"]
            write(path, 2)
            assert await told.next() == 2

    async def test_when_its_directory_is_made_again(self, tmp_path):
        path = tmp_path / "etc" / "pool.yaml"
        path.parent.mkdir()
        write(path, 1)
        async with following(path) as told:
            assert await told.next() == 1
            shutil.rmtree(path.parent)
            assert await told.next() == [f"{path}: there is no such file"]
            path.parent.mkdir()
            write(path, 2)
            assert await told.next() == 2
            write(path, 3)
            assert await told.next() == 3

    async def test_when_the_system_gives_no_watches(self, tmp_path, monkeypatch):
        async def refuse(*paths, **options):
            raise OSError("OS file watch limit reached")
            yield

        monkeypatch.setattr("fairpool_gateway.configwatch.file.awatch", refuse)
        path = tmp_path / "pool.yaml"
        write(path, 1)
        async with following(path) as told:
            assert await told.next() == 1
            write(path, 2)
            assert await told.next() == 2


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pool.yaml"


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def follower(path, told):
    return Follower(path, applied=told.applied, refused=told.refused, current=weighing(1))


class TestWhatIsSeen:
    async def test_is_not_applied_again_if_it_is_in_force(self, path, follower, told):
        write(path, 1)
        await follower.look()
        path.write_text(path.read_text() + "\n")
        await follower.look()
        assert told.so_far() == []

    async def test_is_applied_once(self, path, follower, told):
        write(path, 2)
        await follower.look()
        await follower.look()
        assert told.so_far() == [2]

    async def test_is_refused_once_with_its_reasons(self, path, follower, told):
        path.write_text("pool: [")
        await follower.look()
        await follower.look()
        ((problem,),) = told.so_far()
        assert problem.startswith(f"{path}, line 2, column 1: ")

    async def test_is_refused_again_if_it_is_broken_in_another_way(self, path, follower, told):
        for text in ("pool: [", "pool: {"):
            path.write_text(text)
            await follower.look()
        assert len(told.so_far()) == 2

    async def test_ends_a_refusal_even_if_it_is_what_was_in_force(self, path, follower, told):
        for text in ("pool: [", dump(weighing(1))):
            path.write_text(text)
            await follower.look()
        assert told.so_far()[1:] == [1]

    async def test_is_refused_once_while_the_file_is_gone(self, path, follower, told):
        await follower.look()
        await follower.look()
        assert told.so_far() == [[f"{path}: there is no such file"]]

    async def test_may_have_fields_from_the_future_unless_a_person_wants_them_named(self, path, told):
        path.write_text("carry: true\n" + "\n".join(f"{name}: {value}" for name, value in SMALLEST.items()))
        await Follower(path, applied=told.applied, refused=told.refused).look()
        await Follower(path, applied=told.applied, refused=told.refused, strict=True).look()
        lenient, (problem,) = told.so_far()
        assert lenient == 100
        assert problem.startswith("carry: is not a field here")


SMALLEST = {"pool": "llama", "models": "[tiny]", "endpoints": "[]", "authentication": "{type: Anonymous}"}


class BetweenReads(Follower):
    """Lets the writer write on after the first read."""

    def __init__(self, path, write_on, **arguments):
        super().__init__(path, **arguments)
        self._write_on = iter([write_on])

    async def _read(self):
        seen = await super()._read()
        for write_on in self._write_on:
            write_on()
        return seen


class TestAFileThatIsStillBeingWritten:
    async def test_is_judged_when_it_is_whole_even_if_its_parts_are_valid(self, path, told):
        text = "\n".join(f"{name}: {value}" for name, value in SMALLEST.items())
        path.write_text(text)
        whole = f"{text}\ndefaultWeight: 7"
        await BetweenReads(path, lambda: path.write_text(whole), applied=told.applied, refused=told.refused).look()
        assert told.so_far() == [7]


class TestItsNeighbours:
    def test_do_not_wake_it_by_being_written(self, path):
        place = Place.of(path)
        assert not place.concerns(Change.modified, str(path.with_name("decisions.jsonl")))
        assert place.concerns(Change.modified, str(path))
        assert place.concerns(Change.added, str(path.with_name("..data")))

    def test_may_be_its_real_file(self, path, tmp_path):
        path.symlink_to(tmp_path / "real.yaml")
        assert Place.of(path).concerns(Change.modified, str(tmp_path / "real.yaml"))


class TestTheEnd:
    async def test_of_following_comes_at_once_when_told_to_stop(self, path):
        write(path, 1)
        async with following(path) as told:
            assert await told.next() == 1

    async def test_of_following_comes_at_once_when_cancelled(self, path, told):
        write(path, 1)
        task = asyncio.create_task(follow(path, applied=told.applied, refused=told.refused))
        assert await told.next() == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, SOON)

    async def test_of_following_comes_with_an_error_of_its_callbacks(self, path):
        def applied(config):
            raise RuntimeError("no room")

        write(path, 1)
        with pytest.raises(RuntimeError, match="no room"):
            await asyncio.wait_for(follow(path, applied=applied, refused=print), SOON)


class TestReading:
    def test_gives_the_configuration_in_a_file(self, path):
        write(path, 7)
        assert read(path, strict=True) == weighing(7)

    def test_says_why_a_file_cannot_be_read(self, path):
        with pytest.raises(ConfigInvalid, match="there is no such file"):
            read(path, strict=True)
        with pytest.raises(ConfigInvalid, match="cannot be read: Is a directory"):
            read(path.parent, strict=True)
        path.symlink_to(path)
        with pytest.raises(ConfigInvalid, match="cannot be read: Too many levels of symbolic links"):
            read(path, strict=True)

    def test_says_that_a_file_is_not_a_text(self, path):
        path.write_bytes(b"pool: \xff")
        with pytest.raises(ConfigInvalid, match="is not a text in UTF-8"):
            read(path, strict=True)
