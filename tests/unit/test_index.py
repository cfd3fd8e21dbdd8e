"""The index is derived from the records: it agrees with their directories, whatever happens to either."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from factories import record

from ironbench.cli.list import list_
from ironbench.errors import InputError
from ironbench.model.record import Record
from ironbench.printer import Printer
from ironbench.records import Store, index
from ironbench.records.index import NAME, VERSION, WAIT_S


def kept(directory: Path, *ids: str) -> Store:
    store = Store(directory)
    for id in ids:
        store.keep(record(id=id, series="s"))
    return store


def names(store: Store) -> list[str]:
    return [row.id for row in store.listed()]


def unopened(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns the names in the index. Opening a record is an error."""

    def refuse(*_: object) -> Record:
        raise AssertionError("a record was opened")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_read", refuse)
        return names(store)


def test_a_second_list_opens_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = kept(tmp_path, "a", "b")
    assert names(store) == unopened(store, monkeypatch) == ["a", "b"]


def test_records_that_come_and_go_behind_its_back_are_seen(tmp_path: Path) -> None:
    store = kept(tmp_path, "a", "b")
    assert names(store) == ["a", "b"]
    kept(tmp_path, "c")
    shutil.rmtree(store.path("a"))
    assert names(store) == ["b", "c"]
    assert [one.id for one in store.select(["s"])] == ["b", "c"]


def test_a_folder_put_in_place_of_another_is_read_anew(tmp_path: Path) -> None:
    store = kept(tmp_path / "x", "a")
    assert store.listed()[0].throughput == 1000.0
    shutil.rmtree(store.path("a"))
    other = Store(tmp_path / "y")
    other.keep(record(id="a", series="s", throughput=7.0))
    shutil.move(other.path("a"), store.path("a"))
    assert store.listed()[0].throughput == 7.0


def indexed(directory: Path) -> list[str]:
    """Returns the names in the index file."""
    with closing(sqlite3.connect(directory / NAME)) as database:
        return sorted(id for (id,) in database.execute("select id from record"))


def database_of_version(path: Path, version: int, *statements: str) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        for statement in (*statements, f"pragma user_version = {version}"):
            database.execute(statement)


