"""Files that a killed `ironbench capture` leaves behind are removed by the next one, and no other files are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

from ironbench import _core
from ironbench.engines.base import Traits
from ironbench.host import durable
from ironbench.model.digest import Digests, StatementDigest
from ironbench.workloads.capture import digests, file, logs, making, proxy

LOG = Path(__file__).parents[1] / "data" / "pglog" / "all-statements.csv"
STATISTICS = Digests(
    "shop",
    1_795_885_200_000_000,
    10.0,
    3,
    (StatementDigest("select name from item where id = $1", "app", 200, 0.002, 190, (("7",), ("8",)), 1, 0),),
    {},
)
PARTIAL = "shop.partial"
SPILLED = """
    set memory_limit = '40MB';
    set threads = 1;
    create table spilled as
    select md5(i::varchar) as a, md5((i * 2)::varchar) as b from range(3000000) t(i) order by a, b
"""
PHASES: dict[tuple[str, str], tuple[Any, str]] = {
    ("log", "read"): (logs, "_read"),
    ("statistics", "read"): (digests, "_read"),
    ("partial", "read"): (proxy, "_described"),
    ("partial", "removed"): (Path, "unlink"),
    **{(kind, "written"): (making, "_write") for kind in ("log", "statistics", "partial")},
    **{(kind, "named"): (os, "link") for kind in ("log", "statistics", "partial")},
}
"""The function of each phase after which the capture is killed."""


def capture(kind: str, home: Path, name: str) -> file.CaptureFacts:
    output = str(home / name)
    if kind == "log":
        return logs.capture([str(LOG)], output)
    if kind == "partial":
        return proxy.finish(str(home / PARTIAL), output)
    traits = Traits("", digests="statistics")
    return making.made(output, lambda opened: digests._fill(opened, STATISTICS, traits, False))


def capture_and_be_killed(kind: str, phase: str, home: Path) -> None:
    """Makes a capture in this process, and kills this process at the end of the phase."""

    def reached(*given: Any, **named: Any) -> Any:
        done = really(*given, **named)
        if phase == "removed" and given[0].suffix != ".wal":
            return done
        if phase == "read" and kind == "log":
            given[0].execute(SPILLED)
        return os.kill(os.getpid(), signal.SIGKILL)

    owner, name = PHASES[kind, phase]
    really = getattr(owner, name)
    setattr(owner, name, reached)
    capture(kind, home, "shop.capture")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def make_partial(home: Path) -> None:
    order = {"files": [{"path": str(LOG), "named": True}], "prefix": None, "mask": False}
    rows = _core.LogRows(msgspec.json.encode(order))
    with file.database(str(home / PARTIAL)) as opened:
        opened.execute("CREATE TABLE read AS SELECT * FROM rows")
        opened.execute("CREATE TABLE incomplete (transaction UBIGINT)")
        opened.execute("CREATE TABLE counts AS SELECT unnest(['masked', 'lost', 'unfollowed']) AS name, 0 AS value")
        opened.execute("CREATE TABLE source AS SELECT '' AS protocol")
    assert rows.statements > 0


@pytest.mark.parametrize(("kind", "phase"), PHASES)
def test_the_next_capture_removes_what_a_killed_one_left(
    kind: str, phase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    if kind == "partial":
        make_partial(home)
    paths = [str(Path(__file__).parent), *sys.path]
    code = (
        f"import sys; sys.path[:0] = {paths!r}\n"
        "from pathlib import Path; from test_capture_killed import capture_and_be_killed\n"
        f"capture_and_be_killed({kind!r}, {phase!r}, Path({str(home)!r}))"
    )
    ended = subprocess.run([sys.executable, "-c", code], env=os.environ | {"TMPDIR": str(temporary)})
    assert ended.returncode == -signal.SIGKILL
    folders = [path for path in temporary.iterdir() if path.is_dir()]
    # A capture from statistics has a second folder while it is filled. After the files are closed, no folder is left.
    assert len(folders) == (0 if phase in ("named", "removed") else 1 + (kind == "statistics" and phase == "read"))
    if phase == "read":
        assert kind == "partial" or any(list(folder.iterdir()) for folder in folders)
    if phase != "removed":
        assert any(name.startswith(".shop.capture.") for name in names(home))
    if phase in ("named", "removed"):
        assert file.facts(str(home / "shop.capture")).statements > 0
    assert capture(kind, home, "next.capture").statements > 0
    finished = ["shop.capture"] if phase in ("named", "removed") else []
    assert names(home) == ["next.capture", *finished]
    assert names(temporary) == []


def test_files_of_a_running_capture_and_of_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / ".folder.ironbench-7.tmp").mkdir()
    (tmp_path / ".link.ironbench-7.tmp").symlink_to(LOG)
    folder = tempfile.mkdtemp(prefix="ironbench-rows-another-machine-")
    for name in (".shop.capture.7", "shop.ironbench-7.tmp", f"{durable._TEMPORARY}abcdefg1"):
        (tmp_path / name).write_text("mine")
    others = names(tmp_path)
    with durable.unfinished_capture(tmp_path / "shop.capture") as aside, durable.temporary_folder() as rows:
        capture("log", tmp_path, "next.capture")
        assert names(tmp_path) == sorted([*others, aside.name, rows.name, "next.capture"])
    assert names(tmp_path) == sorted([*others, "next.capture"]) and Path(folder).is_dir()


def test_a_capture_that_is_written_stays_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def written(opened: duckdb.DuckDBPyConnection, path: Path, described: file.CaptureFacts) -> None:
        write(opened, path, described)
        assert durable.remove_abandoned_captures(tmp_path) == []

    write = making._write
    monkeypatch.setattr(making, "_write", written)
    assert capture("log", tmp_path, "shop.capture").statements > 0
    assert names(tmp_path) == ["shop.capture"]


def test_files_of_another_user_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    aside, folder = tmp_path / ".shop.capture.ironbench-7.tmp", tmp_path / f"{durable._TEMPORARY}abcdefg1"
    aside.touch()
    folder.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
        assert durable.remove_abandoned_captures(tmp_path) == durable.remove_abandoned_temporary_folders() == []
    assert durable.remove_abandoned_captures(tmp_path) == [aside]
    assert durable.remove_abandoned_temporary_folders() == [folder]
