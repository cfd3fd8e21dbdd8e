"""A record is written completely or not at all, never edited, and found by id, series and label."""

import errno
import hashlib
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from factories import doubles, evidence
from hypothesis import given
from hypothesis import strategies as st

from ironbench.errors import FailureError, InputError
from ironbench.host import durable
from ironbench.lab.slices.turns import SLICES
from ironbench.model.driven import Driven
from ironbench.model.observation import Series
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record, Status
from ironbench.model.system import Cell, Choice, Load, System, Trial
from ironbench.printer import Printer
from ironbench.records import Store, attached
from ironbench.records.evidence import READERS, text
from ironbench.records.export import export


def record(id: str, series: str = "s1", label: str = "a", started: str = "2026-01-01T00:00:00+00:00") -> Record:
    return Record(
        id=id,
        series=series,
        system=System("null", label),
        choice=Choice("select-only"),
        cell=Cell("clients=1", Load()),
        block=0,
        purpose="sweep",
        started_at=started,
        elapsed_s=1.0,
        status=Status.OK,
        metrics={"throughput": 10.0},
    )


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    store = Store(tmp_path)
    timeline = {"t_s": doubles(0.0, 0.1), "transactions": doubles(5, 6)}
    series = (Series("cpu_busy", (0.0, 1.0), (0.5, 0.6)),)
    kept = store.keep(record("r1"), Driven(timeline=timeline, series=series))
    assert store.all() == [kept]
    assert store.timeline("r1")["transactions"].tolist() == [5, 6]
    assert store.observed("r1")["cpu_busy"]["value"].tolist() == [0.5, 0.6]
    assert store.seconds("r1") == {}


def test_the_purpose_of_a_trial_is_written_as_records_have_always_had_it() -> None:
    words = ["sweep", "confirmation", "lab", "pilot", "peak", "search", "observed", "rehearsal"]
    trials = [Trial(Cell("c", Load()), 0, one) for one in Purpose]
    assert [one["purpose"] for one in msgspec.json.decode(msgspec.json.encode(trials))] == words


@given(metrics=st.dictionaries(st.text(min_size=1, max_size=20), st.floats(allow_nan=False, allow_infinity=False)))
def test_any_metrics_survive_the_way_to_disk(tmp_path_factory, metrics) -> None:

    store = Store(tmp_path_factory.mktemp("store"))
    store.keep(replace(record("r"), metrics=metrics))
    assert store.all()[0].metrics == metrics


