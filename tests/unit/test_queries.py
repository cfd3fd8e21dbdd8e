"""Queries are compared one by one, paired by block, and drawn with their uncertainty."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import replace

import pytest
from factories import DISK, record
from labfactory import lab, studied, trials

from ironbench.report.charts.base import Chart
from ironbench.report.charts.queries import by_query, query_bars, query_map
from ironbench.report.sections import sections
from ironbench.study.queries import queries
from ironbench.study.study import Study


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


@pytest.mark.parametrize("blocks", [1, 2])
def test_fewer_blocks_than_a_verdict_gives_an_interval_of_have_a_ratio_and_none(blocks: int) -> None:
    sides = [[timed({"q01": time_s}, block) for block in range(blocks)] for time_s in (2.0, 1.0)]
    found = queries([("a", sides[0]), ("b", sides[1])])
    assert found is not None
    (one,) = found.compared[0].ratios
    assert (one.ratio, one.low, one.high) == (0.5, 0.0, math.inf)
    (chart, _) = by_query(found)
    assert chart.table.head == ("query", "a", "b", "ratio")
    assert chart.specification["datasets"]["whiskers"] == []
    assert "95% confidence" not in chart.note and "the variation is unknown" in chart.note


def test_trials_of_separate_runs_do_not_pair_by_the_numbers_of_their_blocks() -> None:
    moods = [1.0, 3.0, 1.5]
    baseline = [timed({"q01": 2.0 * mood}, block) for block, mood in enumerate(moods)]
    other = [timed({"q01": 1.0 * mood}, block) for block, mood in enumerate(moods)]
    found = queries([("disk", baseline), ("ssd", other)], in_blocks=False)
    assert found is not None
    (one,) = found.compared[0].ratios
    assert one.ratio == pytest.approx(0.5)
    assert one.low < 0.5 < one.high, "the moods of two runs do not cancel"
    assert "Welch" in by_query(found)[0].note


def test_a_system_keeps_its_colour_where_the_baseline_is_not_drawn() -> None:
    found = queries([("a", [timed({"q01": 2.0}, 0)]), ("b", [timed({"q01": 1.0}, 0)])])
    (bars, _) = by_query(found)
    scale = bars.specification["layer"][0]["encoding"]["color"]["scale"]
    assert dict(zip(scale["domain"], scale["range"], strict=True))["b"] == "@s1"
    assert [(key.label, key.colour) for key in bars.legend] == [("b", "s1")]


def test_every_time_of_a_map_has_three_digits_and_a_unit() -> None:
    found = queries([("a", [timed({"q01": 0.0123, "q02": 4.0}, 0)]), ("b", [timed({"q01": 0.0456, "q02": 70.0}, 0)])])
    (_, chart) = by_query(found)
    told = [row["text"] for row in chart.specification["datasets"]["map"]]
    assert told == ["12.3\u202fms", "45.6\u202fms", "4.00\u202fs", "70.0\u202fs"]
    assert chart.table.texts[0] == ("q01", "12.3\u202fms", "45.6\u202fms")


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


def drawn(chart: Chart, width: int) -> str:
    """Returns the chart as SVG, with plain colours."""
    import vl_convert

    text = re.sub(r'"@[a-z0-9]+"', '"#888888"', json.dumps({**chart.specification, "width": width}))
    return vl_convert.vegalite_to_svg(text)


def test_no_label_of_a_query_touches_another_on_a_phone() -> None:
    names = [f"q{number:02}" for number in range(1, 23)]
    found = queries([(system, [timed(dict.fromkeys(names, time_s), 0)]) for system, time_s in (("a", 1.0), ("b", 2.0))])
    svg = drawn(query_bars(found)[0], 340)
    spots = re.findall(r'<text [^>]*transform="translate\(([\d.]+),([\d.]+)\)"[^>]*>(.*?)</text>', svg)
    lines: dict[int, list[float]] = {0: [], 1: []}
    for x, _, inside in spots:
        if re.search(r"q\d\d", inside):
            lines["dy=" in inside].append(float(x))
    assert sum(map(len, lines.values())) == 22
    assert all(b - a >= 22 for row in lines.values() for a, b in itertools.pairwise(sorted(row)))


def test_folded_names_of_systems_end_above_the_map() -> None:
    names = ["a name that is folded on a narrow page", "another of these, which needs several lines, too"]
    found = queries([(name, [timed({"q01": 1.0, "q02": 2.0}, 0)]) for name in names])
    svg = drawn(query_map(found)[0], 340)
    labels = re.findall(r'<text [^>]*transform="translate\([\d.]+,(-[\d.]+)\)"[^>]*>(.*?)</text>', svg)
    assert len(labels) == 2
    for y, inside in labels:
        assert inside.count("</tspan>") > 1
        assert float(y) + sum(map(float, re.findall(r'dy="([\d.]+)"', inside))) <= 0


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
    assert chart.table.texts == (
        ("q01", "1.00", "2.00", "4.00"),
        ("q02", "1.00", "1.00", "1.00"),
        ("all queries", "1.00", "1.41", "2.00"),
    )
    twice = queries([*groups, ("again", groups[0][1])])
    assert twice is not None and not twice.by_parallelism


def study(**others: float) -> Study:
    """Returns a lab with query 7, and others that take equally long in every configuration."""
    rest = {f"query_time_s{{query={name}}}": time for name, time in others.items()}
    plan = lab({"storage": ("disk", "ssd")}, blocks=6)
    found = [
        replace(
            one, metrics={**one.metrics, "query_time_s{query=q07}": 2.0 if "disk" in one.cell.name else 1.0, **rest}
        )
        for one in trials(plan, {setup.cell.name: 1.0 for setup in plan.setups})
    ]
    return studied(plan, found)


def test_a_lab_of_queries_has_a_section_with_bars_and_a_map() -> None:
    (section,) = [section for section in sections(study(q08=3.0)) if section.id == "queries"]
    assert [chart.id for chart in section.charts] == ["query-ratios", "query-map"]
    bars = section.charts[0]
    assert bars.table.texts[0] == ("q07", "2.00\u202fs", "1.00\u202fs", "0.500x", "0.500 to 0.500")
    assert "q07" in bars.alt


def test_a_lab_of_one_query_has_no_section_that_would_say_its_finding_again() -> None:
    assert "queries" not in {section.id for section in sections(study())}
