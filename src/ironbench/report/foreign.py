"""Pages about foreign records. A page shows one foreign record, or a foreign record beside trials of ironbench. These
pages contain neither verdicts nor ratios."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ironbench.catalogue import base_name, part_of
from ironbench.errors import InputError
from ironbench.model.foreign import ForeignRecord
from ironbench.model.record import machine_of
from ironbench.records import foreign
from ironbench.records.selection import NamedRecords, named
from ironbench.records.work import work_name
from ironbench.report.as_json import plain_value
from ironbench.report.cell import ABSENT, Content, Missing, Row, TableCell, with_range
from ironbench.report.charts.base import Chart, Table
from ironbench.report.charts.timelines import over_time
from ironbench.report.derived import sentences
from ironbench.report.numbers import moment, quantity, unit_of
from ironbench.report.page import Answer, AnswerPoint, Page, Section, with_rows
from ironbench.report.wording.answers import foreign as words
from ironbench.report.wording.answers.ratios import metric_words
from ironbench.study.curve import metrics_of
from ironbench.study.foreign import beside, gaps
from ironbench.study.subjects import by_work, subjects
from ironbench.study.timelines import SecondOfTrial, TimelineSeries, every_second, line, typical
from ironbench.words import counted, listed

_METRICS = {
    "new_orders_per_min": ("", ""),
    "transactions_per_min": ("", ""),
    "throughput": ("", ""),
    "queries_per_s": ("statements per second", "1/s"),
    "failed_fraction": ("", ""),
    "response_time_min_s": ("", ""),
    "response_time_mean_s": ("", ""),
    "response_time_stddev_s": ("standard deviation of the response time", "s"),
    "response_time_p50_s": ("", ""),
    "response_time_p90_s": ("", ""),
    "response_time_p95_s": ("", ""),
    "response_time_p99_s": ("", ""),
    "response_time_p999_s": ("", ""),
    "response_time_max_s": ("", ""),
}
"""Maps each metric to its name and unit, in the order of the tables. If the name or the unit is empty, ironbench's own
is used."""
_HEADLINE = (
    *("new_orders_per_min", "transactions_per_min", "throughput", "response_time_mean_s", "response_time_p99_s"),
    "response_time_p95_s",
)
_MOST_IN_HEADLINE = 3
_OF_PARTS = ("transactions", "failed", "throughput", *(name for name in _METRICS if name.startswith("response_time")))
_OVER_TIME = (
    "throughput",
    "transactions_per_min",
    "response_time_mean_s",
    "response_time_p50_s",
    "response_time_p95_s",
    "response_time_p99_s",
)
_FACTS = {
    "workload": "workload",
    "database": "database",
    "scale": "scale",
    "clients": "clients",
    "threads": "threads",
    "rate": "target rate",
    "protocol": "protocol",
    "max_tries": "maximum number of attempts per transaction",
    "efficiency": "efficiency as computed by the other program",
    "measured": "measured time",
    "warmup": "warm-up",
    "repeats": "trials",
    "started": "started",
    "machine": "machine",
    "program": "measured with",
    "checks": "results checked",
}
_NOT_SAID = Missing("not stated")


def pages(selection: Sequence[str], results: str) -> list[Page]:
    """Returns the pages of a selection that names at least one foreign record. If the selection also names trials, a
    single page shows everything side by side. Otherwise, each foreign record has a page. Raises InputError if a name
    matches nothing, and as `side_by_side` does."""
    sides: list[ForeignRecord | NamedRecords] = []
    for word in selection:
        try:
            sides.append(named(word, results))
        except InputError:
            records = foreign.named(word, Path(results))
            if not records:
                raise
            sides += [record for record in records if record not in sides]
    records = [one for one in sides if isinstance(one, ForeignRecord)]
    return [side_by_side(*sides)] if len(sides) > len(records) else [page(record) for record in records]


def resolved(word: str, results: str) -> ForeignRecord | NamedRecords:
    """Returns the foreign record or the trials that a name matches. Trials take precedence if the name matches both.
    Raises InputError if the name matches nothing, or several foreign records and no trials."""
    try:
        return named(word, results)
    except InputError:
        records = foreign.named(word, Path(results))
        if len(records) > 1:
            ids = listed([record.id for record in records])
            raise InputError(
                word, f"matches {counted(len(records), 'foreign record')}", f"give the id of one of them: {ids}"
            ) from None
        if records:
            return records[0]
        raise


def page(record: ForeignRecord) -> Page:
    """Returns the page of a foreign record."""
    side = _Side.of_foreign(record)
    title = f"{record.name}: {record.facts.get('workload') or 'a run'} with {words.PROGRAMS[record.program]}"
    parts = [name for name in _OF_PARTS if any(name in part.metrics for part in record.parts)]
    rows = tuple((part.name, *(_cell(part.metrics.get(name), name) for name in parts)) for part in record.parts)
    return Page(
        title=title,
        lead=words.origin(record.id, record.file),
        answer=Answer(AnswerPoint(_headline(record)), caveats=(_gaps(record), words.no_verdict())),
        sections=(
            Section("figures", "Figures", tables=with_rows(_figures([side]))),
            Section("parts", "By transaction", tables=with_rows(Table(("", *map(_words, parts)), rows))),
            Section("over-time", "Over time", charts=tuple(_charts({side.name: side.lines}, [record], side.step_s))),
            Section("facts", "Known facts", tables=with_rows(_facts([side]))),
        ),
        caveats=(*_failures(record), words.counting(record.program)),
        derived=words.derived(record.program),
        seconds=lambda: ((record.name, one) for one in _seconds(record)),
        kind="foreign",
        fields=partial(_fields, record),
    )


def side_by_side(*each: ForeignRecord | NamedRecords) -> Page:
    """Returns the page that shows several sides beside each other. At least one side must be a foreign record. Raises
    InputError if another side has no usable trials, or trials of several systems or workloads."""
    records = foreign.with_labels([one for one in each if isinstance(one, ForeignRecord)])
    clients = next((one.clients for one in records if one.clients), None)
    rest = iter(records)
    sides = [
        _Side.of_foreign(next(rest)) if isinstance(one, ForeignRecord) else _Side.of_trials(one, clients)
        for one in each
    ]
    lines = {side.name: side.lines for side in sides}
    return Page(
        title=listed([side.name for side in sides]),
        lead=words.scope(len(records), len(sides) - len(records)),
        answer=Answer(
            AnswerPoint(words.no_verdict()),
            tuple(AnswerPoint(side.headline, f"{side.name}:") for side in sides),
            caveats=(),
        ),
        sections=(
            Section("figures", "Side by side", tables=with_rows(_figures(sides))),
            Section("parts", "By transaction", tables=with_rows(_by_transaction(sides))),
            Section(
                "over-time", "Over time", charts=tuple(_charts(lines, records, max(side.step_s for side in sides)))
            ),
            Section("facts", "Known facts", tables=with_rows(_facts(sides))),
        ),
        caveats=tuple(
            dict.fromkeys(
                text
                for record in records
                for text in (f"{record.name}: {_gaps(record)}", *_failures(record), words.counting(record.program))
            )
        ),
        derived=" ".join(dict.fromkeys(filter(None, (side.derived for side in sides)))),
        fields=partial(_fields_of_both, sides),
    )


@dataclass(frozen=True, slots=True)
class _Side:
    """A foreign record or trials, in the form in which the page shows them beside another side."""

    name: str
    headline: str
    metrics: Mapping[str, Content]
    parts: Mapping[str, Mapping[str, Content]]
    """Metrics of each kind of transaction. The names of kinds have lower-case letters, because HammerDB's and go-tpc's
    New-Order is ironbench's new-order."""
    facts: Mapping[str, str]
    derived: str
    document: Mapping[str, Any]
    lines: tuple[TimelineSeries, ...]
    step_s: float
    """Seconds that each point of `lines` covers."""

    @staticmethod
    def of_foreign(record: ForeignRecord) -> _Side:
        known = {
            "program": f"{words.PROGRAMS[record.program]} {record.version}".strip(),
            "clients": str(record.clients or ""),
            "measured": quantity(record.elapsed_s, "duration") if record.elapsed_s else "",
            "started": record.started_at.replace("T", " "),
            "repeats": "1",
        }
        metrics = {name: _cell(value, name) for name, value in record.metrics.items()}
        parts = {
            part.name.lower(): {name: _cell(value, name) for name, value in part.metrics.items()}
            for part in record.parts
        }
        facts = {**record.facts, **known}
        derived = words.derived(record.program)
        lines = _lines(_seconds(record))
        step_s = max((one.t_s[1] - one.t_s[0] for one in lines if one.t_s[1:]), default=1.0)
        return _Side(
            name=record.name,
            headline=_headline(record),
            metrics=metrics,
            parts=parts,
            facts=facts,
            derived=derived,
            document=_fields(record),
            lines=lines,
            step_s=step_s,
        )

    @staticmethod
    def of_trials(named: NamedRecords, clients: int | None) -> _Side:
        """Returns a side that shows trials of ironbench. Raises InputError if they contain no usable trial, or belong
        to several systems or workloads."""
        trials = beside(named.records, clients)
        if not trials:
            raise InputError(named.word, "has no usable trials", "use other records")
        if len(by_work(trials)) > 1 or len(subjects(trials)) > 1:
            raise InputError(named.word, "matches several systems or workloads", "give one system and one workload")
        first, summaries = trials[0], metrics_of(trials, list(_METRICS), named.store)
        scripts = dict.fromkeys(part_of(name) for record in trials for name in record.metrics)
        of_scripts = [
            f"{metric}{{{script}}}" for script in scripts if script.startswith("script=") for metric in _OF_PARTS
        ]
        parts: dict[str, dict[str, Content]] = {}
        for name, one in metrics_of(trials, of_scripts, named.store).items():
            metric = base_name(name)
            parts.setdefault(part_of(name).removeprefix("script="), {})[metric] = with_range(one, _unit(metric))
        machine, engine = named.store.machine(machine_of(first)), named.store.engine(first.engine)
        cpu = machine.get("cpu", {})
        facts = {
            "program": f"ironbench {first.software.get('ironbench', '')}".strip(),
            "workload": work_name(first.choice),
            "database": f"{first.system.engine} {engine.get('version', '')}".strip(),
            "clients": str(first.cell.load.clients),
            "threads": str(first.cell.load.threads),
            "protocol": first.cell.load.protocol,
            "max_tries": str(first.cell.load.max_tries),
            "rate": quantity(first.cell.load.rate, "rate") if first.cell.load.rate else "",
            "measured": quantity(first.elapsed_s, "duration"),
            "warmup": quantity(first.cell.load.warmup_s, "duration"),
            "repeats": str(len(trials)),
            "started": moment(first.started_at),
            "machine": f"{cpu.get('model', '')}, {counted(cpu.get('threads') or 0, 'thread')}" if cpu else "",
            "checks": "yes" if all(record.checks for record in trials) else "",
        }
        metrics = {name: with_range(one, _unit(name)) for name, one in summaries.items()}
        leading = next((name for name in _METRICS if name in summaries), None)
        figure = f"{_words(leading)} {_plain(summaries[leading].centre, leading)}" if leading else ""
        document = {"trials": [record.id for record in trials], "metrics": plain_value(summaries)}
        return _Side(
            name=named.word,
            headline=words.median_of_trials(figure, first.cell.load.clients, len(trials)),
            metrics=metrics,
            parts=parts,
            facts=facts,
            derived=" ".join(sentences(trials).values()),
            document=document,
            lines=_lines(every_second(typical(trials), named.store)),
            step_s=1.0,
        )


