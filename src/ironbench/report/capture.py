"""The page that `ironbench show` prints about a capture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from ironbench.report import wording
from ironbench.report.cell import ABSENT, Content, TableCell, count
from ironbench.report.charts.base import Table
from ironbench.report.numbers import number, quantity
from ironbench.report.page import Answer, AnswerPoint, Page, Section, with_rows
from ironbench.units import span
from ironbench.words import counted, cut, grouped, in_percent
from ironbench.workloads.capture.contents import Contents, Pauses, contents
from ironbench.workloads.capture.file import PROXY
from ironbench.workloads.capture.keys import KeyUse

_WIDTH = 100
"""Tables cut statements to this number of characters."""
_SHORT_S = 2.0
"""The page shows no highest rate for captures shorter than this number of seconds, because it would not be
meaningful."""
_LEFT_OUT = (
    "A replay runs either all statements of a transaction or none. Exceptions are LISTEN, "
    "statements about the whole server, calls that affect other sessions, and fetches from a cursor: a replay skips "
    "these statements but runs the rest of the transaction."
)


def page(path: str) -> Page:
    """Returns the page about a capture. Raises InputError if the file is not a capture."""
    found = contents(path)
    facts = found.facts
    began = datetime.fromtimestamp(facts.began_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if facts.invented:
        source = f"from the statement statistics of the server ({facts.format})"
    elif facts.format == PROXY:
        source = "recorded by the proxy"
    else:
        source = f"from logs in the format {facts.format}"
    masked = ", literals masked" if facts.masked else ""
    return Page(
        title=f"Capture {path}",
        lead=f"{span(facts.length_s)} from {began}, {source}{masked}",
        answer=Answer(AnswerPoint(_first(found)), tuple(map(AnswerPoint, _points(found, path)))),
        sections=(
            Section("left-out", "Statements that cannot be replayed", _LEFT_OUT, tables=with_rows(_left_out(found))),
            Section("statements", "Statements by total time", tables=with_rows(_top(found)), sentences=_rest(found)),
            Section("keys", "Generated keys", sentences=tuple(_keys(found.keys))),
            Section("mix", "Mix of statement types", tables=with_rows(_mix(found))),
            Section(
                "rates",
                "Rates over time",
                f"Each row of the table covers {span(found.width_s)}.",
                tables=with_rows(_rates(found)),
            ),
            Section("pauses", "Think times", tables=with_rows(_pauses(found))),
            Section("senders", "Users, databases and applications", tables=with_rows(_senders(found))),
        ),
        caveats=tuple(wording.sentences(facts.notes)),
        fields=partial(_fields, found),
    )


def _first(found: Contents) -> str:
    facts = found.facts
    whole = f"{counted(facts.statements, 'statement')} in {counted(facts.transactions, 'transaction')}"
    if facts.length_s < _SHORT_S:
        return f"{whole}."
    mean, most = number(facts.transactions / facts.length_s), quantity(found.peak_per_s, "count")
    return f"{whole}: on average {mean} transactions per second, and at most {most} in one second."


def _points(found: Contents, path: str) -> Iterator[str]:
    facts = found.facts
    of_all = found.reads + found.writes
    open_at_once = f", of which up to {found.at_once} were open at the same time" if facts.sessions > 1 else ""
    yield f"{counted(facts.sessions, 'session')}{open_at_once}."
    if of_all:
        every = counted(of_all, "read or write", "reads and writes")
        yield f"Reads make up {in_percent(found.reads / of_all)} of {every}."
    if facts.has_durations and facts.length_s > 0:
        busy = number(found.busy_s / facts.length_s)
        yield (
            f"The statements took {quantity(found.busy_s, 's')} in total: on average, {busy} statements ran at "
            "the same time."
        )
    if not facts.replayable:
        return
    if facts.has_replaced_literals:
        yield "A replay would be misleading, because the masked values match other rows or no rows."
        return
    replayed = facts.statements - sum(statements for _, statements in found.left_out)
    yield (
        f"A replay runs {in_percent(replayed / facts.statements, (1.0,))} of the statements: "
        f"`ironbench run capture --with file={path}`"
    )


def _left_out(found: Contents) -> Table:
    rows = [
        (wording.capture.reason(code), count(number), TableCell(number / found.facts.statements, "share"))
        for code, number in found.left_out
    ]
    return Table(("reason", "statements", "share"), tuple(rows))


def _seconds(value: float | None) -> Content:
    return ABSENT if value is None else TableCell(value, "s")


def _top(found: Contents) -> Table:
    rows = [
        (
            cut(one.template, _WIDTH),
            count(one.calls),
            TableCell(one.total_s / found.busy_s, "share") if found.busy_s else ABSENT,
            _seconds(one.mean_s),
            _seconds(one.p99_s),
            count(one.failed),
        )
        for one in found.top
    ]
    head = ("statement", "calls", "% of total time", "mean", "99th percentile", "failed")
    return Table(head, tuple(rows), ranks=(0, 0, 1, 1, 3, 2))


def _rest(found: Contents) -> tuple[str, ...]:
    more = found.templates - len(found.top)
    shown = counted(len(found.top), "statement")
    every = grouped(found.templates)
    return (f"The table shows {shown} of {every} that differ in more than their literals.",) if more > 0 else ()


def _keys(found: KeyUse) -> Iterator[str]:
    if not found.makers:
        return
    makers = counted(found.makers, "statement returns", "statements return")
    yield f"{makers} a generated key."
    if found.known:
        where = counted(found.values, "place", "places")
        yield (
            f"For {in_percent(found.known / found.makers)} of these statements, a later statement contains the "
            f"key. In {where}, a replay replaces the recorded key with the key that the server generates during "
            "the replay."
        )
    if found.known < found.makers:
        yield (
            f"For {in_percent(1 - found.known / found.makers)} of these statements, ironbench cannot identify the "
            "key in later statements, and a replay sends the later values as recorded."
        )


def _mix(found: Contents) -> Table:
    rows: list[tuple[Content, ...]] = [
        (verb or "(empty)", count(number), TableCell(number / found.facts.statements, "share"))
        for verb, number in found.mix
    ]
    return Table(("statement", "calls", "share"), tuple(rows))


def _rates(found: Contents) -> Table:
    rows = [
        (
            span(one.start_s) if one.start_s else "0 s",
            TableCell(one.transactions_per_s, "1/s"),
            TableCell(one.statements_per_s, "1/s"),
            count(one.sessions),
            _seconds(one.mean_s),
        )
        for one in found.intervals
    ]
    head = ("start", "transactions", "statements", "active sessions", "mean duration")
    return Table(head, tuple(rows), ranks=(0, 0, 1, 2, 3))


def _pauses(found: Contents) -> Table:
    named: Sequence[tuple[str, Pauses | None]] = (
        ("between transactions", found.between),
        ("inside transactions", found.inside),
    )
    rows: list[tuple[Content, ...]] = [
        (name, count(one.count), *(TableCell(value, "s") for value in (one.mean_s, one.p50_s, one.p90_s, one.p99_s)))
        for name, one in named
        if one is not None
    ]
    return Table(("pause", "number", "mean", "median", "90th percentile", "99th percentile"), tuple(rows))


def _senders(found: Contents) -> Table:
    rows = [(one.kind, one.name or "(unnamed)", count(one.statements), count(one.sessions)) for one in found.senders]
    return Table(("", "name", "statements", "sessions"), tuple(rows))


def _fields(found: Contents) -> dict[str, Any]:
    facts = msgspec.to_builtins(found.facts)
    return {
        "schema": 1,
        **{name: value for name, value in msgspec.to_builtins(found).items() if name != "facts"},
        "capture": facts,
    }
