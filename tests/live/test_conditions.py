"""Conditions that a trial reports are true: checkpoints, caches, idle machine, clock."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from factories import rarely_mariadb, require_installed

from ironbench import engines, workloads
from ironbench.errors import FailureError, InputError
from ironbench.model.driven import Driven
from ironbench.model.plan import Plan
from ironbench.model.session import Session
from ironbench.model.system import Cell, Choice, Layout, Load, System, Trial
from ironbench.printer import Printer
from ironbench.trial import load, observe
from ironbench.trial.drive import caches, checkpoints, preparation
from ironbench.trial.drive.drive_trial import DriveOptions, drive
from ironbench.trial.drive.preparation import DropCaches
from ironbench.trial.load import tables

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("own_register")]

DISKS = Path(__file__).parents[2]
"""Files in memory cannot be cold: these tests need a file system on a device."""


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A new directory on a device."""
    with tempfile.TemporaryDirectory(prefix=".ironbench-test-", dir=DISKS) as folder:
        yield Path(folder)


def paced(**load: Any) -> Load:
    """Returns a load that leaves CPU time to other tests."""
    return Load(think_time_s=0.005, **load)


class Bench:
    """A system with loaded data, on which trials are driven."""

    def __init__(self, data: Path, how: Load, workload: str, purpose: str = "sweep", engine: str = "postgres") -> None:
        system, secrets = engines.get(engine).validated(System(engine, "test", layout=Layout(str(data))), 4)
        choice = Choice(workload, workloads.get(workload).validated({}))
        self.trial = Trial(Cell("c", how), 0, purpose)
        self.plan = Plan("s", system, choice, (self.trial,), 0)
        self.printer = Printer(stderr=io.StringIO())
        self.session: Session = engines.get(engine).start(system, secrets, 4)
        load.data_ready(self.session, self.plan, self.printer)

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.stop()

    def drive(self, quiet_s: float | None = None, drop_caches: DropCaches = caches.drop) -> Driven:
        return drive(
            self.plan,
            self.session,
            self.trial,
            lambda: observe.sources(self.session),
            self.printer,
            DriveOptions(quiet_s=quiet_s, drop_caches=drop_caches),
        )


def codes(driven: Driven) -> set[str]:
    return {warning.code for warning in driven.prepared.warnings}


@rarely_mariadb("postgres")
def test_requested_checkpoints_are_made_and_counted(place: Path, engine: str) -> None:
    require_installed(engine)
    how = paced(clients=2, duration_s=3.0, checkpoint_s=1.0)
    with Bench(place / "d", how, "tpcb-like", engine=engine) as bench:
        driven = bench.drive()
    assert driven.failure is None and all(check.passed for check in driven.checks)
    assert driven.prepared.conditions["checkpoints"].startswith("one checkpoint requested every 1 s")
    observation, _ = observe.observed(driven)
    # Each takes as long as a busy disk needs.
    assert 1 <= observation.metrics["checkpoints"] <= 4
    late = "were late and were skipped"  # occurs on a busy machine, and is not the fault of an observer
    assert [note for note in driven.summary["observer_notes"] if late not in note] == []


@pytest.mark.parametrize("purpose", ["lab", pytest.param("sweep", marks=pytest.mark.long)])
def test_a_writing_trial_has_two_complete_checkpoints_where_nobody_chose_an_interval(purpose: str, place: Path) -> None:
    how = paced(clients=2, duration_s=3.0)
    with Bench(place / "d", how, "tpcb-like", purpose) as bench:
        driven = bench.drive()
        assert "checkpoints" in driven.prepared.conditions
        assert ("statistics" in driven.prepared.conditions) == (purpose == "lab")
    assert observe.observed(driven)[0].metrics["checkpoints"] >= 2
    assert all(check.passed for check in driven.checks)


def test_trials_that_only_read_have_no_checkpoints_made_for_them(place: Path) -> None:
    with Bench(place / "d", paced(clients=2, duration_s=1.0), "select-only", "lab") as bench:
        assert "checkpoints" not in bench.drive().prepared.conditions


