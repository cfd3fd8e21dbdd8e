"""`compare`, its breakdown, `report`, `lead` and `cost` compute one ratio, and say first if no difference is shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from factories import DISK, MEMORY, Shelf, record, unfolded

from ironbench.catalogue import prices
from ironbench.model.lab import Configuration
from ironbench.model.record import Record
from ironbench.model.system import Load, System
from ironbench.report import compare_page
from ironbench.report import lead as lead_page
from ironbench.report import leaderboard as leaderboard_page
from ironbench.report.document import notes
from ironbench.report.headline import headline
from ironbench.study import leaderboard
from ironbench.study.archive import EMPTY
from ironbench.study.comparability import unlike
from ironbench.study.compare import compare
from ironbench.study.explain import explain
from ironbench.study.lead import leads
from ironbench.study.runstudy import studies
from ironbench.study.subjects import Subject, subjects

OLD, NEW = replace(DISK, label="old"), replace(MEMORY, label="new")


def runs(side: System, levels: Sequence[Sequence[float]]) -> list[Record]:
    return [
        record(side, 8, value, block=block, series=f"{side.label}{n}", id=f"{side.label}{n}-{block}")
        for n, values in enumerate(levels)
        for block, value in enumerate(values)
    ]


SKEWED = runs(OLD, ((6000, 15000, 15100), (14900, 15200, 16000), (14600, 15000, 18000)))
LOWER = runs(NEW, ((9300, 11500, 11600), (11400, 11500, 17000), (11300, 11500, 12000)))
HIGHER = runs(NEW, ((20000, 20100, 20300), (20400, 20500, 20600), (20800, 21000, 21100)))


def test_every_command_computes_the_same_ratio_and_interval() -> None:
    compared = compare(Subject("old", tuple(SKEWED)), Subject("new", tuple(LOWER))).peaks
    (study,) = studies([*SKEWED, *LOWER])
    (work,) = leads("old", SKEWED, "new", LOWER, EMPTY, 0.05).works
    sides = (Configuration("old"), SKEWED), (Configuration("new"), LOWER)
    (level,) = explain(*sides, EMPTY, in_blocks=False).throughput
    standing = study.parts[1].standing
    assert compared and work.peaks and standing
    rows = [compared.row("throughput"), work.peaks.row("throughput"), standing]
    known = [(one.means.ratio, one.means.low, one.means.high) for one in rows if one and one.means]
    known.append((level.ratio, level.low, level.high))
    assert len(known) == 4 and len(set(known)) == 1
    assert known[0][0] != pytest.approx(11500 / 15000, rel=0.02), "the quotient of the medians is another figure"


def test_compare_and_report_say_first_that_no_difference_is_shown() -> None:
    found = compare(Subject("old", tuple(SKEWED)), Subject("new", tuple(LOWER)))
    text = unfolded(compare_page.page(found))
    start = "No difference shown: the ranges of the repeats overlap. In these trials, "
    assert f"{start}B is " in text
    assert text.index(start) < text.index("slower than A")
    (study,) = studies([*SKEWED, *LOWER])
    name, said = headline(study)[0]
    assert name == "" and said.startswith(f"{start}new was ") and "slower than old: " in said
    assert "(geometric means; 95% CI " in said


def test_a_difference_beyond_the_ranges_is_stated_with_its_interval() -> None:
    clear = runs(OLD, ((10000, 10100, 10200), (10300, 10400, 10500), (9900, 10000, 10100)))
    found = compare(Subject("old", tuple(clear)), Subject("new", tuple(HIGHER)))
    assert "No difference shown" not in unfolded(compare_page.page(found))
    (study,) = studies([*clear, *HIGHER])
    name, said = headline(study)[0]
    assert name == "new" and said.startswith("is 2.0") and "x as fast as old: 20,500/s vs. 10,200/s (geometric" in said


@pytest.mark.parametrize("sides", [(SKEWED, LOWER), (SKEWED, HIGHER)], ids=["no difference", "faster"])
def test_the_values_beside_a_ratio_in_a_report_give_it(sides: tuple[list[Record], list[Record]]) -> None:
    (study,) = studies([*sides[0], *sides[1]])
    said = next(text for _, text in headline(study) if "old: " in text)
    new, old = (float(value.replace(",", "")) for value in re.findall(r"old: ([\d,]+)/s vs\. ([\d,]+)/s", said)[0])
    standing = study.parts[1].standing
    assert standing and standing.means
    assert new / old == pytest.approx(standing.means.ratio, rel=0.01)  # three digits are shown
    medians = standing.b.centre / standing.a.centre
    assert new / old != pytest.approx(medians, rel=0.02)
    assert any("medians of the trials" in text and "geometric means" in text for text in notes(study))


def test_a_single_trial_of_each_is_no_mean() -> None:
    (study,) = studies([*runs(OLD, ((1000,),)), *runs(NEW, ((850,),))])
    said = headline(study)[0][1]
    assert said.endswith("new was 15% slower than old: 850/s vs. 1,000/s.")
    assert not any("geometric" in text for text in notes(study))


def test_the_quotient_of_two_scores_of_a_leaderboard_is_the_ratio_that_compare_shows() -> None:
    compared = compare(Subject("old", tuple(SKEWED)), Subject("new", tuple(LOWER))).peaks
    (ranking,) = leaderboard.rankings_of_records([*SKEWED, *LOWER], Shelf(), "score", prices.shipped(), "")
    row = compared.row("throughput") if compared else None
    assert row and row.means
    scores = {place.system: place.score for place in ranking.places}
    assert scores["new"] / scores["old"] == pytest.approx(row.means.ratio)
    assert "geometric mean of its runs" in unfolded(leaderboard_page.page([ranking]))


def test_ranges_that_do_not_overlap_by_chance_show_no_difference() -> None:
    few = [*runs(OLD, ((1000, 1150),)), *runs(NEW, ((1160, 1400),))]
    (study,) = studies(few)
    said = headline(study)[0][1]
    assert said.startswith("No difference shown: the 95% CI includes 0%.")


def test_lead_puts_the_missing_verdict_before_the_ratio() -> None:
    found = leads("old", SKEWED, "new", LOWER, EMPTY, 0.05)
    assert "throughput: inconclusive (0." in " ".join(lead_page.sentences(found))


def test_runs_of_one_label_in_two_kinds_of_loop_are_named_by_the_loop() -> None:
    closed = [record(OLD, 8, 900.0, series="c", id="c")]
    rated = [record(OLD, 8, 500.0, series="o", id="o", load=Load(rate=500.0, duration_s=5.0))]
    assert [one.name for one in subjects([*closed, *rated])] == ["old (closed-loop)", "old (rate=500)"]
    codes = [(one.code, one.values.get("fact", "")) for one in unlike(closed, rated)]
    assert ("loads-differ", "") in codes
    assert not [fact for _, fact in codes if fact in ("load.arrivals", "load.think_time_s")]
