"""A limit on all memory of an engine applies, includes what the engine reads, and is removed with the engine."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import own_server as pg
import pytest
from factories import rarely_mariadb, require_installed
from patience import eventually

from ironbench import engines, workloads
from ironbench.engines.cleanup import cleanup
from ironbench.errors import InputError
from ironbench.host import control_groups, register
from ironbench.host.tree import Tree
from ironbench.model.plan import Plan
from ironbench.model.record import Status
from ironbench.model.system import Cell, Choice, Layout, Load, System, Trial
from ironbench.printer import Printer
from ironbench.records import judge
from ironbench.trial import load
from ironbench.trial.drive.drive_trial import drive
from ironbench.trial.load import tables

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("own_register")]

LIMIT = 192 << 20
MiB = 1 << 20


@pytest.fixture(autouse=True)
def permitted() -> None:
    try:
        control_groups.require(LIMIT)
    except InputError as error:
        pytest.skip(str(error))


@pytest.fixture
def on_disk() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=".ironbench-test-", dir=Path(__file__).parents[2]) as folder:
        yield Path(folder)


def group_of(pid: int) -> Path:
    """Returns the control group of a process; others may have groups beside it."""
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    of_memory = next((line for line in lines if ":memory:" in line), lines[-1])
    found = control_groups.parent().directory / Path(of_memory.rpartition(":")[2]).name
    assert found.name.startswith("ironbench-") and found.is_dir(), lines
    return found


def used(group: Path) -> int:
    name = "memory.current" if (group / "memory.current").exists() else "memory.usage_in_bytes"
    return int((group / name).read_text())


def members(group: Path) -> set[int]:
    return {int(word) for word in (group / "cgroup.procs").read_text().split()}


def system(data: Path, engine: str = "postgres", **told: object) -> System:
    return replace(pg.system(data, engine), memory_bytes=32 * MiB, memory_total_bytes=LIMIT, **told)


BIG = {
    "postgres": "create table big as select n, repeat('x', 1000) as filler from generate_series(1, {}) n",
    "mariadb": "create table big as select seq as n, repeat('x', 1000) as filler from seq_1_to_{}",
}
BUFFERED = {"postgres": {}, "mariadb": {"innodb_flush_method": "fsync"}}
"""Settings with which a server reads through the page cache."""


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.parametrize("engine", list(BIG))
def test_the_server_and_the_page_cache_of_its_files_stay_within_the_limit(on_disk: Path, engine: str) -> None:
    require_installed(engine)
    session = pg.start(system(on_disk / "d", engine, settings=BUFFERED[engine]))
    try:
        group = group_of(session.processes()[0])
        assert set(session.processes()) <= members(group)
        assert os.getpid() not in members(group)
        session.query(BIG[engine].format(300_000))
        for _ in range(2):
            session.query("select count(*), sum(length(filler)) from big")
        assert tables.size(session, ["big"]) > LIMIT + 64 * MiB
        assert 48 * MiB < used(group) <= LIMIT
    finally:
        session.stop()
    assert not group.exists()


@pytest.mark.alone
@rarely_mariadb("postgres")
def test_what_was_cached_before_counts_too(on_disk: Path, engine: str) -> None:
    """Pages that another group read first would not be charged, so they are dropped before the server starts."""
    require_installed(engine)
    session = pg.start(pg.system(on_disk / "d", engine, settings=BUFFERED[engine]))
    session.query(BIG[engine].format(100_000))
    session.stop()
    session = pg.start(system(on_disk / "d", engine, settings=BUFFERED[engine]))
    try:
        group = group_of(session.processes()[0])
        session.query("select count(*), sum(length(filler)) from big")
        assert used(group) > tables.size(session, ["big"])
    finally:
        session.stop()


@pytest.mark.alone
def test_what_sqlite_reads_before_a_trial_counts_too(on_disk: Path) -> None:
    """ironbench loads the rows and reads tables itself, and its own memory is not limited."""
    told, secrets = engines.get("sqlite").validated(system(on_disk / "d", "sqlite"), 1)
    choice = Choice("select-only", workloads.get("select-only").validated({"scale": "40"}))
    plan = Plan("s", told, choice, (Trial(Cell("c", Load()), 0),), 0)
    with engines.running(told, secrets, 1) as session:
        load.data_ready(session, plan, Printer.silent())
        (group,) = [Path(entry.groups[0]) for entry in register.entries()]
        session.query("select sum(abalance), sum(length(filler)) from pgbench_accounts")
        assert used(group) > 0.8 * tables.size(session, ["pgbench_accounts"]) > 32 * MiB


@pytest.mark.parametrize("engine", list(BIG))
def test_a_restarted_server_is_limited_too(place: Path, engine: str) -> None:
    require_installed(engine)
    session = pg.start(system(place / "d", engine))
    session.restart()
    group = group_of(session.processes()[0])
    assert set(session.processes()) <= members(group)
    session.stop()
    assert not group.exists()


PARENT = """
import sys, time
sys.path[:0] = [{source!r}, {tests!r}, {tests!r} + "/.."]
from pathlib import Path
from test_memory_total import pg, system
session = pg.start(system(Path({data!r})))
print(session.processes()[0], flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("guard_too", [False, True])
def test_after_a_kill_the_group_is_removed_with_its_server(place: Path, guard_too: bool) -> None:
    code = PARENT.format(source=str(pg.SOURCE), tests=str(Path(__file__).parent), data=str(place / "d"))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        group = group_of(int(parent.stdout.readline()))
        (entry,) = register.entries()
        if guard_too:
            assert entry.guard is not None
            os.kill(entry.guard.pid, signal.SIGKILL)
        parent.kill()
    if guard_too:
        assert group.exists()
        cleanup(remove_data=False)
    assert eventually(lambda: not group.exists())
    assert eventually(lambda: register.entries() == [])


@rarely_mariadb("postgres", "sqlite")
def test_a_trial_runs_within_its_limit_and_says_so(place: Path, engine: str) -> None:
    require_installed(engine)
    told = System(engine, "x", layout=Layout(str(place / "d")), memory_bytes=32 * MiB, memory_total_bytes=LIMIT)
    told, secrets = engines.get(engine).validated(told, 2)
    choice = Choice("select-only", workloads.get("select-only").validated({}))
    trial = Trial(Cell("c", Load(clients=2, duration_s=0.5)), 0)
    plan, printer = Plan("s", told, choice, (trial,), 0), Printer(stderr=io.StringIO())
    with engines.running(told, secrets, 2) as session:
        groups = [group_of(pid) for pid in session.processes()[:1]]
        load.data_ready(session, plan, printer)
        driven = drive(plan, session, trial, lambda: (), printer)
        assert driven.failure is None and driven.summary["transactions"] > 0
        assert "by a control group" in driven.prepared.conditions["memory_total"]
    assert not any(group.exists() for group in groups)
    assert register.entries() == []


@pytest.mark.alone
def test_a_server_that_is_killed_for_memory_is_said_to_be(tmp_path: Path) -> None:
    """The server's data are on a disk, because data in memory would be charged to the group and could not be
    evicted."""
    script = tmp_path / "greedy.sql"
    script.write_text("select length(repeat('x', 400000000));\n")
    told = System("postgres", "x", layout=Layout(str(tmp_path / "d")), memory_bytes=32 * MiB, memory_total_bytes=LIMIT)
    told, secrets = engines.get("postgres").validated(told, 2)
    trial = Trial(Cell("c", Load(clients=1, duration_s=2.0)), 0)
    plan = Plan("s", told, Choice("script", {}, {}, (str(script),)), (trial,), 0)
    with engines.running(told, secrets, 2) as session:
        driven = drive(plan, session, trial, lambda: (), Printer(stderr=io.StringIO()))
        status, (cause,) = judge.status(driven, ())
    if (Tree().read("/proc/vmstat") or "").find("oom_kill ") < 0:
        pytest.skip("this kernel does not count what it kills")
    assert status is Status.VOIDED
    assert "out of memory: the kernel killed" in cause.values["last_words"]


@pytest.mark.parametrize("engine", list(BIG))
def test_limits_that_cannot_hold_are_refused_before_anything_starts(place: Path, engine: str) -> None:
    require_installed(engine)
    for total, cache, words in (
        (8 * MiB, None, "is too small for any engine"),
        (LIMIT, 256 * MiB, "itself need about"),
    ):
        told = replace(pg.system(place / "d", engine), memory_bytes=cache, memory_total_bytes=total)
        with pytest.raises(InputError, match=words):
            engines.get(engine).validated(told, 4)


def test_without_permission_the_refusal_names_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/user.slice\n")
    (tmp_path / "proc/self/mountinfo").write_text("")
    with pytest.raises(InputError, match="no control group for memory") as told:
        control_groups.require(LIMIT, Tree(tmp_path))
    assert "Delegate=yes" in told.value.hint


@pytest.mark.parametrize("delegated", [True, False])
def test_version_2_needs_a_group_of_our_own(tmp_path: Path, delegated: bool) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/user.slice/one.scope\n")
    line = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
    (tmp_path / "proc/self/mountinfo").write_text(line)
    own = tmp_path / "sys/fs/cgroup/user.slice/one.scope"
    own.mkdir(parents=True)
    (own / "cgroup.controllers").write_text("cpu memory pids\n")
    (own / "cgroup.subtree_control").write_text("memory\n" if delegated else "\n")
    (own / "cgroup.procs").write_text(f"1\n{os.getpid()}\n")
    assert control_groups.parent(Tree(tmp_path)) == control_groups.ParentGroup("v2", own)
    if delegated:
        control_groups.require(LIMIT, Tree(tmp_path))
        group = control_groups.chosen(Tree(tmp_path))
        control_groups.make(group, LIMIT)
        assert (group / "memory.max").read_text() == str(LIMIT)
        assert (group / "memory.swap.max").read_text() == "0"
    else:
        with pytest.raises(InputError, match="other processes share"):
            control_groups.require(LIMIT, Tree(tmp_path))


def test_parallelism_is_what_the_engine_may_use(place: Path) -> None:
    session = pg.start(pg.system(place / "d", parallelism=3))
    names = ("max_parallel_workers_per_gather", "max_parallel_maintenance_workers")
    assert [session.query(f"show {name}")[0][0] for name in names] == ["2", "2"]
    session.stop()
    with pytest.raises(InputError, match="sets the same value"):
        pg.start(pg.system(place / "d", parallelism=3, settings={"max_parallel_workers": "4"}))
    with pytest.raises(InputError, match="must be between"):
        pg.start(pg.system(place / "d", parallelism=0))


def test_an_older_installation_that_came_along_is_a_name_away(place: Path) -> None:
    session = pg.start(pg.system(place / "d", settings={"bin": "wheel:16"}))
    assert session.query("show server_version")[0][0].startswith("16.")
    session.stop()
    with pytest.raises(InputError, match="does not come with ironbench") as told:
        pg.start(pg.system(place / "e", settings={"bin": "wheel:99"}))
    assert "16" in told.value.hint and "18" in told.value.hint