def test_a_long_interval_is_left_to_the_server_and_gone_at_its_next_start(place: Path) -> None:
    with Bench(place / "d", paced(duration_s=0.5, checkpoint_s=45.0), "tpcb-like") as bench:
        assert bench.drive().prepared.conditions["checkpoints"] == "every 45 s (checkpoint_timeout)"
        assert bench.session.query("show checkpoint_timeout") == [("45s",)]
        bench.session.restart()
        assert bench.session.query("show checkpoint_timeout") == [("5min",)]


def test_a_cold_start_keeps_the_interval_of_checkpoints(place: Path) -> None:
    load = paced(duration_s=0.5, checkpoint_s=45.0, cache="cold")
    with Bench(place / "d", load, "tpcb-like") as bench:
        assert bench.drive().prepared.conditions["checkpoints"] == "every 45 s (checkpoint_timeout)"
        assert bench.session.query("show checkpoint_timeout") == [("45s",)]


def test_a_server_that_is_frozen_between_turns_keeps_no_interval_by_its_own_clock(place: Path) -> None:
    load = paced(duration_s=0.5, checkpoint_s=45.0)
    with Bench(place / "d", load, "tpcb-like") as bench:
        (source,), conditions = checkpoints.prepared(bench.session, load.checkpoint_s, own=True, by_clock=False)
        assert (source.period_s, conditions["checkpoints"]) == (
            45.0,
            "one checkpoint requested every 45 s (CHECKPOINT, at full speed)",
        )
        assert bench.session.query("show checkpoint_timeout") == [("5min",)]


def test_a_checkpoint_that_ironbench_asks_for_may_take_longer_than_the_labs_statements(place: Path) -> None:
    with Bench(place / "d", paced(duration_s=0.5), "tpcb-like") as bench:
        query, checkpoint = bench.session.query, engines.get("postgres").traits.dialect.checkpoint()
        query("set statement_timeout = '10ms'")
        query("set local statement_timeout = 0; create table big as select generate_series(1, 1000000)")
        query(checkpoint)
        assert query("show statement_timeout") == [("10ms",)]


@pytest.mark.alone
def test_a_checkpoint_that_takes_long_delays_no_observer(place: Path) -> None:
    """The sampling period of SQL sources is kept while CHECKPOINT runs on a separate connection."""
    with Bench(place / "d", Load(clients=2, duration_s=3.0, checkpoint_s=0.5), "tpcb-like") as bench:
        driven = bench.drive()
    times = [t_s for t_s, _ in driven.samples["pg_checkpoint.view"] if t_s >= 0]
    assert len(times) >= 3
    assert len(driven.samples["checkpoints.request"]) >= 4


@pytest.mark.alone
@rarely_mariadb("postgres", "sqlite")
def test_cold_is_cold_and_warm_is_warm(on_disk: Path, engine: str) -> None:
    require_installed(engine)
    reads = {}
    for state in ("cold", "warm"):
        how = Load(clients=2, duration_s=1.0, cache=state)
        with Bench(on_disk / "d", how, "select-only", engine=engine) as bench:
            driven = bench.drive()
            assert driven.failure is None
            said = driven.prepared.conditions
            assert state in said["cache"] and "read from devices" in said["cache verified"]
            assert ("guest-cold" in said["cache"]) == (state == "cold" and caches.virtual())
            assert codes(driven) == set()
            reads[state] = said["cache verified"]
    assert reads["cold"] != "0 B read from devices"


@pytest.mark.alone
def test_reading_the_state_before_a_trial_does_not_warm_a_cold_one(on_disk: Path) -> None:
    with Bench(on_disk / "d", Load(clients=2, duration_s=1.0, cache="cold"), "tpcb-like") as bench:
        driven = bench.drive()
    assert all(check.passed for check in driven.checks)
    assert codes(driven) == set()


@pytest.mark.long
def test_hot_is_rehearsed_until_steady(place: Path) -> None:
    how = Load(clients=2, duration_s=2.0, cache="hot")
    with Bench(place / "d", how, "tpcb-like") as bench:
        driven = bench.drive()
    assert "hit rate was steady at" in driven.prepared.conditions["cache"]
    assert all(check.passed for check in driven.checks)


def test_files_in_memory_that_are_declared_cold_are_a_warning(place: Path) -> None:
    if not str(place).startswith("/dev/shm"):
        pytest.skip("no file system in memory here")
    with Bench(place / "d", paced(clients=2, duration_s=1.0, cache="cold"), "select-only") as bench:
        assert codes(bench.drive()) == {"cache-not-cold"}


