"""Export and import of records in one file: everything arrives unchanged, or nothing is written."""

from __future__ import annotations

import hashlib
import json
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from factories import DISK, arrive, evidence, sweep
from labfactory import lab, trials

from ironbench.cli.record import export as exported
from ironbench.cli.record import import_
from ironbench.errors import InputError
from ironbench.host import space
from ironbench.host.fingerprint import fingerprint
from ironbench.model.driven import Driven
from ironbench.model.lab import Confirmation, Stage
from ironbench.model.record import SCHEMA
from ironbench.model.redact import redacted, redacted_toml
from ironbench.model.search import ChosenLoad, MeasuredLoad
from ironbench.plan import fixed_rates
from ironbench.records import Store
from ironbench.records.bundle import Reader
from ironbench.records.export import export
from ironbench.records.labs import FrozenPlan, LabDirectory

SECRET = "hunter2"
MACHINE = msgspec.json.decode(msgspec.json.encode(fingerprint()))


def store(directory: Path, dsn: str | None = None) -> Store:
    found = Store(directory)
    key = found.keep_shared("machines", MACHINE)
    facts = found.keep_shared("engines", {"version": "18", "settings": {"primary_conninfo": f"password={SECRET}"}})
    system = replace(DISK, dsn=dsn)
    for one in sweep(system, 3000, 5, clients=(1, 4), repeats=2):
        found.keep(replace(one, machine=key, engine=facts), Driven(log=f"password={SECRET}\nended\n".encode()))
    return found


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    here = store(tmp_path / "here")
    out = tmp_path / "lab.ibr"
    export(here, here.all(), out)
    return out


def test_every_record_arrives_as_it_was(bundle: Path, tmp_path: Path) -> None:
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    arrived = arrive(bundle, tmp_path / "there")
    assert [replace(one, files={}) for one in there.all()] == [replace(one, files={}) for one in here.all()]
    assert there.all() == list(arrived.new)
    assert there.machine(there.all()[0].machine) == MACHINE
    assert not list((tmp_path / "there").glob(".importing-*"))


def test_records_that_are_here_already_are_left_alone(bundle: Path, tmp_path: Path) -> None:
    first = arrive(bundle, tmp_path / "there")
    again = arrive(bundle, tmp_path / "there")
    assert (len(again.new), again.known) == (0, len(first.new))


def test_the_same_records_give_the_same_file(bundle: Path, tmp_path: Path) -> None:
    here = Store(tmp_path / "here")
    export(here, here.all(), tmp_path / "again.ibr")
    assert (tmp_path / "again.ibr").read_bytes() == bundle.read_bytes()


def test_no_password_leaves(tmp_path: Path) -> None:
    here = store(tmp_path / "here", f"postgresql://me:{SECRET}@db/shop")
    export(here, here.all(), tmp_path / "lab.ibr")
    with zipfile.ZipFile(tmp_path / "lab.ibr") as found:
        for name in found.namelist():
            assert SECRET.encode() not in found.read(name), name


CELLS = ("log=disk", "log=memory")


def begun(directory: Path, source: str = "", rates: Sequence[str] = ()) -> LabDirectory:
    """Returns a lab with its records and a declared stage."""
    plan = replace(lab({"log": ("disk", "memory")}, blocks=6), source=source)
    plan = fixed_rates.extended(plan, rates, "lab.toml, measure.rates")
    found = LabDirectory(directory)
    machine = found.store.keep_shared("machines", MACHINE)
    found.begin(FrozenPlan(plan, machine, {}, {}))
    found.declare(plan.method.stages[0], plan.trials)
    for one in trials(plan, dict(zip(CELLS, (1000.0, 1500.0), strict=True))):
        found.store.keep(replace(one, machine=machine))
    return found


