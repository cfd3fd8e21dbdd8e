"""Finding engines; the null engine; directories and disk space."""

import errno
import os
import pwd
from contextlib import nullcontext
from pathlib import Path

import pytest

from ironbench import engines, units
from ironbench.engines import cleanup, ideal, identity
from ironbench.engines.administration import MarkedObjects
from ironbench.engines.base import Engine, Traits
from ironbench.engines.postgres import facts, settings
from ironbench.errors import FailureError, InputError
from ironbench.host import data_dirs, processes, space
from ironbench.model.system import Device, Layout, Partition, System


def test_engines_are_found_by_scanning_the_package() -> None:
    assert {"none", "null", "postgres", "sqlite"} <= set(engines.names())
    assert list(engines.names()) == sorted(engines.names())
    assert all(engines.get(name).name == name and engines.get(name).traits.doc for name in engines.names())


def test_an_unknown_engine_gets_the_nearest_name() -> None:
    with pytest.raises(InputError) as caught:
        engines.get("postgresql")
    assert "postgres" in caught.value.hint


class _ChosenError(Exception):
    """An engine was chosen."""


def test_cleanup_chooses_the_engine_by_the_scheme_of_the_dsn(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fake(engines.get("null").__class__):  # type: ignore[misc]
        def __init__(self, name: str, *schemes: str) -> None:
            self.name, self.traits, self.administration = name, Traits("", schemes=schemes), Marking()

        def validated(self, system: System, clients: int) -> None:
            raise _ChosenError(self.name)

    class Marking(Engine.administration.__class__):  # type: ignore[misc]
        marks = True

    fakes = {"first": Fake("first", "one"), "second": Fake("second", "", "two")}
    monkeypatch.setattr(engines, "names", lambda: tuple(fakes))
    monkeypatch.setattr(engines, "get", fakes.__getitem__)
    for dsn, name in (("one://h/d", "first"), ("two://h/d", "second"), ("host=h password=one://", "second")):
        with pytest.raises(_ChosenError, match=name):
            cleanup.database(dsn)
    with pytest.raises(InputError, match="three://") as caught:
        cleanup.database("three://u:secret@h/d")
    assert caught.value.hint == "supported: one://, two://" and "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("dsn", "words"),
    [
        ("postgresql://h/d", "this database contains no objects created by ironbench"),
        ("ldap://h/dc=d", "this directory contains no entries created by ironbench"),
    ],
)
def test_cleanup_without_anything_to_remove_names_the_kind_of_server(
    dsn: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engines.of_scheme(engines.scheme(dsn))
    assert engine is not None
    monkeypatch.setattr(type(engine), "validated", lambda self, system, clients: (system, None))
    monkeypatch.setattr(type(engine.administration), "remove_made", lambda self, session: MarkedObjects())
    monkeypatch.setattr(engines, "running", lambda *_: nullcontext())
    assert cleanup.database(dsn) == words


@pytest.mark.parametrize(
    ("dsn", "name"),
    [(None, "postgres"), ("host=h", "postgres"), ("postgresql://h/d", "postgres"), ("mysql://h/d", "mariadb")],
)
def test_the_scheme_of_a_dsn_chooses_the_engine(dsn: str | None, name: str) -> None:
    assert engines.default(("scripts", "data"), dsn).name == name


def test_the_null_engine_takes_everything_and_keeps_nothing() -> None:
    engine = engines.get("null")
    system, secrets = engine.validated(System("null", "n", settings={"service": "50us"}), 5)
    with engines.running(system, secrets, 5) as session:
        assert session.target() == {"kind": "null", "service_ns": 50_000}
        assert session.query("SELECT 1") == []
        assert session.copy_in("COPY t FROM STDIN", b"1\n2\n") == 2
        assert session.alive()


@pytest.mark.parametrize("name", ["postgres", "sqlite", "duckdb", "none"])
def test_a_validated_system_keeps_its_emulated_devices(name: str, tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    layout = Layout(data, devices=(Device("free", (Partition("data", 1 << 30, data),)),))
    system, _ = engines.get(name).validated(System(name, "x", layout=layout), 1)
    assert system.layout.devices == layout.devices and system.layout.data == data


@pytest.mark.parametrize(
    "told",
    [
        {"settings": {"service": "soon"}},
        {"settings": {"servce": "1us"}},
        {"settings": {"service": "2000s"}},
        {"dsn": "host=h"},
        {"memory_bytes": 1},
        {"layout": Layout(data="/tmp/x")},
    ],
)
def test_the_null_engine_refuses_what_it_has_not(told) -> None:
    with pytest.raises(InputError):
        engines.get("null").validated(System("null", "n", **told), 1)


def test_an_empty_directory_becomes_ours_and_stays_ours(tmp_path: Path) -> None:
    folder = data_dirs.claim(str(tmp_path / "a" / "b"), "data")
    (folder / "cluster").mkdir()
    assert data_dirs.check(str(folder), "data") == str(folder)


@pytest.mark.parametrize("left", ["ironbench.json", "ironbench.json.123.tmp"])
def test_a_directory_whose_claim_was_cut_off_can_be_claimed_again(left: str, tmp_path: Path) -> None:
    (tmp_path / left).touch()
    assert data_dirs.ours(data_dirs.claim(str(tmp_path), "data"))


def test_a_strangers_file_is_one_beside_an_empty_marker_too(tmp_path: Path) -> None:
    (tmp_path / "ironbench.json").touch()
    (tmp_path / "theirs").touch()
    with pytest.raises(InputError, match=r"that ironbench did not create, e\.g\. theirs"):
        data_dirs.claim(str(tmp_path), "data")


def test_a_claim_on_a_full_disk_leaves_the_directory_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FailureError, match="No space left"):
        data_dirs.claim(str(tmp_path), "data")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    assert data_dirs.ours(data_dirs.claim(str(tmp_path), "data"))


def test_the_default_directory_follows_the_environment() -> None:
    assert data_dirs.base({"IRONBENCH_DATA": "/x"}) == Path("/x")
    assert data_dirs.default("e", "1", {"IRONBENCH_DATA": "/x"}) == Path("/x/e-1")
    assert data_dirs.default("e", "1", {"HOME": "/h"}) == Path("/h/.cache/ironbench/data/e-1")
    assert data_dirs.default("e", "1", {"HOME": "/h", "XDG_CACHE_HOME": "/c"}) == Path("/c/ironbench/data/e-1")


def test_a_lock_names_its_holder_and_ends_with_it(tmp_path: Path) -> None:
    held = data_dirs.lock(tmp_path)
    with pytest.raises(InputError, match=f"process {os.getpid()}"):
        data_dirs.lock(tmp_path)
    os.close(held)
    os.close(data_dirs.lock(tmp_path))


def test_too_little_space_is_told_with_both_figures(tmp_path: Path) -> None:
    space.require(tmp_path / "not" / "there" / "yet", 1000, "the load")
    with pytest.raises(InputError) as caught:
        space.require(tmp_path, 10**18, "the load")
    assert "1,050\u202fPB" in caught.value.cause
    assert units.stored(space.free_bytes(tmp_path))[-2:] in caught.value.cause


def test_a_process_is_told_from_another_with_its_number() -> None:
    own = processes.identify(os.getpid())
    assert own is not None
    assert own.alive()
    assert not processes.ProcessId(own.pid, "another/1").alive()
    assert not processes.ProcessId(own.pid, "another/1").signal(0)
    assert os.getpid() in processes.children(os.getppid())


def test_values_in_the_configuration_file_are_quoted() -> None:
    assert "a = 'it''s \\\\ here'" in settings.as_file({"a": "it's \\ here"})


def test_what_a_build_lacks_is_listed() -> None:
    full = {"tls": True, "icu": True, "jit": True, "available": ["pg_stat_statements"]}
    enums = {"default_toast_compression": ["lz4"], "wal_compression": ["zstd"], "io_method": ["io_uring"]}
    assert facts.lacking(full | {"enums": enums}) == []
    least = {"default_toast_compression": ["pglz"], "wal_compression": ["pglz"], "io_method": ["sync"]}
    assert facts.lacking({"enums": least}) == ["TLS", "ICU", "JIT", "lz4", "zstd", "io_uring", "contrib"]


def test_a_build_lacks_no_feature_that_its_version_does_not_have() -> None:
    postgres_13: dict[str, object] = {"wal_compression": None}
    postgres_15 = {"default_toast_compression": ["pglz"], "wal_compression": ["pglz", "zstd"]}
    assert facts.lacking({"enums": postgres_13}) == ["TLS", "ICU", "JIT", "contrib"]
    assert facts.lacking({"enums": postgres_15}) == ["TLS", "ICU", "JIT", "lz4", "contrib"]


@pytest.mark.parametrize("path", ["/proc/abc", "/sys/abc", "/proc/self/abc/def"])
def test_a_place_where_nothing_can_be_written_is_said_to_be_that(path: str) -> None:
    """Even root, whom permissions do not stop, cannot create directories there."""
    with pytest.raises(InputError, match="is not writable"):
        data_dirs.check(path, "data")


def test_checking_a_place_leaves_nothing_there(tmp_path: Path) -> None:
    data_dirs.check(str(tmp_path / "new" / "er"), "data")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["postgres", "duckdb", "sqlite"])
