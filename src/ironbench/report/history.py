"""The page and the chart of `ironbench history`, which show a metric over time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from ironbench.model.note import Note
from ironbench.report import page as sections_of
from ironbench.report import wording
from ironbench.report.cell import CONFIDENCE, EMPTY, Missing, TableCell, count
from ironbench.report.charts import base
from ironbench.report.charts.base import Chart, Depth, Key, Table
from ironbench.report.derived import sentences as derived_sentences
from ironbench.report.facts import fact, fact_name
from ironbench.report.finding_tables import NO_INTERVAL, ratio_bounds
from ironbench.report.numbers import moment, scale, unit_of
from ironbench.report.page import Answer, Page, Section
from ironbench.report.wording.answers import history_answer
from ironbench.report.wording.answers.ratios import change as sized
from ironbench.report.wording.answers.ratios import metric_words
from ironbench.report.wording.values import CI
from ironbench.stats.change_points import CORRELATED, INDEPENDENT
from ironbench.study.differences import most_relevant
from ironbench.study.history import DATE, Histories, History, HistoryChange, HistoryLine, HistoryPoint
from ironbench.words import upper_first


def page(found: Histories) -> Page:
    records = [trial for one in found.all for point in one.order for trial in point.trials]
    points = sum(len(one.order) for one in found.all)
    by = "date" if found.by == DATE else found.by.removeprefix("tag:")
    return Page(
        title="History",
        lead=history_answer.scope(len(records), points, by, len(found.all)),
        answer=answer(found),
        sections=tuple(sections(found)),
        caveats=(*wording.sentences(found.left_out), *_suspect(found)),
        notes=(
            history_answer.what_a_point_is(),
            history_answer.what_a_change_point_is(INDEPENDENT, CORRELATED),
            history_answer.what_a_spike_is(),
            history_answer.without_verdict(),
        ),
        derived=" ".join(derived_sentences(records).values()),
        fields=lambda: document(found),
    )


def answer(found: Histories) -> Answer:
    """Returns the answer. Changes for the worse come first, the newest before older ones. Other changes and open
    questions follow. If nothing changed, the first sentence states it."""
    changes = sorted(
        _changes(found), key=lambda one: (one[2].worse is True, _at(one[1], one[2]).started_at), reverse=True
    )
    points = [
        sections_of.AnswerPoint(_sentence(line, change, one.metric), _title(found, one))
        for one, line, change in changes
    ]
    quiet = [sections_of.AnswerPoint(text, _title(found, one)) for one in found.all for text in _unchanged(one)]
    quiet += _open_questions(found)
    if not points and not quiet:
        return Answer(sections_of.AnswerPoint(history_answer.nothing_to_show()))
    if not points:
        lines = sum(not line.open_question for one in found.all for line in one.lines)
        return Answer(sections_of.AnswerPoint(history_answer.no_change_point(lines)), tuple(quiet))
    return Answer(points[0], (*points[1:], *quiet))


def sections(found: Histories) -> Iterator[Section]:
    """Yields a section for each combination of workload and load."""
    for place, one in enumerate(found.all):
        tables = [("Segments", _segments(one))] if any(line.changes for line in one.lines) else []
        tables += [(f"Facts that changed with {line.name}", _differs(line)) for line in one.lines if line.differs]
        yield Section(
            f"history{place}",
            heading(one),
            # The only section of a page needs no sentences, because the answer already contains them.
            sentences=_sentences(one) if len(found.all) > 1 else (),
            charts=(chart(one, f"history{place}"),),
            tables=tuple(tables),
            depth=Depth.EVERYWHERE,
        )


def document(found: Histories) -> dict[str, Any]:
    """Returns the content of the page for programs. Values are in base units, metrics have the same names as in
    records, and trials are identified by their id."""
    return {
        "by": found.by,
        "histories": [_fields(one) for one in found.all],
        "left_out": wording.sentences(found.left_out),
    }


def _changes(found: Histories) -> Iterator[tuple[History, HistoryLine, HistoryChange]]:
    return ((one, line, change) for one in found.all for line in one.lines for change in line.changes)


def _at(line: HistoryLine, change: HistoryChange) -> HistoryPoint:
    return line.points[change.place]


def _sentence(line: HistoryLine, change: HistoryChange, metric: str) -> str:
    at = _at(line, change)
    day = "" if at.name.startswith(at.started_at[:10]) else at.started_at[:10]
    return history_answer.changed(
        metric=metric,
        since=at.name,
        day=day,
        ratio=change.ratio,
        low=change.low,
        high=change.high,
        worse=change.worse,
        line=line.name,
        flagged=at.flagged,
    )


def heading(one: History) -> str:
    """Returns the heading of a section, which names the workload and the load."""
    return f"{one.work}, {wording.text(one.load)}"


def _title(found: Histories, one: History) -> str:
    return f"{heading(one)}:" if len(found.all) > 1 else ""


def _open_questions(found: Histories) -> Iterator[sections_of.AnswerPoint]:
    """Yields a point for each reason why there is no verdict. Series with the same reason share a point."""
    series = [(one, line, why) for one in found.all for line in one.lines if (why := line.open_question)]
    for _, group in groupby(sorted(series, key=_reason), _reason):
        (one, line, why), *others = group
        if others:
            yield sections_of.AnswerPoint(history_answer.no_verdict(f"{1 + len(others)} series", why))
        else:
            yield sections_of.AnswerPoint(history_answer.no_verdict(line.name, why), _title(found, one))


def _reason(series: tuple[History, HistoryLine, Note]) -> str:
    return wording.text(series[2])


def _unchanged(one: History) -> Iterator[str]:
    """Yields a sentence for each series with a verdict but without a change point, and for each unconfirmed change."""
    for line in one.lines:
        if not line.open_question and not line.changes:
            judged = _judged(line, 0, len(line.points) - 1)
            yield history_answer.unchanged(line.name, judged, len(line.points) - judged, line.detectable)
        if line.unconfirmed:
            last = next(point for point in reversed(line.points) if point.judged)
            yield history_answer.unconfirmed(line.name, last.name)


def _sentences(one: History) -> tuple[str, ...]:
    changes = [_sentence(line, change, one.metric) for line in one.lines for change in line.changes]
    open_questions = (history_answer.no_verdict(line.name, why) for line in one.lines if (why := line.open_question))
    return (*changes, *_unchanged(one), *open_questions)


def _judged(line: HistoryLine, first: int, last: int) -> int:
    return sum(point.judged for point in line.points[first : last + 1])


def _segments(one: History) -> Table:
    unit = unit_of(one.metric)
    rows = []
    for line in one.lines:
        for place, (first, last) in enumerate(line.segments if not line.open_question else ()):
            change = line.changes[place - 1] if place else None
            size = (
                (TableCell(change.ratio, "times"), ratio_bounds(change.low, change.high)) if change else (EMPTY, EMPTY)
            )
            name = line.points[first].name
            mean = TableCell(line.mean(first, last), unit)
            rows.append((name, line.name, count(_judged(line, first, last)), mean, *size))
    head = ("from", "system", "points", metric_words(one.metric), "vs. previous segment", CI)
    return Table(head, tuple(rows), words=True)


def _differs(line: HistoryLine) -> Table:
    main, _ = most_relevant(line.differs)
    rows = tuple((f"{row.group}: {fact_name(row.name)}", *(fact(row.name, one) for one in row.values)) for row in main)
    return Table(("fact", "before", f"since {line.points[0].name}"), rows, words=True)


def _suspect(found: Histories) -> list[str]:
    points = [point for one in found.all for point in one.order]
    suspect, whole = sum(point.suspect for point in points), sum(point.flagged for point in points)
    return [history_answer.flagged_trials(suspect, whole)] if suspect else []


def _fields(one: History) -> dict[str, Any]:
    return {
        "work": one.work,
        "load": wording.text(one.load),
        "metric": one.metric,
        "lines": [_line(line) for line in one.lines],
    }


def _line(line: HistoryLine) -> dict[str, Any]:
    points = [
        {
            **{"name": point.name, "started_at": point.started_at, "value": point.value, "interval": point.interval},
            **{"deviation": point.deviation, "judged": point.judged, "spike": place in line.spikes},
            "flagged": point.flagged,
            "trials": [trial.id for trial in point.trials],
        }
        for place, point in enumerate(line.points)
    ]
    changes = [
        {"at": _at(line, one).name, "ratio": one.ratio, "interval": [one.low, one.high], "worse": one.worse}
        for one in line.changes
    ]
    differs = [
        {"fact": f"{row.group}.{row.name}", "before": row.values[0], "here": row.values[1]} for row in line.differs
    ]
    rest: dict[str, Any] = {"unconfirmed": line.unconfirmed, "between": line.between, "correlation": line.correlation}
    rest["open_question"] = wording.text(line.open_question) if line.open_question else ""
    return {"name": line.name, "differs": differs, "points": points, "changes": changes, **rest}


_LONGEST = 14
"""Labels below the axis are cut to this number of characters."""


def chart(one: History, id: str) -> Chart:
    unit, order = unit_of(one.metric), one.order
    ends = [end for point in order for end in (point.interval or (point.value,))]
    suffix, factor = scale(unit, ends)
    places = {point.started_at + point.name: place for place, point in enumerate(order)}
    data: dict[str, list[dict[str, Any]]] = {
        "judged": [],
        "single": [],
        "spikes": [],
        "segments": [],
        "changes": [],
        "flagged": [],
    }
    for line in one.lines:
        at = [places[point.started_at + point.name] for point in line.points]
        for place, point in enumerate(line.points):
            kind = "spikes" if place in line.spikes else "judged" if point.judged else "single"
            row = _chart_point(line, point, at[place], unit, factor)
            data[kind].append(row)
            data["flagged"] += [row] if point.flagged else []
        for first, last in line.segments if not line.open_question else ():
            mean = line.mean(first, last)
            data["segments"].append(
                {"system": line.name, "place": at[first] - 0.3, "end": at[last] + 0.3, "value": mean / factor}
            )
        for change in line.changes:
            size = sized(change.ratio, "")
            text = f"{size} since {line.points[change.place].name}"
            data["changes"].append({"place": at[change.place] - 0.5, "text": text, "label": size})
    names = [line.name for line in one.lines]
    drawn = {kind: rows for kind, rows in data.items() if rows}
    keys = [*base.keys(names)]
    keys += [Key("hollow point: too few trials for a verdict", "muted", "hollow")] if data["single"] else []
    keys += [Key("cross: spike", "muted", "cross")] if data["spikes"] else []
    marked = " A question mark means that every trial of the point is flagged." if data["flagged"] else ""
    keys += [Key("change point, with the size of the change", "warn", "dash")] if data["changes"] else []
    words = metric_words(one.metric)
    return Chart(
        id,
        f"{upper_first(words)} over time",
        _alt(one, words),
        base.specification(_layers(names, drawn, [point.name[:_LONGEST] for point in order], ends, factor), drawn, 300),
        points_table(one),
        "per second" if suffix == "/s" else suffix or words,
        tuple(keys),
        f"Whiskers show the {CI} of a point, computed from the trials of the point. The axis may not start at 0."
        + marked,
        wide=True,
    )


def points_table(one: History) -> Table:
    unit = unit_of(one.metric)
    rows = []
    for point in one.order:
        line = next(line for line in one.lines if point in line.points)
        value = _value(point, unit)
        start = (point.name, moment(point.started_at)[:10], line.name, count(len(point.trials)))
        interval = value.range if point.interval else Missing(NO_INTERVAL)
        rows.append((*start, value.alone, interval, _remark(line, line.points.index(point))))
    return Table(("point", "date", "system", "trials", metric_words(one.metric), CI, ""), tuple(rows), words=True)


def _remark(line: HistoryLine, place: int) -> str:
    change = next((one for one in line.changes if one.place == place), None)
    point = line.points[place]
    last = line.unconfirmed and place == max(at for at, one in enumerate(line.points) if one.judged)
    parts = [
        f"new segment, {sized(change.ratio, '')}" if change else "",
        "spike" if place in line.spikes else "",
        "unconfirmed change" if last else "",
        "every trial flagged" if point.flagged else f"{point.suspect} flagged" if point.suspect else "",
        "" if point.judged else "too few trials",
    ]
    return ", ".join(filter(None, parts))


def _value(point: HistoryPoint, unit: str) -> TableCell:
    return TableCell(point.value, unit, *point.interval, CONFIDENCE) if point.interval else TableCell(point.value, unit)


def _chart_point(line: HistoryLine, point: HistoryPoint, place: int, unit: str, factor: float) -> dict[str, Any]:
    names = {"system": line.name, "place": place, "point": point.name, "trials": len(point.trials)}
    return {**names, **base.figures(_value(point, unit), factor)}


def _layers(
    names: list[str], data: dict[str, list[dict[str, Any]]], labels: list[str], ends: list[float], factor: float
) -> list[dict[str, Any]]:
    x = base.places("", labels)
    x["axis"] |= {"title": None, "labelOverlap": "greedy", "labelAngle": 0, "labelBound": True, "labelSeparation": 6}
    low, high = min(ends) / factor, max(ends) / factor
    room = 0.08 * (high - low) or 0.05 * high or 1.0
    domain = [low - room, high + 2 * room]
    y: dict[str, Any] = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": domain, "zero": False, "nice": False},
        "axis": {"tickCount": 5, "format": ",~f", "title": None},
    }
    colour, shape = base.colour(names), base.shape(names)
    tooltip = [{"field": name} for name in ("point", "system", "text", "trials")]
    layers: list[dict[str, Any]] = []
    if "segments" in data:
        rule = {"type": "rule", "strokeWidth": 7, "opacity": 0.22, "strokeCap": "butt"}
        layers.append(
            {
                "data": {"name": "segments"},
                "mark": rule,
                "encoding": {"x": x, "x2": {"field": "end"}, "y": y, "color": colour},
            }
        )
    if "changes" in data:
        dashed = {"type": "rule", "strokeDash": [4, 4], "color": "@warn", "strokeWidth": 1.6}
        text = {
            "type": "text",
            "align": "left",
            "baseline": "top",
            "dx": 4,
            "y": 0,
            "color": "@warn",
            "fontWeight": 600,
        }
        layers.append(
            {
                "data": {"name": "changes"},
                "mark": dashed,
                "encoding": {"x": x, "tooltip": [{"field": "text", "title": "change"}]},
            }
        )
        layers.append({"data": {"name": "changes"}, "mark": text, "encoding": {"x": x, "text": {"field": "label"}}})
    if "judged" in data:
        layers += base.whiskered("judged", x, y, (colour, shape), tooltip)
    for kind, mark in (("single", {"filled": False}), ("spikes", {"filled": True, "shape": "cross"})):
        if kind in data:
            styles = {"color": colour} | ({"shape": shape} if kind == "single" else {})
            drawn = {"type": "point", "size": 80, "opacity": 1, "strokeWidth": 1.6, **mark}
            layers.append(
                {"data": {"name": kind}, "mark": drawn, "encoding": {"x": x, "y": y, **styles, "tooltip": tooltip}}
            )
    if "flagged" in data:
        sign = {"type": "text", "text": "?", "dx": 10, "color": "@warn", "fontWeight": 700, "fontSize": 13}
        encoding = {"x": x, "y": y, "tooltip": tooltip}
        layers.append({"data": {"name": "flagged"}, "mark": sign, "encoding": encoding})
    return layers


def _alt(one: History, words: str) -> str:
    parts = []
    for line in one.lines:
        known = [f"{sized(change.ratio, '')} since {line.points[change.place].name}" for change in line.changes]
        parts.append(f"{line.name}: {len(line.points)} points, {'; '.join(known) if known else 'no change point'}")
    return f"{upper_first(words)} of {one.work}, {wording.text(one.load)} over time. {'. '.join(parts)}."
