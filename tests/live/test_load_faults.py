"""A load that is ended by Ctrl-C, a kill or a full disk, through the engines as `ironbench run` uses them."""

from __future__ import annotations

import io
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from factories import require_installed
from raw_mysql import RawMysql
from raw_server import RawServer

from ironbench import engines, workloads
from ironbench.errors import FailureError
from ironbench.model.plan import Plan
from ironbench.model.session import Session
from ironbench.model.system import Cell, Choice, Layout, Load, System, Trial
from ironbench.printer import Printer
from ironbench.trial import load
from ironbench.trial.load import prepare

pytestmark = pytest.mark.live


def plan(system: System, scale: int) -> Plan:
    choice = Choice("igen-oltp", workloads.get("igen-oltp").validated({"scale": str(scale)}))
    return Plan("series", system, choice, (Trial(Cell("one", Load()), 0),), 0)


@contextmanager
def running(system: System) -> Iterator[Session]:
    checked, secrets = engines.get(system.engine).validated(system, 4)
    with engines.running(checked, secrets, 4) as session:
        yield session


class Watching(Printer):
    """Calls `what` as soon as the first rows are reported as loaded."""

    def __init__(self, what: Callable[[], None] = lambda: None) -> None:
        super().__init__(io.StringIO(), io.StringIO())
        self._what = what

    @contextmanager
    def bar(self, what: str, total_s: float | None = None) -> Iterator[Callable[[float, str], None]]:
        def show(fraction: float, note: str) -> None:
            if fraction > 0:
                self._what()

        yield show


@pytest.fixture(params=["postgres", "sqlite", "mariadb"])
def system(request: pytest.FixtureRequest, place: Path) -> System:
    if request.param == "sqlite":
        return System("sqlite", "test", {"synchronous": "off"}, Layout(data=str(place / "d")))
    if request.param == "mariadb":
        raw: RawMysql = request.getfixturevalue("raw_mysql")
        name = request.getfixturevalue("joined").target()["connection"]["database"]
        return System("mariadb", "test", dsn=f"mysql://root@localhost/{name}?socket={raw.socket}")
    server: RawServer = request.getfixturevalue("raw_server")
    name = request.getfixturevalue("database")
    return System("postgres", "test", dsn=f"host={server.host} port={server.port} user=postgres dbname={name}")


def assert_incomplete_and_made_anew(session: Session, system: System) -> None:
    assert session.query("select count(*) from ironbench_load where loaded_at is null") == [("1",)]
    assert not load.data_ready(session, plan(system, 1), Watching()).reused
    assert session.query("select count(*) from igen_customer") == [("3300",)]
    assert load.data_ready(session, plan(system, 1), Watching()).reused


def test_a_load_ended_by_ctrl_c_is_never_taken_for_complete(system: System) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with running(system) as session:
        with pytest.raises(KeyboardInterrupt):
            load.data_ready(session, plan(system, 8), Watching(interrupt))
        if system.engine == "postgres":
            assert session.query("select count(*) from pg_stat_progress_copy") == [("0",)]
        assert_incomplete_and_made_anew(session, system)


@pytest.mark.long
def test_a_load_whose_process_was_killed_is_never_taken_for_complete(system: System) -> None:
    code = f"""
        import os, signal, sys
        sys.path[:0] = {[str(Path(__file__).parent), *sys.path]!r}
        from test_load_faults import Layout, System, Watching, load, plan, running
        system = {system!r}
        with running(system) as session:
            load.data_ready(session, plan(system, 8), Watching(lambda: os.kill(os.getpid(), signal.SIGKILL)))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
    assert done.returncode == -9
    with running(system) as session:
        assert_incomplete_and_made_anew(session, system)


@pytest.mark.long
@pytest.mark.parametrize(
    ("engine", "size_mb", "error"),
    [("postgres", 100, "No space left"), pytest.param("mariadb", 200, "full", marks=pytest.mark.long)],
)
def test_a_full_disk_leaves_a_server_of_ours_that_works_and_stops(
    small_disk: Callable[[int], Path],
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    size_mb: int,
    error: str,
) -> None:
    require_installed(engine)
    monkeypatch.setattr(prepare, "enough_space", lambda session, dataset: None)
    disk = small_disk(size_mb)
    system = System(engine, "test", layout=Layout(data=str(disk / "data"), log=str(place / "log")))
    with running(system) as session:
        with pytest.raises(FailureError, match=error) as caught:
            load.data_ready(session, plan(system, 20), Watching())
        assert "smaller scale" in caught.value.hint
        assert_incomplete_and_made_anew(session, system)
    assert not session.alive()


@pytest.mark.long
def test_a_full_disk_under_sqlite_is_forgiven_when_space_was_freed(
    small_disk: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "enough_space", lambda session, dataset: None)
    disk = small_disk(24)
    system = System("sqlite", "test", {"synchronous": "off"}, Layout(data=str(disk / "d")))
    with running(system) as session:
        with pytest.raises(FailureError, match="full") as caught:
            load.data_ready(session, plan(system, 8), Watching())
        assert "smaller scale" in caught.value.hint
        # SQLite must write even to drop tables.
        subprocess.run(["mount", "-o", "remount,size=80m", str(disk)], check=True)
        assert_incomplete_and_made_anew(session, system)
