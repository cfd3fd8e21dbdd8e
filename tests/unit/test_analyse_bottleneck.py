"""The breakdown of time comes with confidence intervals, and no limit is named that the data do not show."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from factories import codes, record

from ironbench import workloads
from ironbench.model.lab import Configuration
from ironbench.model.note import Note, note
from ironbench.model.observer import CONCURRENCY, OTHER_PROGRAMS, SERVER_CPU
from ironbench.model.record import RATE_NOT_KEPT, Budget, Status
from ironbench.model.system import Choice, Load
from ironbench.report.wording.answers.zero_latency import limit_sentence
from ironbench.stats.intervals import wilson
from ironbench.study.bottleneck import total, where_time_goes
from ironbench.study.shares import waterfall


def spent(clients: int = 8, samples: float = 1000, load: Load | None = None, **shares: float) -> Any:
    named = {name.replace("_", " "): share for name, share in shares.items()}
    metrics = {f"time_share{{part={name}}}": share for name, share in named.items()}
    metrics |= {f"time_samples{{part={name}}}": samples for name in named if name not in ("CPU", "run queue")}
    metrics["service_time_mean_s"] = 0.004
    return record(clients=clients, metrics=metrics, load=load)


@pytest.mark.parametrize(
    ("share", "n", "low", "high"),
    # Newcombe, Statistics in Medicine 17 (1998), 857–872, table I, method 3: 81/263, 15/148, 0/20, 1/29.
    [
        (81 / 263, 263, 0.2553, 0.3662),
        (15 / 148, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1 / 29, 29, 0.0061, 0.1718),
    ],
)
def test_the_score_interval_is_the_published_one(share: float, n: float, low: float, high: float) -> None:
    assert wilson(share, n) == pytest.approx((low, high), abs=5e-5)


def test_without_observations_anything_is_possible() -> None:
    assert wilson(0.5, 0) == (0.0, 1.0)


def test_parts_are_shares_of_the_time_of_a_transaction() -> None:
    found = where_time_goes([spent(CPU=0.25, log_flush=0.7, client=0.05)])
    assert found is not None
    assert found.total_s == pytest.approx(8 / 1000)
    assert {part.name: part.time_s for part in found.parts} == pytest.approx(
        {"CPU": 0.002, "log flush": 0.0056, "client": 0.0004}
    )
    assert found.limit.resource == "wal"
    assert found.limit.gain is not None and found.limit.gain.low < 1 / 0.3 < found.limit.gain.high
    assert (found.limit.note.code, found.limit.note.values["share"]) == ("limit", pytest.approx(0.7))


def test_what_is_counted_has_no_sampling_error_and_what_is_sampled_has() -> None:
    found = where_time_goes([spent(CPU=0.25, log_flush=0.75, samples=100)])
    assert found is not None
    cpu, log = found.parts
    assert (cpu.low, cpu.high) == (0.25, 0.25)
    assert (log.low, log.high) == pytest.approx(wilson(0.75, 100))


def test_trials_that_differ_widen_the_interval() -> None:
    one = where_time_goes([spent(log_flush=share, CPU=1 - share, samples=10_000) for share in (0.5, 0.5, 0.5)])
    two = where_time_goes([spent(log_flush=share, CPU=1 - share, samples=10_000) for share in (0.3, 0.5, 0.7)])
    assert one is not None and two is not None
    assert two.parts[1].high - two.parts[1].low > 5 * (one.parts[1].high - one.parts[1].low)


@pytest.mark.parametrize(
    "shares",
    [
        {"CPU": 0.45, "log_flush": 0.42, "client": 0.13},
        {"CPU": 0.3, "log_flush": 0.3, "client": 0.2, "data_read": 0.2},
        {"log_flush": 0.45, "other": 0.5, "CPU": 0.05},
    ],
    ids=["two alike", "none large", "most unknown"],
)
def test_no_limit_is_named_that_the_data_do_not_show(shares: dict[str, float]) -> None:
    found = where_time_goes([spent(samples=50, **shares)])
    assert found is not None
    assert found.limit.resource == ""
    assert found.limit.note.code == "limit-unknown"


def test_cpu_and_run_queue_are_one_resource_told_apart_in_words() -> None:
    ours = Budget(server=0.8, client=0.15, other=0.03, idle=0.02)
    waiting = where_time_goes([replace(spent(CPU=0.1, run_queue=0.7, client=0.2), budget=ours)])
    computing = where_time_goes([spent(CPU=0.7, run_queue=0.1, client=0.2)])
    assert waiting is not None and computing is not None
    assert waiting.limit.resource == computing.limit.resource == SERVER_CPU
    assert waiting.limit.note.values["evidence"][0].values["more_cores"]
    assert codes(computing.limit.note) == ["limit", "cpu-computing"]


def test_a_rate_that_the_judge_calls_kept_is_limited_by_nothing() -> None:
    kept = where_time_goes([spent(CPU=0.9, client=0.1, load=Load(rate=1000.0))])
    late = Note(RATE_NOT_KEPT, {"text": "fewer were finished"})
    missed = where_time_goes([replace(spent(CPU=0.9, client=0.1, load=Load(rate=1000.0)), warnings=(late,))])
    assert kept is not None and missed is not None
    assert kept.limit.resource == "" and kept.limit.note.code == "limit-none"
    assert kept.total_s == 0.004
    assert missed.limit.resource == SERVER_CPU


@pytest.mark.parametrize(
    ("event", "does"),
    [
        ("IO.WalSync", "flushes the WAL"),
        ("IO.WALSync", "flushes the WAL"),
        ("IO.WalWrite", "writes the WAL"),
        ("IO.WALWrite", "writes the WAL"),
        ("LWLock.WALWrite", "waits for a WAL flush"),
    ],
)
def test_the_root_of_the_chain_is_named(event: str, does: str) -> None:
    """PostgreSQL 16 spells some events differently from 18."""
    one = spent(locks=0.8, CPU=0.2)
    one.metrics.update(
        {
            f"lock_root_share{{event={event}}}": 0.9,
            "lock_root_share{event=CPU}": 0.1,
            "lock_table_share{table=accounts}": 0.95,
        }
    )
    found = where_time_goes([one])
    assert found is not None
    table, root = found.limit.note.values["evidence"]
    assert table == note("locks-of-table", table="accounts")
    assert root == note("locks-root", event=event, does=does, share=0.9)


def test_trials_that_cannot_be_compared_do_not_count() -> None:
    assert where_time_goes([record(status=Status.VOIDED, metrics={"time_share{part=CPU}": 1.0})]) is None
    assert where_time_goes([record()]) is None, "backends were not observed"


def test_cores_that_other_programs_take_are_not_the_servers_limit() -> None:
    noisy = replace(spent(CPU=0.1, run_queue=0.6, client=0.3), budget=Budget(server=0.2, client=0.1, other=0.7, idle=0))
    found = where_time_goes([noisy])
    assert found is not None
    assert (found.limit.resource, found.limit.share, found.limit.taken) == (OTHER_PROGRAMS, 0.6, 0.7)


@pytest.mark.parametrize("budget", [Budget(server=0.14, client=0.1, other=0.72, idle=0.04), Budget(steal=0.9, idle=0)])
def test_waiting_for_a_core_that_others_hold_is_no_time_of_the_servers_cpu(budget: Budget) -> None:
    """Including the wait, CPU would have 51%, so close to the client's share that neither could be named."""
    trials = [spent(CPU=0.084, run_queue=0.42 + d, client=0.316 - d, log_flush=0.18) for d in (-0.01, 0.0, 0.01)]
    found = where_time_goes([replace(one, budget=budget) for one in trials])
    ours = where_time_goes([replace(one, budget=Budget(server=0.8, client=0.15, idle=0.05)) for one in trials])
    assert found is not None and ours is not None
    assert found.limit.resource == OTHER_PROGRAMS
    assert (found.limit.share, found.limit.taken) == pytest.approx((0.42, budget.taken))
    assert (ours.limit.share, ours.limit.taken) == (pytest.approx(0.504), 0.0)


