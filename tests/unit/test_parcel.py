"""Records in one file: everything arrives as it was, or nothing is written at all."""

from __future__ import annotations

import hashlib
import json
import shutil
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from factories import DISK, MACHINE, sweep

from ironbench.cli.carrying import exported, imported
from ironbench.errors import InputError
from ironbench.record import Evidence, Store
from ironbench.record.arrival import arrive
from ironbench.record.export import export
from ironbench.record.parcel import Reader, Writer
from ironbench.record.redact import redacted, redacted_toml

SECRET = "hunter2"


def store(directory: Path, dsn: str | None = None) -> Store:
    found = Store(directory)
    key = found.keep_shared("machines", MACHINE)
    facts = found.keep_shared("engines", {"version": "18", "settings": {"primary_conninfo": f"password={SECRET}"}})
    system = replace(DISK, dsn=dsn)
    for one in sweep(system, 3000, 5, clients=(1, 4), repeats=2):
        found.keep(replace(one, machine=key, engine=facts), Evidence(log=f"password={SECRET}\nended\n".encode()))
    return found


@pytest.fixture
def parcel(tmp_path: Path) -> Path:
    here = store(tmp_path / "here")
    out = tmp_path / "lab.ibr"
    export(here, here.all(), out)
    return out


def test_every_record_arrives_as_it_was(parcel: Path, tmp_path: Path) -> None:
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    arrived = arrive(parcel, tmp_path / "there")
    assert there.all() == here.all() == list(arrived.new)
    assert there.machine(there.all()[0].machine) == MACHINE
    assert not list((tmp_path / "there").glob(".importing-*"))


def test_records_that_are_here_already_are_left_alone(parcel: Path, tmp_path: Path) -> None:
    first = arrive(parcel, tmp_path / "there")
    again = arrive(parcel, tmp_path / "there")
    assert (len(again.new), again.known) == (0, len(first.new))


def test_the_same_records_give_the_same_file(parcel: Path, tmp_path: Path) -> None:
    here = Store(tmp_path / "here")
    export(here, here.all(), tmp_path / "again.ibr")
    assert (tmp_path / "again.ibr").read_bytes() == parcel.read_bytes()


def test_no_password_leaves(tmp_path: Path) -> None:
    here = store(tmp_path / "here", f"postgresql://me:{SECRET}@db/shop")
    export(here, here.all(), tmp_path / "lab.ibr")
    with zipfile.ZipFile(tmp_path / "lab.ibr") as found:
        for name in found.namelist():
            assert SECRET.encode() not in found.read(name), name


def test_a_lab_arrives_with_its_plan(parcel: Path, tmp_path: Path) -> None:
    from ironbench.record.labs import LabDirectory

    directory = tmp_path / "here"
    for name in ("plan.json", "stage-1.json"):
        (directory / name).write_text(json.dumps({"dsn": f"host=db password={SECRET}"}))
    (directory / "lab.toml").write_text(f'dsn = "host=db password={SECRET}"\n')
    export(Store(directory), Store(directory).all(), tmp_path / "lab.ibr", LabDirectory(directory))
    arrive(tmp_path / "lab.ibr", tmp_path / "there")
    assert (tmp_path / "there" / "plan.json").exists()
    assert SECRET not in (tmp_path / "there" / "lab.toml").read_text()
    assert SECRET not in (tmp_path / "there" / "plan.json").read_text()
    assert tomllib.loads((tmp_path / "there" / "lab.toml").read_text()) == {"dsn": "host=db password=•••"}
    other = tmp_path / "other"
    other.mkdir()
    (other / "plan.json").write_text("{}")
    with pytest.raises(InputError, match="holds another lab"):
        arrive(tmp_path / "lab.ibr", other)


@pytest.mark.parametrize(
    ("written", "left"),
    [
        (f'dsn = "host=db password={SECRET}"', 'dsn = "host=db password=•••"'),
        (f"dsn = 'host=db password={SECRET}' # there", "dsn = 'host=db password=•••' # there"),
        (f"x = {{dsn = \"host=db password='a {SECRET}'\"}}", 'x = {dsn = "host=db password=•••"}'),
        (f'x = ["password=a\\"{SECRET}", "b"]', 'x = ["password=•••", "b"]'),
        (f'dsn = "postgresql://me:{SECRET}@db/shop"', 'dsn = "postgresql://me:•••@db/shop"'),
        (f'password = "{SECRET}"', 'password = "•••"'),
        ("password = 12345", 'password = "•••"'),
        (f'x = """\npassword={SECRET}\n"""', 'x = """\npassword=•••\n"""'),
        (f'# don\'t: password={SECRET}\nx = "a"', '# don\'t: password=•••\nx = "a"'),
    ],
)
def test_a_lab_file_without_its_passwords_is_still_toml(written: str, left: str) -> None:
    assert redacted_toml(written) == left
    assert redacted_toml(left) == left
    assert redacted(left) == left
    tomllib.loads(left)


