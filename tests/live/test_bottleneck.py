"""A resource that is made the bottleneck is named as the bottleneck."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import own_server as pg
import pytest
from driven import driven

from ironbench.model.lab import Configuration
from ironbench.model.observer import SERVER_CPU
from ironbench.model.system import Load
from ironbench.report import wording
from ironbench.study.bottleneck import TimeSpent, where_time_goes
from ironbench.study.shares import waterfall

pytestmark = [pytest.mark.live, pytest.mark.alone]

ROWS = 1000
READ = f"\\set n random(1, {ROWS})\nselect b from t where a = :n;\n"
CHANGE = f"\\set n random(1, {ROWS})\nupdate t set b = b + 1 where a = :n;\n"
HOT = "begin;\nupdate t set b = b + 1 where a = 1;\nselect count(*) from t;\nend;\n"
Server = Callable[..., Any]


@pytest.fixture
def server(place: Path) -> Iterator[Server]:
    """Starts servers that end with the test."""
    with ExitStack() as ends:

        def start(settings: dict[str, str] | None = None, **told: Any) -> Any:
            session = pg.start(pg.system(place / "d", settings=settings or {}, **told), 64)
            ends.callback(session.stop)
            session.query("drop table if exists t; create table t (a int primary key, b int)")
            session.query(f"insert into t select n, 0 from generate_series(1, {ROWS}) n")
            return session

        yield start


def spent(session: Any, script: str, load: Load, **how: Any) -> TimeSpent:
    found = where_time_goes([driven(session, script, load, **how)])
    assert found is not None
    assert sum(part.share for part in found.parts) == pytest.approx(1.0, abs=1e-6)
    return found


DELAYED = {"commit_delay": "10000", "commit_siblings": "0"}
"""Every WAL flush waits 10 ms before it starts (PostgreSQL 18 documentation, 19.5.1, commit_delay)."""


@pytest.mark.long
def test_a_delayed_flush_makes_the_log_the_limit(server: Server) -> None:
    found = spent(server(DELAYED), CHANGE, Load(clients=8, duration_s=4.0))
    assert found.limit.resource == "wal", found
    assert found.share("log flush") > 0.6
    assert found.limit.gain is not None and found.limit.gain.high > 2


def test_one_core_makes_the_cpu_the_limit_and_more_cores_the_remedy(server: Server) -> None:
    session = server({"synchronous_commit": "off"}, server_cpus=(min(os.sched_getaffinity(0)),))
    found = spent(session, CHANGE, Load(clients=16, duration_s=4.0))
    assert found.limit.resource == SERVER_CPU, found
    assert found.share("run queue") > found.share("CPU")
    # If other programs used the CPU in the meantime, they are named instead of a fix.
    others = ("other programs (", "other virtual machines (")
    assert any(words in wording.text(found.limit.note) for words in ("more cores", *others)), found


@pytest.mark.long
def test_a_hot_row_makes_locks_the_limit_and_the_root_is_named(server: Server) -> None:
    """The holder of the row keeps it over a round trip to its client."""
    found = spent(server({"synchronous_commit": "off"}), HOT, Load(clients=16, duration_s=6.0))
    assert found.limit.resource == "locks", found
    evidence = {one.code: one.values for one in found.limit.note.values["evidence"]}
    assert evidence["locks-of-table"]["table"] == "t", found
    assert evidence["locks-root"]["event"] == "Client.ClientRead", found


@pytest.mark.long
def test_locks_behind_a_flush_are_led_to_the_flush(tmp_path: Path) -> None:
    """The holder of the row keeps it during a WAL flush to a real device, so lock waits are caused by the flush.

    The time depends on the device, so the limit is not checked: on a fast device, CPU comes close.
    """
    session = pg.start(pg.system(tmp_path / "d"), 40)
    try:
        session.query("create table t (a int primary key, b int); insert into t values (1, 0)")
        found = spent(session, "update t set b = b + 1 where a = 1;\n", Load(clients=32, duration_s=5.0))
    finally:
        session.stop()
    assert max(found.parts, key=lambda part: part.share).name == "locks", found
    assert {"IO.WalSync", "IO.WalWrite"} & set(found.roots), found
    assert found.tables.get("t", 0.0) > 0.9


@pytest.mark.long
def test_a_starved_client_is_the_limit(server: Server) -> None:
    """Six other programs that never pause use the client's core."""
    core = max(os.sched_getaffinity(0))
    busy = [subprocess.Popen(["taskset", "-c", str(core), sys.executable, "-c", "while True: pass"]) for _ in range(6)]
    try:
        rest = tuple(os.sched_getaffinity(0) - {core}) or None
        found = spent(server(server_cpus=rest), READ, Load(clients=2, duration_s=4.0), client_cpus=(core,))
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert found.limit.resource == "client", found
    assert "the server waits for the client's requests" in wording.text(found.limit.note)


@pytest.mark.long
def test_a_client_that_thinks_is_the_limit(server: Server) -> None:
    found = spent(server(), READ, Load(clients=4, duration_s=3.0, think_time_s=0.05))
    assert found.limit.resource == "client", found
    assert "think time" in wording.text(found.limit.note)


@pytest.mark.long
def test_a_waterfall_leads_to_what_was_changed(server: Server) -> None:
    load = Load(clients=4, duration_s=1.2)
    session = server(DELAYED)
    before, after = [], []
    for block in range(3):
        session.query("alter system set commit_delay = 10000; ")
        session.query("select pg_reload_conf()")
        before.append(driven(session, CHANGE, load, block))
        session.query("alter system set commit_delay = 0")
        session.query("select pg_reload_conf()")
        after.append(driven(session, CHANGE, load, block))
    others = [replace(one, cell=replace(one.cell, name="no delay")) for one in after]
    found = waterfall((Configuration("delay"), before), (Configuration("no delay"), others), in_blocks=True)
    assert found is not None
    steps = {step.part: step for step in found.steps}
    assert min(steps.values(), key=lambda step: step.delta_s).part == "log flush"
    assert steps["log flush"].clear
    assert (found.note.code, found.note.values["part"]) == ("largest-step", "log flush")


def test_data_that_do_not_fit_are_seen_as_reads(tmp_path: Path) -> None:
    """A cache of 1 MB, and direct reads (PostgreSQL 18 documentation, 19.17, debug_io_direct)."""
    session = pg.start(pg.system(tmp_path / "d", memory_bytes=1 << 20, settings={"debug_io_direct": "data"}), 8)
    try:
        session.query("create table wide as select n as a, repeat('x', 2000) as b from generate_series(1, 20000) n")
        session.query("create index on wide (a)")
        script = "\\set n random(1, 20000)\nselect length(b) from wide where a = :n;\n"
        found = spent(session, script, Load(clients=4, duration_s=4.0))
    finally:
        session.stop()
    # If the device is as fast as the processors, reads need not be the limit, and with two processors a server also
    # waits for its client. Among the server's own waits, reads have the largest share.
    waits = {part.name: part.share for part in found.parts if part.name not in ("CPU", "run queue", "client")}
    assert max(waits, key=lambda name: waits[name]) == "data read", found