def test_the_servers_cpu_is_the_limit_where_it_computes_most_of_the_time_beside_other_programs() -> None:
    beside = Budget(server=0.3, client=0.05, other=0.6, idle=0.05)
    found = where_time_goes([replace(spent(CPU=0.7, run_queue=0.2, client=0.1), budget=beside)])
    assert found is not None and found.limit.gain is not None
    assert (found.limit.resource, found.limit.share) == (SERVER_CPU, pytest.approx(0.7))
    assert found.limit.gain.low == pytest.approx(1 / 0.3)


def test_computing_and_waiting_for_a_core_are_named_apart_where_no_limit_can_be_named() -> None:
    found = where_time_goes([spent(CPU=0.1, run_queue=0.4, client=0.48, log_flush=0.02, samples=50)])
    assert found is not None and found.limit.resource == ""
    cpu = next(one for one in found.limit.note.values["rivals"] if "computing" in one.values)
    assert (cpu.values["computing"], cpu.values["waiting"]) == pytest.approx((0.1, 0.4))


def test_more_cores_are_advised_only_where_the_cpu_was_ours() -> None:
    shared = Budget(server=0.45, client=0.12, other=0.39, steal=0.02, idle=0.0, kernel=0.02)
    found = where_time_goes([replace(spent(CPU=0.1, run_queue=0.7, client=0.2), budget=shared)])
    unmeasured = where_time_goes([spent(CPU=0.1, run_queue=0.7, client=0.2)])
    assert found is not None and unmeasured is not None
    taken, unknown = (one.limit.note.values["evidence"][0] for one in (found, unmeasured))
    assert not taken.values["more_cores"] and not unknown.values["more_cores"]
    assert taken.values["cpu"][:2] == (("server", 0.45), ("other", 0.39))


