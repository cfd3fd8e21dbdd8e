"""`ironbench explain`: a difference explained level by level, with intervals, and in every comparison."""

from __future__ import annotations

import json
import math
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from factories import DISK, MEMORY, record
from labfactory import lab, studied, trials

from ironbench.cli.compare import compare
from ironbench.cli.explain import explain as verb
from ironbench.errors import InputError
from ironbench.model.finding import LEAST_BLOCKS_SHOWN
from ironbench.model.lab import Configuration
from ironbench.model.note import note
from ironbench.model.record import Record, Status
from ironbench.model.system import Device, Layout, Partition, System
from ironbench.records import Store
from ironbench.records.labs import FrozenPlan, LabDirectory
from ironbench.records.selection import both
from ironbench.report import cell, formats
from ironbench.report.breakdown import breakdown_table, section
from ironbench.report.compare_page import compare_named
from ironbench.report.compare_page import page as compare_page
from ironbench.report.explain_page import answer
from ironbench.report.explain_page import page as page_of
from ironbench.report.facts import values
from ironbench.report.sections import sections
from ironbench.study.archive import EMPTY
from ironbench.study.differences import Difference, most_relevant
from ironbench.study.explain import Explanation, explain
from ironbench.study.io_cause import Cause, cause

pytest.importorskip("ironbench._core", reason="the core is not built")

A, B = Configuration("a"), Configuration("b")
CELLS = ("log=disk", "log=memory")
LEVELS = ["throughput", "response time", "script", "transaction time", "wait class", "I/O", "configuration"]


def detailed(one: Record, dice: random.Random) -> Record:
    """Returns a trial with two scripts, whose WAL I/O is cheaper in memory."""
    rate, fast = one.metrics["throughput"], one.system.layout.log is not None
    mean = one.metrics["response_time_mean_s"]
    first = mean * (1.6 if not fast else 1.2)
    found = {
        **{"throughput{script=new_order}": 0.5 * rate, "throughput{script=pay}": 0.5 * rate},
        **{"response_time_mean_s{script=new_order}": first, "response_time_mean_s{script=pay}": 2 * mean - first},
        "device_writes_per_s{role=log}": rate * (0.02 if fast else 1.1) * dice.gauss(1, 0.02),
        "wal_bytes_per_transaction": 3000 * dice.gauss(1, 0.02),
    }
    return replace(one, metrics={**one.metrics, **found})


def measured(blocks: int = 8) -> list[Record]:
    dice, plan = random.Random(1), lab({"log": ("disk", "memory")}, blocks=blocks)
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1900.0}, observed=True)
    return [detailed(one, dice) for one in records]


def explained(records: list[Record], in_blocks: bool = True) -> Explanation:
    sides = [(Configuration(name), [one for one in records if one.cell.name == name]) for name in CELLS]
    return explain(*sides, EMPTY, in_blocks=in_blocks)


def test_the_walk_goes_from_throughput_down_to_the_configuration() -> None:
    assert list(dict.fromkeys(row[0] for row in breakdown_table(explained(measured())).texts)) == LEVELS


def test_a_change_has_the_same_sign_and_size_as_text_and_as_a_number() -> None:
    found = explained(measured())
    (change,) = (row[4] for row in breakdown_table(found).rows if row[0] == "throughput")
    assert cell.typed(change) == {"value": found.throughput[0].ratio - 1, "unit": "1"}
    assert cell.cell_text(change) == f"+{round(100 * (found.throughput[0].ratio - 1))}%"


def test_contributions_of_scripts_sum_to_the_difference_of_the_means() -> None:
    found = explained(measured())
    (mean, *_) = found.response
    assert sum(one.delta_s for one in found.scripts) == pytest.approx(mean.after - mean.before, rel=0.01)
    assert found.scripts[0].name == "new_order"
    assert all(one.low_s < one.delta_s < one.high_s for one in found.scripts)


def test_steps_of_the_waterfall_sum_to_the_difference_in_time() -> None:
    fall = explained(measured()).waterfall
    assert fall is not None
    assert sum(step.delta_s for step in fall.steps) == pytest.approx(fall.after_s - fall.before_s)


