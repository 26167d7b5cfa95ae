"""The file of the decision log: on disk soon, whole at the end, and no danger to requests when the disk is full."""

from pathlib import Path

from support.scripted_endpoint import until

from fairpool_gateway.app.log_file import LogFile


async def test_a_line_is_on_disk_soon_and_without_another_one(tmp_path):
    path = tmp_path / "decisions.jsonl"
    file = LogFile(path)
    file.write(b"one\n")
    await until(lambda: path.read_bytes() == b"one\n")
    file.close()


async def test_closing_writes_what_is_left(tmp_path):
    path = tmp_path / "decisions.jsonl"
    file = LogFile(path)
    for number in range(1000):
        file.write(b"%d\n" % number)
    file.close()
    assert path.read_bytes().count(b"\n") == 1000


async def test_a_full_disk_ends_the_log_and_says_so_once(caplog):
    file = LogFile(Path("/dev/full"))
    for _ in range(3):
        file.write(b"x" * (1 << 17))
    file.write(b"x")
    file.close()
    assert [record.getMessage() for record in caplog.records] == [
        "the decision log ends here, /dev/full cannot be written: No space left on device"
    ]


async def test_a_disk_that_is_full_at_the_next_flush_does_the_same(caplog):
    file = LogFile(Path("/dev/full"))
    file.write(b"x")
    await until(lambda: caplog.records)
    file.write(b"x")
    file.close()
    assert len(caplog.records) == 1