def _headline(record: ForeignRecord) -> str:
    metrics = record.metrics
    known = [name for name in _HEADLINE if metrics.get(name)][:_MOST_IN_HEADLINE]
    shown = [f"{_words(name)} {_plain(metrics[name], name)}" for name in known]
    failed = _plain(metrics["failed_fraction"], "failed_fraction") if metrics.get("failed_fraction") else ""
    return words.headline(shown, failed, record.clients)


def _gaps(record: ForeignRecord) -> str:
    return words.missing(gaps(record))


def _failures(record: ForeignRecord) -> list[str]:
    return [words.failed_users(record.failed_users)] if record.failed_users else []


def _words(metric: str) -> str:
    return _METRICS.get(metric, ("", ""))[0] or metric_words(metric)


def _unit(metric: str) -> str:
    whole = metric in ("transactions", "failed", "retries")
    return _METRICS.get(metric, ("", ""))[1] or ("count" if whole else unit_of(metric))


def _plain(value: float, metric: str) -> str:
    return quantity(value, _unit(metric))


def _cell(value: float | None, metric: str) -> TableCell | Missing:
    return ABSENT if value is None else TableCell(value, _unit(metric))


def _figures(sides: Sequence[_Side]) -> Table:
    names = [name for name in _METRICS if any(name in side.metrics for side in sides)]
    rows = tuple((_words(name), *(side.metrics.get(name, ABSENT) for side in sides)) for name in names)
    return Table(("", *(side.name for side in sides)), rows)