def test_a_trial_that_lost_its_counts_of_the_run_queue_is_left_out_and_named() -> None:
    whole = [spent(CPU=0.2, run_queue=0.6, client=0.2) for _ in range(2)]
    lost = replace(spent(CPU=0.8, client=0.2), id="the-lost-one")
    lost.metrics["time_samples{part=CPU}"] = 900.0
    found = where_time_goes([*whole, lost])
    assert found is not None
    assert (found.trials, found.share("CPU"), found.share("run queue")) == (2, pytest.approx(0.2), pytest.approx(0.6))
    assert note("waits-not-counted", trials=("the-lost-one",)) in found.warnings
    others = [replace(lost, block=1), *(replace(one, block=1) for one in whole)]
    times = waterfall((Configuration("a"), [*whole, lost]), (Configuration("b"), others), in_blocks=False)
    assert times is not None and not any(step.delta_s for step in times.steps)


def test_computing_and_waiting_that_were_not_told_apart_are_not_called_computing() -> None:
    sampled = spent(CPU=0.8, client=0.2)
    sampled.metrics["time_samples{part=CPU}"] = 900.0
    found = where_time_goes([sampled])
    assert found is not None
    assert codes(found.limit.note) == ["limit", "cpu-or-run-queue"]


def test_the_estimate_covers_the_interval_of_the_share_and_the_waits_that_the_part_may_cause() -> None:
    few = where_time_goes([spent(CPU=0.35, log_flush=0.65, samples=12)])
    assert few is not None and few.limit.gain is not None
    low, high = wilson(0.65, 12)
    assert (few.limit.gain.low, few.limit.gain.high) == pytest.approx((1 / (1 - low), 1 / (1 - high)))

    parts = {"log_flush": 0.5, "locks": 0.2, "run_queue": 0.1, "internal_locks": 0.02, "CPU": 0.18}
    caused = where_time_goes([spent(samples=1e9, **parts)])
    assert caused is not None and caused.limit.gain is not None
    assert caused.limit.resource == "wal"
    assert (caused.limit.gain.low, caused.limit.gain.high) == pytest.approx((2.0, 1 / 0.18), rel=1e-3)


def test_without_other_time_the_estimate_has_no_upper_end() -> None:
    found = where_time_goes([spent(locks=0.1, log_flush=0.9, samples=1e9)])
    assert found is not None and found.limit.gain is not None and math.isinf(found.limit.gain.high)
    assert limit_sentence(found).endswith("at least 10x the throughput.")