def test_records_that_are_not_of_the_lab_do_not_become_part_of_it(tmp_path: Path) -> None:
    from ironbench.record.labs import LabDirectory

    directory = tmp_path / "lab"
    here = store(directory)
    (directory / "plan.json").write_text("{}")
    export(here, here.all(), tmp_path / "lab.ibr", LabDirectory(directory))
    lone = here.all()[0]
    Store(tmp_path / "there").keep(replace(lone, id="other"), Evidence())
    refused(tmp_path / "lab.ibr", tmp_path, "holds 1 record that is not of this lab")
    # An import that was cut off between the records and the plan can be repeated.
    arrive(tmp_path / "lab.ibr", tmp_path / "half")
    (tmp_path / "half" / "plan.json").unlink()
    arrive(tmp_path / "lab.ibr", tmp_path / "half")
    assert (tmp_path / "half" / "plan.json").exists()


def test_what_a_workload_kept_beside_its_record_goes_along(tmp_path: Path) -> None:
    here = Store(tmp_path / "here")
    for one in sweep(DISK, 3000, 5, clients=(1,), repeats=1):
        here.keep(one, Evidence(files={"plans.txt": b"Seq Scan", "streams.csv": b"stream,step\n"}))
    export(here, here.all(), tmp_path / "a.ibr")
    arrive(tmp_path / "a.ibr", tmp_path / "there")
    there = Store(tmp_path / "there")
    assert there.text(there.all()[0].id, "plans.txt") == "Seq Scan"
    assert there.text(there.all()[0].id, "streams.csv") == "stream,step\n"


def refused(parcel: Path, tmp_path: Path, cause: str) -> None:
    """Says why, and writes nothing: not in the results, not beside them."""
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=cause) as caught:
        arrive(parcel, tmp_path / "there")
    assert caught.value.hint
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(parcel: Path, tmp_path: Path, share: float) -> None:
    data = parcel.read_bytes()
    parcel.write_bytes(data[: int(len(data) * share)])
    refused(parcel, tmp_path, "is no whole file" if share else "is no file of exported records")


@pytest.mark.parametrize("place", range(0, 100, 7))
def test_an_altered_file_is_refused_wherever_it_was_altered(parcel: Path, tmp_path: Path, place: int) -> None:
    """Or it does not matter: some bytes of a zip file, such as dates, say nothing about the records."""
    data = bytearray(parcel.read_bytes())
    data[len(data) * place // 100] ^= 0x55
    parcel.write_bytes(data)
    try:
        arrive(parcel, tmp_path / "there")
    except InputError:
        assert not (tmp_path / "there").exists()
    else:
        assert Store(tmp_path / "there").all() == Store(tmp_path / "here").all()


def rewritten(parcel: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    """A parcel whose checksums hold, with other content: what an ironbench of another time or mind might write."""
    with zipfile.ZipFile(parcel) as found:
        files = {name: found.read(name) for name in found.namelist()}
        comment = found.comment
    manifest = json.loads(files.pop("manifest.json"))
    change(files)
    manifest["files"] = {name: [len(data), hashlib.sha256(data).hexdigest()] for name, data in files.items()}
    manifest |= json.loads(files.pop("!manifest", b"{}"))
    manifest["files"].pop("!manifest", None)
    text = json.dumps(manifest).encode()
    with zipfile.ZipFile(parcel, "w") as out:
        for name, data in files.items():
            out.writestr(name, data)
        out.writestr("manifest.json", text)
        out.comment = comment[:-64] + hashlib.sha256(text).hexdigest().encode()


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/etc/evil",
        "trials/../../evil/record.json",
        "trials/a/../../../evil",
        "trials/.writing-x/record.json",
        "trials/a/log/../../../x",
        "machines/0123456789abcdef.json/x",
        "trials\\a\\record.json",
        "trials/a/extra.sh",
    ],
)
def test_a_path_that_climbs_out_or_does_not_belong_is_refused(parcel: Path, tmp_path: Path, name: str) -> None:
    rewritten(parcel, lambda files: files.update({name: b"x"}))
    refused(parcel, tmp_path, "is no file of a record")


@pytest.mark.parametrize(
    "lab", ["../../x", "/home/u/y", "..", ".", ".hidden", "a/b", "a\\b", "a\x1b[2J", "a\0", "x" * 256]
)
def test_a_lab_whose_name_leads_elsewhere_is_refused(
    parcel: Path, tmp_path: Path, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IRONBENCH_RESULTS", str(tmp_path / "results"))
    rewritten(parcel, lambda files: files.update({"!manifest": json.dumps({"lab": lab}).encode()}))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match="no name of a directory"):
        imported(str(parcel), "")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_lab_is_exported_under_the_name_of_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ironbench.record.labs import LabDirectory

    directory = tmp_path / "größe 1"
    here = store(directory)
    (directory / "plan.json").write_text("{}")
    monkeypatch.chdir(directory / "trials")
    export(here, here.all(), tmp_path / "lab.ibr", LabDirectory(Path("..")))
    with Reader(tmp_path / "lab.ibr") as reader:
        assert reader.manifest.lab == "größe 1"


