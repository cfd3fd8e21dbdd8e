"""A trial in parts: how it is split, how clocks are compared, and how results are merged, without Ray."""

from __future__ import annotations

import math
import random
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from factories import DISK, Shelf, record
from hypothesis import given
from hypothesis import strategies as st

from ironbench import _core, workloads
from ironbench.errors import FailureError, InputError
from ironbench.model.curve import Curve
from ironbench.model.driven import Driven
from ironbench.model.note import note
from ironbench.model.system import Load
from ironbench.model.workers import WorkerPart
from ironbench.printer import Printer
from ironbench.records import judge
from ironbench.study.workers import by_worker
from ironbench.trial.cluster import clocks, loading, merge, parts, worker_pool
from ironbench.trial.cluster.clocks import ClockReading
from ironbench.trial.cluster.control import Control
from ironbench.trial.cluster.merge import WorkerResult
from ironbench.trial.cluster.worker import core_digest
from ironbench.trial.cluster.worker_pool import WorkerPool
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.workloads import ScriptSource
from ironbench.workloads.brokerage import market_clients
from ironbench.workloads.brokerage.transactions import ISOLATION

SCRIPT = ScriptSource("s", "\\set a random(1, 1000000)\nSELECT :a, :client_id;\n", 1)
NULL = {"kind": "null", "service_ns": 0}


def plan(load: Load) -> bytes:
    return compiled_plan(NULL, Tasks([SCRIPT]), load, ())


@given(st.integers(1, 300), st.integers(1, 40))
def test_every_client_and_all_of_the_rate_are_in_one_part(clients: int, workers: int) -> None:
    workers = min(clients, workers)
    cut = [msgspec.json.decode(one) for one in parts.cut(plan(Load(clients=clients, rate=900.0)), workers)]
    assert sum(one["clients"] for one in cut) == clients
    assert math.isclose(sum(one["schedule"]["rate"] for one in cut), 900.0)
    firsts = [one["part"]["first_client"] for one in cut]
    assert firsts == [sum(one["clients"] for one in cut[:number]) for number in range(workers)]
    assert len({one["threads"] for one in cut}) == 1


def test_more_workers_than_clients_are_refused() -> None:
    with pytest.raises(InputError, match="3 workers cannot share 2 clients"):
        parts.require(Load(clients=2, workers=3))


def test_a_curve_and_workers_are_refused_with_both_ways_out() -> None:
    with pytest.raises(InputError, match="--rate: follows a curve") as caught:
        parts.require(Load(clients=4, workers=2, curve=Curve("rate", "1..9", ((0.0, 1.0), (5.0, 9.0)))))
    assert caught.value.hint == "remove --workers, or set --rate to one number"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.1.1", "::1", "/run/postgresql"])
def test_an_address_that_is_another_server_on_another_machine_is_refused(host: str) -> None:
    known = dict(parts.server({"kind": "postgres", "connection": {"host": host, "port": 5432, "password": "geheim"}}))
    parts.require_common(known, [])
    with pytest.raises(InputError, match="db2 is a different machine") as caught:
        parts.require_common(known, ["db2"])
    assert "that every machine can reach" in caught.value.hint
    parts.require_common(known | {"host": "192.0.2.7"}, ["db2"])
    assert "geheim" not in str(known) and parts.server(NULL) == ()


def test_a_clock_is_known_to_within_half_of_the_quickest_round_trip() -> None:
    """20 ms each way with queues in both directions, and a clock that is 5 s ahead, as in issue 23."""
    dice, ahead_ns = random.Random(1), 5_000_000_000

    def answer(at_ns: int) -> ClockReading:
        there, back = (20_000_000 + int(dice.expovariate(1 / 3e6)) for _ in range(2))
        return ClockReading(at_ns, at_ns + there + ahead_ns, at_ns + there + back)

    for _ in range(100):
        found = clocks.offset(answer(number * 10**8) for number in range(16))
        assert abs(found.ns - ahead_ns) <= min(found.error_ns, 2_000_000)
        assert clocks.begin_ns(7, [found]) > 7 + 40_000_000


def driven(load: Load, workers: int) -> list[bytes]:
    """Returns the parts of a trial, one after the other, which the null engine allows."""
    return [driven_part(one) for one in parts.cut(plan(load), workers)]


def driven_part(one: bytes) -> bytes:
    progress = _core.Progress()
    progress.begin_at(1)
    return _core.drive(one, progress).to_bytes()


def result(number: int, data: bytes, offset_ns: int = 0, **said: Any) -> WorkerResult:
    known = {"host": f"m{number}", "here": False, "machine": {}, **said}
    stat = {"began": "cpu 0 0 0 0\nctxt 1\n", "ended": "cpu 95 0 0 5\nctxt 2\n"}
    return WorkerResult(number, known, {"offset_ns": offset_ns, "error_ns": 300_000, "same": False}, stat, data)


