"""The index is only a cache: it always agrees with the record directories, whatever happens to them."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from factories import record

from ironbench.cli.list import list_
from ironbench.model.record import Record
from ironbench.printer import Printer
from ironbench.records import Evidence, Store
from ironbench.records.index import NAME


def kept(directory: Path, *ids: str) -> Store:
    store = Store(directory)
    for id in ids:
        store.keep(record(id=id, series="s"), Evidence())
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
    other.keep(record(id="a", series="s", throughput=7.0), Evidence())
    shutil.move(other.path("a"), store.path("a"))
    assert store.listed()[0].throughput == 7.0


@pytest.mark.parametrize("content", [b"", b"{", b'{"version": 99, "rows": {}}', b"[]", b'{"version":1,"rows":{"a":1}}'])
def test_a_broken_or_foreign_index_is_made_anew(content: bytes, tmp_path: Path) -> None:
    store = kept(tmp_path, "a")
    (tmp_path / NAME).write_bytes(content)
    assert names(store) == ["a"]
    assert json.loads((tmp_path / NAME).read_bytes())["rows"].keys() == {"a"}


def test_without_an_index_the_list_is_the_same(tmp_path: Path) -> None:
    store = kept(tmp_path, "a", "b")
    before = store.listed()
    (tmp_path / NAME).unlink()
    assert store.listed() == before


def test_a_directory_that_cannot_be_written_is_read_without_an_index(tmp_path: Path) -> None:
    store = kept(tmp_path, "a")
    (tmp_path / NAME).mkdir()
    assert names(store) == ["a"]
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]


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
        assert "notes.txt holds no record" in said
        assert "copy of c/record.json is the record c under another name" in said
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
    Store(tmp_path).keep(replace(record(id="new"), schema=99), Evidence())
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
    assert "left out" in shown.err
    assert list_("records", str(tmp_path), True) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)["records"]] == ["a"]


WRITER = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from factories import record
from ironbench.records import Evidence, Store
store = Store(Path({results!r}))
for number in range(40):
    store.keep(record(id=f"{{sys.argv[1]}}-{{number}}", series="s"), Evidence())
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
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]
