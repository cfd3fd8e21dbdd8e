"""The main charts in one picture, without a browser."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from ironbench.report import theme
from ironbench.report.charts.base import Chart, Key
from ironbench.report.page import Page, Section
from ironbench.words import clean_document

_WIDTH = 860
_GAP = 70
_ENTRY, _LETTER = 40, 7
"""Width in pixels of the mark of a legend entry with the space around it, and mean width of a letter of its label.
Together, they determine the width of the entry."""
_LOCALE = {"decimal": ".", "thousands": ",", "grouping": [3], "currency": ["", ""]}
_MARKS = {
    **{"line": "solid line", "dash": "dashed line", "dot": "dotted line", "tick": "upright stroke"},
    **{"square": "area", "circle": "point", "dots": "small points"},
}
_COLOURS = {"s0": "blue", "rule": "grey", "ink": "black"}
"""Names of colours, for legend entries that are described in words. Most colours of systems are missing, because Vega
draws their legend. `muted` is missing, because it marks entries that apply to all systems."""
_SMALL_LETTER = 5.6
"""Mean width in pixels of a letter in subtitles."""
_RESOLVE = {"scale": dict.fromkeys(("color", "shape", "stroke", "strokeDash", "xOffset"), "independent")}
"""Vega-Lite settings that keep the charts of a picture independent: each has its own legends, and its own number of
bars per group."""
_SHARED = ("config", "autosize", "padding", "datasets")
"""Parts of a specification that apply to the whole picture."""


def render(pages: Sequence[Page], contents: Section | None = None) -> bytes:
    return drawn_png(picture(list(map(_page, pages))))


def svg(pages: Sequence[Page], contents: Section | None = None) -> bytes:
    return drawn_svg(picture(list(map(_page, pages))))


def _page(page: Page) -> dict[str, Any]:
    """Returns the Vega-Lite specification of one page, with the answer and all charts."""
    caveats = [f"Note: {text}" for text in (*page.caveats, page.caption) if text]
    notes = [text for text in (page.lead, page.derived, *page.answer.sentences, *caveats) if text]
    return titled(page.title, notes, [section(part) for part in page.shown if part.charts])


def drawn_png(specification: dict[str, Any]) -> bytes:
    """Draws a specification as PNG. The picture has twice the usual number of pixels in each direction, so that it is
    sharp on high-resolution screens."""
    import vl_convert

    data: bytes = vl_convert.vegalite_to_png(specification, scale=2, format_locale=_LOCALE)
    return data


def drawn_svg(specification: dict[str, Any]) -> bytes:
    import vl_convert

    text: str = vl_convert.vegalite_to_svg(specification, format_locale=_LOCALE)
    return text.encode()


def charts_png(title: str, notes: Sequence[str], charts: Sequence[Chart]) -> bytes:
    """Draws charts below a title and notes."""
    return drawn_png(picture([titled(title, notes, [_row([chart]) for chart in charts])]))


def picture(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    # Control characters are removed, because they crash the drawing library.
    whole = {
        "padding": 28,
        "background": "@paper",
        "vconcat": clean_document(list(parts)),
        "spacing": 60,
        "config": {**theme.config(theme.IMAGE_FONT), "legend": theme.legend()},
    }
    return theme.coloured(whole, theme.LIGHT)


def section(part: Section) -> dict[str, Any]:
    """Returns the specification of a section: a heading, and the charts below it. Two charts share a row unless one of
    them is wide."""
    rows: list[list[Chart]] = []
    for chart in part.charts:
        if chart.wide or not rows or len(rows[-1]) == 2 or rows[-1][0].wide:
            rows.append([chart])
        else:
            rows[-1].append(chart)
    title = {"text": part.title, "fontSize": 17, "offset": 16}
    return {"title": title, "vconcat": [_row(row) for row in rows], "spacing": 34, "resolve": _RESOLVE}


def titled(title: str, notes: Sequence[str], parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
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
        "vconcat": clean_document(list(parts)),
        "spacing": 44,
        "resolve": _RESOLVE,
    }


def _row(charts: Sequence[Chart]) -> dict[str, Any]:
    alone = len(charts) == 1 and not charts[0].wide
    width = (_WIDTH - _GAP) // 2 if alone or len(charts) == 2 else _WIDTH
    return {
        "hconcat": [_chart(chart, width) for chart in charts],
        "spacing": _GAP,
        "resolve": _RESOLVE,
    }


def _chart(chart: Chart, width: int) -> dict[str, Any]:
    layers = [_inlined(layer, chart.specification["datasets"]) for layer in chart.specification["layer"]]
    for layer in layers:
        _fit_legend(layer["encoding"], width)
    part = {key: value for key, value in chart.specification.items() if key not in _SHARED}
    # Vega draws legend entries only for systems and for parts of bars. The subtitle describes all other entries in
    # words.
    drawn = {label for layer in layers for label in _legend_labels(layer["encoding"])}
    marks = [_in_words(key) for key in chart.legend if key.label not in drawn]
    lines = ["; ".join(filter(None, (chart.unit, *marks))), chart.note]
    subtitle = [line for text in lines for line in textwrap.wrap(text, int(width / _SMALL_LETTER))]
    title = {"text": chart.title, "subtitle": subtitle, "subtitleColor": "@muted"}
    return {**part, "title": title, "width": width, "layer": layers}


def _legend_labels(encoding: dict[str, Any]) -> list[str]:
    """Returns the labels of the legend entries that Vega draws."""
    scales = [encoding[channel] for channel in ("color", "shape") if channel in encoding]
    return [label for one in scales if one.get("type") == "nominal" for label in one.get("scale", {}).get("domain", ())]


def _in_words(key: Key) -> str:
    """Describes a legend entry in words, such as `dashed line: service time`. A label that already names its mark stays
    unchanged."""
    if ": " in key.label:
        return key.label
    return f"{_COLOURS.get(key.colour, '')} {_MARKS.get(key.mark, key.mark)}: {key.label}".strip()


def _fit_legend(encoding: dict[str, Any], width: int) -> None:
    """Sets the number of columns of the legends, so that as many entries as possible fit side by side."""
    for channel in ("color", "shape"):
        labels = encoding.get(channel, {}).get("scale", {}).get("domain", ())
        # Only nominal scales have legend entries. The legend of a quantitative scale is continuous.
        if labels and encoding[channel].get("type") == "nominal":
            columns = max(1, int(width // (_ENTRY + _LETTER * max(map(len, labels)))))
            limit = width // columns - _ENTRY  # maximum width in pixels, beyond which Vega shortens labels
            encoding[channel] = {**encoding[channel], "legend": {"columns": columns, "labelLimit": limit}}
    if "strokeDash" in encoding:
        encoding["strokeDash"] = {**encoding["strokeDash"], "legend": None}


def _inlined(layer: dict[str, Any], datasets: dict[str, Any]) -> dict[str, Any]:
    """Returns the layer with its data included, instead of the dataset's name. A layer without data gets one empty row,
    because Vega draws a mark for each row."""
    values = datasets[layer["data"]["name"]] if "data" in layer else [{}]
    return {**layer, "encoding": dict(layer["encoding"]), "data": {"values": values}}
