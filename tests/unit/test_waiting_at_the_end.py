"""Transactions still waiting at the end of a trial: whether the rate was sustained, and which statistics are
unknown."""

from __future__ import annotations

from typing import Any

import pytest
from factories import record

from ironbench.model.driven import Driven
from ironbench.model.note import note
from ironbench.model.record import CLIENTS_CUT_OFF, LOOP_DELAYED, RATE_NOT_KEPT
from ironbench.model.sample import sampled, too_few, unresolved
from ironbench.model.system import Load, System
from ironbench.records import judge, measures
from ironbench.study import target as targets
from ironbench.study.curve import metrics_of
from ironbench.trial.observe import Observation

SUMMARY = {
    **{"elapsed_s": 10.0, "transactions": 1000, "failed": 0, "errors": {}, "cut_short": False, "aborted": False},
    **{"due": 1000, "not_started": 0, "unfinished": 0, "longest_wait_s": 0.0},
}


class Times:
    """A histogram with one value."""

    def __init__(self, count: int, value_s: float) -> None:
        self.count, self.mean_s, self.max_s, self.stdev_s = count, value_s, value_s, 0.0
        self.value_s = value_s

    def quantiles(self, shares: list[float]) -> list[float]:
        return [self.value_s for _ in shares]


def codes(load: Load, histograms: dict[str, Any] | None = None, **more: Any) -> set[str]:
    driven = Driven("", True, summary=SUMMARY | more, histograms=histograms or {})
    found = judge.warnings(System("postgres", "a"), load, driven, Observation(), None, cycles=False)
    return {one.code for one in found}


OPEN = Load(rate=100.0, duration_s=10.0)


@pytest.mark.parametrize("arrivals", ["poisson", "fixed"])
def test_a_rate_is_kept_if_what_was_due_was_done_whatever_the_arrivals(arrivals: str) -> None:
    load = Load(rate=100.0, duration_s=10.0, arrivals=arrivals)
    dead = {"transactions": 846, "not_started": 144, "unfinished": 10, "longest_wait_s": 1.7}
    assert RATE_NOT_KEPT in codes(load, **dead)
    # By chance fewer transactions were scheduled than the rate implies.
    assert RATE_NOT_KEPT not in codes(load, due=930, transactions=930)
    assert RATE_NOT_KEPT in codes(load, due=1000, transactions=970, not_started=30, longest_wait_s=0.31)


def test_work_that_ends_before_the_duration_must_end_at_the_target_rate() -> None:
    load = Load(rate=100.0, duration_s=30.0)
    assert RATE_NOT_KEPT not in codes(load), "1,000 transactions in 10 s"
    assert RATE_NOT_KEPT in codes(load, elapsed_s=10.3)
    assert RATE_NOT_KEPT not in codes(load, elapsed_s=10.3, aborted=True)


def test_transactions_that_are_only_being_served_at_the_end_are_no_backlog() -> None:
    served = {"due": 20, "transactions": 19, "unfinished": 1}
    assert RATE_NOT_KEPT not in codes(OPEN, **served, longest_wait_s=0.2)
    assert RATE_NOT_KEPT in codes(OPEN, **served, longest_wait_s=0.21)


def test_clients_cut_off_for_more_than_a_hundredth_of_the_clients_time_are_flagged() -> None:
    load = Load(clients=2)
    assert CLIENTS_CUT_OFF in codes(load, cut_off=2, cut_off_s=0.201, longest_wait_s=0.15, unfinished=2)
    assert CLIENTS_CUT_OFF not in codes(load, cut_off=2, cut_off_s=0.2, longest_wait_s=0.15, unfinished=2)
    assert CLIENTS_CUT_OFF not in codes(load, unfinished=2, unfinished_s=5.0)


def test_the_loops_own_delay_is_recorded_and_flagged_where_it_is_much_of_the_service_time() -> None:
    histograms = {
        "service_time": Times(1000, 0.001),
        "loop_delay": Times(500, 0.0005),
        "replies_per_wait": Times(500, 4e-9),
    }
    driven = Driven("", True, summary=SUMMARY | {"loop_wait_s": 0.2}, histograms=histograms)  # type: ignore[arg-type]
    found = measures.metrics(driven)
    assert found["loop_delay_share"] == pytest.approx(0.2)
    assert (found["loop_delay_p99_s"], found["replies_per_wait_mean"]) == pytest.approx((0.0005, 4.0))
    assert LOOP_DELAYED not in codes(Load(), histograms, loop_wait_s=0.25)
    assert LOOP_DELAYED in codes(Load(), histograms, loop_wait_s=0.26)
    assert LOOP_DELAYED in codes(Load(), histograms, receive_rearms=11)
    assert LOOP_DELAYED not in codes(Load(), histograms, receive_rearms=10)


def ended(censored: float, **more: float) -> Any:
    times = {f"response_time_{name}_s": 0.01 for name in ("p50", "p99", "p999", "mean", "max")}
    return record(throughput=1000.0, metrics=times | {"longest_wait_s": 0.1, "censored": censored} | more)


def test_a_statistic_is_shown_only_where_transactions_that_never_ended_cannot_change_it() -> None:
    shown = ended(0.0)
    assert all(sampled(shown, name) for name in shown.metrics)
    transactions = shown.metrics["transactions"]
    # A share of 0.4% is less than half of the tail of a 99th percentile.
    some = ended(0.004 * transactions)
    assert sampled(some, "response_time_p50_s") and sampled(some, "response_time_p99_s")
    for name in ("response_time_p999_s", "response_time_mean_s", "response_time_max_s"):
        assert unresolved(some, name) and not sampled(some, name)
        assert name not in metrics_of([some], [name])
    many = ended(0.006 * transactions)
    assert not sampled(many, "response_time_p99_s") and sampled(many, "throughput")
    assert note("percentiles-unresolved", units="transactions") in too_few([many], "transactions")
    assert "percentiles-unresolved" not in [one.code for one in too_few([shown], "transactions")]


def test_records_from_before_the_drain_count_all_that_waited_in_an_open_loop() -> None:
    old = record(throughput=1000.0, metrics={"response_time_p99_s": 0.01, "not_started": 600.0, "unfinished": 8.0})
    assert old.metrics["transactions"] == 30_000 and not sampled(old, "response_time_p99_s")
    closed = record(throughput=1000.0, metrics={"response_time_p99_s": 0.01, "unfinished": 900.0})
    assert sampled(closed, "response_time_p99_s")


def test_no_target_is_met_by_a_percentile_that_waiting_transactions_could_change() -> None:
    target = targets.parse("p99 < 100ms at 900 tps")

    def trials(censored: float) -> list[Any]:
        from dataclasses import replace

        one = ended(censored)
        load = replace(one.cell.load, rate=1000.0)
        return [replace(one, id=str(n), cell=replace(one.cell, load=load)) for n in range(3)]

    assert targets.attained("a", trials(0.0), target).meets
    missed = targets.attained("a", trials(3000.0), target)
    assert not missed.meets and missed.best is None