def test_parts_together_are_one_trial_of_all_clients() -> None:
    load = Load(clients=5, duration_s=None, transactions=200, workers=3)
    results = driven(load, 3)
    found = merge.driven([result(n, one) for n, one in enumerate(results)], load, {"samples": {}}, 0, "")
    whole = found.summary
    assert whole["transactions"] == whole["scripts"][0]["transactions"] == 1000
    assert whole["clients"] == 5 and whole["threads"] == 3
    assert found.histograms["response_time"].count == 1000
    assert [one.clients for one in found.workers] == [1, 2, 2]
    assert sum(one.transactions for one in found.workers) == 1000
    assert found.workers[0].machine_cpu_share == pytest.approx(0.95)
    assert found.metrics["workers"] == 3 and found.metrics["worker_clock_error_s"] == pytest.approx(3e-4)
    assert whole["client_cpu_here_s"] == 0.0


def test_buckets_of_parts_add_up_and_percentiles_are_of_all() -> None:
    load = Load(clients=4, duration_s=1.0, workers=2)
    results = driven(load, 2)
    sums: dict[float, int] = {}
    for one in results:
        for low, _, count in _core.DriveResult.from_bytes(one).histograms["response_time"].buckets():
            sums[low] = sums.get(low, 0) + count
    whole = _core.DriveResult.merged(results)
    assert {low: count for low, _, count in whole.histograms["response_time"].buckets()} == sums


def test_workers_of_a_brokerage_have_a_market_each_and_every_client_has_a_connection() -> None:
    brokerage = workloads.get("brokerage")
    options = brokerage.validated({"price_period": "1", "maintenance": "0.5"})
    assert brokerage.in_parts("postgres", options)
    load = Load(clients=5, duration_s=1.5, think_time_s=0.002, workers=3, max_tries=2)
    dataset = brokerage.dataset("postgres", options)
    assert dataset is not None
    jobs = {
        **{"kind": "brokerage", "data": dataset.generator, "market_clients": market_clients(load.clients)},
        **{"no_data": True, "price_period_s": 1.0, "maintenance_s": 0.5},
    }
    scripts = [ScriptSource(name, "SELECT 1;\n") for name in ISOLATION]
    whole = compiled_plan(NULL, Tasks(scripts, brokerage.variables(options), jobs=jobs), load, ())
    with ThreadPoolExecutor(load.workers) as threads:
        results = list(threads.map(driven_part, parts.cut(whole, load.workers)))
    summary = msgspec.json.decode(_core.DriveResult.merged(results).summary)
    done = {script["name"]: script["completed"] for script in summary["scripts"]}
    assert summary["clients"] + summary["waiting_clients"] == brokerage.connections(load.clients, options)
    assert done["trade_result"] > 0 and done["data_maintenance"] == 3, done
    figures, taken_back = summary["figures"], summary["scripts"][4]["rolled_back_in_all"]
    under_way = figures["market_pending_trades"] + figures["market_waiting_limits"]
    assert under_way == done["trade_order"] - taken_back - done["trade_result"]


def test_a_start_is_placed_by_our_clock() -> None:
    load = Load(clients=2, duration_s=None, transactions=5, workers=2)
    early, late = driven(load, 2)
    ahead_ns = 5_000_000_000
    apart_s = [
        msgspec.json.decode(_core.DriveResult.from_bytes(one).summary)["started_unix_s"] for one in (early, late)
    ]
    offset_ns = int((apart_s[1] - apart_s[0]) * 1e9) - 2_000_000  # 2 ms of this are not the clock's
    found = merge.driven([result(0, early), result(1, late, offset_ns)], load, {"samples": {}}, 0, "")
    assert found.metrics["start_spread_s"] == pytest.approx(0.002, abs=1e-5)
    assert ahead_ns


def test_what_a_client_draws_does_not_depend_on_the_number_of_workers() -> None:
    """Scripts chosen by all clients, each with its own stream of random numbers."""
    scripts = [ScriptSource(name, f"SELECT '{name}';\n", weight) for name, weight in (("a", 1), ("b", 2), ("c", 5))]
    load = Load(clients=6, duration_s=None, transactions=101, seed=7)
    whole = compiled_plan(NULL, Tasks(scripts), load, ())

    def chosen(workers: int) -> list[int]:
        each = []
        for one in parts.cut(whole, workers):
            progress = _core.Progress()
            progress.begin_at(1)
            each.append(msgspec.json.decode(_core.drive(one, progress).summary)["scripts"])
        return [sum(script["transactions"] for script in same) for same in zip(*each, strict=True)]

    alone = msgspec.json.decode(_core.drive(whole).summary)["scripts"]
    assert chosen(1) == chosen(3) == chosen(6) == [script["transactions"] for script in alone]