def _by_transaction(sides: Sequence[_Side]) -> Table:
    """Returns a row for each metric of each kind of transaction that several sides have."""
    kinds = dict.fromkeys(kind for side in sides for kind in side.parts)
    rows: list[Row] = []
    for kind in (kind for kind in kinds if sum(kind in side.parts for side in sides) > 1):
        known = [side.parts.get(kind, {}) for side in sides]
        names = [name for name in _OF_PARTS if any(name in one for one in known)]
        rows += [(f"{kind}: {_words(name)}", *(one.get(name, ABSENT) for one in known)) for name in names]
    return Table(("", *(side.name for side in sides)), tuple(rows))


def _facts(sides: Sequence[_Side]) -> Table:
    usual = ("workload", "clients", "measured", "warmup", "repeats", "started", "machine", "checks", "program")
    names = [name for name in _FACTS if name in usual or any(side.facts.get(name) for side in sides)]
    rows = tuple((_FACTS[name], *(side.facts.get(name) or _NOT_SAID for side in sides)) for name in names)
    return Table(("", *(side.name for side in sides)), rows, words=True)


def _charts(
    lines: Mapping[str, Sequence[TimelineSeries]], records: Sequence[ForeignRecord], step_s: float
) -> Iterator[Chart]:
    """Yields a chart for each metric of which at least one foreign record contains values over time. `lines`: maps the
    name of each side to its time series."""
    wanted = {metric for record in records for metric in record.seconds}
    for metric in (metric for metric in _OVER_TIME if metric in wanted):
        known = [(name, one) for name, own in lines.items() for one in own if one.metric == metric]
        yield from over_time(metric, known, list(lines), "transactions", step_s)


def _lines(seconds: Iterable[SecondOfTrial]) -> tuple[TimelineSeries, ...]:
    """Returns a time series for each metric."""
    points: dict[str, list[tuple[float, float]]] = {}
    for one in seconds:
        points.setdefault(one.metric, []).append((one.t_s, one.value))
    return tuple(line(metric, [t for t, _ in own], [value for _, value in own]) for metric, own in points.items())


def _seconds(record: ForeignRecord) -> Iterator[SecondOfTrial]:
    for metric, values in record.seconds.items():
        for t, value in zip(record.seconds["t_s"], values, strict=True) if metric != "t_s" else ():
            if t is not None and value is not None:
                yield SecondOfTrial(record.id, "foreign", metric, t, value)


def _fields(record: ForeignRecord) -> dict[str, Any]:
    return {**plain_value(record), "gaps": gaps(record)}


def _fields_of_both(sides: Sequence[_Side]) -> dict[str, Any]:
    return {"sides": [{"name": side.name, **side.document} for side in sides], "verdict": None}