BROKEN: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "no database": lambda path: path.write_bytes(b"{" * 5000),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "overwritten": lambda path: path.write_bytes(path.read_bytes()[:4096] + bytes(len(path.read_bytes()) - 4096)),
    "older": lambda path: database_of_version(path, VERSION - 1 or 99, "create table record (id)"),
    "newer": lambda path: database_of_version(path, VERSION + 1, "create table directory (lab, state)"),
    "without tables": lambda path: database_of_version(path, VERSION),
    "with other tables": lambda path: database_of_version(path, VERSION, "create table record (id)"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_older_or_newer_index_is_made_again_without_a_word(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = kept(tmp_path, "a")
    assert names(store) == ["a"]
    BROKEN[how](tmp_path / NAME)
    assert names(store) == ["a"] == indexed(tmp_path)
    assert unopened(Store(tmp_path), monkeypatch) == ["a"]
    assert capsys.readouterr() == ("", "")


def test_an_index_that_breaks_after_it_was_refreshed_is_filled_again(tmp_path: Path) -> None:
    store = kept(tmp_path, "a", "b")
    assert names(store) == ["a", "b"]
    for how in BROKEN.values():
        how(tmp_path / NAME)
        assert [row.id for row in store._rows("series = ?", "s")] == ["a", "b"]
        (tmp_path / NAME).unlink()
        assert [row.id for row in store._rows("series = ?", "s")] == ["a", "b"]


def test_an_index_that_is_replaced_during_a_refresh_gets_every_row(tmp_path: Path) -> None:
    store = kept(tmp_path, "a", "b")
    assert names(store) == ["a", "b"]
    kept(tmp_path, "c")
    known = store.index.known("")
    (tmp_path / NAME).unlink()
    stamps = {name: index.stamp_of(tmp_path / "trials", name) for name in "abc"}
    store.index.refresh("", known, "", stamps, lambda name: store.records([name])[0])
    assert indexed(tmp_path) == ["a", "b", "c"]


def test_the_index_of_an_earlier_version_is_removed_and_a_file_of_the_user_is_not(tmp_path: Path) -> None:
    for name, content in (("x", b'{"version":12,"rows":{}}'), ("y", b'{"version": 1, "pages": []}')):
        store = kept(tmp_path / name, "a")
        (tmp_path / name / "index.json").write_bytes(content)
        assert names(store) == ["a"]
    assert not (tmp_path / "x" / "index.json").exists()
    assert (tmp_path / "y" / "index.json").exists()


def test_without_an_index_the_list_is_the_same(tmp_path: Path) -> None:
    store = kept(tmp_path, "a", "b")
    before = store.listed()
    (tmp_path / NAME).unlink()
    assert store.listed() == before


def test_reading_what_is_not_there_makes_no_file(tmp_path: Path) -> None:
    assert names(Store(tmp_path)) == names(Store(tmp_path / "missing")) == []
    assert not list(tmp_path.iterdir())


def test_an_index_that_cannot_be_a_file_is_made_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / NAME).mkdir()
    store = kept(tmp_path, "a")
    assert names(store) == unopened(store, monkeypatch) == ["a"]
    kept(tmp_path, "b")
    assert names(store) == ["a", "b"]


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """Results of two records, one of which is not in the index, that can only be read."""
    results = tmp_path / "results"
    assert names(kept(results, "a")) == ["a"]
    kept(results, "b")
    if subprocess.run(["mount", "--bind", "-o", "ro", results, results], check=False, capture_output=True).returncode:
        pytest.skip("mounting is not permitted here")
    yield results
    subprocess.run(["umount", "--lazy", results], check=True)


def test_read_only_results_are_listed_with_the_records_that_the_index_lacks(read_only: Path) -> None:
    with pytest.raises(OSError, match="Read-only"):
        (read_only / "x").touch()
    assert names(Store(read_only)) == ["a", "b"]
    assert [one.id for one in Store(read_only).select(["s"])] == ["a", "b"]
    assert indexed(read_only) == ["a"]


NO_LOCKS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

static int answer(const char *name, int file, int command, void *argument) {
    if (command == F_SETLK || command == F_SETLKW || command == F_GETLK) {
        errno = ENOLCK;
        return -1;
    }
    int (*real)(int, int, ...) = dlsym(RTLD_NEXT, name);
    return real(file, command, argument);
}

#define WRAPPED(name)                                      \
    int name(int file, int command, ...) {                 \
        va_list arguments;                                 \
        va_start(arguments, command);                      \
        void *argument = va_arg(arguments, void *);        \
        va_end(arguments);                                 \
        return answer(#name, file, command, argument);     \
    }
WRAPPED(fcntl)
WRAPPED(fcntl64)
"""
"""Library that makes file systems refuse locks (fcntl_locking(2), ENOLCK), as NFS does without its lock daemon."""


def test_a_file_system_that_refuses_locks_is_listed_without_an_index(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler here")
    (tmp_path / "locks.c").write_text(NO_LOCKS)
    library = tmp_path / "locks.so"
    command = [compiler, "-shared", "-fPIC", "-o", str(library), str(tmp_path / "locks.c"), "-ldl"]
    subprocess.run(command, check=True)
    results = tmp_path / "results"
    kept(results, "a", "b")
    code = (
        "import sys; from pathlib import Path; from ironbench.records import Store; store = Store(Path(sys.argv[1]));"
    )
    code += "print([row.id for row in store.listed()], [one.id for one in store.select(['s'])])"
    environment = os.environ | {"LD_PRELOAD": str(library)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(results)], check=True, capture_output=True, text=True, env=environment
    )
    assert done.stdout == "['a', 'b'] ['a', 'b']\n" and not done.stderr
    assert not (results / NAME).stat().st_size
    assert names(Store(results)) == ["a", "b"] == indexed(results)


KILLED = """
import os, signal, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("pragma cache_size = 1")  # dirty pages reach the file before the transaction ends
database.execute("begin immediate")
database.execute("update record set label = 'torn'")
for number in range(2000):
    database.execute("insert into unreadable values ('torn', ?)", (f"{number:0200}",))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_writer_neither_locks_nor_changes_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = kept(tmp_path, "a", "b")
    before = store.listed()
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / NAME)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / f"{NAME}-journal").exists()
    began = time.monotonic()
    assert unopened(Store(tmp_path), monkeypatch) == ["a", "b"]
    assert Store(tmp_path).listed() == before and not store.index.unreadable()
    assert time.monotonic() - began < WAIT_S


def test_a_writer_that_does_not_end_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "WAIT_S", 0.05)
    names(kept(tmp_path, "a"))
    with closing(sqlite3.connect(tmp_path / NAME)) as other:
        other.execute("begin exclusive")
        assert names(kept(tmp_path, "b")) == ["a", "b"]