def test_a_state_that_does_not_hold_is_a_warning() -> None:
    warm = caches.CacheState("warm", data_bytes=10 << 20)
    assert caches.verified(warm, 0).warnings == ()
    assert [w.code for w in caches.verified(warm, 50 << 20).warnings] == ["cache-not-warm"]
    larger = caches.CacheState("warm", data_bytes=10 << 30, fits=False)
    assert caches.verified(larger, 50 << 20).warnings == ()
    assert "cannot see" in caches.verified(warm, None).conditions["cache verified"]


def test_warming_fills_postgres_own_cache_through_every_index(place: Path) -> None:
    with Bench(place / "d", Load(cache="warm"), "select-only") as bench:
        session = bench.session
        session.query("create table odd (a int, b text, c int)")
        session.query("insert into odd select n, md5(n::text), n % 7 from generate_series(1, 20000) n")
        session.query("create index on odd (lower(b) desc nulls last)")
        session.query("create index on odd (c) where c > 3")
        session.query("create index on odd using hash (a)")
        session.query('create table "Strange \'name" (x int primary key)')
        session.query("create table papers as select array[n] words from generate_series(1, 1000) n")
        session.query("create index on papers using gin (words)")
        seen = "select heap_blks_read + heap_blks_hit from pg_statio_user_tables where relname = 'papers'"
        session.restart()
        [(unread,)] = session.query(seen)
        said = caches.warm(session, bench.plan.system, ())
        assert "indexes read in key order" in said
        session.query("select pg_stat_force_next_flush()")
        assert int(session.query(seen)[0][0] or 0) > int(unread or 0), "it has no index that can be read in its order"
        assert tables.size(session, ()) > tables.size(session, ("pgbench_accounts", "pgbench_branches"))
        before = engines.get(session.engine).administration.hits(session)
        session.query("set enable_seqscan = off; select count(*) from odd where lower(b) = 'x'")
        session.query("select sum(abalance) from pgbench_accounts where aid between 500 and 90000")
        session.query("select pg_stat_force_next_flush()")
        assert (caches.hit_share(before, engines.get(session.engine).administration.hits(session)) or 0) > 0.95


def test_a_server_that_is_not_ours_is_not_made_cold(place: Path) -> None:
    system = System("postgres", "x", dsn="host=/x")
    with pytest.raises(InputError, match="does not restart"):
        caches.require(system, Load(cache="cold"))
    caches.require(system, Load(cache="warm"))
    with pytest.raises(InputError, match="not a cache state"):
        caches.require(system, Load(cache="tepid"))


@rarely_mariadb("postgres")
def test_a_restarted_server_is_the_same_server_with_empty_caches(place: Path, engine: str) -> None:
    require_installed(engine)
    with Bench(place / "d", Load(), "select-only", engine=engine) as bench:
        pids = list(bench.session.processes())
        bench.session.restart()
        assert not set(pids) & set(bench.session.processes())
        assert bench.session.query("select count(*) from pgbench_accounts") == [("100000",)]
        assert bench.session.alive()
    with pytest.raises(FailureError):
        bench.session.query("select 1")


def test_an_unquiet_machine_is_waited_for_no_longer_than_the_trial_takes(place: Path, monkeypatch) -> None:
    asked: list[float] = []
    monkeypatch.setattr(
        preparation.idle_machine, "wait", lambda limit_s: (asked.append(limit_s), ({"quiet": "yes"}, ()))[1]
    )
    with Bench(place / "d", paced(duration_s=0.5, warmup_s=0.1), "select-only") as bench:
        assert bench.drive(quiet_s=30.0).prepared.conditions["quiet"] == "yes"
    assert asked == [pytest.approx(0.6)]


def test_a_trial_that_cannot_be_prepared_failed_and_says_why(place: Path) -> None:
    def broken(_: Session) -> Mapping[str, str]:
        raise FailureError("cache", "the tables are gone")

    with Bench(place / "d", paced(duration_s=0.5, cache="cold"), "select-only") as bench:
        failure = bench.drive(drop_caches=broken).failure
        assert failure is not None and "the tables are gone" in failure.values["error"]
        assert bench.session.alive()
