"""Compares the records behind two names (`ironbench compare A B`), and builds the page about the comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ironbench.errors import InputError
from ironbench.model.described import LEADING
from ironbench.model.finding import Finding
from ironbench.model.lab import Configuration
from ironbench.model.record import Record, Status
from ironbench.records.labs import LabDirectory
from ironbench.records.selection import NamedRecords
from ironbench.records.work import work_name
from ironbench.report import presentation, wording
from ironbench.report.as_json import plain_value
from ironbench.report.cell import ABSENT, Content, Row, TableCell, centre, spread
from ironbench.report.charts.base import Table
from ironbench.report.derived import sentences
from ironbench.report.facts import difference_rows
from ironbench.report.finding_tables import finding_table, metric_tables
from ironbench.report.numbers import unit_of
from ironbench.report.page import Answer, AnswerPoint, Page, Section, with_rows
from ironbench.report.wording.answers import compare_answer
from ironbench.study import compare as analysis
from ironbench.study.archive import Archive, Archives
from ironbench.study.comparability import complete_blocks, other_work
from ironbench.study.compare import ComparedMetric, SystemComparison
from ironbench.study.differences import facts, most_relevant
from ironbench.study.lead import require_one_system
from ironbench.study.subjects import Subject, by_work, entering, needs_mark
from ironbench.words import counted

if TYPE_CHECKING:
    # Imported only for type checks. Without these modules, a comparison of two labels starts faster.
    from ironbench.study.explain import Explanation

_MAIN = (
    *("throughput", "failed_fraction", "response_time_mean_s", "response_time_p50_s", "response_time_p90_s"),
    "response_time_p99_s",
)
NO_RANGE = "no range"
_WHOLE = {"throughput": "throughput of the whole trial"}


@dataclass(frozen=True, slots=True)
class NamedComparison:
    """The comparison of two sides, A and B. The user named the records of each side."""

    sides: tuple[NamedRecords, NamedRecords]
    store: Archive
    pairs: tuple[Finding, ...]
    """The findings that compare the two sides. Empty unless both sides are configurations of one lab."""
    found: SystemComparison

    @property
    def usable(self) -> bool:
        return all(self.found.trials)

    def explained(self) -> Explanation:
        from ironbench.study.explain import explain, observed_of

        one, other = self.sides
        a, b = self.found.trials
        before, after = self._configuration(one, a), self._configuration(other, b)
        watched = observed_of(one.records), observed_of(other.records)
        observed = ((before, watched[0]), (after, watched[1])) if self.pairs and all(watched) else None
        return explain((before, a), (after, b), self.store, in_blocks=bool(self.pairs), observed=observed)

    def _configuration(self, side: NamedRecords, records: Sequence[Record]) -> Configuration:
        """Returns the configuration of a side, with the name given on the command line."""
        lab = LabDirectory(side.store.directory).lab() if self.pairs else None
        values = lab.configuration(side.cells[0]).values if lab else ()
        return Configuration(side.word, values, needs_mark(side.word, records))


def compare_named(of_a: NamedRecords, of_b: NamedRecords, different_work: bool = False) -> NamedComparison:
    """Compares B with A. Raises InputError if a name matches no usable trial, or trials of several workloads. Also
    raises InputError if the two sides ran different workloads, unless `different_work` is true."""
    a, b, records_a, records_b = of_a.word, of_b.word, of_a.records, of_b.records
    pairs = _findings(of_a, of_b)
    store = Archives([of_a.store, of_b.store])
    for name, records in ((a, records_a), (b, records_b)):
        usable(name, records)
        _require_one_work(name, records)
        if not pairs:
            require_one_system(name, {work_name(records[0].choice): Subject(name, tuple(records)).usable}, store)
    apart = other_work(records_a, records_b)
    if apart and not pairs and not different_work:
        raise InputError(
            f"{a} and {b}",
            "; ".join(wording.texts(apart)),
            "compare records of the same workload, or add `--different-work`",
        )
    common = {record.id for record in records_a} & {record.id for record in records_b}
    if common:
        cause = f"shares {counted(len(common), 'trial')} with {a}"
        raise InputError(b, cause, "give two different systems or series")
    known = [facts(next(r for r in one if r.status.comparable), store) for one in (records_a, records_b)]
    derived = sentences([*records_a, *records_b]).values()
    if pairs:
        records_a, records_b = _in_complete_blocks(records_a, records_b)
    sides = (Subject(a, tuple(records_a)), Subject(b, tuple(records_b)))
    return NamedComparison((of_a, of_b), store, pairs, analysis.compare(*sides, known, tuple(derived), store))


def _in_complete_blocks(a: list[Record], b: list[Record]) -> tuple[list[Record], list[Record]]:
    """Removes usable trials from incomplete blocks, because findings do not use them. A block is incomplete if the
    other configuration has no usable trial in it. If no block is complete, returns both sides unchanged."""
    paired = complete_blocks(entering(a), entering(b))
    if not all(paired):
        return a, b
    shown = {one.id for side in paired for one in side}
    unpaired = {one.id for side in (a, b) for one in entering(side)} - shown
    return [one for one in a if one.id not in unpaired], [one for one in b if one.id not in unpaired]


def _require_one_work(name: str, records: Sequence[Record]) -> None:
    works = by_work(records)
    if len(works) > 1:
        series = [f"{group[0].series} is {group[0].choice.workload}" for group in works]
        raise InputError(
            name,
            f"matches records of {' and '.join(work_name(group[0].choice) for group in works)}",
            (
                f"give one series on each side, both of the same workload ({', '.join(series)}), or use "
                "`ironbench lead` to compare all workloads"
            ),
        )


def _findings(a: NamedRecords, b: NamedRecords) -> tuple[Finding, ...]:
    """Returns the findings that compare two configurations of one lab. Returns () unless both sides are configurations
    of the same lab. Raises InputError if a side matches several configurations, or if both sides match the same
    configuration."""
    if not (a.cells and b.cells) or a.store.directory != b.store.directory:
        return ()
    for one in (a, b):
        if len(one.cells) > 1:
            cause = f"matches {len(one.cells)} configurations"
            raise InputError(
                one.word, cause, f"give one of these: {', '.join(one.cells)}; `ironbench lead` compares all of them"
            )
    if a.cells == b.cells:
        raise InputError(b.word, f"is the same configuration as {a.word}", "give two different configurations")
    from ironbench.study.findings import compare_cells

    directory = LabDirectory(a.store.directory)
    stage = max(1, len(directory.declared()))
    return compare_cells(directory.lab(), directory.records(), a.cells[0], b.cells[0], stage)


def usable(word: str, records: Sequence[Record]) -> list[Record]:
    """Returns the usable trials. If there are none, raises an InputError that states the causes and a hint."""
    found = [record for record in records if record.status.comparable]
    if not found:
        known = ((record.status.word, wording.cause(record)) for record in records)
        causes = dict.fromkeys(": ".join(filter(None, words)) for words in known)
        cut = all(record.status is Status.CUT_SHORT for record in records)
        hint = "fix the cause, and repeat the run"
        if cut:
            hint = (
                "continue an incomplete run with the same command and `--resume`, or an incomplete lab with "
                "`ironbench lab resume`"
            )
        raise InputError(word, f"has no usable trial ({'; '.join(causes)})", hint)
    return found


def page(
    found: SystemComparison,
    everything: bool = False,
    pairs: Sequence[Finding] = (),
    explained: Section | None = None,
) -> Page:
    """Returns the page.

    `everything`: whether to show all facts that differ, and not only the important ones. `pairs`: the findings, if the
    sides are configurations of one lab. `explained`: the section with the breakdown of the difference.
    """
    tables = presentation.comparison_tables(found)
    deciding = [finding for finding in pairs if finding.decides]
    rest = [finding for finding in pairs if not finding.decides]
    differing = Section("differences", "What differs", tables=_differences(found, everything))
    results = [Section("results", "Results", tables=tuple(tables))] if tables else [_peaks(found), _by_load(found)]
    parts = [
        Section("findings", "Findings", tables=with_rows(finding_table(deciding)) if deciding else ()),
        Section("paired", "Paired by block", tables=tuple(metric_tables(rest)) if rest else ()),
        *results,
    ]
    if explained and explained.shows_something:
        parts.append(replace(explained, lead="", sentences=(*explained.sentences, explained.lead)))
    # If the machines differ, their differences come first, because a reader needs them to interpret the ratios.
    elsewhere = any(row.group == "machine" for row in found.differences) and not tables
    return Page(
        title="; ".join(f"{side}: {name}" for side, name in zip("AB", _names(found), strict=True)),
        lead="",
        answer=_answer(found, deciding, bool(pairs), bool(tables)),
        sections=(differing, *parts) if elsewhere else (*parts, differing),
        caveats=(*wording.texts((*found.left_out, *found.warnings)), *wording.sentences(found.unlike)),
        derived=" ".join(found.derived),
        fields=partial(_fields, found, pairs),
    )


def _names(found: SystemComparison) -> list[str]:
    """Returns the names of both sides. If the storage of a side was emulated, adds `(emulated)` to a name without this
    mark."""
    names = zip((found.a, found.b), found.emulated, strict=True)
    return [f"{name} (emulated)" if emulated and "emulated" not in name else name for name, emulated in names]


def _sides(found: SystemComparison) -> tuple[str, str]:
    a, b = (f"{side} (emulated)" if emulated else side for side, emulated in zip("AB", found.emulated, strict=True))
    return a, b


def _answer(found: SystemComparison, deciding: Sequence[Finding], in_blocks: bool, presented: bool) -> Answer:
    """Returns the verdicts if a lab file declares the comparison. Otherwise, returns the reason why there is no
    verdict. For sides that are not configurations of one lab, also returns the ratio."""
    if deciding:
        # Imported only if there are verdicts. The import loads the statistics modules, which takes longer than all
        # other work of a comparison without verdicts.
        from ironbench.report.answer import with_advice

        first, *others = map(with_advice, deciding)
        return Answer(first, tuple(others))
    if in_blocks or presented:
        return Answer(AnswerPoint(compare_answer.undeclared() if in_blocks else compare_answer.not_interleaved()))
    return Answer(AnswerPoint(_ratio(found)), caveats=(compare_answer.not_interleaved(),))


def _ratio(found: SystemComparison) -> str:
    """States the ratio of the main metric of B to that of A, each at its peak. If a side ran in an open loop, states
    whether the target rates were sustained."""
    if found.leading[0] != "throughput":
        return _leading_ratio(found)
    a, b = found.loads
    if a.rate is not None or b.rate is not None:
        return _rates(found)
    row = found.peaks.row("throughput") if found.peaks else None
    if row is None or row.ratio is None or row.means is None:
        return compare_answer.no_throughput()
    return compare_answer.throughput_ratio(*_sides(found), row.means, row.difference, found.clients)


def _leading_ratio(found: SystemComparison) -> str:
    """States the ratio of the main metric. Used for workloads whose main metric is not the throughput of clients."""
    rows = [row for metric in found.leading if (row := found.peaks.row(metric) if found.peaks else None)]
    row = next((row for row in rows if row.ratio is not None), None)
    if row is None or row.ratio is None or row.means is None:
        return compare_answer.nothing_in_common()
    return compare_answer.metric_ratio(row.metric, *_sides(found), row.means, row.difference)


def _rates(found: SystemComparison) -> str:
    a, b = found.loads
    rates = [(name, one) for name, one in zip(_sides(found), found.rates, strict=True) if one]
    outcomes = compare_answer.outcomes([(name, one.rate, one.outcome) for name, one in rates])
    if (a.rate, a.arrivals) != (b.rate, b.arrivals):
        return compare_answer.different_loads(a.rate, b.rate, outcomes)
    both = compare_answer.same_rate(rates[0][1].rate, outcomes)
    if not all(one and one.is_kept for one in found.rates):
        return f"{both} {compare_answer.not_both_sustained()}"
    row = found.peaks.row("response_time_p99_s") if found.peaks else None
    if row is None or row.ratio is None or row.means is None:
        return both
    return f"{both} {compare_answer.p99_at_rate(row.means, row.difference)}"


def _differences(found: SystemComparison, everything: bool) -> tuple[tuple[str, Table], ...]:
    main, rest = (found.differences, ()) if everything else most_relevant(found.differences)
    return (
        *with_rows(Table(("", "A", "B"), difference_rows(main), words=True)),
        *with_rows(
            Table(("", "A", "B"), difference_rows(rest), words=True, counted=True), "All other facts that differ"
        ),
    )


def _peaks(found: SystemComparison) -> Section:
    bases = [f"{side}: {wording.text(basis)}" for side, basis in zip("AB", found.peak_basis, strict=True)]
    if found.peaks is None:
        return Section("peaks", "Nothing to compare", sentences=(f"{'; '.join(bases)}.",))
    opened = {load.rate is not None for load in found.loads}
    where = "Side by side"
    if len(opened) > 1:
        where = "Each side separately"
    elif True in opened:
        where = "Each side at the target rate"
    elif found.clients is None:
        where = "Each side at its peak"
    # A metric is left out if neither higher nor lower values are better, because it cannot show which side is better.
    # The JSON document contains all metrics.
    rows = [row for row in found.peaks.rows if "{" not in row.metric and row.better != "neither"]
    rows.sort(key=lambda row: row.metric not in found.leading)
    zero = [row.metric for row in rows if not (row.a.high or row.b.high)]
    closed = all(load.rate is None for load in found.loads)
    twice = [row.metric for row in rows if closed and row.metric.startswith("service_time")]
    shown = [row for row in rows if row.metric not in (*zero, *twice)]
    if found.leading[0] != "throughput":  # the main metric is also a kind of throughput
        shown = [replace(row, metric=_WHOLE.get(row.metric, row.metric)) for row in shown]
    notes = [f"{'; '.join(bases)}."]
    notes += [compare_answer.geometric_means()] if any(row.a.n > 1 or row.b.n > 1 for row in shown) else []
    notes += [compare_answer.zero_on_both_sides(zero)] if zero else []
    for why in dict.fromkeys(row.no_ratio for row in shown if row.no_ratio):
        names = [row.metric for row in shown if row.no_ratio == why]
        notes.append(compare_answer.no_ratio(names, why))
    notes += [compare_answer.service_equals_response()] if twice else []
    head = ("metric", "A", "B", "B / A", "A repeats", "B repeats", "ranges")
    table = Table(head, tuple(map(_row, shown)))
    return Section("peaks", where, sentences=tuple(notes), tables=with_rows(table))


def _row(row: ComparedMetric) -> Row:
    unit = "1/s" if row.metric in _WHOLE.values() else unit_of(row.metric)
    better = {"higher": " ↑", "lower": " ↓"}.get(row.better, "")
    change: Content = ABSENT
    if row.points is not None:
        change = TableCell(row.points, "points")
    elif row.ratio is not None:
        change = TableCell(row.ratio, "times")
    a, b = row.a, row.b
    if row.ratio is not None and row.means is not None:
        a, b = (replace(side, centre=value) for side, value in zip((a, b), row.means.centres, strict=True))
    values = (centre(a, unit), centre(b, unit), change, spread(row.a, unit), spread(row.b, unit))
    return (row.metric + better, *values, _ranges(row))


def _ranges(row: ComparedMetric) -> str:
    if row.a.n == 1 or row.b.n == 1:
        return NO_RANGE
    return "overlap" if row.overlap else "apart"


def _by_load(found: SystemComparison) -> Section:
    title, rows = "Comparison at each load", tuple(_rows_by_load(found))
    if not rows:
        return Section("loads", title, sentences=(compare_answer.no_common_clients(),))
    head = ("load", "metric", "A", "B", "B / A", "A repeats", "B repeats", "ranges")
    arrows = "↑ higher is better, ↓ lower is better."
    return Section("loads", title, sentences=(arrows,), tables=(("", Table(head, rows)),))


def _rows_by_load(found: SystemComparison) -> Iterator[Row]:
    """Yields the rows of the main metrics for each load. Only the first row of a load names the load."""
    for one in found.cells:
        name = wording.text(one.name)
        for metric in _MAIN if found.leading == LEADING else found.leading:
            row = one.row(metric)
            if row is not None and (metric != "failed_fraction" or row.a.high or row.b.high):
                yield (name, *_row(row))
                name = ""


def _fields(found: SystemComparison, pairs: Sequence[Finding]) -> dict[str, Any]:
    fields: dict[str, Any] = plain_value(found)
    for one, source in zip(fields["cells"], found.cells, strict=True):
        one["rows"] = [_row_fields(row) for row in source.rows]
    if found.peaks is not None:
        fields["peaks"]["rows"] = [_row_fields(row) for row in found.peaks.rows]
    return {**fields, "findings": [plain_value(finding) for finding in pairs]}


def _row_fields(row: ComparedMetric) -> dict[str, Any]:
    fields = {**plain_value(row), "ratio": row.ratio, "overlap": row.overlap, "improves": row.improves}
    del fields["means"]
    known = row.means if row.means and row.means.known and row.ratio is not None else None
    return {**fields, "interval": [known.low, known.high] if known else None, "difference_shown": row.shown}
