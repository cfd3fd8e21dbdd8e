"""A lab's report states what its findings support, and lists what was excluded from them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from factories import OLTP, Shelf
from labfactory import lab, said, studied, trials

from ironbench.model.finding import Conclusion, Noise
from ironbench.model.lab import Claim, Stage
from ironbench.model.note import note, text_note
from ironbench.model.observer import OTHER_PROGRAMS
from ironbench.model.record import EMULATION_LIMIT, Status
from ironbench.model.system import Choice, Device, Layout, Partition
from ironbench.records.described import described
from ironbench.records.work import work_name, work_names
from ironbench.report import document, formats, wording
from ironbench.report.answer import answer, comparison
from ironbench.report.finding_tables import finding_table
from ironbench.report.numbers import range_text
from ironbench.report.sections import sections, time_spent
from ironbench.report.sections.differences import between_cells
from ironbench.report.sections.setup import plan as plan_tables
from ironbench.report.sections.time_spent import limits
from ironbench.report.wording.answers.lab_answer import all_inconclusive
from ironbench.study.bottleneck import LimitingResource, TimeSpent
from ironbench.study.ceiling import Ceiling, PartVerdict
from ironbench.study.curve import metrics_of
from ironbench.study.factors import named_sides
from ironbench.study.labstudy import lab_study
from ironbench.study.study import Study
from ironbench.study.timelines import percentiles

LOG = {"log": ("disk", "memory")}


def two_cells(memory: float, spread: float = 0.02, blocks: int = 10) -> Study:
    plan = lab(LOG, blocks=blocks)
    return studied(plan, trials(plan, {"log=disk": 1000.0, "log=memory": memory}, spread))


def test_the_answer_says_faster_slower_equivalent_or_that_it_cannot_tell() -> None:
    assert said(two_cells(1500.0)).startswith("WAL in memory is 4")
    assert said(two_cells(700.0)).startswith("WAL in memory is 3")
    assert "are equivalent within 5" in said(two_cells(1004.0, 0.008))
    unsure = said(two_cells(1010.0, 0.08))
    assert "INCONCLUSIVE: " in unsure
    assert "To decide: " in unsure
    assert ".." not in unsure


def test_the_surest_decision_leads_and_what_cannot_be_told_comes_last_with_its_doubt() -> None:
    plan = lab({"log": ("disk", "ssd", "memory", "raid")}, blocks=8)
    means = {"log=disk": 1000.0, "log=ssd": 1010.0, "log=memory": 1500.0, "log=raid": 700.0}
    study = studied(plan, trials(plan, means, 0.05))
    found = answer(study)
    assert found.decision.text.startswith("WAL in memory is ")
    assert [point.text[:11] for point in found.points] == ["WAL on raid", "INCONCLUSIV"]
    assert found.points[-1].caveat.startswith("The minimum detectable effect of these blocks is ")


@pytest.mark.parametrize(
    ("blocks", "known"), [(2, "no confidence interval, 2 paired repeats"), (4, ", 4 paired repeats")]
)
def test_too_few_blocks_for_a_verdict_are_named_as_such_without_p_or_an_interval_of_two(
    blocks: int, known: str
) -> None:
    study = two_cells(70_000.0, 0.5, blocks)
    decision = answer(study).decision.text
    start = (
        f"INCONCLUSIVE: WAL in memory vs. WAL on disk: too few blocks for a verdict ({blocks} instead of 6); the "
        "blocks so far show "
    )
    assert decision.startswith(start) and decision.endswith(f"{known}.")
    (row,) = finding_table(study.findings).texts
    assert row[-2:] == ("–", "–"), "neither what they would find nor p"


@pytest.mark.parametrize(
    ("memory", "limited", "named"),
    [
        (700.0, "log=memory", True),
        (700.0, "log=disk", False),
        (1500.0, "log=disk", True),
        (1500.0, "log=memory", False),
    ],
)
def test_a_side_that_emulation_slowed_down_is_named_if_the_real_difference_may_be_smaller(
    memory: float, limited: str, named: bool
) -> None:
    plan = lab(LOG, blocks=10)
    slow = note(EMULATION_LIMIT, load=0.1, late=0.7)
    done = [
        replace(one, warnings=(slow,)) if one.cell.name == limited and one.block < 4 else one
        for one in trials(plan, {"log=disk": 1000.0, "log=memory": memory}, 0.02)
    ]
    study = studied(plan, done)
    (finding,) = study.findings
    assert [(side.name, slow, count) for side, slow, count in finding.too_slow] == ([(limited, 4, 10)] if named else [])
    assert ("4 of 10 trials" in answer(study).decision.caveat) == named
    assert any("`ironbench device calibrate`" in text for text in answer(study).caveats) == named


@pytest.mark.parametrize(("memory", "spread", "blocks"), [(70_000.0, 0.5, 4), (1004.0, 0.008, 10), (1010.0, 0.08, 10)])
def test_a_ratio_without_a_winner_names_the_cell_above_and_the_cell_below(
    memory: float, spread: float, blocks: int
) -> None:
    text = answer(two_cells(memory, spread, blocks)).decision.text
    assert "throughput " in text and " with WAL in memory, " in text
    (finding,) = two_cells(memory, spread, blocks).findings
    assert "throughput " not in comparison(finding, metric_named=True).text


def test_finds_from_is_explained_with_the_largest_likely_spread_wherever_it_is_explained() -> None:
    root = Path(__file__).parents[2]
    pages = [root / "docs" / "how" / "reading-a-lab-report.md", root / "docs" / "understand" / "verdicts.md"]
    texts = [next(note for note in document.notes(two_cells(1010.0)) if note.startswith("Minimum detectable effect"))]
    texts += [
        next(
            line
            for line in page.read_text().splitlines()
            if re.search(r"min\. detectable effect \||minimum detectable effect is", line)
        )
        for page in pages
    ]
    assert all("upper 90%" in text or ("largest" in text and "likely" in text) for text in texts)


@pytest.mark.parametrize("kind", ["text", "md", "html", "csv"])
def test_no_page_gives_an_interval_of_two_blocks(kind: str) -> None:
    study = two_cells(70_000.0, 0.5, blocks=2)
    (finding,) = study.findings
    page = formats.get(kind)([study]).decode()
    assert range_text(finding.low, finding.high, "ratio") not in page
    assert "no CI" in page


def test_nothing_decided_is_said_first_and_once() -> None:
    plan = lab({"log": ("disk", "ssd", "memory")}, blocks=6)
    found = answer(studied(plan, trials(plan, dict.fromkeys(("log=disk", "log=ssd", "log=memory"), 1000.0), 0.1)))
    assert found.decision.text == "INCONCLUSIVE: none of the 2 comparisons of throughput has a verdict."
    assert len(found.points) == 2


def test_what_it_takes_to_tell_what_a_free_part_brings_is_said_once() -> None:
    plan = lab(LOG, blocks=6)
    disk = plan.setup("log=disk").system
    free = [replace(one, system=replace(disk, label=one.system.label)) for one in plan.setups]
    free[1] = replace(free[1], system=replace(free[1].system, ideal=("log",)))
    plan = replace(plan, setups=tuple(free))
    text = said(studied(plan, trials(plan, {"log=disk": 1000.0, "log=memory": 1100.0}, 0.15)))
    assert text.startswith("With zero-latency WAL, throughput is ")
    assert text.lower().count("to decide: ") == 1


def storage(means: Sequence[float], spread: float, lost: Mapping[str, int] | None = None) -> Study:
    """Returns a lab as `lab new storage` writes it: as it is, a zero-latency WAL, and two devices. `lost`:
    configuration → block in which its trial failed."""
    plan = lab({"storage": ("as it is", "zero-latency WAL", "gp3", "io2")}, blocks=6)
    base = plan.setups[0].system
    setups = [replace(one, system=replace(base, label=one.system.label)) for one in plan.setups]
    setups[1] = replace(setups[1], system=replace(setups[1].system, ideal=("log",)))
    setups[2:] = plan.setups[2:]
    plan = replace(plan, setups=tuple(setups))
    cells = [one.cell.name for one in plan.setups]
    records = trials(plan, dict(zip(cells, means, strict=True)), spread)
    failed = (text_note("the server crashed"),)
    for name, block in (lost or {}).items():
        one = next(one for one in records if one.cell.name == f"storage={name}" and one.block == block)
        records.remove(one)
        dead = replace(one, status=Status.FAILED, metrics={}, causes=failed)
        records += [dead, replace(dead, id=f"{one.id}-2", attempt=2)]
    return studied(plan, records)


@pytest.mark.parametrize("free", [1030.0, 1300.0])
def test_a_storage_lab_answers_first_what_any_faster_device_could_gain(free: float) -> None:
    found = answer(storage((1000.0, free, 500.0, 1200.0), 0.01))
    assert found.decision.text.startswith("With zero-latency WAL, throughput is ")
    assert [point.text[:11] for point in found.points[:2]] == ["storage=gp3", "storage=io2"]


def test_the_upper_bound_is_said_even_before_that_nothing_is_decided() -> None:
    found = answer(storage((1000.0, 1010.0, 990.0, 1005.0), 0.3))
    assert found.decision.text.startswith("With zero-latency WAL, throughput is ")
    assert found.points[0].text == all_inconclusive(3, "throughput")


def test_an_upper_bound_that_was_not_measured_does_not_lead() -> None:
    study = storage((1000.0, 1300.0, 500.0, 1200.0), 0.01)
    (ceiling,) = study.ceilings
    found = answer(replace(study, ceilings=(replace(ceiling, verdict=PartVerdict.NOT_MEASURED),)))
    assert found.decision.text.startswith("storage=gp3 is ")


REPEAT = "repeat its block with `ironbench lab resume --failed`"


def test_after_a_failed_block_the_answer_says_how_to_repeat_it() -> None:
    text = said(storage((1000.0, 1300.0, 500.0, 1200.0), 0.01, {"io2": 3}))
    assert "storage=io2" in text and text.count(REPEAT) == 1
    assert text.index("storage=io2") < text.index(REPEAT)
    of_bound = said(storage((1000.0, 1300.0, 500.0, 1200.0), 0.01, {"zero-latency WAL": 3}))
    assert of_bound.startswith("With zero-latency WAL, ") and of_bound.count(REPEAT) == 1
    assert "--failed" not in said(storage((1000.0, 1300.0, 500.0, 1200.0), 0.01))


def test_advice_about_failed_blocks_does_not_hide_the_advice_for_the_others() -> None:
    text = said(storage((1000.0, 1300.0, 1010.0, 1200.0), 0.08, {"io2": 3}))
    assert REPEAT in text and "To decide the others: " in text


def test_the_answer_and_the_section_about_time_name_one_limit() -> None:
    study = two_cells(1800.0)
    (finding,) = study.findings
    held = Ceiling(("log",), 1.8, 1.7, 1.9, PartVerdict.BOTTLENECK, True, finding, ("log",), {})
    taken = LimitingResource(
        OTHER_PROGRAMS, 0.66, None, note("limit-other-programs", waiting=0.66, computing=0.2, cpu=()), 0.7
    )
    quiet = LimitingResource("", 0.3, None, note("limit-unknown-own-cpu", share=0.3))
    disturbed = replace(held, verdict=PartVerdict.DISTURBED, is_bottleneck=None, taken=0.7)
    for ceiling, of_time, limit in (
        (held, quiet, "the bottleneck is WAL. With zero-latency WAL, "),
        (disturbed, taken, "the bottleneck is other programs"),
    ):
        spent = TimeSpent("log=disk", 10, 10, 0.01, (), of_time, {}, {})
        cells = tuple(replace(cell, time=spent if cell.name == "log=disk" else None) for cell in study.cells)
        known = replace(study, cells=cells, ceilings=(ceiling,))
        text, ((_, in_section),) = answer(known).limit, limits(known).texts
        assert text.startswith(f"With WAL on disk, {limit}")
        assert text.removeprefix("With WAL on disk, ")[1:] == in_section[1:]


def mounted(path: str, source: str, number: str) -> dict[str, object]:
    return {"path": path, "source": source, "kind": "xfs", "number": number, "options": []}


MOUNTS = {"mounts": [mounted("/srv", "/dev/vda1", "254:1"), mounted("/fast", "/dev/nvme0n1", "259:0")], "blocks": []}


@pytest.mark.parametrize(
    ("latency_s", "places", "machine", "told"),
    [
        (1e-7, ("/srv/postgres-16", "/fast/postgres-16"), MOUNTS, True),
        (0.002, ("/srv/postgres-16", "/fast/postgres-16"), MOUNTS, False),
        (1e-7, ("/srv/postgres-16", "/srv/postgres-18"), MOUNTS, False),
        (1e-7, ("/srv/postgres-16", "/fast/postgres-16"), {}, False),
    ],
    ids=["two devices", "devices that are read", "two directories of one device", "devices that are not known"],
)
def test_devices_that_serve_hardly_any_reads_are_not_said_to_be_compared_by_reads(
    latency_s: float, places: tuple[str, str], machine: dict[str, object], told: bool
) -> None:
    plan = lab(LOG)
    moved = {
        setup.cell.name: replace(setup.system, layout=replace(setup.system.layout, data=place))
        for setup, place in zip(plan.setups, places, strict=True)
    }
    plan = replace(plan, setups=tuple(replace(one, system=moved[one.cell.name]) for one in plan.setups))
    read = {"device_reads_per_s{role=data}": 500.0, "device_read_latency_s{role=data}": latency_s}
    records = [
        replace(one, metrics=one.metrics | read)
        for one in trials(plan, {"log=disk": 1000.0, "log=memory": 1900.0}, observed=True)
    ]
    study = lab_study(plan, records, Shelf(records, machines={"m1": machine}))
    assert ("reads-from-memory" in {one.code for one in study.warnings}) is told


@pytest.mark.parametrize(("models", "told"), [(("gp3", "gp3"), False), (("gp3", "io2"), True)])
def test_emulated_devices_of_one_model_are_not_said_to_be_compared_by_reads(
    models: tuple[str, str], told: bool
) -> None:
    plan = lab(LOG)
    layouts = [
        Layout(f"/d{place}", devices=(Device(model, (Partition("data", 1 << 30, f"/d{place}"),)),))
        for place, model in enumerate(models)
    ]
    setups = zip(plan.setups, layouts, strict=True)
    plan = replace(
        plan, setups=tuple(replace(one, system=replace(one.system, layout=layout)) for one, layout in setups)
    )
    read = {"device_reads_per_s{role=data}": 500.0, "device_read_latency_s{role=data}": 1e-7}
    records = [
        replace(one, metrics=one.metrics | read)
        for one in trials(plan, {"log=disk": 1000.0, "log=memory": 1900.0}, observed=True)
    ]
    assert ("reads-from-memory" in {one.code for one in studied(plan, records).warnings}) is told


@pytest.mark.parametrize("format", ["text", "md", "html", "json"])
def test_every_format_has_the_answer_in_the_same_order(format: str) -> None:
    plan = lab({"log": ("disk", "memory", "raid")}, blocks=8)
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1900.0, "log=raid": 1010.0}, 0.05, observed=True)
    known = [Noise("m1", work_name(OLTP), "throughput", 12, 0.02, 0.021, "2026-11-20T00:00:00")]
    study = studied(plan, records, known)
    shown = " ".join(formats.get(format)([study]).decode().replace("\\", "").split())
    found = answer(study)
    parts = [found.decision.text, found.points[0].text, found.points[0].caveat, found.limit, *found.caveats]
    assert all(parts) and len(parts) == 5
    begin = shown.index('"answer"') if format == "json" else 0
    places = [shown.index(" ".join(text.split()), begin) for text in parts]
    assert places == sorted(places)


def test_too_few_blocks_give_no_verdict_and_say_so() -> None:
    study = two_cells(1500.0, blocks=4)
    assert [finding.conclusion for finding in study.findings] == [Conclusion.CANNOT_TELL]
    assert any(
        "a verdict needs at least 6 complete blocks, but there are only 4" in text
        for text in wording.texts(study.warnings)
    )
    counting = [text for text in wording.texts(study.warnings) if "complete block" in text]
    assert len(counting) == 1, "one page counts blocks in one way"


def test_failed_transactions_stand_in_the_answer_and_beside_the_rates_of_a_lab() -> None:
    plan = lab(LOG, blocks=6)
    records = [
        replace(one, metrics={**one.metrics, "failed": one.metrics["transactions"] / 19 if one.block else 0.0})
        if one.cell.name == "log=memory"
        else one
        for one in trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0})
    ]
    study = studied(plan, records)
    assert (
        "Failed transactions: 4.2% with WAL in memory. Throughput counts only successful transactions."
        in answer(study).caveats
    )
    tables = [chart.table for section in sections(study) for chart in section.charts if chart.id == "points"]
    (table,) = tables
    place = table.head.index("failed")
    assert [row[place] for row in table.texts] == ["–", "4.2%"]


def test_a_lab_counts_in_the_unit_of_its_workload() -> None:
    plan = lab(LOG, blocks=6)
    events = [
        replace(one, described=replace(described(one), units=("event", "events")))
        for one in trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0})
    ]
    assert studied(plan, events).counts == ("event", "events")


def test_many_comparisons_are_told_by_how_they_ended() -> None:
    plan = lab({"work_mem": [f"{size}MB" for size in range(1, 22)]}, full=False)
    study = studied(plan, trials(plan, {s.cell.name: 1000.0 + 40 * n for n, s in enumerate(plan.setups)}))
    found = answer(study)
    assert found.decision.text.startswith("work_mem=21MB is 7")
    assert found.points[0].text.startswith("work_mem=20MB is 7")
    assert "its throughput" not in found.points[0].text, "the decision has named the metric"
    assert "14 more comparisons: " in said(study) and len(found.points) == 6


def test_a_lab_without_a_usable_trial_has_no_answer_yet() -> None:
    plan = lab(LOG)
    dead = [
        replace(one, status=Status.FAILED, metrics={}, causes=(text_note("disk full"),))
        for one in trials(plan, dict.fromkeys(("log=disk", "log=memory"), 1.0))
    ]
    study = studied(plan, dead)
    assert "No answer yet" in said(study)
    assert any("disk full" in text for text in document.caveats(study))
    assert "No answer yet" in said(studied(plan, []))


def test_claims_and_run_to_run_variation_are_part_of_the_answer() -> None:
    claims = [Claim(f"{high}", "ratio", "throughput", ("log=memory", "log=disk"), 1.0, high) for high in (1.9, 1.1)]
    claims.append(Claim("p99", "ratio", "response_time_p99_s", ("log=memory", "log=disk"), 0.5, 1.0))
    plan = lab(LOG, claims=claims)
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0})
    study = studied(plan, records, [Noise("m1", work_name(OLTP), "throughput", 12, 0.02, 0.021, "2026-11-20T00:00:00")])
    assert "Results of the 3 claims in the lab file: 2 confirmed, 1 refuted." in said(study)
    assert "differ by less than 2.1" in said(study)
    assert [finding.metric for finding in study.findings] == ["throughput"]
    assert [finding.metric for finding in study.claimed] == ["response_time_p99_s"]
    assert "response_time_p90_s" in {finding.metric for finding in study.others}


def test_the_noise_of_another_machine_or_of_other_work_is_not_quoted() -> None:
    plan = lab(LOG)
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0})
    known = Noise("m1", work_name(OLTP), "throughput", 12, 0.02, 0.021, "2026-11-20T00:00:00")
    others = [replace(known, machine="m2"), replace(known, work="tpch", floor=0.09)]
    assert studied(plan, records, others).noise is None
    assert studied(plan, records, [*others, known]).noise == known


def test_a_failed_trial_that_was_tried_again_is_represented_by_its_last_attempt() -> None:
    plan = lab(LOG, blocks=6)
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0})
    dead = replace(records[0], id="dead", status=Status.FAILED, metrics={}, causes=(text_note("killed"),))
    again = replace(records[0], attempt=2, started_at="2026-11-21T09:00:00")
    study = studied(plan, [again, dead, *records[1:]])
    assert sum(len(cell.trials) for cell in study.cells) == 12
    assert not study.left_out
    assert any("1" in row[4] for row in dict(plan_tables(study))["Configurations"].texts)


def test_what_is_missing_of_the_plan_is_said() -> None:
    plan = lab(LOG, blocks=6)
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0})
    study = studied(plan, records[:-3])
    assert not study.complete
    assert any("3 of 12 planned trials" in text for text in wording.texts(study.warnings))
    assert studied(plan, records).complete


def test_dropped_blocks_and_skipped_configurations_are_among_the_caveats() -> None:
    plan = lab({"log": ("disk", "memory", "ssd")}, skipped={"log=ssd": "no such directory"})
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0})
    dead = replace(records[0], status=Status.FAILED, metrics={}, causes=(text_note("disk full"),))
    rows = document.caveats(studied(plan, [dead, *records[1:]]))
    assert "WAL on ssd was not measured: no such directory" in rows
    assert (
        "Excluded from the comparison: block 1: "
        f"{wording.terms.configuration(plan.configuration(dead.cell.name))} failed (disk full)" in rows
    )


def test_scripts_are_named_without_their_directories_where_their_names_differ() -> None:
    files = [Choice("script", scripts=(f"/srv/{name}.sql@2",)) for name in ("a/read", "a/write", "b/read")]
    assert work_names(files[:2]) == "script read.sql@2; script write.sql@2"
    assert work_names(files[:1] * 2) == "script read.sql@2"
    assert work_names(files[::2]) == "script /srv/a/read.sql@2; script /srv/b/read.sql@2"


def test_a_trial_that_was_tried_twice_has_the_reason_though_it_succeeded_then() -> None:
    plan = lab(LOG)
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0})
    dead = replace(
        records[0], id="first", status=Status.FAILED, metrics={}, causes=(text_note("the server went away"),)
    )
    study = studied(plan, [dead, replace(records[0], attempt=2), *records[1:]])
    rows = {row[0]: row[4] for row in dict(plan_tables(study))["Configurations"].texts}
    assert rows.pop(
        wording.terms.label(plan.configuration(dead.cell.name))
    ) == "1 (failed: the server went away)" and set(rows.values()) == {""}


@pytest.mark.parametrize("name", ["WAL on disk", "WAL in memory"])
def test_what_was_varied_is_among_the_differences(name: str) -> None:
    rows = between_cells(two_cells(1500.0)).texts
    assert any(name in row[2] for row in rows)


def test_a_comparison_is_named_by_what_differs() -> None:
    plan = lab({"log": ("disk", "memory"), "clients": ("1", "8")})
    pairs = [
        ("log=memory clients=1", "log=disk clients=1"),
        ("log=memory clients=8", "log=disk clients=8"),
        ("log=disk clients=8", "log=disk clients=1"),
        ("x", "y"),
        ("small", "large"),
    ]
    own = [
        replace(setup, cell=replace(setup.cell, name=name, levels={"cell": name}))
        for setup, name in zip(plan.setups, ("small", "large"), strict=False)
    ]
    named = named_sides(replace(plan, setups=(*plan.setups, *own)), pairs)
    names = [tuple(side.name for side in named[pair]) for pair in pairs]
    assert names[0] == ("log=memory", "log=disk", "clients=1")
    assert names[1] == ("log=memory", "log=disk", "clients=8")
    assert names[2] == ("clients=8", "clients=1", "log=disk")
    assert names[3] == ("x", "y", "")
    assert names[4] == ("small", "large", ""), "cells with names of their own go by them"


def test_the_answer_names_the_bottleneck_of_a_slower_configuration_and_otherwise_of_the_baseline() -> None:
    plan = lab(LOG)
    for memory, named in ((500.0, "memory"), (1900.0, "disk")):
        study = studied(plan, trials(plan, {"log=disk": 1000.0, "log=memory": memory}, observed=True))
        assert f"With WAL {'in' if named == 'memory' else 'on'} {named}, the bottleneck is" in said(study)


def test_where_the_time_goes_is_told_for_each_cell_and_from_one_to_the_other() -> None:
    plan = lab(LOG)
    study = studied(plan, trials(plan, {"log=disk": 1000.0, "log=memory": 1900.0}, observed=True))
    assert "With WAL on disk, the bottleneck is WAL" in said(study)
    (found,) = study.waterfalls
    assert (found.before, found.after) == tuple(map(plan.configuration, ("log=disk", "log=memory")))
    section = next(section for section in sections(study) if section.id == "time")
    assert [chart.id for chart in section.charts] == ["time", "waterfall-0"]
    steps = section.charts[1].specification["datasets"]["steps"]
    assert steps[0]["end"] + sum(
        s["to"] - s["from"] if s["kind"] == "more time" else s["from"] - s["to"] for s in steps[1:-1]
    ) == pytest.approx(steps[-1]["end"])


def test_many_comparisons_show_their_main_metrics_side_by_side() -> None:
    plan = lab({"work_mem": ("1MB", "2MB", "4MB", "8MB")}, blocks=6)
    study = studied(plan, trials(plan, {s.cell.name: 1000.0 for s in plan.setups}))
    (section,) = [section for section in sections(study) if section.id == "others"]
    ((_, table),) = section.tables
    assert len(table.texts) == 3
    assert "median response time" in table.head


def test_a_full_design_counts_its_comparisons_and_names_each_with_its_baseline() -> None:
    plan = lab({"cache": ("hot", "cold"), "clients": ("1", "2", "4")}, blocks=6)
    names = {tuple(s.cell.levels.values()): s.cell.name for s in plan.setups}
    pairs = [(names["cold", n], names["hot", n]) for n in ("1", "2", "4")]
    pairs += [(names[c, n], names[c, "1"]) for c in ("hot", "cold") for n in ("2", "4")]
    plan = replace(plan, comparisons=tuple(pairs))
    means = {s.cell.name: 500.0 * int(s.cell.levels["clients"]) for s in plan.setups}
    found = answer(studied(plan, trials(plan, means, 0.04)))
    told = [found.decision, *found.points]
    assert told[0].text.startswith("With 2 clients, cache=cold is 5.4% slower than cache=hot ("), (
        "the first factor leads"
    )
    assert all("INCONCLUSIVE: cache=cold vs. cache=hot, with " in point.text for point in told[1:3])
    assert all("minimum detectable effect" in point.caveat for point in told[1:3])
    assert all(" with 1 client (" in point.text and not point.caveat for point in told[3:])
    assert len(told) == 7 and "To decide all of them: " in told[2].caveat and not found.caveats


def test_the_advice_for_many_is_that_of_the_one_that_needs_most() -> None:
    plan = lab({"log": ("disk", "ssd", "memory")}, blocks=6, full=False)
    quiet = trials(plan, dict.fromkeys(("log=disk", "log=ssd", "log=memory"), 1000.0), 0.06)
    loud = trials(plan, dict.fromkeys(("log=disk", "log=ssd", "log=memory"), 1000.0), 0.3)
    mixed = [b if b.cell.name == "log=memory" else a for a, b in zip(quiet, loud, strict=True)]
    study = studied(plan, mixed)
    by_cell = {finding.cell: finding for finding in study.findings}
    assert {one.conclusion for one in by_cell.values()} == {Conclusion.CANNOT_TELL}
    needed = by_cell["log=memory"].advice
    assert needed is not None and f"To decide all of them: {wording.text(needed)}." in said(study)


def test_a_fixed_order_is_told_and_no_order_drawn_is_claimed() -> None:
    plan = lab(LOG, blocks=6)
    fixed = replace(plan, method=replace(plan.method, order="fixed"))
    means = {"log=disk": 1000.0, "log=memory": 1500.0}
    for declared, drawn in ((plan, True), (fixed, False)):
        study = studied(declared, trials(declared, means))
        lead = next(section.lead for section in sections(study) if section.id == "plan")
        assert ("random order (seed" in lead) == drawn
        assert any("fixed order (`measure.order`)" in text for text in document.caveats(study)) != drawn


def test_a_trial_that_was_cut_short_is_still_to_be_run_and_no_trial_of_the_report() -> None:
    plan = lab(LOG, blocks=6)
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1100.0})[:5]
    records[4] = replace(records[4], status=Status.CUT_SHORT)
    study = studied(plan, records)
    assert "8 of 12 planned trials have not run: run them with `ironbench lab resume`" in wording.texts(study.warnings)
    assert (study.trials, study.missing, study.complete) == (4, 8, False)
    assert "4 trials" in document.kicker(study)
    again = replace(records[4], status=Status.OK, attempt=2, id="again")
    assert studied(plan, [*records, again]).trials == 5


def test_checkpoints_that_nobody_chose_are_told_as_the_plan_tells_them() -> None:
    plan = lab(LOG, blocks=6)
    study = studied(plan, trials(plan, {"log=disk": 1000.0, "log=memory": 1100.0}))
    notes = " ".join(document.notes(study))
    assert "the server performs a checkpoint every 10 s (three per trial)" in notes


def test_intervals_at_more_than_95_percent_are_explained() -> None:
    assert not any("false alarm" in note for note in document.notes(two_cells(1100.0)))
    plan = lab({"log": ("disk", "memory", "ssd")}, blocks=6)
    study = studied(plan, trials(plan, {s.cell.name: 1000.0 + 40 * n for n, s in enumerate(plan.setups)}))
    notes = " ".join(document.notes(study))
    assert "Confidence intervals have a level of 97.5% instead of 95%" in notes
    assert "divided among 2 comparisons" in notes
    more = replace(plan, method=replace(plan.method, stages=(Stage(1, 6), Stage(2, 6, added=True))))
    notes = " ".join(document.notes(replace(study, lab=more)))
    assert "divided among 2 comparisons" in notes, "an added round has a level of its own"


def test_a_cell_that_was_never_measured_differs_by_what_was_varied_and_not_by_all_that_was_not_seen_of_it() -> None:
    plan = lab({"work_mem": ("4MB", "64MB", "1GB")}, blocks=6)
    records = [
        replace(one, status=Status.FAILED, metrics={}) if one.cell.levels["work_mem"] == "1GB" else one
        for one in trials(plan, {setup.cell.name: 1000.0 for setup in plan.setups})
    ]
    made = studied(plan, records)
    assert [(row.group, row.name) for row in made.differences] == [("system", "settings.work_mem")]
    assert made.differences[0].values == ("4MB", "64MB", "1GB")
    assert "machine.cpu.model" in made.shared


def test_the_percentiles_of_a_cell_are_those_of_all_its_transactions_as_in_every_section() -> None:
    plan = lab(LOG_FACTORS, blocks=6)
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0})
    archive = Shelf(records)
    study = lab_study(plan, records, archive)
    for cell in study.cells:
        known = metrics_of(cell.usable, ["response_time_p50_s"], archive)["response_time_p50_s"]
        assert cell.metrics["response_time_p50_s"] == known
        whole = percentiles(cell.usable, archive)
        assert whole is None or known.centre == pytest.approx(dict(whole.points)[0.5])


LOG_FACTORS = {"log": ("disk", "memory")}


def test_the_answer_is_about_the_factor_that_the_file_names_however_large_the_others_are() -> None:
    plan = lab({"log": ("disk", "memory"), "cache": ("64MB", "1GB")}, full=False)
    means = {setup.cell.name: 1800.0 * (1.05 + index) for index, setup in enumerate(plan.setups)}
    first = answer(studied(plan, trials(plan, means))).decision.sentence
    named = replace(plan, method=replace(plan.method, answer="cache"))
    chosen = answer(studied(named, trials(named, means))).decision.sentence
    assert "WAL in memory is" in first and "cache=1GB" not in first
    assert "cache=1GB is" in chosen and "WAL in memory" not in chosen


def test_the_answer_is_about_its_factor_alone_and_not_the_largest_ratio() -> None:
    plan = lab({"log": ("disk", "memory"), "cache": ("64MB", "1GB")})
    means = {setup.cell.name: 1800.0 * (1 + index) for index, setup in enumerate(plan.setups)}
    decision = answer(studied(plan, trials(plan, means))).decision.sentence
    assert decision.startswith("With cache=64MB, WAL in memory is")


def test_the_breakdown_of_a_configuration_uses_the_trials_of_the_comparison_beside_it() -> None:
    plan = lab({"log": ("disk", "memory")}, blocks=6)
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0}, observed=True)
    slow = {"log=disk": 100.0, "log=memory": 1500.0}
    records = [
        replace(one, metrics={**one.metrics, "throughput": slow[one.cell.name]})
        if one.block == 5
        else replace(one, status=Status.FAILED, metrics={})
        if (one.block, one.cell.name) == (4, "log=disk")
        else one
        for one in records
    ]
    lost = [
        replace(one, status=Status.FAILED, metrics={}) if (one.block, one.cell.name) == (5, "log=memory") else one
        for one in records
    ]
    study = studied(plan, lost)
    (waterfall,) = study.waterfalls
    totals = [cell.time.total_s for cell in study.cells if cell.time]
    assert totals == pytest.approx([waterfall.before_s, waterfall.after_s])
    assert [(cell.time.trials, cell.time.observed) for cell in study.cells if cell.time] == [(4, 5), (4, 5)]
    (section,) = time_spent.sections(study)
    assert "4 of 5 trials of WAL on disk and 4 of 5 trials of WAL in memory" in section.lead
    (section,) = time_spent.sections(studied(plan, trials(plan, slow, observed=True)))
    assert "means over all usable trials" in section.lead


def test_without_a_complete_block_the_breakdown_uses_every_usable_trial() -> None:
    plan = lab({"log": ("disk", "memory")}, blocks=6)
    records = [
        replace(one, status=Status.FAILED, metrics={}) if one.cell.name == "log=memory" else one
        for one in trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0}, observed=True)
    ]
    disk, memory = studied(plan, records).cells
    assert disk.time is not None and (disk.time.trials, disk.time.observed) == (6, 6)
    assert memory.time is None