def test_a_lost_worker_voids_the_trial_and_keeps_what_the_others_did() -> None:
    load = Load(clients=2, duration_s=None, transactions=50, workers=2)
    (first, _) = driven(load, 2)
    found = merge.driven([result(0, first)], load, {"samples": {}}, 0, "worker 2 on m1 was lost")
    assert judge.status(found, ()) == (
        judge.Status.VOIDED,
        (note("aborted", error="worker 2 on m1 was lost", last_words=""),),
    )
    assert found.summary["transactions"] == 50


def test_seconds_of_workers_pool_their_variance() -> None:
    assert merge.second([(1.0, 2, 0, 1.0, 0.0, 2), (1.0, 2, 1, 3.0, 0.0, 1)]) == (1.0, 4, 1, 2.0, 1.0, 3)
    nothing = merge.second([(1.0, 0, 0, math.nan, math.nan, 0)])
    assert nothing[:3] == (1.0, 0, 0) and math.isnan(nothing[3])


def test_a_worker_that_is_the_limit_is_named() -> None:
    worker = WorkerPart(2, "beta", 4, 100, 0, 2.0, threads_cpu_share=0.97)
    idle = WorkerPart(1, "alpha", 4, 100, 0, 2.0, threads_cpu_share=0.2)
    summary = {"elapsed_s": 2.0, "transactions": 200, "failed": 0, "errors": {}, "io": "null"}
    found = Driven("now", alive=True, summary=summary, workers=(idle, worker))
    (warning,) = judge._client(Load(workers=2, clients=8), found)
    assert warning.code == "client-saturated" and warning.values["workers"] == ("2 (beta)",)
    assert warning.values["busy"] == pytest.approx(0.97)
    assert not judge._client(Load(workers=2, clients=8), Driven("now", True, summary=summary, workers=(idle,)))


def test_the_report_shows_the_worst_of_each_worker_and_the_mean_of_its_throughput() -> None:
    records = [record(DISK, 4, 100.0, block=number) for number in range(2)]
    one, two = (
        WorkerPart(1, "m", 4, count, 0, 2.0, share, response_time_p99_s=p99)
        for count, share, p99 in ((100, 0.1, 0.5), (300, 0.3, 0.2))
    )
    archive = Shelf(worker_parts={records[0].id: (one,), records[1].id: (two,)})
    ((share,),) = [found.shares for found in by_worker([("a", records)], archive)]
    assert (share.throughput, share.p99_s, share.threads_cpu_share) == (100.0, 0.5, 0.3)


@given(st.integers(-10_000, 10_000), st.integers(0, 2_000), st.integers(0, 2_000))
def test_a_clock_that_is_set_during_the_start_is_told_from_one_that_is_not(jump_ms: int, there: int, back: int) -> None:
    """Two clocks and a message that takes its time; a jump of less than 0.1 s may go undetected."""
    sent, begin = 7, 7 + 30_000_000
    at = sent + there * 10_000
    wait = begin - at - jump_ms * 1_000_000
    found = clocks.jump(sent, at + back * 10_000, begin, wait)
    if abs(jump_ms) * 1_000_000 <= clocks.STEADY_NS:
        assert found == 0
    if abs(jump_ms) * 1_000_000 > clocks.STEADY_NS + (there + back) * 10_000:
        assert found and (found > 0) == (jump_ms > 0)


def test_connections_of_a_load_are_those_of_the_cpus_that_workers_share() -> None:
    here, there = {"boot": "a", "cpus": 8}, {"boot": "b", "cpus": 64}
    assert loading.connections([here, here, there]) == [4, 4, 16]
    assert loading.connections([{"boot": "a", "cpus": 1}] * 3) == [1, 1, 1]


def test_a_worker_of_another_build_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {"version": _core.VERSION, "build": _core.BUILD_PROFILE, "core": core_digest(), "boot": "b", "host": "m2"}
    control = object.__new__(Control)
    control._child = SimpleNamespace(pid=1)  # type: ignore[assignment]
    for change in ({"version": "0.0.1"}, {"core": "f00"}, {"build": "debug"}):
        monkeypatch.setattr(Control, "request", lambda *_, said=ours | change: {"workers": [said]})
        with pytest.raises(InputError, match=r"m2 runs another build of ironbench"):
            control.start_workers(1)
    monkeypatch.setattr(Control, "request", lambda *_: {"workers": [dict(ours)]})
    control.start_workers(1)


def test_a_trial_of_which_no_worker_is_left_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = SimpleNamespace(workers=[{}], driven=lambda *_: ([], "worker 1 on m was lost"), close=lambda: None)
    monkeypatch.setattr(WorkerPool, "_ready", lambda *_: alone)
    monkeypatch.setattr(WorkerPool, "_require_reached", lambda *_: None)
    monkeypatch.setattr(worker_pool, "sampler", lambda *_: None)
    load = Load(clients=2, workers=1)
    with pytest.raises(FailureError, match="worker 1 on m was lost"):
        WorkerPool(Printer.silent()).drive(plan(load), load, _core.Progress())