def test_io_is_held_against_the_work_done() -> None:
    """Twice the throughput with twice the writes per second is the same number of writes per transaction."""
    records = measured()
    doubled = [
        replace(one, metrics={**one.metrics, "device_writes_per_s{role=log}": one.metrics["throughput"] * 1.1})
        for one in records
    ]
    writes = next(one for one in explained(doubled).io if one.metric.startswith("device_writes"))
    assert writes.ratio == pytest.approx(1.0)
    fewer = next(one for one in explained(records).io if one.metric.startswith("device_writes"))
    assert fewer.high < 0.03


def test_blocks_pair_only_where_both_are_cells_of_one_lab() -> None:
    records = measured()
    paired, apart = explained(records), explained(records, in_blocks=False)
    assert paired.throughput[0].ratio == pytest.approx(apart.throughput[0].ratio)
    assert paired.throughput[0].low != apart.throughput[0].low


def test_a_single_trial_has_no_interval() -> None:
    found = explained(measured(1))
    assert not found.throughput[0].known
    assert all("no CI" in row for row in breakdown_table(found).texts if row[0] in ("throughput", "script"))


def test_where_nothing_below_the_response_time_was_measured_there_is_no_section() -> None:
    plain = [record(DISK, 8, 1000.0 + n, block=n) for n in range(3)]
    other = [record(MEMORY, 8, 900.0 + n, block=n, series="s2") for n in range(3)]
    found = explain((A, plain), (B, other), EMPTY, in_blocks=False)
    assert not found.goes_down
    assert not section(found).shows_something


def test_a_labs_report_has_the_section_for_its_comparisons() -> None:
    study = studied(lab({"log": ("disk", "memory")}, blocks=8), measured())
    (found,) = [one for one in sections(study) if one.id == "explain"]
    ((name, table),) = found.tables
    assert name == "From WAL on disk to WAL in memory"
    assert table.texts[0][0] == "throughput"


@pytest.fixture
def directory(tmp_path: Path) -> str:
    plan = lab({"log": ("disk", "memory")}, blocks=8)
    found = LabDirectory(tmp_path / "lab")
    found.begin(FrozenPlan(plan, "m1", {}, {}))
    found.declare(plan.method.stages[0], plan.trials)
    for one in measured():
        found.store.keep(one)
    return str(found.path)