def test_the_estimate_is_not_above_the_gain_at_which_all_cores_are_busy() -> None:
    waits = spent(client=0.95, CPU=0.05, samples=1e9)
    busy = where_time_goes([replace(waits, budget=Budget(server=0.4, client=0.3, idle=0.3))])
    assert busy is not None and busy.limit.gain is not None
    assert (busy.limit.resource, busy.limit.gain.low, busy.limit.gain.high) == ("client", 1.0, 2.5)
    flush = replace(spent(log_flush=0.8, CPU=0.2, samples=1e9), budget=Budget(server=0.4, client=0.1, idle=0.5))
    found = where_time_goes([flush])
    assert found is not None and found.limit.gain is not None
    assert (found.limit.resource, found.limit.gain.high) == ("wal", 2.0)


def test_the_cpu_time_of_other_programs_limits_the_estimated_gain() -> None:
    taken = Budget(server=0.14, client=0.02, other=0.82, idle=0.02)
    found = where_time_goes([replace(spent(client=0.98, CPU=0.02, samples=1e9), budget=taken)])
    assert found is not None and found.limit.gain is not None
    assert (found.limit.resource, found.limit.gain.high) == ("client", pytest.approx(0.18 / 0.14))
    busy = where_time_goes(
        [replace(spent(locks=0.98, CPU=0.02, samples=1e9), budget=Budget(server=0.9, client=0.1, idle=0))]
    )
    assert busy is not None
    assert limit_sentence(busy).endswith("the throughput is the same, because all cores are busy.")


def test_computing_with_idle_cores_and_no_wait_for_one_is_a_lack_of_clients() -> None:
    idle = Budget(server=0.015, client=0.005, other=0.01, idle=0.97)
    one = where_time_goes([replace(spent(clients=1, CPU=0.97, client=0.03), budget=idle)])
    assert one is not None and one.limit.gain is not None
    assert one.limit.resource == CONCURRENCY
    assert one.limit.gain.high == pytest.approx(1 / 0.03)
    assert (one.limit.note.code, one.limit.note.values["clients"]) == ("limit-clients", 1)


@pytest.mark.parametrize("case", ["busy", "queue", "pinned", "unmeasured", "out of sight"])
def test_concurrency_is_named_only_where_the_server_could_have_used_the_idle_cores(case: str) -> None:
    idle = Budget(server=0.3, client=0.1, idle=0.6)
    one = replace(spent(CPU=0.9, client=0.1), budget=idle)
    if case == "busy":
        one = replace(one, budget=Budget(server=0.75, client=0.15, idle=0.1))
    elif case == "queue":
        one = replace(spent(CPU=0.6, run_queue=0.3, client=0.1), budget=idle)
    elif case == "pinned":
        one = replace(one, system=replace(one.system, server_cpus=(0,)))
    elif case == "unmeasured":
        one = replace(one, budget=Budget())
    else:
        one.metrics["time_samples{part=CPU}"] = 900.0
    found = where_time_goes([one])
    assert found is not None and found.limit.resource == SERVER_CPU


def test_no_verdict_about_cpu_from_trials_whose_cpu_the_client_took() -> None:
    crowded = replace(spent(CPU=0.9, client=0.1), warnings=(Note("own-cpu-share", {"text": "the client used 40 %"}),))
    found = where_time_goes([crowded])
    assert found is not None
    assert found.limit.resource == ""
    assert found.limit.note.code == "limit-unknown-own-cpu"


@pytest.mark.parametrize(("think_time_s", "seconds"), [(0.0, 0.015), (1.0, 17 / 1000)])
def test_the_time_of_a_transaction_is_that_of_all_who_work_and_not_of_the_clients_alone(
    think_time_s: float, seconds: float
) -> None:
    """The market of a brokerage uses nine connections beside its eight clients."""
    choice = Choice("brokerage", workloads.get("brokerage").validated({}))
    assert workloads.get("brokerage").connections(8, {}) == 17
    one = record(choice=choice, metrics={"service_time_mean_s": 0.015}, load=Load(think_time_s=think_time_s))
    assert total(one) == pytest.approx(seconds)
