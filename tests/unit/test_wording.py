"""Small words that would confuse a reader."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from factories import record, suspect
from labfactory import lab, studied, trials

import ironbench
from ironbench import units
from ironbench.catalogue import metrics
from ironbench.cli.verdict import SUSPECT, code_of_run, suspect_words
from ironbench.model.lab import Claim
from ironbench.model.note import note, text_note
from ironbench.model.record import Status
from ironbench.report import trial_text, wording
from ironbench.report.cell import Missing
from ironbench.report.document import report as report_of
from ironbench.report.finding_tables import metric_tables
from ironbench.report.formats import text as lab_text
from ironbench.report.sections.differences import ratio_of
from ironbench.study.balance import SizingRatio
from ironbench.study.comparability import trial_warnings
from ironbench.study.findings import findings
from ironbench.words import THIN, in_percent


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.24, "240 ms"),
        (1.46, "1.5 s"),
        (4, "4 s"),
        (45, "45 s"),
        (95, "95 s"),
        (130, "2 min 10 s"),
        (300, "5 min"),
        (598, "10 min"),
        (7800, "2 h 10 min"),
    ],
)
def test_short_times_are_not_rounded_to_whole_minutes(seconds: float, words: str) -> None:
    assert units.span(seconds) == words


def test_shares_have_a_true_minus_and_a_space_that_does_not_break() -> None:
    assert in_percent(-0.123) == "\u221212%"


def test_memory_is_counted_in_powers_of_1024_and_says_so() -> None:
    assert [units.memory(count) for count in (2 << 30, 24 * 2**30 + 2**29, 100)] == [
        "2.00\u202fGiB",
        "24.5\u202fGiB",
        "100\u202fB",
    ]


def test_metrics_have_titles_that_are_words() -> None:
    assert metrics()["response_time_max_s"].words == "longest response time"
    assert metrics()["psi_io_some_share"].words == "pressure: I/O some (share of time)"
    assert not any("_" in metric.words for metric in metrics().values())


def test_what_is_known_of_a_ratio_without_a_number_is_said_alone() -> None:
    seen = note("balance-checkpoints", checkpoints=1, elapsed_s=30.0)
    assert ratio_of(SizingRatio(note("balance-checkpoint-interval"), "s", None, words=seen)) == Missing(
        wording.text(seen)
    )
    lacking = note("balance-size-unknown", of="data")
    unknown = ratio_of(SizingRatio(note("balance-data-to-memory"), "1", None, lacking))
    assert unknown == Missing(f"not known ({wording.text(lacking)})")


def test_exit_code_3_says_why() -> None:
    records = [record(), record(status=Status.SUSPECT, causes=(text_note("the client was busy"),))]
    assert suspect_words(records) == "1 of 2 trials flagged: the client was busy"


def test_a_suspect_pilot_stands_in_no_result_and_makes_no_run_suspect() -> None:
    pilot = record(status=Status.SUSPECT, purpose="pilot", causes=(text_note("the client was busy"),))
    assert code_of_run([pilot, record()]) == 0
    assert code_of_run([pilot, record(status=Status.SUSPECT)]) == SUSPECT
    assert "1 of 1 trial flagged" in suspect_words([pilot, record(status=Status.SUSPECT)])


def test_causes_that_differ_in_their_numbers_are_one_cause() -> None:
    taken = [note("cpu-taken", share=share, programs=share, steal=0.0) for share in (0.93, 0.99, 0.95)]
    records = [record(status=Status.SUSPECT, warnings=(one, note("cache-not-cold"))) for one in taken]
    words = "4 of 4 trials flagged: 93 to 99% of CPU time was lost"
    said = suspect_words([*records, suspect(record())])
    assert said.startswith(words) and said.endswith(", and 1 other cause")
    assert wording.text(trial_warnings(records)[0]).endswith(" [cpu-taken, 3 of 3 trials]")


def test_a_closed_loop_has_no_intervals_of_arrival_and_an_open_one_no_think_time() -> None:
    closed = record()
    rated = replace(closed, cell=replace(closed.cell, load=replace(closed.cell.load, rate=500.0)))
    told = [trial_text.one(one, {}, {}, False) for one in (closed, rated)]
    assert ["arrivals" in text for text in told] == [False, True]
    assert ["think_time_s" in text for text in told] == [True, False]


def test_other_metrics_are_those_whose_ratio_says_something() -> None:
    plan = lab({"log": ("disk", "memory")}, blocks=6)
    extra = {"service_time_p99_s": 0.01, "cpu_steal_share": 0.0004, "psi_io_some_share": 0.2}
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1100.0})
    for one in records:
        one.metrics.update(extra)
    found = {one.metric for one in findings(records, plan, 1)}
    assert "psi_io_some_share" in found
    for one in records:
        one.metrics["psi_io_some_share"] = 0.0001 if one.cell.levels["log"] == "disk" else 0.0199
    row = next(one for one in findings(records, plan, 1) if one.metric == "psi_io_some_share")
    assert row.shares == (0.0001, 0.0199)
    ((_, shown),) = metric_tables([row])
    assert f"+2{THIN}points (0.01% → 2%)" in shown.texts[0]
    assert not found & {"service_time_p99_s", "cpu_steal_share"}


def test_what_only_a_claim_asks_for_has_its_row() -> None:
    pair = ("log=memory", "log=disk")
    claims = [Claim("p99: at most 1.1", "ratio", "response_time_p99_s", pair, None, 1.1)]
    plan = lab({"log": ("disk", "memory")}, blocks=6, claims=claims)
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1100.0})
    text = lab_text.render([report_of(studied(plan, records))]).decode()
    _, _, table = text.partition("Findings that only claims use")
    assert "99th-percentile response time" in table.split("\n\n")[0]


def test_times_are_written_by_the_units_so_that_no_small_one_reads_as_nothing() -> None:
    # Progress lines are worded like pgbench's.
    sources = [path for path in Path(ironbench.__file__).parent.rglob("*.py") if path.parts[-2:] != ("drive", "run.py")]
    fixed = re.compile(r"[a-z]_s:\.\df\} s\b|1e6:\.0f\} MB")
    assert not [path for path in sources if fixed.search(path.read_text(encoding="utf-8"))]


def test_numbers_with_signs_are_merged_with_them() -> None:
    changes = [note("not-steady", change=by, after_s=at) for by, at in ((-0.21, 3.0), (0.25, 13.0))]
    merged = (
        "throughput changed by \u221221 to 25% after 3 s to 13 s and stayed at that level [not-steady, 2 of 2 trials]"
    )
    assert wording.texts(trial_warnings([record(warnings=(one,)) for one in changes])) == [merged]
    falls = [note("not-steady", change=by) for by in (-0.21, -0.13)]
    (told,) = wording.texts(trial_warnings([record(warnings=(one,)) for one in falls]))
    assert told.startswith("throughput fell by 13 to 21% from the trial's start")