def test_a_lab_arrives_with_its_plan(tmp_path: Path) -> None:
    here = begun(tmp_path / "here", f'dsn = "host=db password={SECRET}"\n')
    export(here.store, here.records(), tmp_path / "lab.ibr", here)
    arrive(tmp_path / "lab.ibr", tmp_path / "there")
    there = LabDirectory(tmp_path / "there")
    assert there.lab().trials == here.lab().trials
    assert there.records() == here.records()
    assert tomllib.loads(there.source()) == {"dsn": "host=db password=•••"}
    for path in (tmp_path / "there").rglob("*.*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    assert len(arrive(tmp_path / "lab.ibr", tmp_path / "there").new) == 0
    other = tmp_path / "other"
    other.mkdir()
    (other / "plan.json").write_text("{}")
    with pytest.raises(InputError, match="contains another lab"):
        arrive(tmp_path / "lab.ibr", other)


def test_a_lab_with_configurations_at_a_fixed_rate_arrives(tmp_path: Path) -> None:
    here = begun(tmp_path / "here", rates=("50%", "70%"))
    export(here.store, here.records(), tmp_path / "lab.ibr", here)
    arrive(tmp_path / "lab.ibr", tmp_path / "there")
    there = LabDirectory(tmp_path / "there").lab()
    assert there.rated and there.rated == here.lab().rated
    assert there.all_factors == here.lab().all_factors


def test_what_a_search_chose_and_what_a_screen_goes_on_with_arrive_with_a_lab(tmp_path: Path) -> None:
    here = begun(tmp_path / "here")
    fresh = tuple(replace(one, block=one.block + 6, stage=2) for one in here.lab().trials)
    here.keep_best(CELLS[0], ChosenLoad(8, "8 clients do most.", (MeasuredLoad(8, 2, 1000.0),), ("a", "b")))
    here.keep_confirmation(Confirmation((), ((CELLS[1], CELLS[0]),), (Stage(2, 6, added=True),), fresh))
    export(here.store, here.records(), tmp_path / "lab.ibr", here)
    there = LabDirectory(arrive(tmp_path / "lab.ibr", tmp_path / "there").directory)
    assert there.best() and there.best() == here.best()
    assert there.confirmation() and there.confirmation() == here.confirmation()


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


def test_records_come_to_those_that_are_there(bundle: Path, tmp_path: Path) -> None:
    there = Store(tmp_path / "there")
    other = there.keep(replace(Store(tmp_path / "here").all()[0], id="other", files={}))
    arrived = arrive(bundle, tmp_path / "there")
    assert {one.id for one in there.all()} == {other.id, *(one.id for one in arrived.new)}
    assert arrived.directory == tmp_path / "there"


def test_a_lab_that_comes_to_other_records_gets_a_directory_of_its_own_there(tmp_path: Path) -> None:
    here = begun(tmp_path / "here")
    export(here.store, here.records(), tmp_path / "lab.ibr", here)
    there = Store(tmp_path / "there")
    lone = there.keep(replace(here.records()[0], id="other", files={}))
    for again in range(2):
        arrived = arrive(tmp_path / "lab.ibr", tmp_path / "there")
        assert arrived.directory == tmp_path / "there" / "labs" / "here"
        assert len(arrived.new) == (0 if again else len(here.records()))
    assert there.all() == [lone]
    assert LabDirectory(arrived.directory).records() == here.records()


def test_an_import_that_was_cut_off_before_the_plan_can_be_repeated(tmp_path: Path) -> None:
    here = begun(tmp_path / "here")
    export(here.store, here.records(), tmp_path / "lab.ibr", here)
    arrive(tmp_path / "lab.ibr", tmp_path / "half")
    (tmp_path / "half" / "plan.json").unlink()
    assert arrive(tmp_path / "lab.ibr", tmp_path / "half").directory == tmp_path / "half"
    assert LabDirectory(tmp_path / "half").lab() == here.lab()


def test_a_stage_that_is_here_is_not_replaced(tmp_path: Path) -> None:
    here = begun(tmp_path / "here")
    export(here.store, here.records(), tmp_path / "lab.ibr", here)
    arrive(tmp_path / "lab.ibr", tmp_path / "there")
    (tmp_path / "there" / "stage-1.json").write_text("{}")
    refused(tmp_path / "lab.ibr", tmp_path, "contains another lab")


def test_a_damaged_file_stays_at_home_and_the_rest_is_carried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = Store(tmp_path / "here")
    kept = here.keep(sweep(DISK, 3000, 5, clients=(1,), repeats=1)[0], **evidence())
    victim = here.path(kept.id) / "observed.parquet"
    victim.write_bytes(victim.read_bytes()[:-9])
    export(here, [kept], tmp_path / "a.ibr")
    assert f"{victim} is damaged" in capsys.readouterr().err
    (arrived,) = arrive(tmp_path / "a.ibr", tmp_path / "there").new
    assert arrived == kept
    assert list(Store(tmp_path / "there").damage(kept.id)) == ["observed.parquet"]
    assert len(Store(tmp_path / "there").seconds(kept.id)["t_s"]) == 90


def test_a_log_that_loses_a_password_on_the_way_is_whole_there(tmp_path: Path) -> None:
    here = store(tmp_path / "here")
    export(here, here.all(), tmp_path / "a.ibr")
    arrive(tmp_path / "a.ibr", tmp_path / "there")
    there = Store(tmp_path / "there")
    for one in there.all():
        assert there.damage(one.id) == {}
        assert there.text(one.id, "log/child.log") == "password=•••\nended\n"
        assert there.engine(one.engine)["settings"]["primary_conninfo"] == "password=•••"


def test_what_a_workload_kept_beside_its_record_goes_along(tmp_path: Path) -> None:
    here = Store(tmp_path / "here")
    for one in sweep(DISK, 3000, 5, clients=(1,), repeats=1):
        here.keep(one, files={"plans.txt": b"Seq Scan", "streams.csv": b"stream,step\n"})
    export(here, here.all(), tmp_path / "a.ibr")
    arrive(tmp_path / "a.ibr", tmp_path / "there")
    there = Store(tmp_path / "there")
    assert there.text(there.all()[0].id, "plans.txt") == "Seq Scan"
    assert there.text(there.all()[0].id, "streams.csv") == "stream,step\n"


def refused(bundle: Path, tmp_path: Path, cause: str) -> None:
    """Checks that the import names the cause and writes nothing, neither in the results directory nor next to it."""
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=cause) as caught:
        arrive(bundle, tmp_path / "there")
    assert caught.value.hint
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(bundle: Path, tmp_path: Path, share: float) -> None:
    data = bundle.read_bytes()
    bundle.write_bytes(data[: int(len(data) * share)])
    refused(bundle, tmp_path, "is not a complete bundle" if share else "is not a bundle of exported records")


