"""If ironbench is killed at any moment, its processes also end, or `ironbench cleanup` finds them."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import own_server as pg
import pytest
from factories import rarely_mariadb, require_installed
from patience import eventually

from ironbench.cli.cleanup import cleanup as clean_up
from ironbench.cli.run import execute
from ironbench.engines.cleanup import cleanup, leftovers, lines_of
from ironbench.errors import FailureError, InputError
from ironbench.host import durable, processes, register
from ironbench.host.processes import ProcessId
from ironbench.plan import run_file

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("own_register")]


@pytest.fixture(params=pg.FILES)
def engine(request: pytest.FixtureRequest) -> str:
    require_installed(request.param)
    return request.param


@pytest.mark.parametrize(
    ("engine", "number"),
    [
        pytest.param(engine, number, marks=() if number == often else pytest.mark.long)
        for engine, often in (("postgres", signal.SIGKILL), ("mariadb", signal.SIGTERM))
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
    ],
    indirect=["engine"],
)
def test_a_server_ends_with_its_ironbench_however_that_ends(place: Path, engine: str, number: int) -> None:
    with pg.Parent(place / "d", engine) as parent:
        parent.kill(number)
        assert eventually(lambda: not parent.server.alive())
        assert eventually(lambda: not parent.guard.alive())
        assert not parent.sockets.exists()
        assert register.entries() == []
        assert not processes.working_in(place / "d" / pg.FILES[engine])
        session = pg.start(pg.system(place / "d", engine))
        session.stop()


@rarely_mariadb("postgres", indirect=True)
def test_what_outlives_both_ironbench_and_guard_is_ended_by_cleanup(place: Path, engine: str) -> None:
    with pg.Parent(place / "d", engine) as parent:
        os.kill(parent.guard.pid, signal.SIGKILL)
        parent.kill(signal.SIGKILL)
        assert parent.server.alive()
        assert leftovers() == [f"{engine} in {place / 'd'}"]
        cleaned = cleanup(remove_data=False)
        assert leftovers() == []
        assert [entry.server for entry in cleaned.ended] == [parent.server]
        assert not parent.server.alive()
        assert not parent.sockets.exists()
        assert register.entries() == []
        assert any(f"ended: {engine} in {place / 'd'}" in line for line in lines_of(cleaned))
        assert lines_of(cleanup(remove_data=False)) == ["nothing to clean up"]


@pytest.mark.long
def test_a_directory_whose_server_outlived_its_ironbench_is_refused_until_cleanup(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pg.Parent(place / "d") as parent:
        os.kill(parent.guard.pid, signal.SIGKILL)
        parent.kill(signal.SIGKILL)
        with pytest.raises(Exception, match="in use by a running server"):
            pg.start(pg.system(place / "d"))
        options = {"engine": "postgres", "data": str(place / "d"), "results": str(place / "r")}
        with pytest.raises(InputError, match="in use by a running server"):
            execute(run_file.read("tpcb-like", **options))
        capsys.readouterr()
        assert execute(run_file.read("tpcb-like", **options, plan=True)) == 0
        assert "in use by a running server" in capsys.readouterr().out, "a plan starts nothing"
        cleanup(remove_data=False)
        session = pg.start(pg.system(place / "d"))
        session.stop()


@rarely_mariadb("postgres", indirect=True)
def test_a_session_whose_guard_was_killed_still_stops_its_server(place: Path, engine: str) -> None:
    session = pg.start(pg.system(place / "d", engine))
    server, sockets = processes.identify(pg.pid_of(session)), pg.sockets(session)
    os.kill(register.entries()[0].guard.pid, signal.SIGKILL)
    assert session.alive()
    session.stop()
    assert not server.alive()
    assert not sockets.exists()
    assert register.entries() == []


def test_a_living_owner_s_server_is_left_alone(place: Path) -> None:
    session = pg.start(pg.system(place / "d"))
    try:
        cleaned = cleanup(remove_data=True)
        assert cleaned.ended == ()
        assert len(cleaned.living) == 1
        assert session.alive()
    finally:
        session.stop()


def test_a_recycled_process_id_is_never_signalled(own_register: Path) -> None:
    innocent = subprocess.Popen(["sleep", "60"])
    try:
        now = processes.identify(innocent.pid)
        entry = register.new("postgres", "/nowhere")
        before = ProcessId(innocent.pid, "another boot/1")
        register.write(replace(entry, owner=before, server=before))
        cleaned = cleanup(remove_data=False)
        assert len(cleaned.ended) == 1
        assert now.alive()
    finally:
        innocent.kill()
        innocent.wait()


def test_what_belongs_to_another_container_is_left_alone() -> None:
    entry = register.new("postgres", "/nowhere")
    register.write(replace(entry, owner=ProcessId(1, "another/1"), namespace="pid:[1]"))
    assert len(cleanup(remove_data=False).living) == 1
    register.forget(entry)


def test_leftover_socket_directories_are_removed(place: Path) -> None:
    (place / "sockets").mkdir()
    entry = register.new("postgres", "/nowhere", (str(place / "sockets"),))
    register.write(replace(entry, owner=ProcessId(1, "another boot/1")))
    cleanup(remove_data=False)
    assert not (place / "sockets").exists()


def test_default_data_are_kept_unless_asked_for_and_never_a_stranger_s(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "data" / "postgres-18", tmp_path / "data" / "holiday-pictures"
    for folder in (ours, theirs):
        folder.mkdir(parents=True)
    (ours / "ironbench.json").write_text(json.dumps({"made_by": "ironbench"}))
    assert cleanup(remove_data=False).kept == (str(ours),)
    assert ours.exists()
    assert cleanup(remove_data=True).removed == (str(ours),)
    assert not ours.exists()
    assert theirs.exists()


def test_data_in_use_are_kept(tmp_path: Path) -> None:
    session = pg.start(pg.System("postgres", "test"))
    try:
        assert cleanup(remove_data=True).removed == ()
        assert session.alive()
    finally:
        session.stop()


def test_a_register_that_others_may_write_is_refused(own_register: Path) -> None:
    own_register.mkdir()
    own_register.chmod(0o777)
    with pytest.raises(FailureError, match="not a directory that only you can write to"):
        register.entries()


def test_a_damaged_entry_does_not_stop_cleanup(own_register: Path) -> None:
    own_register.mkdir(mode=0o700)
    (own_register / "0.json").write_text("{")
    (own_register / "1.json").write_text('{"id": "1"}')
    assert lines_of(cleanup(remove_data=False)) == ["nothing to clean up"]


def test_the_verb_says_what_it_did(place: Path) -> None:
    with pg.Parent(place / "d") as parent:
        os.kill(parent.guard.pid, signal.SIGKILL)
        parent.kill(signal.SIGKILL)
        code = "import sys; from ironbench.cli.cleanup import cleanup; sys.exit(cleanup())"
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PYTHONPATH": str(pg.SOURCE)},
        )
        assert done.returncode == 0
        assert "ended: postgres in" in done.stderr
        assert done.stdout == ""
        assert not parent.server.alive()


def test_the_verb_removes_what_a_killed_import_export_capture_and_trial_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = tmp_path / f"{durable._TEMPORARY}abcdefgh"
    rows.mkdir()
    left = [".importing-7", "trials/.writing-x", "labs/a/trials/.writing-y", ".a.ibr.7.tmp", "labs/a/plan.json.7.tmp"]
    for name in left:
        (tmp_path / "results" / name).mkdir(parents=True)
    for name in (".here.ibr.7.tmp", ".shop.capture.ironbench-7.tmp"):
        (tmp_path / name).write_text("x")
    (tmp_path / "own.json.7.tmp").write_text("of another program")
    (tmp_path / "results" / "trials" / "r1").mkdir()
    assert clean_up(results="results") == 0
    said = capsys.readouterr().err
    for name in left:
        assert f"removed: results/{name}" in said
    for path in (".here.ibr.7.tmp", ".shop.capture.ironbench-7.tmp", str(rows)):
        assert f"removed: {path}" in said
    assert not rows.exists()
    assert (tmp_path / "own.json.7.tmp").exists()
    assert [path.name for path in (tmp_path / "results" / "trials").iterdir()] == ["r1"]
