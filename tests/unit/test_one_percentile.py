"""A percentile over several trials is computed over all their transactions, and is the same on every page."""

from __future__ import annotations

import io
import json
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factories import DISK, MACHINE, MEMORY, Shelf, SortedHistogram, record, sweep
from labfactory import lab, trials

from ironbench.cli.compare import compare
from ironbench.cli.cost import cost
from ironbench.cli.report import report
from ironbench.model.driven import Driven
from ironbench.model.record import Record
from ironbench.model.search import Search
from ironbench.model.system import Load, System
from ironbench.printer import Printer
from ironbench.records import Store
from ironbench.report.cell import TableCell
from ironbench.report.ending import run_summary, search_summary
from ironbench.report.numbers import quantity
from ironbench.report.sections import curves, latency
from ironbench.study import compare as analysis
from ironbench.study import runstudy
from ironbench.study.curve import NOT_POOLED
from ironbench.study.labstudy import lab_study
from ironbench.study.subjects import Subject

pytest.importorskip("ironbench._core", reason="the core is not built")

P99 = "response_time_p99_s"
SLOW = (0.010, 0.020, 0.400)
"""Response times of the slowest 35 per thousand transactions of each trial. The median of the trials' 99th percentiles
is 20 ms; the 99th percentile of all transactions is 400 ms."""
METRICS = ("p50", 0.5), ("p90", 0.9), ("p99", 0.99)


def kept(store: Store, system: System, load: Load, label: str) -> list[Record]:
    from ironbench._core import Histogram

    key, found = store.keep_shared("machines", MACHINE), []
    for block, slow in enumerate(SLOW):
        histogram = Histogram()
        for place in range(1000):
            histogram.record(int((slow if place < 35 else 0.001) * 1e9))
        own = {f"response_time_{name}_s": histogram.quantile(share) for name, share in METRICS}
        one = record(
            replace(system, label=label), 4, 400.0, block=block, load=load, machine=key, series=label, metrics=own
        )
        found.append(store.keep(one, Driven(histograms={"response_time": histogram})))
    return found


def whole(store: Store, records: Sequence[Record]) -> float:
    """Returns the 99th percentile of all transactions."""
    first, *rest = [store.histograms(one.id)["response_time"] for one in records]
    for other in rest:
        first.merge(other)
    return first.quantile(0.99)


