"""Partial captures of a proxy: what remains if a capture cannot be finished, or if its statements cannot be stored."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from types import SimpleNamespace

import duckdb
import msgspec
import pytest

from ironbench import _core
from ironbench.errors import FailureError, InputError
from ironbench.workloads.capture import file, making, marks, proxy

LOG = "\n".join(
    f'2026-11-28 17:00:0{second}.000 UTC,"app","shop",{session},"[local]",6b0b1484.{session},{second},"SELECT",'
    f'2026-11-28 17:00:00 UTC,3/{second},0,LOG,00000,"duration: 1.000 ms  statement: {sql}",,,,,,,,,"web",'
    '"client backend",,0'
    for second, session, sql in (
        (1, 9, marks.statement({"rows_inserted": 5}).replace('"', '""')),
        (2, 7, "insert into t values (1)"),
        (3, 9, marks.statement({"rows_inserted": 6}).replace('"', '""')),
    )
)


@pytest.fixture
def partial(tmp_path: Path) -> str:
    """A partial capture with a statement between two marks."""
    log, path = tmp_path / "server.csv", str(tmp_path / "shop.capture.partial")
    log.write_text(LOG + "\n")
    order = {"files": [{"path": str(log), "named": True}], "prefix": None, "mask": False}
    rows = _core.LogRows(msgspec.json.encode(order))
    with file.database(path) as opened:
        opened.execute("CREATE TABLE read AS SELECT * FROM rows")
        opened.execute("CREATE TABLE incomplete (transaction UBIGINT)")
        opened.execute("CREATE TABLE counts AS SELECT unnest(['masked', 'lost', 'unfollowed']) AS name, 0 AS value")
        opened.execute("CREATE TABLE source AS SELECT '' AS protocol")
    assert rows.statements == 3
    return path


def test_a_capture_that_could_not_be_written_can_be_finished_with_all_its_contents(
    partial: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(opened: duckdb.DuckDBPyConnection, path: Path, described: file.CaptureFacts) -> None:
        write(opened, path, described)
        raise FailureError(str(path), "could not be written: No space left on device", "use another file")

    write, output = making._write, str(tmp_path / "shop.capture")
    with monkeypatch.context() as patched, pytest.raises(FailureError) as told:
        patched.setattr(making, "_write", full)
        proxy.finish(partial, output)
    assert f"{partial} -o" in told.value.hint
    facts = proxy.finish(partial, output)
    assert (facts.counters, facts.statements, facts.sessions) == ({"rows_inserted": 1}, 1, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["server.csv", "shop.capture"]


def test_a_capture_whose_name_is_taken_in_the_meantime_can_be_finished_under_another_name(
    partial: str, tmp_path: Path
) -> None:
    (tmp_path / "shop.capture").write_text("mine")
    with pytest.raises(InputError, match="exists") as told:
        proxy.finish(partial, str(tmp_path / "shop.capture"))
    assert f"{partial} -o" in told.value.hint
    assert (tmp_path / "shop.capture").read_text() == "mine"
    assert proxy.finish(partial, str(tmp_path / "other.capture")).statements == 1


def test_a_file_system_without_hard_links_is_enough(
    partial: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unlinked(source: Path, target: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(source), str(target))

    def filled(opened: duckdb.DuckDBPyConnection, path: Path, described: file.CaptureFacts) -> None:
        write(opened, path, described)
        (tmp_path / "shop.capture").write_text("mine")

    write, output = making._write, tmp_path / "shop.capture"
    monkeypatch.setattr(os, "link", unlinked)
    with monkeypatch.context() as patched, pytest.raises(InputError, match="exists"):
        patched.setattr(making, "_write", filled)
        proxy.finish(partial, str(output))
    assert output.read_text() == "mine"
    output.unlink()
    assert proxy.finish(partial, str(output)).statements == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["server.csv", "shop.capture"]


def test_a_capture_is_on_disk_before_its_partial_capture_is_removed(
    partial: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def synced(descriptor: int) -> None:
        sizes.append(os.fstat(descriptor).st_size)
        assert Path(partial).exists()

    sizes: list[int] = []
    monkeypatch.setattr(os, "fsync", synced)
    proxy.finish(partial, str(tmp_path / "shop.capture"))
    assert sizes == [(tmp_path / "shop.capture").stat().st_size] and not Path(partial).exists()


def test_an_error_while_statements_are_stored_ends_the_capture_with_this_error(
    partial: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        address, is_running = "127.0.0.1:6432", True

        def __init__(self, order: bytes) -> None:
            del order

        def counters(self) -> bytes:
            return msgspec.json.encode({"open": 1, "sessions": 1, "lost": 0, "unfollowed": 0})

        def take(self, seconds: float) -> tuple[None, bool]:
            time.sleep(0.01)
            raise MemoryError("no memory")

        def stop(self) -> None:
            pass

    server = SimpleNamespace(connection={})
    monkeypatch.setattr(proxy, "_server", lambda options: (SimpleNamespace(protocol=""), server))
    monkeypatch.setattr(_core, "Proxy", Broken)
    asked = proxy.ProxyOptions("127.0.0.1:0", "postgresql://127.0.0.1:1/shop", str(tmp_path / "new.capture"))
    with pytest.raises(FailureError, match="no memory"):
        proxy.capture(asked, lambda address: None, lambda share, text: None)
    assert not (tmp_path / "new.capture").exists() and Path(partial).exists()
