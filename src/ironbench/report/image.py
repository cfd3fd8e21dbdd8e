"""The main charts composed to one picture, drawn without a browser."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from ironbench.analyse.labstudy import LabStudy
from ironbench.analyse.study import Study
from ironbench.report import figures, lab_figures, theme
from ironbench.report.answer import answer
from ironbench.report.charts.base import Chart
from ironbench.report.charts.curves import curves
from ironbench.report.charts.latency import latency
from ironbench.report.charts.shares import budget
from ironbench.report.charts.timelines import timelines
from ironbench.report.numbers import THIN

_WIDTH = 860
_GAP = 70
_LOCALE = {"decimal": ".", "thousands": THIN, "grouping": [3], "currency": ["", ""]}
_OF_LAB = ("effects", "points", "by-block", "growth-throughput", "time", "budget")
_SHARED = ("config", "autosize", "padding", "datasets")
"""Parts of a specification that belong to the whole picture."""


def png(studies: Sequence[Study]) -> bytes:
    """Twice the size of its text, sharp on any screen."""
    import vl_convert

    data: bytes = vl_convert.vegalite_to_png(
        _picture([_study(study) for study in studies]), scale=2, format_locale=_LOCALE
    )
    return data


def svg(studies: Sequence[Study]) -> bytes:
    import vl_convert

    text: str = vl_convert.vegalite_to_svg(_picture([_study(study) for study in studies]), format_locale=_LOCALE)
    return text.encode()


def lab_png(studies: Sequence[LabStudy]) -> bytes:
    """The same for labs."""
    import vl_convert

    data: bytes = vl_convert.vegalite_to_png(_picture([_lab(s) for s in studies]), scale=2, format_locale=_LOCALE)
    return data


def lab_svg(studies: Sequence[LabStudy]) -> bytes:
    import vl_convert

    text: str = vl_convert.vegalite_to_svg(_picture([_lab(study) for study in studies]), format_locale=_LOCALE)
    return text.encode()


def _picture(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    whole = {
        "padding": 28,
        "background": "@paper",
        "vconcat": list(parts),
        "spacing": 60,
        "config": {**theme.config(theme.IMAGE_FONT), "legend": theme.legend()},
    }
    return theme.coloured(whole, theme.LIGHT)


def _study(study: Study) -> dict[str, Any]:
    shown = {chart.id: chart for chart in (*curves(study), *latency(study), *timelines(study))}
    rows = [
        ["throughput"],
        ["response_time_p50_s", "response_time_p99_s"],
        ["latency"],
        ["time-throughput", "time-response_time_p99_s"],
    ]
    grid = [[shown[id] for id in row if id in shown] for row in rows]
    budgets = budget(study)
    grid += [budgets[start : start + 2] for start in range(0, len(budgets), 2)]
    said = [f"{name} {text}".strip() for name, text in figures.headline(study)]
    cautions = figures.cautions(study)
    notes = [study.derived, *said, *(f"Note: {text}" for text in (*cautions, *study.footnotes[:1]))]
    return _titled(figures.title(study), [study.work, *notes], grid)


def _lab(study: LabStudy) -> dict[str, Any]:
    """The answer, and the charts that it rests on."""
    rows = [[chart] for part in lab_figures.sections(study) for chart in part.charts if chart.id in _OF_LAB]
    notes = [study.derived, answer(study), *(f"Note: {text}" for text in lab_figures.cautions(study))]
    return _titled(study.lab.question, [study.work, *notes], rows)


def _titled(title: str, notes: Sequence[str], grid: Sequence[Sequence[Chart]]) -> dict[str, Any]:
    lines = [line for text in notes for line in textwrap.wrap(text, 140)]
    return {
        "title": {
            "text": textwrap.wrap(title, 76) or [""],
            "subtitle": lines,
            "fontSize": 22,
            "subtitleColor": "@ink",
            "subtitleFontSize": 13,
            "subtitleLineHeight": 19,
            "subtitlePadding": 8,
            "offset": 22,
        },
        "vconcat": [_row(row) for row in grid if row],
        "spacing": 34,
    }


def _row(charts: Sequence[Chart]) -> dict[str, Any]:
    width = (_WIDTH - _GAP * (len(charts) - 1)) // len(charts)
    return {
        "hconcat": [_chart(chart, width) for chart in charts],
        "spacing": _GAP,
        "resolve": {"scale": {"color": "independent", "shape": "independent", "stroke": "independent"}},
    }


def _chart(chart: Chart, width: int) -> dict[str, Any]:
    layers = [_inlined(layer, chart.specification["datasets"]) for layer in chart.specification["layer"]]
    part = {key: value for key, value in chart.specification.items() if key not in _SHARED}
    title = {"text": chart.title, "subtitle": chart.unit, "subtitleColor": "@muted"}
    return {**part, "title": title, "width": width, "layer": layers}


def _inlined(layer: dict[str, Any], datasets: dict[str, Any]) -> dict[str, Any]:
    return {**layer, "data": {"values": datasets[layer["data"]["name"]]}}