@pytest.mark.parametrize("rate", [None, 400.0])
def test_every_page_and_verb_shows_the_same_percentile_of_a_label(
    rate: float | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, load = Store(tmp_path), Load(rate=rate, duration_s=30.0)
    records = kept(store, DISK, load, "a")
    kept(store, MEMORY, load, "b")
    expected = whole(store, records)
    assert expected == pytest.approx(0.4, rel=0.01)
    assert expected > 10 * statistics.median(one.metrics[P99] for one in records)
    said = quantity(expected, "s")

    report(["a", "b"], "", "json", str(tmp_path))
    (study,) = json.loads(capsys.readouterr().out)["studies"]
    part = study["parts"][0]
    assert part["curve"]["main"]["metrics"][P99]["centre"] == expected
    assert part["curve"]["points"][0]["metrics"][P99]["centre"] == expected
    assert dict(map(tuple, part["response"]["points"]))[0.99] == expected
    for format in ("text", "md"):
        report(["a", "b"], "", format, str(tmp_path))
        text = capsys.readouterr().out.replace("\u00a0", "\u202f")
        assert said in text and quantity(SLOW[1], "s") not in text
    report(["a", "b"], str(tmp_path / "r.html"), "", str(tmp_path))
    assert said in (tmp_path / "r.html").read_text()
    capsys.readouterr()

    compare("a", "b", str(tmp_path), False, True)
    found = json.loads(capsys.readouterr().out)
    for cell in (found["peaks"], *found["cells"]):
        assert next(row for row in cell["rows"] if row["metric"] == P99)["a"]["centre"] == expected

    out = io.StringIO()
    run_summary(records, store, Printer(out, io.StringIO()))
    assert said in out.getvalue()

    if rate is not None:
        assert said in search_summary(Search("rate", 1, 400, ()), records, store)
        cost(["a"], "p99 < 1ms at 400 tps", "", None, "", str(tmp_path), False)
        assert f"{expected * 1e3:.3g} ms" in capsys.readouterr().out


def unlike_trials(kind: str) -> list[Record]:
    """Returns two trials at a rate, of which the second has too few transactions for a 99th percentile, or too many
    transactions that never ended."""
    load, slow = Load(rate=400.0, duration_s=30.0), {P99: 0.4}
    lacking = {"transactions": 200.0} if kind == "short" else {"censored": 1000.0, "longest_wait_s": 9.0}
    return [
        record(DISK, 4, 400.0, block=block, load=load, metrics=own)
        for block, own in enumerate(({}, {**slow, **lacking}))
    ]


@pytest.mark.parametrize("kind", ["short", "never ended"])
def test_the_chart_of_percentiles_has_only_percentiles_that_every_trial_may_show(kind: str) -> None:
    records = unlike_trials(kind)
    (found,) = runstudy.studies(records, Shelf(records))
    (table,) = [table for section in curves.sections(found) for _, table in section.tables]
    (chart,) = latency.latency(found)
    assert found.parts[0].response is not None
    points = dict(found.parts[0].response.points)
    median, p99 = (cell for cell in table.rows[0][-2:] if isinstance(cell, TableCell))
    assert median.value == points[0.5]
    assert p99.value == pytest.approx(
        Shelf(records[:1]).histograms(records[0].id)["response_time"].quantiles([0.99])[0]
    )
    assert 0.99 not in points
    assert "99%" not in {str(row[0]) for row in chart.table.rows}


def test_the_chart_of_percentiles_never_falls() -> None:
    """The second trial is slow, and has too few transactions for a 99.9th percentile."""
    records = [
        record(DISK, 4, 400.0, block=block, load=Load(rate=400.0, duration_s=30.0), metrics=own)
        for block, own in enumerate(({}, {P99: 0.4, "transactions": 1000.0}))
    ]
    (found,) = runstudy.studies(records, Shelf(records))
    assert found.parts[0].response is not None
    seconds = [value for _, value in found.parts[0].response.points]
    assert seconds == sorted(seconds)
    assert len(seconds) > 5


@pytest.mark.parametrize("kind", ["short", "never ended"])
def test_a_percentile_that_no_trial_may_show_is_in_no_section(kind: str) -> None:
    records = [replace(one, id=f"t{place}") for place, one in enumerate([unlike_trials(kind)[1]] * 3)]
    (found,) = runstudy.studies(records, Shelf(records))
    (part,) = found.parts
    assert part.response is not None
    assert P99 not in part.metrics and 0.99 not in dict(part.response.points)


def test_a_lab_shows_the_percentile_of_all_trials_of_a_cell() -> None:
    plan = lab({"clients": ("1", "2", "4", "8")}, blocks=6)
    plan = replace(plan, method=replace(plan.method, metric=P99))
    records = trials(plan, {f"clients={n}": 1000.0 * n for n in (1, 2, 4, 8)})
    shelf = Shelf(records)
    found = lab_study(plan, records, shelf)
    for cell in found.cells:
        values = SortedHistogram()
        for one in cell.usable:
            values.merge(shelf.histograms(one.id)["response_time"])
        (expected,) = values.quantiles([0.99])
        assert cell.metric is not None and cell.metric.centre == expected
        assert found.growths[0].summaries[cell.setup.cell.load.clients][P99].centre == expected


def test_where_histograms_are_gone_the_median_of_the_trials_stands(tmp_path: Path) -> None:
    from ironbench.study.curve import metrics_of

    records = [record(DISK, 4, 400.0, block=block, metrics={P99: slow}) for block, slow in enumerate(SLOW)]
    assert metrics_of(records, [P99], Store(tmp_path))[P99].centre == SLOW[1]


class Counting(Shelf):
    """Counts how often each trial's histograms are read."""

    def __init__(self, records: Sequence[Record]) -> None:
        super().__init__(records)
        self.read: Counter[str] = Counter()

    def histograms(self, id: str) -> dict[str, Any]:
        self.read[id] += 1
        return super().histograms(id)


def sides() -> tuple[list[Record], list[Record]]:
    """Returns sweeps of two systems without confirmations, so that the trials at the peak belong to a point."""
    runs = sweep(DISK, 2000.0, 6, series="a"), sweep(MEMORY, 2500.0, 6, series="b")
    disk, memory = ([one for one in run if one.purpose == "sweep"] for run in runs)
    return disk, memory


def test_a_comparison_reads_the_histograms_of_a_trial_once() -> None:
    a, b = sides()
    shelf = Counting([*a, *b])
    analysis.compare(Subject("a", tuple(a)), Subject("b", tuple(b)), archive=shelf)
    assert set(shelf.read.values()) == {1}
    assert len(shelf.read) == len(a) + len(b)


def test_of_very_many_trials_report_and_compare_pool_the_percentiles_of_the_peak_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, b = sides()
    for module in (analysis, runstudy):
        monkeypatch.setattr(module, "MOST_POOLED", len(a) + len(b) - 1)
    shelf = Counting([*a, *b])
    found = analysis.compare(Subject("a", tuple(a)), Subject("b", tuple(b)), archive=shelf)
    (whole,) = runstudy.studies([*a, *b], shelf)
    assert NOT_POOLED in found.warnings and NOT_POOLED in whole.footnotes
    peaks = [part.curve.peak for part in whole.parts]
    assert set(shelf.read) == {one.id for peak in peaks if peak for one in peak.trials}
    assert found.peaks is not None and peaks[0] is not None
    pooled = found.peaks.row(P99)
    assert pooled is not None and pooled.a == peaks[0].metrics[P99]
    for cell, point in zip(found.cells, whole.parts[0].curve.points, strict=True):
        row = cell.row(P99)
        assert row is not None and row.a == point.metrics[P99]
        assert row.a.centre == statistics.median(one.metrics[P99] for one in point.trials)
