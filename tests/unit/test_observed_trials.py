"""Trials with observers in labs that use slices explain a difference, and no verdict uses them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from factories import Shelf
from labfactory import lab, studied, trials

from ironbench.lab.pace import Pace
from ironbench.lab.schedule import Blocks
from ironbench.model.inside import ServerStatistics, StatementPlan
from ironbench.model.lab import Lab
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record, Statement, Status
from ironbench.plan.blocks import OBSERVED_S, observed_trials
from ironbench.records.labs import FrozenPlan, LabDirectory
from ironbench.report.breakdown import breakdown_table
from ironbench.study.gate import gate as judged
from ironbench.study.labstudy import lab_study
from ironbench.study.shares import ShareStep, Waterfall
from ironbench.study.study import Study

OLD, NEW = "index=there", "index=dropped"
TEXT = "select id from item where code = :c"
STEPS = {OLD: ("Index Scan on item",), NEW: ("Seq Scan on item",)}
MEANS = {OLD: 0.001, NEW: 0.004}


def by_slices(blocks: int = 6) -> Lab:
    plan = lab({"index": ("there", "dropped")}, blocks=blocks)
    return replace(plan, method=replace(plan.method, slice_s=1.0, observed=True))


def in_blocks(plan: Lab) -> list[Record]:
    return trials(plan, {OLD: 1000.0, NEW: 800.0}, 0.01)


def observed(plan: Lab, status: Status = Status.OK, attempt: int = 1, throughput: float = 7.0) -> list[Record]:
    """Returns a record of each trial with observers, with statement times and a throughput that would change any
    verdict."""
    found = []
    for trial in observed_trials(plan):
        like = next(one for one in in_blocks(plan) if one.cell.name == trial.cell.name)
        timed = Statement("read.sql", 2, 1, TEXT, 1000, 0, MEANS[trial.cell.name], 1e-4)
        metrics = {**like.metrics, "throughput": throughput if trial.cell.name == NEW else 1.0}
        found.append(
            replace(
                like,
                id=f"{trial.cell.name}-observed-{attempt}",
                cell=trial.cell,
                block=0,
                purpose=Purpose.OBSERVED,
                status=status,
                attempt=attempt,
                metrics=metrics if status.comparable else {},
                statements=(timed,) if status.comparable else (),
            )
        )
    return found


def explained(plan: Lab) -> Study:
    seen = observed(plan)
    records = [*in_blocks(plan), *seen]
    insides = {
        one.id: ServerStatistics(plans=(StatementPlan("read.sql", 1, TEXT, steps=STEPS[one.cell.name]),))
        for one in seen
    }
    statements = {one.id: one.statements for one in seen}
    return lab_study(plan, records, Shelf(records, insides=insides, statements=statements))


def waiting(plan: Lab, place: Path, records: Sequence[Record], forgiven: Sequence[str] = ()) -> list[tuple[str, int]]:
    """Returns the configuration and attempt of the following trials with observers, none of which has a record."""
    directory = LabDirectory(place)
    directory.begin(FrozenPlan(plan, "m1", {}, {}))
    directory.declare(plan.method.stages[0], plan.trials)
    trial = Blocks(directory, records, forgiven).waiting(records)
    return [] if trial is None else [(trial.cell.name, trial.attempt), (trial.purpose, trial.block)]


def test_they_follow_the_blocks_short_and_with_every_statement_timed(tmp_path: Path) -> None:
    plan, records = by_slices(), in_blocks(by_slices())
    assert waiting(plan, tmp_path / "open", records[:-1])[1][0] != Purpose.OBSERVED
    assert waiting(plan, tmp_path / "whole", records) == [(OLD, 1), (Purpose.OBSERVED, 0)]
    first, second = observed_trials(plan)
    assert first.cell.load.duration_s == second.cell.load.duration_s == OBSERVED_S < 30.0
    assert first.cell.load.report_per_statement and second.cell.load.report_per_statement


def test_each_configuration_has_one_and_a_failed_one_is_tried_once_more(tmp_path: Path) -> None:
    plan, records = by_slices(), in_blocks(by_slices())
    one, other = observed(plan)
    failed = [replace(one, status=Status.FAILED, id=f"f{n}", attempt=n) for n in (1, 2)]
    assert waiting(plan, tmp_path / "a", [*records, one])[0] == (NEW, 1)
    assert waiting(plan, tmp_path / "b", [*records, one, other]) == []
    assert waiting(plan, tmp_path / "c", [*records, failed[0]])[0] == (OLD, 2)
    assert waiting(plan, tmp_path / "d", [*records, *failed])[0] == (NEW, 1)
    assert waiting(plan, tmp_path / "e", [*records, *failed, other]) == []
    assert waiting(plan, tmp_path / "f", [*records, *failed, other], ["f1", "f2"])[0] == (OLD, 3)
    cut = replace(one, status=Status.CUT_SHORT)
    assert waiting(plan, tmp_path / "g", [*records, cut])[0] == (OLD, 2)


def test_labs_by_trials_and_labs_begun_without_them_have_none(tmp_path: Path) -> None:
    plan = by_slices()
    before = replace(plan, method=replace(plan.method, observed=False))
    assert observed_trials(before) == [] and waiting(before, tmp_path, in_blocks(plan)) == []


@pytest.mark.parametrize("throughput", [0.001, 1000.0])
def test_no_finding_figure_or_verdict_uses_them(throughput: float) -> None:
    plan = by_slices()
    without, beside = (studied(plan, [*in_blocks(plan), *more]) for more in ([], observed(plan, throughput=throughput)))
    assert [*without.findings] == [*beside.findings]
    assert [(one.metric, one.metrics, one.trials) for one in without.cells] == [
        (one.metric, one.metrics, one.trials) for one in beside.cells
    ]
    assert without.warnings == beside.warnings and beside.missing == 0


def test_a_failed_one_changes_no_verdict_and_explains_nothing() -> None:
    plan = by_slices()
    study = studied(plan, [*in_blocks(plan), *observed(plan, Status.FAILED), *observed(plan, Status.FAILED, 2)])
    assert study.details.observed == () and study.missing == 0
    assert study.findings[0].conclusion == studied(plan, in_blocks(plan)).findings[0].conclusion


def test_a_lab_by_slices_is_explained_by_plans_and_statements_of_its_observed_trials() -> None:
    study = explained(by_slices())
    (found,) = study.explanations
    assert found.observed and len(study.details.observed) == 2
    assert [one.plan.steps for one in found.plans] == [STEPS[NEW]]
    ((command, ratio),) = found.statements
    assert command.text == TEXT and ratio.ratio == pytest.approx(4.0) and not ratio.known
    assert found.throughput[0].ratio == pytest.approx(0.8, rel=0.05)  # from the blocks


def test_what_one_observed_trial_shows_has_no_interval() -> None:
    study = explained(by_slices())
    (found,) = study.explanations
    steps = (ShareStep(0.009, 0.009, 0.009, "run queue"),)
    seen = replace(found, waterfall=Waterfall(OLD, NEW, 0.001, 0.01, 0.008, 0.01, steps, "error of sampling alone"))
    rows = {row[0]: row[-1] for row in breakdown_table(seen).texts}
    assert (rows["command"], rows["wait class"]) == ("no CI", "no CI")
    assert " to " in rows["throughput"]


def test_statement_times_of_the_slices_come_before_those_of_observed_trials() -> None:
    plan = by_slices()
    seen = observed(plan)
    own = [
        replace(one, statements=(Statement("read.sql", 2, 1, TEXT, 10, 0, 2 * MEANS[one.cell.name], 1e-4),))
        for one in in_blocks(plan)
    ]
    records = [*own, *seen]
    study = lab_study(plan, records, Shelf(records, statements={one.id: one.statements for one in records}))
    first = study.details.timed[0].statements[0]
    assert first is not None and first.mean_s == pytest.approx(2 * MEANS[OLD]) and first.count == 60


def test_every_document_of_a_gate_says_why_and_that_no_verdict_uses_it() -> None:
    from ironbench.report.gate_page import written

    study = explained(by_slices())
    found = judged(study, study.findings, 0.05, "fail")
    causes = json.loads(written(found, "json"))["checks"][0]["causes"]
    assert [one["cause"] for one in causes] == ["other plan", "slower statement"]
    shown = [" ".join(written(found, format).decode().split()) for format in ("text", "md", "html", "xml")]
    for words in shown:
        assert "Seq Scan on item instead of Index Scan on item" in words
    for words in shown[:3]:
        assert "no verdict uses them" in words


def test_progress_counts_them(tmp_path: Path) -> None:
    plan = by_slices()
    records = in_blocks(plan)
    last, (first, second) = plan.trials[-1], observed_trials(plan)
    pace = Pace(plan, lambda: 0.0)
    titles = [
        pace.title(replace(last, purpose=Purpose.LAB), records[:-1]),
        pace.title(first, records),
        pace.title(second, [*records, observed(plan)[0]]),
    ]
    assert [title.split(",")[0] for title in titles] == [f"trial {n} of 14" for n in (12, 13, 14)]
