"""Kernel counters take precedence over samples, and every share is of all the clients' time."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from ironbench._core import Histogram
from ironbench.engines.postgres.observers.events import wait_class_of
from ironbench.engines.postgres.observers.waits import OBSERVER as WAITS
from ironbench.host.tree import Tree
from ironbench.model.curve import Curve
from ironbench.model.driven import Driven
from ironbench.model.observation import Sample, Source
from ironbench.model.observer import WAIT_CLASSES, OnCores, Waits
from ironbench.model.points import SamplePoint
from ironbench.model.system import Load
from ironbench.trial.observe import get, observed, paced
from ironbench.trial.observe.parts import divided_up, effective, shares

EVENTS = {
    "CPU": "CPU",
    "idle": "client",
    "Client.ClientRead": "client",
    "IO.WalSync": "log flush",
    "IO.WALSync": "log flush",
    "IO.WalInitWrite": "log flush",
    "LWLock.WALWrite": "log flush",
    "IPC.SyncRep": "log flush",
    "IO.DataFileRead": "data read",
    "IO.AioIoCompletion": "data read",
    "IPC.BufferIo": "data read",
    "IPC.BufferIO": "data read",
    "IO.DataFileExtend": "data write",
    "IO.SlruWrite": "data write",
    "IO.BuffileWrite": "temp",
    "IO.BufFileRead": "temp",
    "Lock.transactionid": "locks",
    "BufferPin.BufferPin": "locks",
    "LWLock.LockManager": "internal locks",
    "IPC.ProcarrayGroupUpdate": "internal locks",
    "Timeout.SpinDelay": "internal locks",
    "Timeout.PgSleep": "other",
    "IPC.ExecuteGather": "other",
    "Extension.Extension": "other",
}


@pytest.mark.parametrize(("event", "part"), EVENTS.items())
def test_every_event_has_its_wait_class(event: str, part: str) -> None:
    assert wait_class_of(event) == part


def test_the_kernels_counts_split_what_has_no_wait() -> None:
    assert divided_up({"CPU": 4.0, "log flush": 4.0}, OnCores(1.0, 2.0)) == {
        "CPU": 1.0,
        "run queue": 2.0,
        "log flush": 4.0,
        "other": 1.0,
    }


def test_woken_backends_that_wait_for_a_core_are_not_taken_for_idle() -> None:
    """One core and 16 clients with short statements: nearly all seem to wait for their clients."""
    found = divided_up({"CPU": 0.2, "client": 15.8}, OnCores(0.8, 9.0))
    assert found == pytest.approx({"CPU": 0.8, "run queue": 9.0, "client": 6.2, "other": 0.0})


def test_more_counted_than_there_is_stays_within_the_whole() -> None:
    found = divided_up({"CPU": 1.0, "client": 1.0}, OnCores(1.5, 9.0))
    assert found == pytest.approx({"CPU": 1.5, "run queue": 0.5, "client": 0.0, "other": 0.0})


def test_shares_are_all_of_the_time() -> None:
    found = [SamplePoint(n * 0.05, {"CPU": n % 3, "IO.WalSync": 2.0, "idle": 3.0}) for n in range(100)]
    metrics = shares(Waits(found, OnCores(0.5, 0.1), wait_class_of), None)
    parts = [value for name, value in metrics.items() if name.startswith("time_share")]
    assert sum(parts) == pytest.approx(1.0)
    assert {name.partition("part=")[2].rstrip("}") for name in metrics} <= set(WAIT_CLASSES)
    assert "time_samples{part=CPU}" not in metrics, "counted, not sampled"


def test_clients_that_wait_for_work_to_arrive_are_not_in_a_transaction() -> None:
    found = [SamplePoint(n * 0.05, {"CPU": 1.0, "idle": 7.0}) for n in range(100)]
    metrics = shares(Waits(found, None, wait_class_of), busy=2.0)
    assert metrics["time_share{part=CPU}"] == pytest.approx(0.5)
    assert metrics["time_share{part=client}"] == pytest.approx(0.5)


def test_independent_samples_count_nearly_whole_and_repeated_ones_once() -> None:
    dice = random.Random(1)
    coins = [float(dice.random() < 0.5) for _ in range(1200)]
    alone = effective(
        [SamplePoint(n, {"IO.WalSync": c, "CPU": 1 - c}) for n, c in enumerate(coins)], "log flush", wait_class_of
    )
    again = [coin for coin in coins[:120] for _ in range(10)]
    tenfold = effective(
        [SamplePoint(n, {"IO.WalSync": c, "CPU": 1 - c}) for n, c in enumerate(again)], "log flush", wait_class_of
    )
    assert 500 < alone <= 1200
    assert 50 < tenfold < 300


def test_a_few_samples_are_no_more_than_their_instants() -> None:
    found = [SamplePoint(n, {"IO.WalSync": 4.0, "CPU": 4.0}) for n in range(10)]
    assert effective(found, "log flush", wait_class_of) == 10


def test_processes_that_were_seen_are_counted_and_strangers_are_not() -> None:
    def files(*pairs: tuple[int, int, int]) -> bytes:
        return "".join(f"==> /proc/{pid}/schedstat\n{cpu} {queue} 7\n" for pid, cpu, queue in pairs).encode()

    samples = {
        "pg_waits.backends": [Sample(0.0, b"10\n11\n")],
        "pg_waits.schedstat": [
            Sample(0.0, files((10, 0, 0), (11, 5, 5), (99, 0, 0))),
            Sample(1.0, files((10, 600_000_000, 10), (11, 400_000_005, 200_000_005), (99, 10**9, 10**9))),
            Sample(1.1, files((99, 10**9, 10**9))),
        ],
    }
    found = WAITS.counted(samples, 1.1)
    assert found is not None
    assert (found.cpu, found.run_queue) == pytest.approx((1.0, 0.2))


def test_processes_out_of_sight_are_not_counted_as_nothing() -> None:
    samples = {"pg_waits.backends": [Sample(0.0, b"10\n11\n")], "pg_waits.schedstat": []}
    assert WAITS.counted(samples, 1.0) is None


def test_the_period_grows_with_the_backends_so_that_the_cost_does_not(session: Callable[..., Any]) -> None:
    """Up to 25 backends are sampled 20 times a second; an observer never uses more than 1% of a core."""
    sources = get("pg_waits").sources(session(pids=(1,)), Tree())
    for backends in (1, 25, 200, 1000, 5000):
        read = [paced(source, backends) for source in sources]
        assert sum((one.cost_s + one.backend_cost_s * backends) / one.period_s for one in read) <= 0.0100001
        if backends <= 25:
            assert read[0].period_s == 0.05
    assert paced(sources[0], 1000).period_s == pytest.approx(1.025)


def test_a_source_whose_cost_is_not_known_keeps_its_period() -> None:
    assert paced(Source("cpu.stat", "file", "/proc/stat"), 5000).period_s == 1.0


def test_the_chains_of_lock_waits_are_summed() -> None:
    raw = [b"accounts\t2\tIO.WalSync\n\t1\tIO.WalSync\n", b"", b"accounts\t1\tidle\naccounts\t2\tCPU\n"]
    metrics = get("pg_blocking").parse({"pg_blocking.chains": [Sample(n, r) for n, r in enumerate(raw)]}, 5.0).metrics
    assert metrics == pytest.approx(
        {
            "lock_chain_length": 1.5,
            "lock_root_share{event=IO.WalSync}": 0.5,
            "lock_root_share{event=CPU}": 0.25,
            "lock_root_share{event=ended}": 0.25,
            "lock_table_share{table=accounts}": 0.75,
        }
    )


def test_connections_that_wait_for_the_work_of_others_are_not_called_the_clients_time() -> None:
    """Of 13 connections, 8 are clients; the other 5 wait for orders, like the market of a brokerage."""
    served = Histogram()
    for _ in range(800):
        served.record(100_000_000)  # 80 s in a window of 10 s: 8 transactions in progress, all reading
    lines = b"IO.DataFileRead\t8\nidle\t5\n"
    samples = {"pg_waits.activity": [(n * 0.05, lines) for n in range(200)]}
    driven = Driven("", True, summary={"elapsed_s": 10.0}, samples=samples, histograms={"service_time": served})

    def reading(load: Load, connections: int | None) -> float:
        return observed(driven, load, connections)[0].metrics["time_share{part=data read}"]

    assert reading(Load(clients=8), 13) == pytest.approx(1.0, abs=0.01)
    assert reading(Load(clients=13), 13) == pytest.approx(8 / 13)
    assert reading(Load(clients=8, think_time_s=1.0), 13) == pytest.approx(8 / 13), "who thinks is at work"
    curve = Curve("clients", "ramp:3-13/10s", ((0.0, 3.0), (10.0, 13.0)))
    assert reading(Load(clients=13, curve=curve), 13) == pytest.approx(1.0), "5 rest until the curve wants them"