@pytest.mark.parametrize("place", range(0, 100, 7))
def test_an_altered_file_is_refused_wherever_it_was_altered(bundle: Path, tmp_path: Path, place: int) -> None:
    """The file is refused, or the change has no effect: some bytes of a zip file, such as dates, do not affect the
    records."""
    data = bytearray(bundle.read_bytes())
    data[len(data) * place // 100] ^= 0x55
    bundle.write_bytes(data)
    try:
        arrive(bundle, tmp_path / "there")
    except InputError:
        assert not (tmp_path / "there").exists()
    else:
        sides = [[replace(one, files={}) for one in Store(tmp_path / side).all()] for side in ("there", "here")]
        assert sides[0] == sides[1]


def rewritten(bundle: Path, change: Callable[[dict[str, bytes]], None], method: int = zipfile.ZIP_STORED) -> None:
    """Replaces a bundle by one with valid checksums but other content, as another version of ironbench might write
    it."""
    with zipfile.ZipFile(bundle) as found:
        files = {name: found.read(name) for name in found.namelist()}
        comment = found.comment
    manifest = json.loads(files.pop("manifest.json"))
    change(files)
    manifest["files"] = {name: [len(data), hashlib.sha256(data).hexdigest()] for name, data in files.items()}
    manifest |= json.loads(files.pop("!manifest", b"{}"))
    manifest["files"].pop("!manifest", None)
    text = json.dumps(manifest).encode()
    with zipfile.ZipFile(bundle, "w", method) as out:
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
def test_a_path_that_climbs_out_or_does_not_belong_is_refused(bundle: Path, tmp_path: Path, name: str) -> None:
    rewritten(bundle, lambda files: files.update({name: b"x"}))
    refused(bundle, tmp_path, "is not a file of a record")


@pytest.mark.parametrize(
    "lab", ["../../x", "/home/u/y", "..", ".", ".hidden", "a/b", "a\\b", "a\x1b[2J", "a\0", "x" * 256]
)
def test_a_lab_whose_name_leads_elsewhere_is_refused(
    bundle: Path, tmp_path: Path, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IRONBENCH_RESULTS", str(tmp_path / "results"))
    rewritten(bundle, lambda files: files.update({"!manifest": json.dumps({"lab": lab}).encode()}))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match="not a valid directory name"):
        import_([str(bundle)], "")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_lab_is_exported_under_the_name_of_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "größe 1"
    here = store(directory)
    (directory / "plan.json").write_text("{}")
    monkeypatch.chdir(directory / "trials")
    export(here, here.all(), tmp_path / "lab.ibr", LabDirectory(Path("..")))
    with Reader(tmp_path / "lab.ibr") as reader:
        assert reader.manifest.lab == "größe 1"


def first_record(files: dict[str, bytes]) -> str:
    return next(name for name in files if name.endswith("/record.json"))


def test_a_record_of_a_newer_schema_is_refused(bundle: Path, tmp_path: Path) -> None:
    def change(files: dict[str, bytes]) -> None:
        name = first_record(files)
        files[name] = msgspec.json.encode({**json.loads(files[name]), "schema": 99})

    rewritten(bundle, change)
    refused(bundle, tmp_path, f"has schema 99, but this ironbench supports only schemas up to {SCHEMA}")


def test_a_file_of_a_newer_format_is_refused(bundle: Path, tmp_path: Path) -> None:
    rewritten(bundle, lambda files: files.update({"!manifest": b'{"format": 2}'}))
    refused(bundle, tmp_path, "has format 2, but this ironbench supports only formats up to 1")


def test_a_record_under_another_name_is_refused(bundle: Path, tmp_path: Path) -> None:
    rewritten(bundle, lambda files: files.update({"trials/other/record.json": files[first_record(files)]}))
    refused(bundle, tmp_path, "contains the record")


def test_evidence_without_its_record_is_refused(bundle: Path, tmp_path: Path) -> None:
    rewritten(bundle, lambda files: files.update({"trials/other/latency.hlog": b"x"}))
    refused(bundle, tmp_path, "has no record")


def test_a_record_that_is_here_with_other_content_is_refused(bundle: Path, tmp_path: Path) -> None:
    arrive(bundle, tmp_path / "there")
    one = next((tmp_path / "there" / "trials").iterdir()) / "record.json"
    one.write_bytes(one.read_bytes().replace(b'"elapsed_s":30.0', b'"elapsed_s":31.0'))
    refused(bundle, tmp_path, "with different contents")


@pytest.mark.parametrize("left", [None, b"{"])
def test_a_damaged_record_that_is_here_is_not_taken_for_the_same(
    bundle: Path, tmp_path: Path, left: bytes | None
) -> None:
    arrive(bundle, tmp_path / "there")
    one = next((tmp_path / "there" / "trials").iterdir()) / "record.json"
    if left is None:
        one.unlink()
    else:
        one.write_bytes(left)
    refused(bundle, tmp_path, "with different contents")


def test_what_is_no_such_file_is_refused(tmp_path: Path) -> None:
    for text in (b"", b"PK", b"hello" * 1000):
        (tmp_path / "x.ibr").write_bytes(text)
        refused(tmp_path / "x.ibr", tmp_path, "is no")
    with zipfile.ZipFile(tmp_path / "x.ibr", "w") as other:
        other.writestr("trials/a/record.json", "{}")
    refused(tmp_path / "x.ibr", tmp_path, "is not a bundle of exported records")
    refused(tmp_path / "missing.ibr", tmp_path, "No such file")


def test_too_little_room_is_seen_before_the_first_byte(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(space, "free_bytes", lambda path: 1)
    refused(bundle, tmp_path, "are free")


def test_an_export_needs_a_name_and_something_to_export(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is missing"):
        exported(None, "", str(tmp_path))
    with pytest.raises(InputError, match="contains no records"):
        exported(None, str(tmp_path / "a.ibr"), str(tmp_path))
    store(tmp_path / "here")
    with pytest.raises(InputError, match=r"does not end in \.ibr"):
        exported(None, str(tmp_path / "a.zip"), str(tmp_path / "here"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here"]


def test_a_selection_alone_is_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = store(tmp_path / "here")
    one = here.all()[0].id
    exported([one], str(tmp_path / "a.ibr"), str(tmp_path / "here"))
    import_([str(tmp_path / "a.ibr")], str(tmp_path / "there"))
    assert [record.id for record in Store(tmp_path / "there").all()] == [one]
    assert "1 new record, in" in capsys.readouterr().err
