import pytest
from support.up import Files, pool, weight
from support.up_session import Place


@pytest.fixture
def files(tmp_path) -> Files:
    """A pool with two tenants, without keys, in files that were read."""
    files = Files(tmp_path)
    files.write("pool", pool())
    files.write("tenants", weight("search", weight=300), weight("batch", weight=100))
    assert files.taken() == []
    return files


@pytest.fixture
def place(tmp_path) -> Place:
    """Where a session can run."""
    (tmp_path / "files").mkdir()
    return Place(tmp_path / "files", tmp_path / "state")