def test_a_record_is_never_overwritten(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.keep(record("r1"))
    with pytest.raises(FailureError, match="already in the store"):
        store.keep(record("r1", label="b"))
    assert store.all()[0].system.label == "a"


def test_a_label_means_all_its_series_and_records_come_in_the_order_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for day, (id, series, label) in enumerate((("old", "s1", "a"), ("other", "s2", "b"), ("new", "s3", "a")), 1):
        store.keep(record(id, series, label, started=f"2026-01-0{day}T00:00:00+00:00"))
    assert [one.id for one in store.select(["a"])] == ["old", "new"]
    assert [one.id for one in store.select(["s1"])] == ["old"]
    assert [one.id for one in store.select(["b", "a"])] == ["other", "old", "new"]
    assert [one.id for one in store.rows(["b", "a"])] == ["other", "old", "new"]
    assert [one.id for one in store.select([])] == ["old", "other", "new"]


def test_an_unknown_selection_suggests_the_nearest_name(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.keep(record("r1", label="log-on-disk"))
    with pytest.raises(InputError) as caught:
        store.select(["log-on-disc"])
    assert "log-on-disk" in caught.value.hint


def test_an_unwritable_results_directory_is_refused_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match="cannot store results"):
        Store(file / "results").validate()


def test_shared_content_is_stored_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    key = store.keep_shared("machines", {"b": 1, "a": 2})
    assert store.keep_shared("machines", {"a": 2, "b": 1}) == key
    assert store.machine(key) == {"a": 2, "b": 1}
    assert len(list((tmp_path / "machines").iterdir())) == 1


def read(store: Store, id: str) -> dict[str, object]:
    """Returns what the store returns for each file; an empty value is false."""
    return {
        "timeline.parquet": store.timeline(id),
        "seconds.parquet": store.seconds(id),
        "observed.parquet": store.observed(id),
        "profile.parquet": store.profile(id),
        "counted.json": store.counted(id),
        "latency.hlog": store.histograms(id),
        "inside.json": store.inside(id),
        "statements.json": store.timed(id),
        "workers.json": store.workers(id),
        SLICES: store._evidence(id, SLICES, READERS[SLICES], ()),
        **{name: store.text(id, name) for name in ("log/child.log", "plans.txt", "streams.csv", "commands.log")},
    }


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x55
    path.write_bytes(data)


DAMAGES = [cut_off, flipped, lambda path: path.write_bytes(b""), Path.unlink]


def test_a_record_says_the_digest_of_each_of_its_files(tmp_path: Path) -> None:
    store = Store(tmp_path)
    kept = store.keep(record("r"), **evidence())
    assert store.all() == [kept]
    assert set(kept.files) == set(read(store, "r"))
    for name, digest in kept.files.items():
        assert hashlib.sha256((store.path("r") / name).read_bytes()).hexdigest() == digest
    assert all(read(store, "r").values())
    assert store.damage("r") == {}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_named_and_left_out_of_what_needs_it(
    tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    said = io.StringIO()
    store = Store(tmp_path, Printer(stderr=said))
    kept = store.keep(record("r"), **evidence())
    damage(store.path("r") / name)
    assert list(store.damage("r")) == [name]
    for _ in range(2):
        assert [file for file, found in read(store, "r").items() if not found] == [name]
    assert said.getvalue().count(f"skipped: {store.path('r') / name} is damaged") == 1
    assert store.all() == [kept]


@pytest.mark.parametrize("damage", [cut_off, lambda path: path.write_bytes(b"")])
@pytest.mark.parametrize("name", [name for name, read in READERS.items() if read is not text])
def test_a_damaged_file_of_a_record_without_digests_is_left_out_too(
    tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    store = Store(tmp_path)
    kept = store.keep(record("r"), **evidence())
    (store.path("r") / "record.json").write_bytes(msgspec.json.encode(replace(kept, schema=2, files={})))
    assert store.damage("r") == {}
    damage(store.path("r") / name)
    assert [file for file, found in read(store, "r").items() if not found] == [name]


@pytest.mark.parametrize("damage", DAMAGES[:3])
def test_a_damaged_machine_is_left_out_and_written_again_by_the_next_trial(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    said = io.StringIO()
    store = Store(tmp_path, Printer(stderr=said))
    key = store.keep_shared("machines", {"kernel": "6.1.0", "memory_bytes": 5})
    damage(tmp_path / "machines" / f"{key}.json")
    assert store.machine(key) == {}
    assert f"{key}.json is damaged" in said.getvalue()
    assert store.keep_shared("machines", {"kernel": "6.1.0", "memory_bytes": 5}) == key
    assert store.machine(key) == {"kernel": "6.1.0", "memory_bytes": 5}


def test_the_times_of_a_command_are_read_back_however_long_its_text_is() -> None:
    row = {"script": "a.sql", "line": 1, "command": 1, "count": 3, "failed": 0, "mean_s": 0.1, "stdev_s": 0.0}
    text = f"insert into t values {', '.join(['(1)'] * 50_000)}"
    (found,) = attached.read_timed(attached.written_timed([{**row, "text": text}]))
    assert found.mean_s == 0.1 and text.startswith(found.text) and len(found.text) == 100_000


def test_what_a_killed_writer_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path: Path) -> None:
    names = [".importing-7", ".lab.ibr.7.tmp", "plan.json.7.tmp", "trials/.writing-x", "machines/ab.json.7.tmp"]
    names += [f"labs/a/{name}" for name in ("stage-1.json.7.tmp", "trials/.writing-y")]
    strangers = ["notes.tmp", ".hidden", "trials/r1", "plan.json", "my.json.tmp"]
    for name in (*names, *strangers):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text("x")
    living = tmp_path / "trials" / ".writing-z"
    with durable.unfinished_folder(living), durable.unfinished_file(tmp_path / ".x.ibr.8.tmp") as file:
        assert {str(path.relative_to(tmp_path)) for path in durable.remove_abandoned(tmp_path)} == set(names)
        assert living.exists() and file.exists()
    assert not living.exists() and not file.exists()
    assert all((tmp_path / name).exists() for name in strangers)
    assert not any((tmp_path / name).exists() for name in names)


def test_an_export_beside_files_of_the_user_removes_unfinished_exports_alone(tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    store.keep(record("r"))
    strangers = ["settings.json.7.tmp", "notes.md.7.tmp", ".site.live", ".writing-letters", "labs/a/x.toml.7.tmp"]
    for name in (*strangers, ".lab.ibr.7.tmp"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text("x")
    assert export(store, store.all(), tmp_path / "lab.ibr") == 1
    assert all((tmp_path / name / "file").exists() for name in strangers)
    assert not (tmp_path / ".lab.ibr.7.tmp").exists()


WRITER = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from tests.unit.test_store import record, doubles
from ironbench.model.driven import Driven
from ironbench.records import Store
store = Store(Path({results!r}))
for number in range(100000):
    store.keep(record(f"r{{number}}"), Driven(timeline={{"t_s": doubles(*range(5000))}}))
    print(number, flush=True)
"""


def test_a_kill_at_any_instant_leaves_only_whole_records(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    code = WRITER.format(path=[str(root), str(root / "src"), *sys.path], results=str(tmp_path))
    writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=root)
    assert writer.stdout
    first = writer.stdout.readline()
    time.sleep(0.25)
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    done = [int(line) for line in (first + writer.stdout.read()).split()]
    writer.stdout.close()
    store = Store(tmp_path)
    found = store.all()
    assert len(found) >= len(done) >= 1
    for one in found:
        assert len(store.timeline(one.id)["t_s"]) == 5000


def test_a_file_that_records_share_is_read_once(tmp_path: Path) -> None:
    key = Store(tmp_path).keep_shared("engines", {"version": "18.1"})
    store = Store(tmp_path)
    assert store.engine(key) == {"version": "18.1"}
    (tmp_path / "engines" / f"{key}.json").unlink()
    assert store.engine(key) == {"version": "18.1"}
    assert Store(tmp_path).engine(key) == {}


@pytest.mark.parametrize(("number", "enters"), [(errno.ENOLCK, True), (errno.EIO, False)])
def test_on_a_file_system_without_locks_nobody_is_kept_out(
    number: int, enters: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(descriptor: int, kind: int) -> None:
        raise OSError(number, "")

    monkeypatch.setattr(durable.fcntl, "flock", flock)
    with nullcontext() if enters else pytest.raises(OSError), Store(tmp_path).measuring("s"):
        pass


def test_the_slices_of_a_record_are_evidence_that_travels_with_it() -> None:
    assert SLICES in READERS
