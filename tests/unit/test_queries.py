"""Queries are compared one by one, paired by block, and drawn with what is not certain."""

import math
from dataclasses import replace

import pytest
from factories import DISK, Shelf, record
from labfactory import lab, trials

from ironbench.analyse.labstudy import LabStudy, lab_study
from ironbench.analyse.queries import queries
from ironbench.report.charts.queries import by_query
from ironbench.report.lab_figures import sections


def timed(times_s: dict[str, float], block: int, parallelism: int | None = None):
    metrics = {f"query_time_s{{query={query}}}": time_s for query, time_s in times_s.items()}
    return record(replace(DISK, parallelism=parallelism), 1, 1.0, block=block, metrics=metrics)


def test_ratios_are_paired_by_block_so_that_a_slow_block_cancels() -> None:
    slow = [1.0, 3.0, 1.5]
    baseline = [timed({"q01": 2.0 * mood, "q02": 1.0}, block) for block, mood in enumerate(slow)]
    other = [timed({"q01": 1.0 * mood, "q02": 1.0}, block) for block, mood in enumerate(slow)]
    found = queries([("disk", baseline), ("ssd", other)])
    assert found is not None
    (compared,) = found.compared
    first, second = compared.ratios
    assert (first.query, first.blocks) == ("q01", 3)
    assert first.ratio == pytest.approx(0.5)
    assert first.low == pytest.approx(0.5) and first.high == pytest.approx(0.5)
    assert second.ratio == 1.0
    assert compared.overall == pytest.approx(math.sqrt(0.5))


def test_one_block_has_a_ratio_and_no_interval() -> None:
    found = queries([("a", [timed({"q01": 2.0}, 0)]), ("b", [timed({"q01": 1.0}, 0)])])
    assert found is not None
    (one,) = found.compared[0].ratios
    assert (one.ratio, one.low, one.high) == (0.5, 0.0, math.inf)
    (chart, _) = by_query(found)
    assert "no interval" in chart.table.rows[0]


def test_reference_scores_draw_the_ratio_that_the_processors_alone_let_expect() -> None:
    def scored(label: str, score: float | None):
        system = replace(DISK, label=label, reference_score=score)
        return [record(system, 1, 1.0, metrics={"query_time_s{query=q01}": 1.0})]

    found = queries([("old", scored("old", 19.4)), ("new", scored("new", 31.5)), ("other", scored("other", None))])
    assert found is not None
    assert [one.expected for one in found.subjects] == [None, pytest.approx(0.616, abs=5e-4), None]
    bars = by_query(found)[0]
    assert [row["system"] for row in bars.specification["datasets"]["expected"]] == ["new"]
    assert "new 0.616 (31.5 to 19.4)" in bars.note
    without = queries([("old", scored("old", None)), ("new", scored("new", 31.5))])
    assert "Dotted" not in by_query(without)[0].note


def test_work_without_queries_has_no_such_charts() -> None:
    assert queries([("a", [record(DISK, 1, 100.0)])]) is None
    assert by_query(None) == []


def test_subjects_stand_by_their_parallelism_only_where_each_degree_is_one_of_them() -> None:
    groups = [(f"p{degree}", [timed({"q01": 4.0 / degree, "q02": 4.0}, 0, degree)]) for degree in (1, 4, 2)]
    found = queries(groups)
    assert found is not None
    assert [subject.parallelism for subject in found.by_parallelism] == [1, 2, 4]
    chart = by_query(found)[-1]
    assert chart.id == "speed-up"
    assert chart.table.rows == (
        ("q01", "1.00", "2.00", "4.00"),
        ("q02", "1.00", "1.00", "1.00"),
        ("all queries", "1.00", "1.41", "2.00"),
    )
    twice = queries([*groups, ("again", groups[0][1])])
    assert twice is not None and not twice.by_parallelism


def study(**others: float) -> LabStudy:
    """Of a lab with query 7, and others that take as long in every cell."""
    rest = {f"query_time_s{{query={name}}}": time for name, time in others.items()}
    plan = lab({"storage": ("disk", "ssd")}, blocks=6)
    found = [
        replace(
            one, metrics={**one.metrics, "query_time_s{query=q07}": 2.0 if "disk" in one.cell.name else 1.0, **rest}
        )
        for one in trials(plan, {setup.cell.name: 1.0 for setup in plan.setups})
    ]
    return lab_study(plan, found, Shelf(found))


def test_a_lab_of_queries_has_a_section_with_bars_and_a_map() -> None:
    (section,) = [section for section in sections(study(q08=3.0)) if section.id == "queries"]
    assert [chart.id for chart in section.charts] == ["query-ratios", "query-map"]
    bars = section.charts[0]
    assert bars.table.rows[0] == ("q07", "2.00", "1.00", "0.500", "0.500 to 0.500")
    assert "q07" in bars.alt


def test_a_lab_of_one_query_has_no_section_that_would_say_its_finding_again() -> None:
    assert "queries" not in {section.id for section in sections(study())}


def test_a_report_of_one_system_leads_with_its_figures_of_merit_and_each_query() -> None:
    from ironbench.analyse.study import study_of
    from ironbench.model.system import Choice
    from ironbench.report import own

    figures = {"power": 360.0, "power_unrounded": 2215.0, "query_time_geomean_s": 0.5, "query_time_s{query=q01}": 0.5}
    work = Choice("tpch", {"sf": "0.01", "answers": "/somewhere", "plans": "no"})
    one = replace(record(DISK, 1, 33.0, metrics=figures), choice=work)
    other = replace(one, id="other", block=1, choice=replace(work, options={**work.options, "answers": ""}))
    (study,) = study_of([one, other])
    assert study.work == "tpch sf=0.01"
    shown = own.presentation(study)
    assert shown is not None
    assert shown.headline(study)[0][1].startswith("power, unrounded 2")
    assert shown.peaks(study).rows[0] == ("power", "360.0")
    by_query = shown.sections(study)[1]
    assert by_query.tables[0][1].rows[0][0] == "q01"
