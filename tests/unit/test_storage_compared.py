"""Two runs of storage beside each other: ranges of rows are judged, and nothing is called a verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest
from factories import DISK, record
from hypothesis import given
from hypothesis import strategies as st

from ironbench._core import Histogram
from ironbench.catalogue.storage_tests import storage_test
from ironbench.model.record import Record
from ironbench.model.system import Choice
from ironbench.report import wording
from ironbench.report.headline import headline
from ironbench.report.storage import compared, of_lab
from ironbench.study.compare import SystemComparison, compare
from ironbench.study.runstudy import studies
from ironbench.study.storage import any_apart
from ironbench.study.subjects import Subject
from ironbench.workloads.storage import figures
from ironbench.workloads.storage.passes import PassResult

LINES = ("kdm-seq1m-q8t1", "kdm-seq1m-q1t1", "kdm-rnd4k-q32t1", "kdm-rnd4k-q1t1")
ROWS = [f"{line}-{way}" for line in LINES for way in ("read", "write")]


def one_pass(name: str, ios: int) -> PassResult:
    test = storage_test(name)
    assert test is not None
    empty = Histogram()
    return PassResult(
        test, 0.0, 2.0, ios, ios * test.block_bytes, 0.01, empty, empty, (ios // 20,) * 20, "io_uring", "", False
    )


def one_run(label: str, ios: int, passes: int = 5) -> Record:
    """Returns a run of the usual eight rows, whose rates vary by 10 from pass to pass."""
    every = [one_pass(name, ios + 10 * number) for name in ROWS for number in range(passes)]
    choice = Choice("storage", {"passes": str(passes)})
    one = record(replace(DISK, label=label), 1, 10.0, metrics=figures.metrics(every), series=label)
    return replace(one, choice=choice)


def compared_runs(a: Record, b: Record) -> SystemComparison:
    sides = [Subject(one.system.label, (one,)) for one in (a, b)]
    return compare(sides[0], sides[1])


def test_the_chance_that_any_row_is_apart_is_stated_and_covers_no_drift() -> None:
    a, b = (one_run("before", 1000), one_run("after", 1000))
    (found,) = [one for one in compared_runs(a, b).warnings if one.code == "ranges-by-chance"]
    assert (found.values["rows"], found.values["in_turns"]) == (8, False)
    assert found.values["each"] == pytest.approx(2 / 252)
    assert found.values["any"] == pytest.approx(1 - (1 - 2 / 252) ** 8)
    assert "if the machine's speed changes between the two runs" in wording.text(found)
    alternated = compared_runs(a, replace(b, series=a.series))
    assert [one.values["in_turns"] for one in alternated.warnings if one.code == "ranges-by-chance"] == [True]
    few = [replace(one, choice=Choice("storage", {"passes": "3"})) for one in (a, b)]
    assert not [one for one in compared_runs(*few).warnings if one.code == "ranges-by-chance"]


@given(st.floats(0, 1), st.integers(1, 50))
def test_some_row_is_apart_at_least_as_often_as_one_and_at_most_as_often_as_their_sum(each: float, rows: int) -> None:
    any_of_them = any_apart(each, rows)
    assert each - 1e-9 <= any_of_them <= min(1.0, each * rows) + 1e-9


def test_the_head_of_the_ranges_has_the_chance_that_any_row_is_apart() -> None:
    head = compared(compared_runs(one_run("before", 1000), one_run("after", 1000)))[0][1].head[-1]
    assert "at least 1 of 8" in head and "6.2" in head


def test_a_headline_names_a_row_only_where_the_ranges_of_its_passes_are_apart_and_gives_no_verdict() -> None:
    def ratios(ios: int, passes: int = 5) -> list[str]:
        (study,) = studies([one_run("before", 1000, passes), one_run("after", ios, passes)])
        return [text for _, text in headline(study) if "than before" in text]

    (said,) = ratios(2000)
    assert said.startswith("has 98% higher bandwidth of KDiskMark SEQ1M Q8T1 read than before")
    assert said.endswith(
        "the ranges of the passes do not overlap, but there is no verdict, because the two runs were not interleaved."
    )
    assert ratios(1020) == [], "the ranges overlap"
    assert ratios(2000, 3) == [], "chance alone may set three passes apart"
    assert ratios(2000, 1) == [], "one pass has no range"


def test_a_report_of_two_runs_says_first_whether_their_ranges_overlap() -> None:
    def first(ios: int) -> tuple[str, str]:
        (study,) = studies([one_run("before", 1000), one_run("after", ios)])
        return next((name, text) for name, text in headline(study) if "than before" not in text)

    name, text = first(1000)
    assert name == "after" and "overlap in all 8 tests" in text
    name, text = first(2000)
    assert name == "after" and "no verdict" in text and "8 of 8 tests" in text


def test_a_lab_shows_a_percentile_only_if_every_trial_has_it() -> None:
    runs = [one_run("disk", 1000), one_run("disk", 1000)]
    extra = "storage_latency_p999_s{profile=kdm-rnd4k-q1t1-read}"
    assert extra not in runs[0].metrics
    first = replace(runs[0], metrics={**runs[0].metrics, extra: 0.005})
    heads = [
        section.tables[0][1].head
        for trials in ([first, runs[1]], [first, first])
        for section in of_lab([("disk", trials)])
        if section.id == "storage-latency"
    ]
    assert ["p99.9" in head for head in heads] == [False, True]