def test_labs_and_runs_of_one_directory_share_an_index(tmp_path: Path) -> None:
    runs = kept(tmp_path, "a")
    lab = runs.of_lab("x")
    lab.keep(record(id="a", series="lab"))
    assert [row.series for row in lab.listed()] == ["lab"] and [row.series for row in runs.listed()] == ["s"]
    assert not (lab.directory / NAME).exists() and indexed(tmp_path) == ["a", "a"]
    with pytest.raises(InputError, match="matches no record"):
        runs.select(["lab"])


def test_one_damaged_record_and_stray_files_are_left_out_and_said(tmp_path: Path) -> None:
    kept(tmp_path, "a", "b", "c")
    talk = io.StringIO()
    store = Store(tmp_path, Printer(io.StringIO(), talk))
    assert names(store) == ["a", "b", "c"]
    (store.path("b") / "record.json").write_bytes(b'{"id": "b", ')
    (tmp_path / "trials" / "notes.txt").write_text("stray")
    shutil.copytree(store.path("c"), store.path("copy of c"))
    for read in (store.listed, store.all):
        assert [one.id for one in read()] == ["a", "c"]
        said = talk.getvalue()
        assert "b/record.json is not a readable record" in said
        assert "notes.txt contains no record" in said
        assert "copy of c/record.json contains the record c under another name" in said
        talk.truncate(0)
        talk.seek(0)


def test_a_damaged_record_does_not_keep_its_trial_from_being_measured_again(tmp_path: Path) -> None:
    for _ in range(2):
        store = kept(tmp_path, "a")
        assert names(store) == ["a"]
        (store.path("a") / "record.json").write_bytes(b"{")
    assert sorted(path.name for path in (tmp_path / "trials").iterdir()) == [".damaged-a-1", "a"]


def test_a_record_of_a_newer_version_is_left_out_and_said(tmp_path: Path) -> None:
    kept(tmp_path, "a")
    Store(tmp_path).keep(replace(record(id="new"), schema=99))
    talk = io.StringIO()
    assert [one.id for one in Store(tmp_path, Printer(io.StringIO(), talk)).all()] == ["a"]
    assert "newer than" in talk.getvalue()


def test_a_hundred_damaged_records_are_counted_not_listed(tmp_path: Path) -> None:
    store = kept(tmp_path, "a")
    for number in range(100):
        (tmp_path / "trials" / f"x{number}").mkdir()
    talk = io.StringIO()
    assert names(Store(tmp_path, Printer(io.StringIO(), talk))) == names(store)
    assert len(talk.getvalue().splitlines()) == 4
    assert "97 more" in talk.getvalue()


def test_list_and_show_work_beside_a_damaged_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept(tmp_path, "a", "b")
    (tmp_path / "trials" / "b" / "record.json").write_text("")
    assert list_("records", str(tmp_path), False) == 0
    shown = capsys.readouterr()
    assert "a " in shown.out
    assert shown.err.startswith("skipped: ")
    assert list_("records", str(tmp_path), True) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)["records"]] == ["a"]


def test_names_that_are_not_text_are_left_out(tmp_path: Path) -> None:
    store = kept(tmp_path, "a")
    (tmp_path / "trials" / os.fsdecode(b"\xff")).mkdir()
    assert names(store) == names(store) == ["a"]


WRITER = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from factories import record
from ironbench.records import Store
store = Store(Path({results!r}))
for number in range(40):
    store.keep(record(id=f"{{sys.argv[1]}}-{{number}}", series="s"))
    store.listed()
"""


def test_several_writers_and_readers_at_once_lose_nothing(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    code = WRITER.format(path=[str(root / "src"), str(root / "tests")], results=str(tmp_path))
    running = [subprocess.Popen([sys.executable, "-c", code, name], cwd=root) for name in "abc"]
    store = Store(tmp_path)
    while any(process.poll() is None for process in running):
        found = names(store)
        assert len(found) == len(set(found))
    assert [process.returncode for process in running] == [0, 0, 0]
    assert sorted(names(store)) == sorted(f"{writer}-{number}" for writer in "abc" for number in range(40))
    assert indexed(tmp_path) == sorted(names(store))


def test_a_writer_killed_at_any_moment_leaves_an_index_that_agrees(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    code = WRITER.format(path=[str(root / "src"), str(root / "tests")], results=str(tmp_path))
    for turn in range(3):
        with subprocess.Popen([sys.executable, "-c", code, f"w{turn}"], cwd=root) as writer:
            while len(list(tmp_path.glob(f"trials/w{turn}-*"))) < 5:
                time.sleep(0.01)
            writer.kill()
        store = Store(tmp_path)
        assert sorted(names(store)) == sorted(path.name for path in tmp_path.glob("trials/w*")) == indexed(tmp_path)
