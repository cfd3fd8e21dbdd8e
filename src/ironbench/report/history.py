"""What became of a metric over time, as a page of sections: `page(histories(…))` serves every format, and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ironbench.report import section as sections_of
from ironbench.report import wording
from ironbench.report.cell import EMPTY, TableCell, count
from ironbench.report.charts.base import Depth, Table
from ironbench.report.charts.history import history as chart
from ironbench.report.derived import sentences as derived_sentences
from ironbench.report.facts import fact, fact_name
from ironbench.report.findings import bounds, metric_words, ratio_bounds
from ironbench.report.numbers import times, unit_of
from ironbench.report.page import Page
from ironbench.report.section import Answer, Section
from ironbench.study.differences import telling
from ironbench.study.history import DATE, Histories, History, HistoryChange, HistoryLine, HistoryPoint
from ironbench.words import THIN, counted, in_percent

_NOTES = (
    "A point is the geometric mean of the trials of one commit, version or run; its interval is Student's, of their "
    "logarithms.",
    "A change point is where the means of two neighbouring segments differ by more than chance brings about. Of 2,000 "
    "simulated series without a change that were read on each of 40 nights, 0.95% had a change point (95% CI 0.61% to "
    "1.48%) where nights were independent of each other. Correlation of neighbouring nights is estimated and allowed "
    "for; where it was 0.5, 12.4% of 1,000 such series still had a false change point (95% CI 10.5% to 14.6%).",
    "A single point far from those around it is a spike and no change; the last point needs the next to confirm it.",
    "Points of fewer than 3 trials are shown and carry no verdict.",
)


def page(found: Histories) -> Page:
    records = [trial for one in found.all for point in one.order for trial in point.trials]
    points = sum(len(one.order) for one in found.all)
    by = "date" if found.by == DATE else found.by.removeprefix("tag:")
    lead = f"{counted(len(records), 'trial')} in {counted(points, 'point')} by {by}"
    return Page(
        title="History",
        lead=f"{lead}; {counted(len(found.all), 'kind')} of work under one load.",
        answer=answer(found),
        sections=tuple(sections(found)),
        cautions=(*wording.sentences(found.left_out), *_suspect(found)),
        notes=_NOTES,
        derived=" ".join(derived_sentences(records).values()),
        fields=lambda: document(found),
    )


def answer(found: Histories) -> Answer:
    """The newest change for the worse first, or that there is none; then every other change and open question."""
    changes = sorted(
        _changes(found), key=lambda one: (one[2].worse is True, _at(one[1], one[2]).started_at), reverse=True
    )
    points = [
        sections_of.AnswerPoint(_sentence(line, change, one.metric), _title(found, one))
        for one, line, change in changes
    ]
    quiet = [sections_of.AnswerPoint(text, _title(found, one)) for one in found.all for text in _without_change(one)]
    if not points and not quiet:
        return Answer(sections_of.AnswerPoint("There is nothing to show."))
    if not points:
        lines = sum(not line.open_question for one in found.all for line in one.lines)
        first = f"No change point in {counted(lines, 'line')}." if lines else "Nothing can be judged yet."
        return Answer(sections_of.AnswerPoint(first), tuple(quiet))
    return Answer(points[0], (*points[1:], *quiet))


def sections(found: Histories) -> Iterator[Section]:
    """A section for each work under one load."""
    for place, one in enumerate(found.all):
        tables = [("Segments", _segments(one))] if any(line.changes for line in one.lines) else []
        tables += [(f"What changed with {line.name}", _differs(line)) for line in one.lines if line.differs]
        yield Section(
            f"history{place}",
            heading(one),
            sentences=_sentences(one) if len(found.all) > 1 else (),  # else the answer has them
            charts=(chart(one, f"history{place}"),),
            tables=tuple(tables),
            depth=Depth.EVERYWHERE,
        )


def document(found: Histories) -> dict[str, Any]:
    """For programs: base units, catalogue names; trials by their id."""
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
    words = {True: "is worse", False: "is better", None: "is another"}[change.worse]
    day = "" if at.name.startswith(at.started_at[:10]) else f" ({at.started_at[:10]})"
    size = f"{times(change.ratio)} the mean before (95{THIN}% interval {bounds(change.low, change.high)})"
    flagged = f" Every trial of {at.name} is flagged." if at.flagged else ""
    return f"{metric_words(metric).capitalize()} {words} from {at.name}{day} on: {size}; {line.name}.{flagged}"


def heading(one: History) -> str:
    """The work and its load."""
    return f"{one.work}, {wording.text(one.load)}"


def _title(found: Histories, one: History) -> str:
    return f"{heading(one)}:" if len(found.all) > 1 else ""


def _without_change(one: History) -> Iterator[str]:
    for line in one.lines:
        if line.open_question:
            yield f"{line.name}: no verdict: {wording.text(line.open_question)}."
        elif not line.changes:
            yield f"{line.name}: no change point in {_points(line)}.{_seen(line)}"
        if line.unconfirmed:
            last = next(point for point in reversed(line.points) if point.judged)
            yield f"{line.name}: {last.name} stands apart from the points before it; the next one will tell."


def _sentences(one: History) -> tuple[str, ...]:
    changes = [_sentence(line, change, one.metric) for line in one.lines for change in line.changes]
    return (*changes, *_without_change(one))


def _points(line: HistoryLine) -> str:
    """Those that were searched; hollow ones carry no verdict."""
    judged = _judged(line, 0, len(line.points) - 1)
    hollow = len(line.points) - judged
    return counted(judged, "point") + (f" ({hollow} more with too few trials)" if hollow else "")


def _judged(line: HistoryLine, first: int, last: int) -> int:
    return sum(point.judged for point in line.points[first : last + 1])


def _seen(line: HistoryLine) -> str:
    least = line.detectable
    return f" A lasting change of {in_percent(least)} would be seen after three points." if least else ""


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
    head = ("from", "system", "points", metric_words(one.metric), "to the segment before", "interval")
    return Table(head, tuple(rows), words=True)


def _differs(line: HistoryLine) -> Table:
    main, _ = telling(line.differs)
    rows = tuple((f"{row.room}: {fact_name(row.name)}", *(fact(row.name, one) for one in row.values)) for row in main)
    return Table(("fact", "before", f"from {line.points[0].name} on"), rows, words=True)


def _suspect(found: Histories) -> list[str]:
    points = [point for one in found.all for point in one.order]
    suspect, whole = sum(point.suspect for point in points), sum(point.flagged for point in points)
    marked = f", all of them at {counted(whole, 'point')} (marked ?)" if whole else ""
    return [f"{counted(suspect, 'trial')} flagged{marked}: `ironbench show` says why."] if suspect else []


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
        {"fact": f"{row.room}.{row.name}", "before": row.values[0], "here": row.values[1]} for row in line.differs
    ]
    rest: dict[str, Any] = {"unconfirmed": line.unconfirmed, "between": line.between, "correlation": line.correlation}
    rest["open_question"] = wording.text(line.open_question) if line.open_question else ""
    return {"name": line.name, "differs": differs, "points": points, "changes": changes, **rest}
