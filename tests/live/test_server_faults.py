"""Failures of all kinds of servers: each is named, and no process of ironbench is left running."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import own_server
import pytest
from factories import require_installed
from own_server import FILES
from patience import eventually

from ironbench import engines
from ironbench.engines import identity
from ironbench.errors import FailureError, InputError
from ironbench.host import processes, register
from ironbench.model.system import Layout, System

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("own_register")]

KEPT = "create table kept (n int); insert into kept values (7)"
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another identity")


@pytest.fixture(params=FILES)
def engine(request: pytest.FixtureRequest) -> str:
    require_installed(request.param)
    return request.param


@pytest.fixture
def start() -> Iterator[Callable]:
    """Starts servers, none of which outlives the test."""
    started = []

    def begun(*told: object, **more: object):
        started.append(own_server.start(own_server.system(*told, **more)))
        return started[-1]

    yield begun
    for session in started:
        session.stop()
    assert register.entries() == []


def works(place: Path, engine: str) -> list[int]:
    return processes.working_in(place / "d" / FILES[engine])


def answers(session) -> bool:
    """Returns whether the server answers. A process of a killed server may answer once more."""
    try:
        return bool(session.query("SELECT 1"))
    except FailureError:
        return False


@pytest.mark.parametrize("role", ["data", "temp", "log"])
def test_a_stranger_s_directory_is_refused_and_left_as_it_is(place: Path, engine: str, role: str) -> None:
    (place / "theirs").mkdir()
    (place / "theirs" / "precious.txt").write_text("do not touch")
    layout = replace(Layout(data=str(place / "d")), **{role: str(place / "theirs")})
    error = own_server.refused(System(engine, "test", layout=layout))
    assert "precious.txt" in error.cause
    assert [path.name for path in (place / "theirs").iterdir()] == ["precious.txt"]


def test_the_root_of_a_fresh_file_system_is_an_empty_directory(place: Path, engine: str) -> None:
    (place / "lost+found").mkdir()
    engines.get(engine).validated(own_server.system(place, engine), 1)


def test_a_directory_under_a_file_is_refused(place: Path, engine: str) -> None:
    (place / "file").touch()
    assert "is not a directory" in own_server.refused(own_server.system(place / "file" / "d", engine)).cause


def test_a_directory_that_cannot_be_written_is_named(engine: str) -> None:
    with pytest.raises((InputError, FailureError)) as caught:
        own_server.start(own_server.system(Path("/proc/ironbench"), engine))
    assert "/proc" in str(caught.value)
    assert register.entries() == []


def test_a_directory_that_another_ironbench_uses_is_refused_with_its_process(start, place: Path, engine: str) -> None:
    session = start(place / "d", engine)
    with pytest.raises(InputError) as caught:
        start(place / "d", engine)
    assert str(os.getpid()) in caught.value.cause
    assert str(own_server.pid_of(session)) in engines.get(engine).in_use(own_server.system(place / "d", engine)).cause
    assert session.alive()


def test_a_log_directory_of_another_server_is_refused(start, place: Path, engine: str) -> None:
    start(place / "one", engine, layout=Layout(log=str(place / "log"))).stop()
    error = own_server.refused(own_server.system(place / "two", engine, layout=Layout(log=str(place / "log"))))
    assert str(place / "one") in error.cause


def test_a_server_that_is_killed_is_noticed_and_its_directory_can_be_used_again(
    start, place: Path, engine: str
) -> None:
    session = start(place / "d", engine)
    session.query(KEPT)
    sockets = own_server.sockets(session)
    os.kill(own_server.pid_of(session), signal.SIGKILL)
    assert eventually(lambda: not session.alive())
    assert eventually(lambda: not answers(session))
    assert eventually(lambda: session.last_words().startswith("killed by SIGKILL"))
    session.stop()
    session.stop()
    assert not sockets.exists()
    assert eventually(lambda: not works(place, engine))
    assert start(place / "d", engine).query("SELECT n FROM kept") == [("7",)]


@pytest.mark.long
def test_a_server_killed_before_its_log_was_moved_loses_nothing(start, place: Path, engine: str) -> None:
    session = start(place / "d", engine)
    session.query(KEPT)
    os.kill(own_server.pid_of(session), signal.SIGKILL)
    session.stop()
    assert eventually(lambda: not works(place, engine))
    moved = start(place / "d", engine, layout=Layout(log=str(place / "log")))
    assert moved.query("SELECT n FROM kept") == [("7",)]


def test_a_log_that_was_lost_after_a_crash_is_said_to_be_lost(start, place: Path, engine: str) -> None:
    apart = Layout(log=str(place / "memory"))
    session = start(place / "d", engine, layout=apart)
    os.kill(own_server.pid_of(session), signal.SIGKILL)
    session.stop()
    assert eventually(lambda: not works(place, engine))
    subprocess.run(["rm", "-r", str(place / "memory")], check=True)
    with pytest.raises(FailureError) as caught:
        start(place / "d", engine, layout=apart)
    assert "is missing" in caught.value.cause


@pytest.mark.parametrize(
    ("engine", "setting", "words"),
    [
        ("postgres", ("shared_preload_libraries", "no_such_library"), "no_such_library"),
        ("mariadb", ("plugin_load_add", "no_such_library"), "no_such_library"),
    ],
)
def test_a_server_that_cannot_start_says_why_in_its_own_words(start, place: Path, engine, setting, words) -> None:
    require_installed(engine)
    with pytest.raises((FailureError, InputError), match=words):
        start(place / "d", engine, settings=dict([setting]))
    assert register.entries() == []
    start(place / "d", engine).stop()


def test_a_device_that_fills_while_the_files_are_made_is_named(small_disk: Callable[[int], Path], engine: str) -> None:
    small = small_disk(20)
    with pytest.raises(FailureError, match="No space left on device"):
        own_server.start(own_server.system(small / "d", engine))
    assert not (small / "d" / f"{FILES[engine]}.new").exists()


def test_a_temporary_directory_with_a_long_name_is_not_used_for_sockets(
    start, place: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = place / ("x" * 90)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    assert len(str(own_server.sockets(start(place / "d", engine)))) < 80


def test_an_interrupt_during_the_start_leaves_nothing_running(place: Path, engine: str) -> None:
    code = f"""