def test_labels_of_others_do_not_move_the_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = Store(tmp_path / "here")
    for one in sweep(replace(DISK, label="a\x1b[2J all"), 3000, 5, clients=(1,), repeats=1):
        here.keep(one, Evidence())
    export(here, here.all(), tmp_path / "a.ibr")
    imported(str(tmp_path / "a.ibr"), str(tmp_path / "there"))
    assert "\x1b" not in capsys.readouterr().err


def first_record(files: dict[str, bytes]) -> str:
    return next(name for name in files if name.endswith("/record.json"))


def test_a_record_of_a_newer_schema_is_refused(parcel: Path, tmp_path: Path) -> None:
    def change(files: dict[str, bytes]) -> None:
        name = first_record(files)
        files[name] = msgspec.json.encode({**json.loads(files[name]), "schema": 99})

    rewritten(parcel, change)
    refused(parcel, tmp_path, "has schema 99, newer than 3")


def test_a_file_of_a_newer_format_is_refused(parcel: Path, tmp_path: Path) -> None:
    rewritten(parcel, lambda files: files.update({"!manifest": b'{"format": 2}'}))
    refused(parcel, tmp_path, "has format 2, newer than 1")


def test_a_record_under_another_name_is_refused(parcel: Path, tmp_path: Path) -> None:
    rewritten(parcel, lambda files: files.update({"trials/other/record.json": files[first_record(files)]}))
    refused(parcel, tmp_path, "is the record")


def test_evidence_without_its_record_is_refused(parcel: Path, tmp_path: Path) -> None:
    rewritten(parcel, lambda files: files.update({"trials/other/latency.hlog": b"x"}))
    refused(parcel, tmp_path, "has no record")


def test_a_record_that_is_here_with_other_content_is_refused(parcel: Path, tmp_path: Path) -> None:
    arrive(parcel, tmp_path / "there")
    one = next((tmp_path / "there" / "trials").iterdir()) / "record.json"
    one.write_bytes(one.read_bytes().replace(b'"elapsed_s":30.0', b'"elapsed_s":31.0'))
    refused(parcel, tmp_path, "with other content")


@pytest.mark.parametrize("left", [None, b"{"])
def test_a_damaged_record_that_is_here_is_not_taken_for_the_same(
    parcel: Path, tmp_path: Path, left: bytes | None
) -> None:
    arrive(parcel, tmp_path / "there")
    one = next((tmp_path / "there" / "trials").iterdir()) / "record.json"
    if left is None:
        one.unlink()
    else:
        one.write_bytes(left)
    refused(parcel, tmp_path, "with other content")


def test_what_is_no_such_file_is_refused(tmp_path: Path) -> None:
    for text in (b"", b"PK", b"hello" * 1000):
        (tmp_path / "x.ibr").write_bytes(text)
        refused(tmp_path / "x.ibr", tmp_path, "is no")
    with zipfile.ZipFile(tmp_path / "x.ibr", "w") as other:
        other.writestr("trials/a/record.json", "{}")
    refused(tmp_path / "x.ibr", tmp_path, "is no file of exported records")
    refused(tmp_path / "missing.ibr", tmp_path, "No such file")


def test_too_little_room_is_seen_before_the_first_byte(
    parcel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 9, 1))  # type: ignore[attr-defined]
    refused(parcel, tmp_path, "are free")


def test_an_export_needs_a_name_and_something_to_export(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is missing"):
        exported((), "", str(tmp_path))
    with pytest.raises(InputError, match="holds no records"):
        exported((), str(tmp_path / "a.ibr"), str(tmp_path))
    store(tmp_path / "here")
    with pytest.raises(InputError, match=r"does not end in \.ibr"):
        exported((), str(tmp_path / "a.zip"), str(tmp_path / "here"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here"]


def test_a_selection_alone_is_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = store(tmp_path / "here")
    one = here.all()[0].id
    exported((one,), str(tmp_path / "a.ibr"), str(tmp_path / "here"))
    imported(str(tmp_path / "a.ibr"), str(tmp_path / "there"))
    assert [record.id for record in Store(tmp_path / "there").all()] == [one]
    assert "1 new record, in" in capsys.readouterr().err


def test_a_writer_takes_only_what_a_reader_would() -> None:
    import io

    with pytest.raises(InputError, match="cannot be exported"):
        Writer(io.BytesIO()).add("../x", b"")


def test_an_entry_that_is_longer_than_it_says_is_not_read_to_its_end(parcel: Path, tmp_path: Path) -> None:
    def change(files: dict[str, bytes]) -> None:
        name = first_record(files)
        files["!manifest"] = json.dumps({"files": {n: [3, "0" * 64] for n in files} | {name: [3, "0" * 64]}}).encode()

    rewritten(parcel, change)
    with Reader(parcel) as reader, pytest.raises(InputError, match="is not what was exported"):
        reader.read(first_record(dict.fromkeys(reader.files, b"")))
