"""Memory and disk space for the analysis of captures."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path

import duckdb
import pytest

from ironbench import _core, workloads
from ironbench.errors import FailureError, InputError
from ironbench.workloads.capture import file, logs, making, tape
from ironbench.workloads.capture.file import CaptureFacts

LARGE = "select md5(i::varchar) as a, md5((i * 2)::varchar) as b from range(3000000) t(i) order by a, b"


def test_exhausted_memory_is_not_reported_as_a_damaged_capture() -> None:
    with pytest.raises(FailureError, match=r"shop\.capture"), file.reading("shop.capture") as opened:
        opened.execute("set memory_limit = '20MB'")
        opened.execute("set max_temp_directory_size = '1MB'")
        opened.execute(f"create table sorted as {LARGE}")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (duckdb.OutOfMemoryException("failed to allocate data"), FailureError),
        (duckdb.IOException("No magic bytes found at end of file"), InputError),
        (duckdb.InvalidInputException("Failed to read Parquet file"), InputError),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "invalid"), InputError),
    ],
)
def test_only_a_damaged_capture_is_invalid_input(error: Exception, expected: type[Exception]) -> None:
    with pytest.raises(expected), file.reading("shop.capture"):
        raise error


def test_temporary_files_are_in_a_private_directory_that_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(InputError), file.reading("shop.capture") as opened:
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        opened.execute("set memory_limit = '40MB'")
        opened.execute("set threads = 1")
        opened.execute(f"create table sorted as {LARGE}")
        assert list(folder.iterdir()), "nothing was spilled"
        opened.execute("select * from missing")
    assert not list(tmp_path.iterdir())


def test_a_missing_temporary_directory_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(FailureError, match="TMPDIR"), file.reading("shop.capture"):
        pass


def test_a_capture_is_made_with_as_many_threads_as_its_memory_suffices_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*_: str, **config: str | int) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        settings.update(config)
        return file.database(**config)

    def fill(opened: duckdb.DuckDBPyConnection) -> CaptureFacts:
        raise InputError("capture", "is empty")

    settings: dict[str, str | int] = {}
    monkeypatch.setattr(making, "database", opened)
    with pytest.raises(InputError, match="is empty"):
        making.made(str(tmp_path / "shop.capture"), fill)
    assert settings["threads"] == 2


LOG = Path(__file__).parents[1] / "data" / "pglog" / "all-statements.csv"


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    """Options that replay a capture."""
    logs.capture([str(LOG)], str(tmp_path / "shop.capture"))
    return workloads.get("capture").validated({"file": str(tmp_path / "shop.capture")})


def test_a_tape_needs_no_support_for_files_without_a_name(
    options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(path: str, flags: int, mode: int = 0o777, **more: int | None) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported", path)
        return really(path, flags, mode, **more)

    really, folder = os.open, tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(os, "open", opened)
    made = tape.tape(options)
    assert sum(end - start for start, end in made.clients) == Path(made.path).stat().st_size > 0
    assert not list(folder.iterdir()), "the kernel must remove the file when the process ends"


def test_a_tape_is_written_once_however_many_others_are_needed(options: dict[str, str]) -> None:
    first = tape.tape(options)
    for copies in range(2, 9):
        tape.tape({**options, "sessions": str(copies)})
    assert tape.tape(options).path == first.path


def test_a_full_temporary_directory_is_named(
    options: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(rows: object, path: str) -> None:
        raise FailureError(path, "No space left on device (os error 28)")

    before = len(list(Path("/proc/self/fd").iterdir()))
    monkeypatch.setattr(_core, "write_tape", full)
    with pytest.raises(FailureError, match=rf"shop\.capture: .* {tempfile.gettempdir()}: No space") as told:
        tape.tape(options)
    assert "TMPDIR" in told.value.hint
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(FailureError, match="TMPDIR"):
        tape.tape(options)
