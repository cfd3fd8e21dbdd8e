"""Database files that ironbench created: copies that are kept, and the owner of their directory."""

from pathlib import Path

import pytest

from ironbench.engines.own_files import locked, next_kept
from ironbench.errors import InputError


def test_what_is_kept_aside_gets_the_number_after_the_largest(tmp_path: Path) -> None:
    """A single-file database has its log beside the copy, under the same number."""
    data = tmp_path / "data.db"
    assert next_kept(data) == tmp_path / "data.db.kept-1"
    for name in ("data.db.kept-2", "data.db.kept-10", "data.db.kept-10-wal", "other.kept-30"):
        (tmp_path / name).touch()
    assert next_kept(data) == tmp_path / "data.db.kept-11"


def test_a_directory_is_held_while_it_is_copied_and_free_whatever_happens(tmp_path: Path) -> None:
    def copied_twice() -> None:
        with locked(tmp_path), locked(tmp_path):
            raise AssertionError("two hold it")

    with pytest.raises(InputError, match="another ironbench process uses this directory"):
        copied_twice()
    with locked(tmp_path):
        assert (tmp_path / "ironbench.lock").is_file()
