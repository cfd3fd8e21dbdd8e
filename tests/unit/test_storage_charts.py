"""Charts of the storage workload can be drawn, with the table's units and a marker for every percentile."""

import re

import pytest

from ironbench.report import theme
from ironbench.report.charts import storage
from ironbench.report.formats.png import charts_png
from ironbench.study import storage as known
from ironbench.study.summarise import summarise

VEGA = {"circle", "square", "cross", "diamond", "triangle-up", "triangle-down", "triangle-right", "triangle-left"}
"""Symbols with an area (vega-scenegraph, src/path/symbols.js)."""


def lines() -> tuple[known.StorageTestResult, ...]:
    part = "{profile=seq1m-q8t1-read}"
    metrics = {f"storage_bytes_per_s{part}": 1547.7e6} | {
        f"storage_latency_{point}_s{part}": 0.001 * place
        for place, point in enumerate(("mean", "p50", "p99", "p999"), 1)
    }
    return known.tested({name: one for name, value in metrics.items() if (one := summarise([value]))})


def test_a_mark_stands_for_every_percentile_and_the_picture_can_be_drawn() -> None:
    (chart,) = storage.latencies([("card", lines())])
    assert [key.label for key in chart.legend] == ["mean", "median", "p99", "p99.9"]
    assert charts_png("card", (), [chart]).startswith(b"\x89PNG")


def test_bandwidths_are_in_the_unit_of_the_table() -> None:
    (chart,) = storage.rates([("card", lines())])
    assert chart.unit == "MB/s" and "1,547.7 MB/s" in chart.alt


@pytest.mark.parametrize("mark", [*theme.MARKS, "tick"])
def test_every_mark_has_a_surface_to_be_filled(mark: str) -> None:
    (drawn,) = theme.symbols([mark])
    assert drawn in VEGA or re.fullmatch(r"M[-.,0-9HV]+Z", drawn)