def test_the_verb_begins_with_the_verdict_of_a_lab(directory: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert verb(*CELLS, results=directory) == 0
    shown = capsys.readouterr().out
    assert " than WAL on disk (95% CI" in shown or " as WAL on disk (95% CI" in shown
    assert shown.index("Breakdown of the difference") < shown.index("Throughput and response times")


def test_compare_ends_with_the_same_walk(directory: str, capsys: pytest.CaptureFixture[str]) -> None:
    compare(*CELLS, results=directory)
    assert re.search("wait class +WAL", capsys.readouterr().out)


def test_of_runs_one_after_the_other_it_says_that_there_is_no_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verb("disk", "memory", results=as_runs(measured(), tmp_path)) == 0
    shown = capsys.readouterr().out
    assert "Throughput is 8" in shown
    assert "No verdict" in shown
    assert "WAL" in shown


LISTED = "The trials show no difference, so the following points only list what differed in these trials."
NO_VERDICT = "There is no verdict, so the following points only list what differed between the trials."


def kept(records: list[Record], folder: Path, declared: bool = True) -> str:
    """Returns a lab's directory with these records. `declared`: the lab compares its two configurations."""
    plan = lab({"log": ("disk", "memory")}, blocks=8)
    plan = plan if declared else replace(plan, comparisons=())
    found = LabDirectory(folder / f"lab-{declared}")
    found.begin(FrozenPlan(plan, "m1", {}, {}))
    found.declare(plan.method.stages[0], plan.trials)
    for one in records:
        found.store.keep(one)
    return str(found.path)


def alike(means: tuple[float, float], spread: float = 0.1, blocks: int = 8) -> list[Record]:
    dice, plan = random.Random(1), lab({"log": ("disk", "memory")}, blocks=blocks)
    records = trials(plan, dict(zip(CELLS, means, strict=True)), spread, observed=True)
    return [detailed(one, dice) for one in records]


def as_runs(records: list[Record], folder: Path) -> str:
    for one in records:
        label = one.cell.levels["log"]
        moved = replace(one, system=replace(one.system, label=label), series=label, purpose="sweep")
        Store(folder).keep(replace(moved, id=f"{label}-{one.block}"))
    return str(folder)


def answered(a: str, b: str, results: str) -> tuple[str, list[str]]:
    found = page_of(compare_named(*both(a, b, results))).answer
    return found.decision.sentence, [point.sentence for point in found.points]


def test_an_inconclusive_lab_begins_with_its_verdict_and_says_that_the_rest_is_a_list(tmp_path: Path) -> None:
    first, points = answered(*CELLS, kept(alike((1000.0, 1010.0)), tmp_path))
    assert first.startswith("INCONCLUSIVE: ") and "95% CI −" in first
    assert points[0] == LISTED


@pytest.mark.parametrize(("mean", "shown"), [(1010.0, False), (1900.0, True)])
def test_a_pair_that_the_lab_does_not_declare_begins_with_whether_a_difference_is_shown(
    mean: float, shown: bool, tmp_path: Path
) -> None:
    first, points = answered(*CELLS, kept(alike((1000.0, mean)), tmp_path, declared=False))
    assert first.startswith("Throughput is " if shown else "No difference shown: the 95% CI includes")
    assert (LISTED in points) is not shown


@pytest.mark.parametrize(("mean", "shown"), [(1010.0, False), (1900.0, True)])
def test_runs_begin_with_whether_a_difference_is_shown_as_in_compare(mean: float, shown: bool, tmp_path: Path) -> None:
    results = as_runs(alike((1000.0, mean)), tmp_path)
    first, points = answered("disk", "memory", results)
    assert first.startswith("Throughput is " if shown else "No difference shown: the ranges of the repeats overlap. In")
    assert (LISTED in points) is not shown
    compared = compare_page(compare_named(*both("disk", "memory", results)).found).answer.decision.text
    assert compared.startswith("No difference shown: ") is not shown


def test_one_trial_of_each_shows_no_difference(tmp_path: Path) -> None:
    first, points = answered("disk", "memory", as_runs(alike((1000.0, 1900.0), blocks=1), tmp_path))
    assert first.startswith("No difference shown: each side has only one trial, so the variation between")
    assert points[0] == NO_VERDICT


def with_lost_blocks(kept: tuple[int, ...], blocks: int = 6) -> list[Record]:
    """Returns trials of two configurations. The first block is twice as fast as the others. The configuration with the
    WAL in memory is always 4% slower, and has usable trials only in the blocks `kept`."""
    plan, dice = lab({"log": ("disk", "memory")}, blocks=blocks), random.Random(1)
    found = []
    for one in trials(plan, dict.fromkeys(CELLS, 1.0), observed=True):
        lost = one.cell.name == CELLS[1] and one.block not in kept
        rate = (2000.0 if one.block == 0 else 1000.0) * (1 + one.block / 1000)
        rate *= 0.96 if one.cell.name == CELLS[1] else 1.0
        fields = {"throughput": rate, **{f"response_time_{part}_s": 8 / rate for part in ("mean", "p50", "p95", "p99")}}
        one = replace(one, metrics={**one.metrics, **fields}, status=Status.FAILED if lost else one.status)
        found.append(detailed(one, dice))
    return found


@pytest.mark.parametrize("kept_blocks", [(0,), (0, 2), (0, 2, 3)])
def test_a_side_with_lost_blocks_is_compared_only_in_the_blocks_of_both(kept_blocks: tuple[int, ...]) -> None:
    """A block that is left may be faster than the average of the other side, but this is not a property of the
    configuration."""
    records = with_lost_blocks(kept_blocks)
    study = studied(lab({"log": ("disk", "memory")}, blocks=6), records)
    (found,), (finding,) = study.explanations, study.findings
    assert finding.ratio == pytest.approx(0.96)
    assert found.throughput[0].ratio == pytest.approx(finding.ratio)
    assert [one.ratio for one in found.response] == pytest.approx([1 / 0.96] * len(found.response))
    fall = found.waterfall
    assert fall is not None and study.waterfalls == (fall,)
    assert fall.after_s / fall.before_s == pytest.approx(1 / 0.96)
    assert sum(step.delta_s for step in fall.steps) == pytest.approx(fall.after_s - fall.before_s)
    mean = found.response[0]
    assert len(kept_blocks) > 1 or sum(one.delta_s for one in found.scripts) == pytest.approx(mean.after - mean.before)
    enough = len(kept_blocks) >= LEAST_BLOCKS_SHOWN
    shown = [*(one.known for one in (*found.throughput, *found.response, *found.io)), fall.has_intervals]
    shown += [math.isfinite(one.low_s) for one in found.scripts]
    assert found.io and found.scripts and set(shown) == {enough}


def test_without_a_block_of_both_there_is_no_breakdown(tmp_path: Path) -> None:
    records = [
        replace(one, status=Status.FAILED) if (one.cell.name == CELLS[0]) == (one.block == 0) else one
        for one in with_lost_blocks((0,))
    ]
    first, points = answered(*CELLS, kept(records, tmp_path))
    assert not any("ransaction takes" in point or "esponse time" in point for point in (first, *points)), points
    study = studied(lab({"log": ("disk", "memory")}, blocks=6), records)
    assert not any(one.goes_down or one.throughput for one in study.explanations)
    assert study.waterfalls == ()


def test_explain_and_compare_of_a_side_with_lost_blocks_agree_with_the_finding(tmp_path: Path) -> None:
    results = kept(with_lost_blocks((0,)), tmp_path)
    first, points = answered(*CELLS, results)
    assert first.startswith("INCONCLUSIVE: ")
    assert points[0] == NO_VERDICT
    assert any("4.2% higher (no confidence interval: too few trials)" in point for point in points), points
    assert any("transaction takes 0.167 ms more." in point for point in points), points
    assert "CI " not in " ".join(points)
    peaks = compare_named(*both(*CELLS, results)).found.peaks
    row = peaks.row("throughput") if peaks else None
    assert row is not None and (row.a.n, row.b.n, row.ratio) == (1, 1, pytest.approx(0.96))


def test_an_open_loop_begins_with_its_response_times(tmp_path: Path) -> None:
    records = [
        replace(one, cell=replace(one.cell, load=replace(one.cell.load, rate=900.0)))
        for one in alike((900.0, 900.0), 0.001)
    ]
    slower = [
        replace(one, metrics={**one.metrics, "response_time_p99_s": 0.01 * (2 if "memory" in one.cell.name else 1)})
        for one in records
    ]
    first, _ = answered("disk", "memory", as_runs(slower, tmp_path))
    assert first.startswith("99th-percentile response time is 100% higher with memory than with disk")


@pytest.mark.parametrize(
    ("there", "contradicted"), [(1.9, False), (1.5, False), (0.5, True), (1.05, True), (9.0, True)]
)
def test_observed_trials_explain_a_difference_only_if_they_show_it(there: float, contradicted: bool) -> None:
    """In a lab by slices, one trial of each configuration is observed, perhaps while the machine was busy."""
    records = alike((1000.0, 1900.0), 0.01)
    sides = [(Configuration(name), [one for one in records if one.cell.name == name]) for name in CELLS]
    seen = [
        (side, [replace(trials[0], metrics={**trials[0].metrics, "throughput": value})])
        for (side, trials), value in zip(sides, (1000.0, 1000.0 * there), strict=True)
    ]
    found = explain(*sides, EMPTY, in_blocks=True, observed=(seen[0], seen[1]))
    assert found.contradicted == (pytest.approx(there) if contradicted else None)
    points = {point.name: point.text for point in answer(found, (), "").points}
    assert ("Observed trials:" in points) is contradicted
    assert ("Time:" in points) is not contradicted
    assert ("do not explain the difference" in section(found).lead) is contradicted
    if contradicted:
        assert "but the blocks show a different ratio" in points["Observed trials:"]


def test_other_scripts_are_named_before_a_configuration_that_does_not_differ() -> None:
    """Otherwise the answer says that nothing differs, although the change is in the script."""
    records = alike((1000.0, 1900.0), 0.01)
    sides = [(Configuration(name), [one for one in records if one.cell.name == name]) for name in CELLS]
    same = explain(sides[0], (sides[1][0], sides[0][1]), EMPTY, in_blocks=False)
    assert [point.name for point in answer(same, (), "").points][-1] == "Configuration:"
    assert answer(same, (), "").points[-1].text == "settings, layout, versions and machine do not differ."
    assert same.work == ()
    others = [
        replace(one, choice=replace(one.choice, options={**one.choice.options, "scale": "9"})) for one in sides[0][1]
    ]
    found = explain(sides[0], (sides[1][0], others), EMPTY, in_blocks=False)
    work, configuration = answer(found, (), "").points[-2:]
    assert (work.name, configuration.name) == ("Work:", "Configuration:")
    assert work.text == "The work differs: igen-oltp scale=4 vs. scale=9."


def test_one_observed_trial_of_each_has_no_interval_of_wait_classes() -> None:
    records = alike((1000.0, 1900.0), 0.01)
    sides = [(Configuration(name), [one for one in records if one.cell.name == name]) for name in CELLS]
    found = explain(*sides, EMPTY, in_blocks=True, observed=tuple((side, own[:1]) for side, own in sides))
    assert found.waterfall is not None and not found.waterfall.has_intervals
    (chart,) = section(found).charts
    assert not any("to" in str(row[2]) for row in chart.table.texts)
    points = {point.name: point.text for point in answer(found, (), "").points}
    assert "no confidence interval: too few trials" in points["Time:"]


@pytest.mark.parametrize("format", formats.of_any_page())
def test_every_format_has_the_walk(format: str, directory: str) -> None:
    written = formats.of_page(format)(page_of(compare_named(*both(*CELLS, directory))))
    assert written
    if format in ("text", "html", "md", "csv", "svg"):
        assert b"WAL" in written
    if format == "json":
        assert json.loads(written)["explanation"]["waterfall"]["steps"]


def test_unknown_names_are_refused(directory: str) -> None:
    with pytest.raises(InputError, match="matches no configuration"):
        verb("log=disk", "log=tape", results=directory)


def test_scripts_of_a_label_rest_on_the_trials_of_all_its_runs() -> None:
    """Each run of the label has a block 0."""
    several = [replace(one, block=0) for one in measured()]
    whole, found = explained(measured(), in_blocks=False), explained(several, in_blocks=False)
    assert found.scripts == whole.scripts


def test_the_waterfall_of_labels_rests_on_the_trials_of_all_their_runs_and_pairs_none() -> None:
    several = [replace(one, block=0) for one in measured()]
    whole, found = (explained(records, in_blocks=False).waterfall for records in (measured(), several))
    paired = explained(measured()).waterfall
    assert whole is not None and found is not None and paired is not None
    assert found == whole and found.method == note("welch-intervals", trials=(8, 8))
    assert paired.method == note("t-intervals-of-differences", blocks=8)
    assert all(step.high_s != same.high_s for step, same in zip(paired.steps, whole.steps, strict=True))


def other_system(records: list[Record], **metrics: float) -> list[Record]:
    return [replace(one, metrics={**one.metrics, **metrics}) for one in records]


ROLE = "{role=data}"


@pytest.mark.parametrize(
    ("counted", "shown"),
    [
        ({"wal_bytes_per_transaction": 3.0}, False),
        ({"wal_bytes_per_transaction": 300.0}, True),
        ({"writing_transactions_per_s": 1.0}, False),
        ({"writing_transactions_per_s": 800.0}, True),
        ({}, True),
    ],
)
def test_writes_of_a_shared_device_are_held_against_work_that_can_have_caused_them(
    counted: dict[str, float], shown: bool
) -> None:
    """A backup writes to the disk while a read-only script runs, which is a property of neither system."""
    a = [record(DISK, 8, 1000.0 + n, block=n, metrics={f"device_write_bytes_per_s{ROLE}": 1e3}) for n in range(3)]
    b = [record(MEMORY, 8, 100.0 + n, block=n, metrics={f"device_write_bytes_per_s{ROLE}": 1e6}) for n in range(3)]
    found = explain((A, other_system(a, **counted)), (B, other_system(b, **counted)), EMPTY, in_blocks=False)
    assert any(one.metric.startswith("device_write_bytes") for one in found.io) is shown


def test_reads_of_a_shared_device_need_an_engine_that_read() -> None:
    def trials_of(system: System, asked: float) -> list[Record]:
        metrics = {f"device_reads_per_s{ROLE}": 500.0, "engine_reads_per_s{object=relation}": asked}
        return [record(system, 8, 100.0 + n, block=n, metrics=metrics) for n in range(3)]

    for asked, shown in ((1.0, False), (600.0, True)):
        found = explain((A, trials_of(DISK, asked)), (B, trials_of(MEMORY, asked)), EMPTY, in_blocks=False)
        assert any(one.metric.startswith("device_reads") for one in found.io) is shown


BYTES = f"device_read_bytes_per_s{ROLE}"
OWN = "engine_read_bytes_per_s{object=relation}"
COUNTS = {"engine_reads_per_s{object=relation}": 0.01}
EMULATED = replace(DISK, layout=Layout(devices=(Device("ssd-nvme-2014", (Partition("data", 1 << 30, "/emulated"),)),)))


@pytest.mark.parametrize(
    ("system", "more", "less", "expected"),
    [
        (DISK, {BYTES: 2.7e7, OWN: 2e7, **COUNTS}, {BYTES: 1e5, OWN: 1e5, **COUNTS}, Cause.SERVER),
        (DISK, {BYTES: 2.7e7, OWN: 5e4, **COUNTS}, {BYTES: 1e5, OWN: 1e5, **COUNTS}, Cause.OTHERS),
        (DISK, {BYTES: 2.7e7, **COUNTS}, {BYTES: 1e5, OWN: 1e5, **COUNTS}, Cause.OTHERS),
        (DISK, {BYTES: 2.7e7}, {BYTES: 1e5}, Cause.UNKNOWN),
        (EMULATED, {BYTES: 2.7e7}, {BYTES: 1e5}, Cause.SERVER),
    ],
    ids=["the server's", "another program's", "no reads", "not counted", "emulated"],
)
def test_io_of_a_shared_device_is_the_servers_only_if_its_own_counters_cover_the_side_with_more(
    system: System, more: dict[str, float], less: dict[str, float], expected: Cause
) -> None:
    sides = [[record(system, 8, 1000.0 + n, block=n, metrics=one) for n in range(3)] for one in (more, less)]
    assert cause(sides, BYTES) is cause(sides[::-1], BYTES) is expected
    found = {one.metric: one for one in explain((A, sides[0]), (B, sides[1]), EMPTY, in_blocks=False).io}
    assert (BYTES in found) is (expected is not Cause.OTHERS)
    assert BYTES not in found or found[BYTES].whole_device is (expected is Cause.UNKNOWN)


def test_io_of_a_whole_device_comes_last_and_enters_no_headline() -> None:
    log = {"wal_bytes_per_transaction": 300.0}
    sides = [
        [record(DISK, 8, 1000.0 + n, block=n, metrics={BYTES: rate, **log}) for n in range(3)] for rate in (3e7, 1e5)
    ]
    found = explain((A, sides[0]), (B, sides[1]), EMPTY, in_blocks=False)
    assert [one.whole_device for one in found.io] == [False, True]
    alone = replace(found, io=found.io[1:])
    assert alone.io[0].clear and not any(point.name == "I/O:" for point in answer(alone, (), "").points)


def of_facts(**facts: tuple[str, str]) -> list[Difference]:
    return [Difference(*name.replace("__", ".").split(".", 1), values) for name, values in facts.items()]


def test_settings_come_first_and_addresses_last_and_short() -> None:
    long = "postgresql://bench@database-{}.eu-central-1.example.com:5432/shop?sslmode=verify-full&options=-c%20x%3D1"
    rows = of_facts(
        system__dsn=(long.format(1), long.format(2)),
        machine__kernel=("6.1", "6.8"),
        engine__changed__work_mem=("configuration file", "not set"),
        engine__settings__work_mem=("64MB", "64kB"),
        engine__version=("18.1", "18.4"),
    )
    rows += [Difference("engine", f"counter.{number}", ("1", "2")) for number in range(30)]
    main, rest = most_relevant(rows)
    assert [row.name for row in main] == ["settings.work_mem", "version", "kernel", "dsn"]
    assert len(main) + len(rest) == len(rows)
    assert all(len(text) <= 40 for text in values(main[-1]))
    records = measured()
    told = answer(replace(explained(records), differences=tuple(rows)), (), "").points[-1].text
    assert told.startswith("work_mem changes from 64MB to 64kB; version changes from 18.1 to 18.4")
    assert "example.com" not in told


def test_addresses_that_differ_in_parameters_alone_show_those() -> None:
    row = Difference("system", "dsn", ("postgresql://h:1/d", "postgresql://h:1/d?options=-c%20jit%3Doff"))
    assert values(row) == ["no parameters", "options=-c%20jit%3Doff"]


def test_contributions_of_scripts_sum_to_the_means_on_both_sides() -> None:
    found = explained(measured())
    (mean, *_) = found.response
    assert sum(one.part_before_s for one in found.scripts) == pytest.approx(mean.before, rel=0.01)
    assert sum(one.part_after_s for one in found.scripts) == pytest.approx(mean.after, rel=0.01)
    for one in found.scripts:
        assert one.part_after_s - one.part_before_s == pytest.approx(one.delta_s)