def test_an_engine_keeps_the_emulated_devices_of_its_layout(name: str, tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    device = Device("free", (Partition("data", 1 << 30, data),))
    system, _ = engines.get(name).validated(System(name, name, layout=Layout(data, devices=(device,))), 1)
    assert system.layout.devices == (device,)


def test_a_directory_is_used_until_every_process_that_uses_it_let_go(tmp_path: Path) -> None:
    assert not data_dirs.used(tmp_path)
    data_dirs.use(tmp_path)
    data_dirs.use(tmp_path)
    assert data_dirs.used(tmp_path)
    data_dirs.release(tmp_path)
    assert not data_dirs.used(tmp_path)


def test_without_a_home_variable_nothing_goes_where_others_may_write(monkeypatch: pytest.MonkeyPatch) -> None:
    assert data_dirs.base({"HOME": "/home/u"}) == Path("/home/u/.cache/ironbench/data")
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: pwd.struct_passwd(("u", "x", 1, 1, "", "/srv/u", "")))
    for environ in ({}, {"HOME": ""}):
        assert data_dirs.base(environ) == Path("/srv/u/.cache/ironbench/data")

    def unknown(uid: int) -> object:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(InputError, match="HOME: is not set") as caught:
        data_dirs.base({})
    assert "IRONBENCH_DATA" in caught.value.hint
    assert data_dirs.base({"IRONBENCH_DATA": "/srv/d"}) == Path("/srv/d")


@pytest.mark.parametrize(("uids", "chosen"), [((0, 1, 1000), 1000), ((0, 1, 65534), 1), ((0, 65534), 1000)])
def test_a_namespace_of_ours_has_a_user_with_a_name(
    monkeypatch: pytest.MonkeyPatch, uids: tuple[int, ...], chosen: int
) -> None:
    users = [pwd.struct_passwd((f"u{uid}", "x", uid, uid, "", "/", "")) for uid in uids]
    monkeypatch.setattr(pwd, "getpwall", lambda: users)
    assert f"--map-user={chosen}" in identity._in_a_namespace().prefix


def test_a_directory_in_memory_that_others_may_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ideal, "MEMORY", tmp_path)
    ideal.claim("/srv/d")
    ideal.claim("/srv/d")
    ideal.root("/srv/d").chmod(0o777)
    with pytest.raises(InputError, match="not a directory that only you can write to"):
        ideal.claim("/srv/d")