import sys; sys.path[:0] = [{str(own_server.SOURCE)!r}, {str(Path(__file__).parent)!r}]
from pathlib import Path
import own_server
print("go", flush=True)
own_server.start(own_server.system(Path({str(place / "d")!r}), {engine!r}))
"""
    for wait_s in (0.05, 0.4, 0.8):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        child.stdout.readline()
        timer = threading.Timer(wait_s, child.send_signal, [signal.SIGINT])
        timer.start()
        child.wait(60)
        timer.join()
        child.stdout.close()
        assert eventually(lambda: not works(place, engine))
        assert eventually(lambda: register.entries() == [])


def program(engine: str) -> tuple[str, str]:
    if engine == "mariadb":
        from ironbench.engines.mariadb import installation

        return str(installation.find().server), "MariaDB"
    from ironbench.engines.postgres import installation as wheel

    return wheel.find().program("postgres"), "PostgreSQL"


@NEEDS_ROOT
@pytest.mark.parametrize("forbidden", [{identity.NAMESPACE}, {identity.NAMESPACE, identity.UNPRIVILEGED_READER}])
def test_root_finds_another_identity_when_user_namespaces_are_forbidden(
    start, place: Path, engine: str, monkeypatch: pytest.MonkeyPatch, forbidden: set[str]
) -> None:
    for folder in (place.parent, place):
        folder.chmod(0o755)
    chosen = identity.choose(*program(engine), frozenset(forbidden))
    assert chosen.mechanism.startswith("user nobody")
    apart = Layout(log=str(place / "l"), temp=str(place / "t"))
    with monkeypatch.context() as patched:
        patched.setattr(identity, "choose", lambda *_: chosen)
        session = start(place / "d", engine, layout=apart)
        assert session.facts()["runs_as"] == chosen.mechanism
        session.query(KEPT)
        session.stop()
    session = start(place / "d", engine, layout=apart)
    assert session.facts()["runs_as"] == identity.NAMESPACE
    assert session.query("SELECT n FROM kept") == [("7",)]
    session.stop()


@NEEDS_ROOT
@pytest.mark.long
def test_a_server_without_any_rights_of_root_runs_on_a_restored_snapshot(
    start, place: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (place.parent, place):
        folder.chmod(0o755)
    chosen = identity.choose(*program(engine), frozenset({identity.NAMESPACE, identity.UNPRIVILEGED_READER}))
    monkeypatch.setattr(identity, "choose", lambda *_: chosen)
    session = start(place / "d", engine)
    session.query(KEPT)
    session.stop()
    one = engines.get(engine)
    checked, _ = one.validated(own_server.system(place / "d", engine), 4)
    one.snapshot(checked, place / "snapshot")
    for _ in range(2):
        one.restore(checked, place / "snapshot")
        session = start(place / "d", engine)
        assert session.query("SELECT n FROM kept") == [("7",)]
        session.stop()


@NEEDS_ROOT
def test_root_without_any_identity_is_told_what_to_do(engine: str) -> None:
    every = frozenset({identity.NAMESPACE, identity.UNPRIVILEGED, identity.UNPRIVILEGED_READER})
    with pytest.raises(FailureError) as caught:
        identity.choose(*program(engine), every)
    assert "ordinary user" in caught.value.hint


ADDRESSES = {"postgres": "host=127.0.0.1 port={port}", "mariadb": "mysql://u@127.0.0.1:{port}/d"}


@pytest.mark.parametrize("engine", ADDRESSES)
def test_a_server_that_is_not_there_is_named(engine: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    checked, secrets = engines.get(engine).validated(System(engine, "t", dsn=ADDRESSES[engine].format(port=port)), 1)
    with pytest.raises(FailureError) as caught:
        engines.get(engine).start(checked, secrets, 1)
    assert str(port) in str(caught.value)


def test_a_wrong_password_is_your_input_and_stays_secret(engine: str, guarded: Callable[[str], str]) -> None:
    checked, secrets = engines.get(engine).validated(System(engine, "t", dsn=guarded("hidden")), 1)
    assert "hidden" not in repr(checked) and secrets.password == "hidden"
    with pytest.raises(InputError) as caught:
        engines.get(engine).start(checked, secrets, 1)
    assert "_user" in str(caught.value)
    assert "hidden" not in f"{caught.value} {caught.value.hint}"


def test_a_right_password_is_in_no_fact(engine: str, guarded: Callable[[str], str]) -> None:
    checked, secrets = engines.get(engine).validated(System(engine, "t", dsn=guarded("")), 1)
    session = engines.get(engine).start(checked, secrets, 1)
    assert secrets.password and secrets.password not in repr(session.facts())
    assert session.target()["connection"]["password"] == secrets.password
    session.stop()
