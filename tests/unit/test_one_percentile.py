"""A percentile of several trials is that of all their transactions together, and the same on every page."""

from __future__ import annotations

import io
import json
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from factories import DISK, MACHINE, MEMORY, Shelf, SortedHistogram, record
from labfactory import lab, trials

from ironbench.analyse.labstudy import lab_study
from ironbench.cli.compare import compare
from ironbench.cli.cost import cost
from ironbench.cli.report import report
from ironbench.model.record import Record
from ironbench.model.search import Search
from ironbench.model.system import Load, System
from ironbench.printer import Printer
from ironbench.record import Evidence, Store
from ironbench.report.formats.text import run_summary, search_summary
from ironbench.report.numbers import quantity

pytest.importorskip("ironbench._core", reason="the core is not built")

P99 = "response_time_p99_s"
SLOW = (0.010, 0.020, 0.400)
"""Of each trial the slowest 35 in a thousand: the median of their 99th percentiles is 20 ms, that of all is 400 ms."""
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
        found.append(store.keep(one, Evidence(histograms={"response_time": histogram})))
    return found


def whole(store: Store, records: Sequence[Record]) -> float:
    """The 99th percentile of all transactions."""
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


def test_a_lab_shows_the_percentile_of_all_trials_of_a_cell() -> None:
    plan = lab({"clients": ("1", "2", "4", "8")}, blocks=6)
    plan = replace(plan, method=replace(plan.method, metric=P99))
    records = trials(plan, {f"clients={n}": 1000.0 * n for n in (1, 2, 4, 8)})
    shelf = Shelf(records)
    study = lab_study(plan, records, shelf)
    for cell in study.cells:
        values = SortedHistogram()
        for one in cell.usable:
            values.merge(shelf.histograms(one.id)["response_time"])
        (expected,) = values.quantiles([0.99])
        assert cell.metric is not None and cell.metric.centre == expected
        assert study.growths[0].summaries[cell.setup.cell.load.clients][P99].centre == expected


def test_where_histograms_are_gone_the_median_of_the_trials_stands(tmp_path: Path) -> None:
    from ironbench.analyse.curve import metrics_of

    records = [record(DISK, 4, 400.0, block=block, metrics={P99: slow}) for block, slow in enumerate(SLOW)]
    assert metrics_of(records, [P99], Store(tmp_path))[P99].centre == SLOW[1]
