"""A bundle is not trusted: its size is limited and its content is validated like user input."""

from __future__ import annotations

import io
import json
import os
import struct
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factories import DISK, arrive, evidence, sweep
from test_bundle import MACHINE, begun, first_record, refused, rewritten

from ironbench.errors import InputError
from ironbench.records import Store
from ironbench.records.bundle import Reader, Writer
from ironbench.records.export import export

MIB = 1 << 20


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle of two trials with all their files, machine and engine."""
    here = Store(tmp_path / "here")
    key = here.keep_shared("machines", MACHINE)
    facts = here.keep_shared("engines", {"version": "18", "settings": {"fsync": "on"}})
    for one in sweep(DISK, 3000, 5, clients=(1, 4), repeats=1)[:2]:
        here.keep(replace(one, machine=key, engine=facts), **evidence())
    export(here, here.all(), tmp_path / "a.ibr")
    return tmp_path / "a.ibr"


@pytest.fixture
def lab_bundle(tmp_path: Path) -> Path:
    here = begun(tmp_path / "lab")
    export(here.store, here.records(), tmp_path / "lab.ibr", here)
    return tmp_path / "lab.ibr"


def test_what_has_no_end_or_no_beginning_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), tmp_path / "pipe"):
        with pytest.raises(InputError, match="is not a regular file") as caught:
            arrive(path, tmp_path / "there")
        assert "copy" in caught.value.hint
    with pytest.raises(InputError):
        arrive(tmp_path, tmp_path / "there")


def zeros_in(bundle: Path, said: int) -> str:
    """Adds an entry of 64 MiB of zeros with this claimed size, and returns its name."""
    with zipfile.ZipFile(bundle) as found:
        name = next(name for name in found.namelist() if name.endswith("plans.txt"))

    def change(files: dict[str, bytes]) -> None:
        files[name] = bytes(64 * MIB)
        sizes = {other: [len(data), "0" * 64] for other, data in files.items()} | {name: [said, "0" * 64]}
        files["!manifest"] = json.dumps({"files": sizes}).encode()

    rewritten(bundle, change, zipfile.ZIP_DEFLATED)
    return name


@pytest.mark.parametrize("said", [3, 64 * MIB, -1])
def test_an_entry_of_zeros_takes_no_memory(bundle: Path, said: int) -> None:
    name = zeros_in(bundle, said)
    tracemalloc.start()
    try:
        with (
            pytest.raises(InputError, match=r"the limit is \d+|differs from the exported file"),
            Reader(bundle) as reader,
        ):
            reader.read(name)
        assert tracemalloc.get_traced_memory()[1] < 16 * MIB
    finally:
        tracemalloc.stop()


def test_a_table_of_contents_as_long_as_a_disk_is_not_read(tmp_path: Path) -> None:
    comment = b"ironbench parcel 1 sha256=" + b"0" * 64
    with (tmp_path / "x.ibr").open("wb") as file:
        file.write(b"PK\3\4")
        file.truncate(1 << 30)
        file.seek(1 << 30)
        file.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 60000, 60000, 1 << 30, 0, len(comment)) + comment)
    tracemalloc.start()
    try:
        refused(tmp_path / "x.ibr", tmp_path, "is not a complete bundle")
        assert tracemalloc.get_traced_memory()[1] < 16 * MIB
    finally:
        tracemalloc.stop()


def put(document: Any, path: str, value: object) -> None:
    """Sets `a.b.0.c` in a document."""
    *way, last = path.split(".")
    for step in way:
        document = document[int(step) if isinstance(document, list) else step]
    if isinstance(document, list):
        document[int(last)] = value
    else:
        document[last] = value


def changed(end: str, path: str, value: object) -> Callable[[dict[str, bytes]], None]:
    """Sets one field of the first JSON file with that name."""

    def change(files: dict[str, bytes]) -> None:
        name = next(name for name in files if end in name)
        document = json.loads(files[name])
        put(document, path, value)
        files[name] = json.dumps(document).encode()

    return change


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *(("schema", value) for value in (-5, 0, "2", None)),
        *(("cell.load.clients", value) for value in (0, -1, 1.5, 1 << 70, "4")),
        *(("cell.load.duration_s", value) for value in (0, -1, 1e19)),
        *(("cell.load.rate", value) for value in (0, -5.0, 1e-300)),
        *(("cell.load.workers", value) for value in (-5, 1 << 40)),
        ("cell.load.on_error", "explode"),
        ("cell.load.curve", {"of": "rate", "text": "x", "points": [[-1, 5], [0, 1e300]]}),
        ("system.commands", [{"limit_s": -1}]),
        ("choice.data", {"bytes": -1}),
        *(("elapsed_s", value) for value in (-1, 1e11)),
        *(("metrics.throughput", value) for value in (1e300, "many", None)),
        *(("system.label", value) for value in ("", "a\x1b[2J", "x" * 401, "\ud800")),
        *(("cell.name", value) for value in ("", "a\nb", "x" * 401)),
        *(("started_at", value) for value in ("", "yesterday", "0")),
        *(("machine", value) for value in ("../../etc/passwd", "a/b")),
        *(("stage", value) for value in (0, -1)),
        *(("attempt", value) for value in (0, 1e30)),
        *(("files", value) for value in ({"timeline.parquet": "x"}, ["a"])),
        ("status", "fine"),
    ],
)
def test_a_record_beyond_what_can_be_measured_is_refused(
    bundle: Path, tmp_path: Path, path: str, value: object
) -> None:
    rewritten(bundle, changed("/record.json", path, value))
    refused(bundle, tmp_path, "record.json (is not a record|has schema)")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("cell.load.transactions", 10**15),
        ("cell.load.seed", 2**63 - 1),
        ("checks", [{"name": "check (select count(*) > 0\n\tfrom sale)", "passed": True}]),
    ],
)
def test_a_record_of_all_that_may_be_asked_for_comes_in(bundle: Path, tmp_path: Path, path: str, value: object) -> None:
    rewritten(bundle, changed("/record.json", path, value))
    assert len(arrive(bundle, tmp_path / "there").new) == 2


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("mounts", [{"path": "x" * 100_000, "source": "a", "kind": "ext4", "number": "0:1", "options": []}]),
        ("cpu", "fast"),
        ("cpu.cores", -2),
        ("memory_bytes", 1e30),
        ("blocks", {"a": 1}),
        ("kernel", "6.1\x1b[2J"),
        ("limits", None),
    ],
)
def test_a_machine_that_cannot_be_is_refused(bundle: Path, tmp_path: Path, path: str, value: object) -> None:
    rewritten(bundle, changed("machines/", path, value))
    refused(bundle, tmp_path, r"machines/[0-9a-f]{16}\.json: ")


@pytest.mark.parametrize(
    ("path", "value"), [("settings", ["a"]), ("settings.fsync", {"on": 1}), ("version", 18), ("deep", None)]
)
def test_engine_facts_that_cannot_be_are_refused(bundle: Path, tmp_path: Path, path: str, value: object) -> None:
    if path == "deep":
        for _ in range(30):
            value = [value]
    rewritten(bundle, changed("engines/", path, value))
    refused(bundle, tmp_path, r"engines/[0-9a-f]{16}\.json: ")


@pytest.mark.parametrize("text", [5, None, ["SELECT 1"]])
def test_a_script_that_is_no_text_is_refused(bundle: Path, tmp_path: Path, text: object) -> None:
    rewritten(bundle, lambda files: files.update({f"scripts/{'0' * 16}.json": json.dumps({"text": text}).encode()}))
    refused(bundle, tmp_path, r"scripts/0{16}\.json: ")


@pytest.mark.parametrize(
    ("path", "value", "cause"),
    [
        ("lab", {}, "missing required field"),
        ("lab.setups", [], "length >= 1"),
        ("lab.trials", [], "length >= 1"),
        ("lab.method.stages", [], "length >= 1"),
        ("lab.baseline", "log=tape", "the baseline names the configuration 'log=tape'"),
        ("lab.comparisons", [["log=disk", "nothing"]], "a comparison names the configuration 'nothing'"),
        ("lab.trials.0.cell.name", "nothing", "a trial names the configuration 'nothing'"),
        ("lab.trials.0.stage", 7, "a stage that the lab does not have"),
        ("lab.setups.0.cell.name", "log=memory", "two of the configurations have the same name"),
        ("lab.setups.0.cell.levels", {"log": "tape"}, "log=tape, which is not a value"),
        ("lab.method.margin", 0, "> 0"),
        ("lab.method.stages.0.number", 2, "not numbered"),
        ("schema", 99, "newer than"),
    ],
)
def test_a_lab_that_does_not_hold_together_is_refused(
    lab_bundle: Path, tmp_path: Path, path: str, value: object, cause: str
) -> None:
    rewritten(lab_bundle, changed("lab/plan.json", path, value))
    refused(lab_bundle, tmp_path, rf"plan\.json: .*{cause}")


UNREADABLE: Mapping[str, tuple[bytes, ...]] = {
    "seconds.parquet": (b"", b"PAR1", b"x" * 1000),
    "observed.parquet": (b"PAR1" * 100,),
    "timeline.parquet": (b"\0" * 500,),
    "counted.json": (
        b"",
        b"[",
        b'[{"name":"a","edges":[1,2],"counts":[1]}]',
        b'[{"name":"a","edges":[1],"counts":[-1]}]',
    ),
    "latency.hlog": (b"", b"hello", b"\xff\xfe"),
}


@pytest.mark.parametrize(("name", "data"), [(name, data) for name, every in UNREADABLE.items() for data in every])
def test_a_file_that_cannot_be_read_is_refused(bundle: Path, tmp_path: Path, name: str, data: bytes) -> None:
    def change(files: dict[str, bytes]) -> None:
        place = next(other for other in files if other.endswith(f"/{name}"))
        files[place] = data
        record = json.loads(files[f"{place.rpartition('/')[0]}/record.json"])
        del record["files"]
        files[f"{place.rpartition('/')[0]}/record.json"] = json.dumps(record).encode()

    rewritten(bundle, change)
    if name == "latency.hlog" and not data:  # an empty log
        arrive(bundle, tmp_path / "there")
    else:
        refused(bundle, tmp_path, rf"{name}: ")


def test_a_file_that_its_record_does_not_vouch_for_is_refused(bundle: Path, tmp_path: Path) -> None:
    def change(files: dict[str, bytes]) -> None:
        files[next(name for name in files if name.endswith("plans.txt"))] = b"Index Scan\n"

    rewritten(bundle, change)
    refused(bundle, tmp_path, r"plans\.txt: does not match the digest in the record")


def test_a_writer_takes_only_what_a_reader_would() -> None:
    with pytest.raises(InputError, match="cannot be exported"):
        Writer(io.BytesIO()).add("../x", b"")


def test_an_entry_that_is_longer_than_it_says_is_not_read_to_its_end(bundle: Path, tmp_path: Path) -> None:
    def change(files: dict[str, bytes]) -> None:
        name = first_record(files)
        files["!manifest"] = json.dumps({"files": {n: [3, "0" * 64] for n in files} | {name: [3, "0" * 64]}}).encode()

    rewritten(bundle, change)
    with Reader(bundle) as reader, pytest.raises(InputError, match="differs from the exported file"):
        reader.read(first_record(dict.fromkeys(reader.files, b"")))
