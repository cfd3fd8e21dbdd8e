"""The gain of an idealised part is stated in the finding's figures, and no verdict goes beyond the finding's."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from factories import record

from ironbench.model.finding import Conclusion, Finding
from ironbench.model.lab import Configuration, Lab, Method, Stage
from ironbench.model.note import note
from ironbench.model.observer import WAIT_CLASSES
from ironbench.model.record import Budget, Record, Status
from ironbench.model.system import Cell, Choice, Device, Layout, Load, Partition, Setup, System
from ironbench.report.charts.waterfall import chart
from ironbench.report.wording.answers.zero_latency import ceiling_sentence, limit_sentence, unexplained
from ironbench.study.bottleneck import TimeSpent, where_time_goes
from ironbench.study.ceiling import Baseline, PartVerdict, baseline_of, ceiling, ceilings, measured_limit
from ironbench.study.shares import waterfall
from ironbench.study.verdict import judged, of_blocks

METHOD = Method((Stage(1, 8),), seed=1)
DISK, MEMORY = Configuration("disk"), Configuration("memory")
WOBBLE = (1.0, 1.004, 0.997, 1.006, 0.995, 1.001, 1.002, 0.998)


def measured(speedup: float, metric: str = "throughput", **fields: object) -> Finding:
    pairs = [(block, 100.0 * speedup * wobble, 100.0) for block, wobble in enumerate(WOBBLE)]
    return replace(judged(of_blocks(metric, "ideal=log", "ideal=none", pairs), METHOD), **fields)  # type: ignore[arg-type]


def spent(total_s: float = 0.008, **shares: float) -> TimeSpent:
    named = {f"time_share{{part={name.replace('_', ' ')}}}": share for name, share in shares.items()}
    found = where_time_goes([record(metrics=named)])
    assert found is not None
    return replace(found, cell="ideal=none", total_s=total_s)


def test_a_part_that_costs_little_is_not_the_bottleneck() -> None:
    found = ceiling(measured(1.03), ["log"])
    assert (found.verdict, found.is_bottleneck) == (PartVerdict.UNAFFECTED, False)
    assert "3% higher (95% CI 2.7% to 3.4%, 8 paired repeats)" in ceiling_sentence(found)


def test_a_part_that_costs_much_holds_it_back() -> None:
    found = ceiling(measured(2.4), ["log"])
    assert (found.verdict, found.is_bottleneck) == (PartVerdict.BOTTLENECK, True)


def test_a_metric_that_should_fall_is_turned_round() -> None:
    found = ceiling(measured(0.5, "response_time_p99_s"), ["data"])
    assert found.speedup == pytest.approx(2.0, rel=0.01)
    assert found.low <= found.speedup <= found.high
    assert found.is_bottleneck is True


def test_without_a_conclusion_there_is_no_verdict() -> None:
    unsure = measured(2.4, conclusion=Conclusion.CANNOT_TELL, advice=note("least-blocks", least=6))
    found = ceiling(unsure, ["log"])
    assert (found.verdict, found.is_bottleneck) == (PartVerdict.INCONCLUSIVE, None)
    assert "at least 6 complete blocks" in ceiling_sentence(found)


def test_a_gain_on_both_sides_of_the_margin_is_not_judged() -> None:
    found = ceiling(measured(1.05, low=1.02, high=1.08, conclusion=Conclusion.FASTER), ["temp"])
    assert (found.verdict, found.is_bottleneck) == (PartVerdict.SMALL, None)


def test_without_a_block_nothing_was_measured() -> None:
    empty = judged(of_blocks("throughput", "ideal=log", "ideal=none", []), METHOD)
    found = ceiling(empty, ["log"])
    assert math.isnan(found.speedup) and found.verdict is PartVerdict.NOT_MEASURED
    assert ceiling_sentence(found) and not unexplained(found)


def test_a_part_is_a_cause_only_if_its_own_time_was_seen_in_the_baseline() -> None:
    """There were no temporary files, and the page cache served the reads: neither is named, though both were
    idealised."""
    known = Baseline(spent(log_flush=0.06, data_read=0.03, CPU=0.91), reads=0.004, reads_s=1e-6)
    found = ceiling(measured(1.36), ["data", "log", "temp"], known)
    assert (found.seen, found.is_bottleneck, found.cached_reads) == (("log",), True, 0.004)
    assert found.predicted == known.spent.gain(["log flush"])  # type: ignore[union-attr]
    nothing = ceiling(measured(1.36), ["data", "temp"], known)
    assert (nothing.seen, nothing.verdict, nothing.is_bottleneck) == ((), PartVerdict.UNSEEN, None)
    assert nothing.predicted is None and not unexplained(nothing)


def test_reads_count_as_the_devices_by_their_time_on_the_device() -> None:
    """A few reads from a slow disk take long; many page waits served by the page cache take no device time."""
    time = spent(total_s=0.0005, data_read=0.2, CPU=0.8)
    slow = ceiling(measured(1.2), ["data"], Baseline(time, reads=0.008, reads_s=0.008 * 0.01))
    cached = ceiling(measured(1.2), ["data"], Baseline(time, reads=0.008, reads_s=0.008 * 0.0001))
    unknown = ceiling(measured(1.2), ["data"], Baseline(time))
    assert (slow.seen, slow.cached_reads) == (("data",), None)
    assert (cached.seen, cached.cached_reads) == ((), 0.008)
    assert (unknown.seen, unknown.cached_reads) == (("data",), None)


def test_the_time_of_reads_is_what_the_device_counted() -> None:
    metrics = {"device_reads_per_s{role=data}": 500.0, "device_read_latency_s{role=data}": 0.002}
    known = baseline_of(None, [record(throughput=1000.0, metrics=metrics)])
    assert (known.reads, known.reads_s) == (pytest.approx(0.5), pytest.approx(0.001))
    none = baseline_of(None, [record(throughput=1000.0, metrics={"device_reads_per_s{role=data}": 0.0})])
    assert (none.reads, none.reads_s) == (0.0, 0.0)
    assert baseline_of(None, [record()]) == Baseline()


def test_settings_that_a_free_part_changes_are_named_before_any_part() -> None:
    facts = {
        "a": {"engine.settings.shared_buffers": "64MB", "engine.settings.wal_buffers": "2MB", "engine.x": "1"},
        "b": {"engine.settings.shared_buffers": "582MB", "engine.settings.wal_buffers": "2MB", "engine.x": "2"},
    }
    lab = lab_of(freed("data"))
    (found,) = ceilings([replace(measured(1.36), cell="b", baseline="a")], lab, {}, facts)
    assert [(row.name, row.values) for row in found.besides] == [("shared_buffers", ("64MB", "582MB"))]
    text = ceiling_sentence(found)
    assert text.index("shared_buffers from 64MB to 582MB") < text.index("bottleneck")


def test_a_measured_gain_has_no_estimate_beside_it_and_one_that_shares_do_not_explain_says_so() -> None:
    known = Baseline(spent(log_flush=0.5, locks=0.2, CPU=0.3))
    found = ceiling(measured(2.4), ["log"], known)
    assert found.predicted is not None
    assert found.predicted.low <= 2.0 and found.predicted.high == pytest.approx(1 / 0.3, rel=0.1)
    assert not unexplained(found) and not unexplained(ceiling(measured(1.0), ["log"], known))
    assert "another cause" in unexplained(ceiling(measured(9.0), ["log"], known))


def test_a_measured_gain_takes_the_place_of_the_estimate() -> None:
    time = spent(log_flush=0.6, CPU=0.4)
    free = ceiling(measured(2.4), ["log"], Baseline(time))
    told = limit_sentence(time, [free])
    assert "Estimate" not in told and "2.40x as high" in told
    for other in (
        ceiling(measured(1.5), ["temp"], Baseline(time)),
        ceiling(measured(1.5), ["log", "data"], Baseline(time)),
        ceiling(measured(2.4), ["log"], Baseline(time), added_bytes=1),
        replace(free, finding=replace(free.finding, baseline="another")),
    ):
        assert limit_sentence(time, [other]) == limit_sentence(time)


@pytest.mark.parametrize(
    ("shares", "other", "speedup", "metric", "decides"),
    [
        ({"CPU": 0.08, "run_queue": 0.5, "log_flush": 0.25, "client": 0.17}, 0.72, 1.75, "throughput", False),
        ({"CPU": 0.38, "log_flush": 0.36, "client": 0.26}, 0.0, 1.75, "throughput", True),
        ({"CPU": 0.45, "log_flush": 0.42, "client": 0.13}, 0.0, 2.4, "throughput", True),
        ({"CPU": 0.7, "log_flush": 0.2, "client": 0.1}, 0.0, 1.75, "throughput", False),
        ({"CPU": 0.08, "run_queue": 0.5, "log_flush": 0.42}, 0.72, 1.0, "throughput", False),
        ({"CPU": 0.08, "run_queue": 0.5, "log_flush": 0.42}, 0.72, 0.5, "response_time_p99_s", False),
    ],
    ids=["other programs", "cannot tell", "a smaller share", "a larger share", "no gain", "another metric"],
)
def test_a_measured_gain_outranks_shares_that_would_gain_less_but_not_other_programs(
    shares: dict[str, float], other: float, speedup: float, metric: str, decides: bool
) -> None:
    one = record(metrics={f"time_share{{part={name.replace('_', ' ')}}}": share for name, share in shares.items()})
    taken = where_time_goes([replace(one, budget=Budget(server=0.2, other=other, idle=0.8 - other))])
    assert taken is not None and taken.limit.taken == other
    time = replace(taken, cell="ideal=none")
    free = ceiling(measured(speedup, metric), ["log"], Baseline(time))
    assert measured_limit(time, [free]) is (free if decides else None)
    assert limit_sentence(time, [free]).startswith("The bottleneck is WAL. With zero-latency WAL, ") is decides


def test_a_gain_measured_while_other_programs_used_most_of_the_cpu_time_names_no_bottleneck() -> None:
    shares = {"time_share{part=CPU}": 0.08, "time_share{part=run queue}": 0.5, "time_share{part=log flush}": 0.42}
    budget = Budget(server=0.2, other=0.72, idle=0.08)
    time = where_time_goes([replace(record(metrics=shares), budget=budget)])
    free = ceiling(measured(1.75), ["log"], Baseline(time))
    assert (free.verdict, free.is_bottleneck, free.taken) == (PartVerdict.DISTURBED, None, 0.72)


PLAIN = Setup(Cell("a", Load(8), {"cell": "a"}), System("postgres", "a"), Choice("w"))


def credited(free: Setup, baseline: Setup = PLAIN) -> bool:
    """Returns whether the difference between the two is attributed to the idealised part."""
    return bool(ceilings([replace(measured(2.0), cell=free.cell.name, baseline="a")], lab_of(free, baseline)))


def lab_of(free: Setup, baseline: Setup = PLAIN) -> Lab:
    return Lab("x", "x", "?", (), "explicit", (baseline, free), "a", (), METHOD, (), (), "")


def freed(*parts: str, load: Load = PLAIN.cell.load, **system: object) -> Setup:
    told = replace(PLAIN.system, label="b", ideal=parts, **system)  # type: ignore[arg-type]
    return Setup(Cell("b", load, {"cell": "b"}), told, PLAIN.choice)


def test_only_cells_that_differ_in_ideal_parts_alone_have_a_ceiling() -> None:
    assert credited(freed("log"))
    assert not credited(freed())
    assert not credited(freed("log", memory_bytes=1 << 30))
    assert not credited(freed("log", memory_total_bytes=1 << 30))
    assert not credited(freed("log", settings={"fsync": "off"}))
    assert not credited(freed("log", load=Load(16)))
    assert not credited(freed("log", layout=Layout(temp="/elsewhere")))
    assert not credited(freed("log"), replace(PLAIN, system=replace(PLAIN.system, ideal=("temp",))))


def test_what_a_free_part_brings_along_is_no_difference() -> None:
    """The setups are as `plan.resolve` and the engines make them."""
    limited = replace(PLAIN, system=replace(PLAIN.system, memory_total_bytes=1 << 30, client_cpus=(1,)))
    paused = replace(PLAIN, cell=replace(PLAIN.cell, load=Load(8, think_time_s=0.1)))
    assert credited(freed("log", layout=Layout(log="/dev/shm/log")))
    log_bytes = 1280 << 20
    assert credited(freed("log", memory_total_bytes=(1 << 30) + log_bytes, client_cpus=(1,)), limited)
    more = replace(limited.system, ideal=("temp",), memory_total_bytes=2 << 30)
    both = freed("log", "temp", memory_total_bytes=(2 << 30) + log_bytes, client_cpus=(1,))
    assert credited(both, replace(limited, system=more))
    library = replace(PLAIN, system=replace(PLAIN.system, engine="sqlite"))
    assert credited(freed("temp", engine="sqlite", settings={"temp_store": "memory"}), library)
    assert not credited(freed("temp", settings={"temp_store": "memory"})), "of another engine"
    cached = replace(PLAIN, system=replace(PLAIN.system, settings={"shared_buffers": "1GB"}))
    assert credited(freed("data"), cached)
    assert credited(freed("data", load=Load(8, cache="hot"), client_cpus=(1,)), limited)
    assert credited(freed("client", load=Load(8, threads=4)), paused)


def test_a_lab_on_an_engine_that_this_version_does_not_know_has_its_ceilings() -> None:
    unknown = replace(PLAIN, system=replace(PLAIN.system, engine="ours", memory_total_bytes=1 << 30))
    assert credited(freed("log", engine="ours", memory_total_bytes=1 << 30), unknown)
    assert not credited(freed("log", engine="ours", memory_total_bytes=2 << 30), unknown)


def test_a_limit_on_all_memory_that_was_declared_otherwise_is_a_difference() -> None:
    limited = replace(PLAIN, system=replace(PLAIN.system, memory_total_bytes=1 << 30))
    assert not credited(freed("log", memory_total_bytes=(2 << 30) + (1280 << 20)), limited)
    assert not credited(freed("log", memory_total_bytes=2 << 30), PLAIN)
    small = {"max_wal_size": "64MB"}
    of_a_small_log = replace(limited, system=replace(limited.system, settings=small))
    assert credited(freed("log", memory_total_bytes=(1 << 30) + (80 << 20), settings=small), of_a_small_log)


@pytest.mark.parametrize("role", ["log", "temp"])
def test_files_that_the_user_puts_on_a_zero_latency_device_are_an_upper_bound_as_the_ideal_part_is(role: str) -> None:
    def on(model: str) -> Layout:
        return Layout(devices=(Device(model, (Partition(role, 1 << 30, "/d"),)),)).at({role: "/d"})

    own, ideal = freed(layout=on("free")), freed(role, layout=on("free"))
    found, same = (ceilings([replace(measured(2.4), cell="b", baseline="a")], lab_of(one))[0] for one in (own, ideal))
    assert found == same and (found.parts, found.on_device) == ((role,), True)
    ssd = replace(PLAIN, system=replace(PLAIN.system, layout=on("ssd-sata")))
    assert credited(own, ssd) and not credited(freed(layout=on("ssd-sata")))
    assert not credited(own, replace(PLAIN, system=own.system)), "both on a zero-latency device"
    assert not credited(freed(layout=on("free"), settings={"fsync": "off"}), ssd)


def test_an_interval_that_excludes_a_gain_of_the_margin_says_that_it_is_not_the_bottleneck() -> None:
    harmless = replace(measured(0.96, conclusion=Conclusion.CANNOT_TELL), low=0.9, high=1.03)
    assert ceiling(harmless, ["log"]).verdict is PartVerdict.UNAFFECTED
    assert ceiling(replace(harmless, ratios=harmless.ratios[:4]), ["log"]).verdict is PartVerdict.INCONCLUSIVE


def test_a_gain_with_more_memory_is_not_said_to_be_the_logs_alone() -> None:
    gained = ceiling(measured(2.4), ["log"], added_bytes=1280 << 20)
    assert (gained.verdict, gained.is_bottleneck) == (PartVerdict.MEMORY, None)
    assert "1.25\u202fGiB" in ceiling_sentence(gained)
    assert ceiling(measured(1.03), ["log"], added_bytes=1280 << 20) == replace(
        ceiling(measured(1.03), ["log"]), added_bytes=1280 << 20
    )
    unsure = measured(2.4, conclusion=Conclusion.CANNOT_TELL)
    assert ceiling(unsure, ["log"], added_bytes=1).verdict is PartVerdict.INCONCLUSIVE


def test_on_a_zero_latency_device_the_limit_on_memory_stays_and_the_gain_is_the_parts() -> None:
    def on(model: str, *roles: str) -> Layout:
        devices = (Device(model, tuple(Partition(role, 1 << 30, f"/d/{role}") for role in roles)),)
        return Layout("/d/data" if "data" in roles else "/srv", log="/d/log", devices=devices)

    limited = replace(PLAIN, system=replace(PLAIN.system, layout=Layout("/srv"), memory_total_bytes=1 << 30))
    free = freed("log", layout=on("free", "log"), memory_total_bytes=1 << 30)
    (found,) = ceilings([replace(measured(2.4), cell="b", baseline="a")], lab_of(free, limited))
    assert (found.verdict, found.added_bytes, found.on_device) == (PartVerdict.BOTTLENECK, 0, True)
    assert "A real device for WAL can hardly bring a larger gain." in ceiling_sentence(found)
    assert "No real device for WAL can bring a larger gain." in ceiling_sentence(replace(found, on_device=False))
    after = {"b": Baseline(replace(spent(log_flush=0.13, CPU=0.87), cell="b"))}
    (slower,) = ceilings([replace(measured(2.4), cell="b", baseline="a")], lab_of(free, limited), after)
    assert "with a faster I/O path could bring a larger gain" in ceiling_sentence(slower)
    assert "WAL still took 13% of transaction time" in ceiling_sentence(slower)
    assert "hardly bring a larger gain" in ceiling_sentence(replace(slower, left=0.02))
    # The WAL of the baseline is on a slow device: only ideal parts count as free.
    slow = replace(limited, system=replace(limited.system, layout=on("hdd-7200", "log")))
    (found,) = ceilings([replace(measured(2.4), cell="b", baseline="a")], lab_of(free, slow))
    assert found.verdict is PartVerdict.BOTTLENECK
    elsewhere = freed("log", layout=on("free", "data", "log"), memory_total_bytes=1 << 30)
    assert not credited(elsewhere, limited), "the data are on another device, too"


def trial(block: int, log_ms: float, cpu_ms: float = 1.0) -> Record:
    total_ms = log_ms + cpu_ms
    shares = {"time_share{part=log flush}": log_ms / total_ms, "time_share{part=CPU}": cpu_ms / total_ms}
    samples = {"time_samples{part=log flush}": 500.0}
    return record(clients=8, throughput=8e3 / total_ms, block=block, metrics=shares | samples)


def test_the_steps_of_a_waterfall_add_up_to_the_difference() -> None:
    before = [trial(block, 4.0 + 0.1 * block, 1.0) for block in range(6)]
    after = [trial(block, 0.5 + 0.1 * block, 1.2) for block in range(6)]
    found = waterfall((DISK, before), (MEMORY, after), in_blocks=True)
    assert found is not None and found.method == note("t-intervals-of-differences", blocks=6)
    assert sum(step.delta_s for step in found.steps) == pytest.approx(found.after_s - found.before_s)
    steps = {step.part: step for step in found.steps}
    assert list(steps) == [part for part in WAIT_CLASSES if part in steps]
    assert steps["log flush"].delta_s == pytest.approx(-3.5e-3)
    assert steps["CPU"].delta_s == pytest.approx(0.2e-3)
    assert steps["log flush"].clear
    assert (found.note.code, found.note.values["part"]) == ("largest-step", "log flush")
    assert found.note.values["delta_s"] == pytest.approx(-0.0035)


@pytest.mark.parametrize("missing", [0, 1], ids=["every block has both", "a block lacks a cell"])
def test_the_steps_of_a_waterfall_are_the_differences_of_the_cells(missing: int) -> None:
    # Trials of very different lengths, as when another program used the machine during one of them.
    before = [
        trial(block, log_ms, cpu_ms)
        for block, (log_ms, cpu_ms) in enumerate([(4.0, 1.0), (90.0, 2.0), (2.0, 3.0), (2.0, 2.0)])
    ]
    after = [trial(block, log_ms, 1.2) for block, log_ms in enumerate([0.5, 7.0, 0.1, 0.2])][missing:]
    found = waterfall((DISK, before), (MEMORY, after), in_blocks=True)
    both = [one for one in before if one.block >= missing]
    cells = [where_time_goes(records) for records in (both, after)]
    assert found is not None and found.method == note("t-intervals-of-differences", blocks=4 - missing)
    for step in found.steps:
        times = [part.time_s for cell in cells if cell for part in cell.parts if part.name == step.part]
        assert step.delta_s == pytest.approx(times[1] - times[0])
    expected = [2e-3, 7e-3 / 3][missing]
    assert cells[0] is not None and cells[0].parts[0].time_s == pytest.approx(expected), "the mean of trials' seconds"


def test_a_waterfall_uses_the_first_usable_attempt_of_a_block_as_findings_do() -> None:
    before, after = ([trial(block, log_ms) for block in range(3)] for log_ms in (4.0, 1.0))
    again = [replace(trial(0, 40.0), attempt=2), replace(trial(1, 40.0), attempt=0, status=Status.FAILED)]
    once, twice = (waterfall((DISK, [*before, *more]), (MEMORY, after), in_blocks=True) for more in ([], again))
    assert once is not None and once.steps
    assert twice == once


def test_a_difference_that_wobbles_as_much_as_it_is_large_is_not_clear() -> None:
    before = [trial(block, 4.0) for block in range(6)]
    after = [trial(block, 4.0 + 0.5 * (-1) ** block) for block in range(6)]
    found = waterfall((DISK, before), (MEMORY, after), in_blocks=True)
    assert found is not None and not any(step.clear for step in found.steps if step.part == "log flush")
    assert found.note.code == "no-clear-step"


@pytest.mark.parametrize("blocks", [1, 2])
def test_fewer_than_three_blocks_have_no_confidence_intervals(blocks: int) -> None:
    before, after = ([trial(block, log_ms) for block in range(blocks)] for log_ms in (4.0, 1.0))
    found = waterfall((DISK, before), (MEMORY, after), in_blocks=True)
    assert found is not None and found.method.code == "no-step-intervals"
    assert not found.has_intervals and not any(step.clear for step in found.steps)
    assert (found.note.code, found.note.values["part"]) == ("largest-step-without-interval", "log flush")
    assert {text[2] for text in chart(found, "w").table.texts} == {""}
    assert sum(step.delta_s for step in found.steps) == pytest.approx(found.after_s - found.before_s)


def test_without_observed_backends_there_is_no_waterfall() -> None:
    assert waterfall((DISK, [record()]), (MEMORY, [trial(0, 1.0)]), in_blocks=True) is None
