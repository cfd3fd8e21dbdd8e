"""Results of the `storage` workload: the usual table of disk benchmarks, and figures that matter to databases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ironbench.model.finding import LEAST_BLOCKS_SHOWN
from ironbench.model.record import Record
from ironbench.report import theme
from ironbench.report.cell import ABSENT, CONFIDENCE, EMPTY, Content, Missing, Row, TableCell
from ironbench.report.charts import storage as charts
from ironbench.report.charts.base import Chart, Table
from ironbench.report.numbers import quantity
from ironbench.report.page import Section
from ironbench.report.wording.storage import passes_apart
from ironbench.report.wording.values import CI
from ironbench.study.compare import SystemComparison
from ironbench.study.storage import (
    MOST_BY_CHANCE,
    WORKLOAD,
    StorageTestResult,
    any_apart,
    apart_by_chance,
    rate_ratio,
    tested,
)
from ironbench.study.study import Study, SubjectResults
from ironbench.study.summarise import Summary, summarise
from ironbench.study.timelines import TimelineSeries
from ironbench.words import counted, in_percent

__all__ = ["HIDES", "WORKLOAD", "card", "compared", "headline", "of_lab", "sections", "table"]

HIDES = frozenset({"curves", "law", "latency", "scripts", "over-time"})
"""Ids of sections that reports leave out, because they do not apply to this workload."""
_WORDS = charts.WORDS
_DETAILS = (
    ("mean", "storage_latency_mean_s", "s"),
    ("median", "storage_latency_p50_s", "s"),
    ("p99", "storage_latency_p99_s", "s"),
    ("p99.9", "storage_latency_p999_s", "s"),
    ("CPU per I/O", "storage_cpu_per_io_s", "s"),
    ("sum of the single directories", "storage_alone_bytes_per_s", "bytes/s"),
)
_LEAD = (
    "The table shows the median of the passes (for KDiskMark's tests, the mean) and the range of all passes. 1 "
    "MB is 10⁶ bytes. SEQ1M Q8T1 reads or writes blocks of 1 MiB sequentially with queue depth 8 from 1 thread. "
    "RND4K reads or writes blocks of 4 KiB at random offsets."
)
_LEAD_LAB = (
    "The value of a trial is the median of its passes (for KDiskMark's tests, the mean), and the table shows the "
    f"median of the trials. 1 MB is 10⁶ bytes. A ratio is the geometric mean over the blocks with its {CI}, which "
    f"needs {LEAST_BLOCKS_SHOWN} blocks. The CIs are not corrected for the number of ratios and carry no verdict; "
    "see the findings for verdicts."
)
_COST = "storage_cpu_per_io_s"
_SUSTAINED = "Sustained writes"
_COSTS = "CPU cost of a read"
_LEAD_COST = (
    "User and system CPU time of one thread for one random read, once from the device (direct I/O) and once from "
    "the page cache. The difference is the overhead of the I/O path, which does not depend on the device. "
    "Interrupt handling is not included."
)
_LEAD_SYNC = (
    "Each operation is a WAL write with a flush, which a database waits for at every commit. The queue depth is "
    "1, as with one client. The table shows the median and the range of the passes."
)


def megabytes(bytes_per_s: float) -> str:
    """Formats bytes in units of 10⁶ bytes with one decimal, as disk benchmarks do."""
    return quantity(bytes_per_s, "MB/s")


def tests_of(part: SubjectResults) -> tuple[StorageTestResult, ...]:
    return tested(part.curve.main.metrics) if part.curve.main else ()


def headline(study: Study) -> list[tuple[str, str]]:
    sentences = [(part.name, text) for part in study.parts[1:] if (text := _judged(study.parts[0], part))]
    for part in study.parts:
        first = [one for one in tests_of(part) if one.kind in ("sequential", "random")][:2]
        texts = [f"{_WORDS[one.direction]}s {megabytes(one.rate.centre)} in {one.title}" for one in first]
        costs = [one for one in tests_of(part) if one.kind == "cost" and one.centre(_COST)][:2]
        texts += [f"{one.title}: {quantity(one.centre(_COST), 's')} of CPU time per read" for one in costs]
        syncs = [one for one in tests_of(part) if one.kind == "sync"]
        if syncs:
            rate = quantity(syncs[0].iops, "count/s")
            texts.append(f"completes {rate} WAL writes with a flush, one after another ({syncs[0].title})")
        sentences.append((part.name, f"{', '.join(texts)}{_fill(part)}." if texts else "has no usable trial."))
    return sentences


def _judged(first: SubjectResults, part: SubjectResults) -> str:
    """States in how many tests the ranges of this system and the first system do not overlap. Returns an empty text if
    there are too few passes to judge ranges."""
    chance = apart_by_chance(first.subject.records, part.subject.records)
    others = {one.name: one for one in tests_of(part)}
    pairs = [(one, others[one.name]) for one in tests_of(first) if one.name in others]
    if not pairs or chance > MOST_BY_CHANCE:
        return ""
    apart = sum(_ranges(a, b, chance) == "apart" for a, b in pairs)
    return passes_apart(first.name, apart, len(pairs), any_apart(chance, len(pairs)))


def _fill(part: SubjectResults) -> str:
    """States how full the file system is, because this affects the results. Flash storage becomes slower when it is
    nearly full, and a nearly full hard disk uses its slower inner tracks."""
    used = part.curve.main.metrics.get("capacity_used_share{role=data}") if part.curve.main else None
    return f", on a file system that is {quantity(used.centre, 'share')} full" if used else ""


def card(part: SubjectResults) -> tuple[Content, str, list[tuple[str, Content]]]:
    """Returns the content of a system's card. The result of the first test is the figure, and the results of the next
    tests are facts."""
    lines = tests_of(part)
    if not lines:
        return EMPTY, "no usable trial", []
    first = lines[0]
    facts = [(_title(one), _short(one)) for one in lines[1:8]]
    return TableCell(first.rate.centre, "MB/s", bare=True), f"MB/s {_title(first)}", facts


def _short(one: StorageTestResult) -> Content:
    if one.kind == "sync":
        return TableCell(one.centre("storage_latency_mean_s"), "s")
    return TableCell(one.rate.centre, "MB/s")


def table(study: Study) -> Table:
    """Returns the table of results. For one system, each test has a row with reads and writes side by side. For several
    systems, reads and writes have separate rows."""
    if len(study.parts) == 1:
        return _known_table(tests_of(study.parts[0]))
    return _side_by_side([(part.name, tests_of(part)) for part in study.parts])


def _side_by_side(parts: charts.Parts, blocks: Sequence[Sequence[Record]] = ()) -> Table:
    """Returns a row for each test and direction. `blocks`: for a lab, the trials of each configuration. If they are
    given, ratios are computed within blocks and have confidence intervals."""
    names = [name for name, _ in parts]
    sides = [{one.name: one for one in bandwidths(lines)} for _, lines in parts]
    rows = []
    for name in dict.fromkeys(name for side in sides for name in side):
        ones = [side.get(name) for side in sides]
        known = next(one for one in ones if one)
        cells = [_with_range(one, bool(blocks)) if one else ABSENT for one in ones]
        if blocks:
            ratios = [_paired_ratio(blocks[0], records, name) for records in blocks[1:]]
        else:
            ratios = [_ratio(ones[0], one) for one in ones[1:]]
        rows.append((_title(known), *cells, *ratios))
    ratio_heads = [f"{name} / {names[0]}" for name in names[1:]]
    return Table(("MB/s", *names, *ratio_heads), tuple(rows))


def _with_range(one: StorageTestResult, of_lab: bool) -> TableCell:
    """Returns the rate with the range of the passes. In labs, ratios have confidence intervals instead."""
    if of_lab or one.low == one.high:
        return TableCell(one.rate.centre, "MB/s", bare=True)
    return TableCell(one.rate.centre, "MB/s", one.low, one.high, bare=True)


def bandwidths(lines: Sequence[StorageTestResult]) -> list[StorageTestResult]:
    """Returns the tests whose results are shown in bytes per second. If there are none, returns all tests."""
    return [one for one in lines if one.kind not in ("sync", "cost")] or list(lines)


def _known_table(lines: Sequence[StorageTestResult]) -> Table:
    ways = [way for way in _WORDS if any(one.direction == way for one in bandwidths(lines))]
    by_title: dict[str, dict[str, StorageTestResult]] = {}
    for one in bandwidths(lines):
        by_title.setdefault(one.title, {})[one.direction] = one
    rows = []
    for title, ones in by_title.items():
        cells: list[Content] = []
        for way in ways:
            test = ones.get(way)
            known = (_figure(test, _BANDWIDTH), _range(test, _BANDWIDTH)) if test else (ABSENT, EMPTY)
            cells += known
        rows.append((title, *cells))
    heads = [head for way in ways for head in (f"{_WORDS[way]} MB/s", "range")]
    return Table(("test", *heads), tuple(rows))


_Scale = tuple[float, str]
"""The unit of a table, as a pair of the bytes per unit and the unit's name."""
_BANDWIDTH: _Scale = (1.0, "MB/s")


def _range(one: StorageTestResult, scale: _Scale) -> TableCell | Missing:
    if one.high == one.low:
        return Missing("one pass")
    of, unit = scale
    return TableCell(None, unit, one.low / of, one.high / of, bare=True)


def _syncs(parts: charts.Parts) -> tuple[tuple[str, Table], ...]:
    """Returns a table with the flushed writes per second of each WAL test. Returns () if there are no WAL tests."""
    rows = []
    for name, lines in parts:
        for one in (line for line in lines if line.kind == "sync"):
            title = f"{one.title}, {name}" if len(parts) > 1 else one.title
            rows.append((title, _figure(one, _scale(one)), _range(one, _scale(one))))
    head = ("WAL write", "flushed writes per second", "range")
    return (("", Table(head, tuple(rows))),) if rows else ()


def _ratio(a: StorageTestResult | None, b: StorageTestResult | None) -> TableCell | Missing:
    if a is None or b is None or a.rate.centre <= 0:
        return ABSENT
    return TableCell(b.rate.centre / a.rate.centre, "times")


def _paired_ratio(a: Sequence[Record], b: Sequence[Record], test: str) -> TableCell | Missing:
    found = rate_ratio(a, b, test)
    if found is None:
        return ABSENT
    ratio, low, high = found
    return TableCell(ratio, "times", low, high, CONFIDENCE) if math.isfinite(high) else TableCell(ratio, "times")


def details(lines: Sequence[StorageTestResult]) -> Table:
    """Returns a row for each test with its IOPS, latencies and CPU time."""
    shown = [detail for detail in _DETAILS if any(detail[1] in one.figures for one in lines)]
    rows = []
    for one in lines:
        cells = [TableCell(one.centre(metric), unit) if metric in one.figures else ABSENT for _, metric, unit in shown]
        rows.append((_title(one), TableCell(one.iops, "count/s", bare=True), *cells))
    return Table(("", "IOPS", *(name for name, _, _ in shown)), tuple(rows))


def sections(study: Study) -> list[Section]:
    parts = [(part.name, tests_of(part)) for part in study.parts]
    costs, lead_sustained = tuple(charts.costs(parts)), _lead_sustained(parts)
    return [
        Section(
            "storage",
            "Device performance",
            _LEAD,
            tuple(charts.rates(parts)),
            (("", table(study)),),
            printed_at_end=True,
        ),
        Section(
            "storage-sync", "WAL writes", _LEAD_SYNC, tuple(charts.syncs(parts)), _syncs(parts), printed_at_end=True
        ),
        Section("storage-cost", _COSTS, _LEAD_COST, costs, _costs(parts)),
        replace(_latencies(parts, tuple(charts.latencies(parts))), printed_at_end=True),
        Section("storage-sustained", _SUSTAINED, lead_sustained, tuple(charts.sustained(_lines(study)))),
    ]


def _latencies(parts: charts.Parts, drawn: tuple[Chart, ...] = ()) -> Section:
    return Section("storage-latency", "I/O latency", charts=drawn, tables=_titled_tables(parts))


def of_lab(groups: Sequence[tuple[str, Sequence[Record]]]) -> list[Section]:
    """Returns the sections of a lab. Returns an empty list if storage was not measured. `groups`: pairs of a
    configuration's name and its comparable trials."""
    by_cell = [(name, tested(_summaries(records)), records) for name, records in groups]
    parts = [(name, lines) for name, lines, _ in by_cell if lines]
    if not parts:
        return []
    drawn = parts[: theme.SYSTEMS]
    more = len(parts) - len(drawn)
    lead = (
        f"{_LEAD_LAB} The charts leave out {more} of {counted(len(parts), 'configuration')}; the tables include "
        "all configurations."
    )
    shown = (*charts.rates(drawn), *charts.syncs(drawn))
    table = (("", _side_by_side(parts, [records for _, lines, records in by_cell if lines])),)
    whole = Section("storage", "Device performance", lead if more else _LEAD_LAB, shown, table, printed_at_end=True)
    return [whole, _latencies(parts)]


def _summaries(records: Sequence[Record]) -> dict[str, Summary]:
    names = dict.fromkeys(name for record in records for name in record.metrics if name.startswith("storage_"))
    # A metric is left out unless all trials have it. Otherwise, the metrics of one row would come from different
    # trials.
    whole = [name for name in names if all(name in one.metrics for one in records)]
    every = {name: summarise([one.metrics[name] for one in records]) for name in whole}
    return {name: one for name, one in every.items() if one}


def _titled_tables(parts: Sequence[tuple[str, Sequence[StorageTestResult]]]) -> tuple[tuple[str, Table], ...]:
    many = len(parts) > 1
    return tuple((name if many else "", details(lines)) for name, lines in parts if lines)


def _costs(parts: Sequence[tuple[str, Sequence[StorageTestResult]]]) -> tuple[tuple[str, Table], ...]:
    """Returns a row for each read size, with the CPU time of a read from the device and from the page cache, and their
    difference, also per gigabyte."""
    rows = []
    for name, lines in parts:
        costs = {one.name: one for one in lines if one.kind == "cost"}
        for one in costs.values():
            cached = costs.get(one.name.replace("-device", "-cached"))
            if cached is None or cached is one:
                continue
            read_s, hit_s = (side.centre(_COST) for side in (one, cached))
            if read_s is None or hit_s is None:
                continue
            first = f"{one.title.removesuffix(' device').removeprefix('COST')}{f', {name}' if len(parts) > 1 else ''}"
            more_s = read_s - hit_s
            per_gb = TableCell(more_s * 1e9 / one.block_bytes, "s") if more_s > 0 else ABSENT
            rows.append((first, *(TableCell(seconds, "s") for seconds in (read_s, hit_s, more_s)), per_gb))
    head = ("read size", "from the device", "from the page cache", "I/O path overhead", "overhead per GB")
    return (("", Table(head, tuple(rows))),) if rows else ()


def _lines(study: Study) -> list[tuple[str, TimelineSeries]]:
    return [
        (part.name, line)
        for part in study.parts
        for line in (part.timeline.own if part.timeline else ())
        if line.part == "sustained-write"
    ]


def _lead_sustained(parts: Sequence[tuple[str, Sequence[StorageTestResult]]]) -> str:
    sentences = []
    for name, lines in parts:
        for one in lines:
            burst, settled = (one.centre(f"storage_{word}_bytes_per_s") for word in ("burst", "settled"))
            if burst is not None and settled is not None:
                text = f"{megabytes(burst)} in the first second, {megabytes(settled)} in the last third of the time."
                sentences.append(f"{name}: {text}" if len(parts) > 1 else text)
    return " ".join(sentences)


def compared(comparison: SystemComparison) -> list[tuple[str, Table]]:
    """Returns tables of the tests that both sides ran. Tables of rates come first, then tables of latencies. Returns an
    empty list if storage was not measured."""
    rows = comparison.peaks.rows if comparison.peaks else ()
    a, b = ({one.name: one for one in tested({row.metric: getattr(row, side) for row in rows})} for side in "ab")
    if not a:
        return []
    pairs = [(one, b[one.name]) for one in a.values() if one.name in b]
    chance = apart_by_chance(*comparison.trials)
    ranges = "ranges"
    if chance <= MOST_BY_CHANCE:
        which = f"at least 1 of {len(pairs)} pairs of ranges is apart" if len(pairs) > 1 else "the ranges are apart"
        ranges = f"ranges ({which} by chance alone in {in_percent(any_apart(chance, len(pairs)))} of comparisons)"
    head = ("A", "B", "B / A", "A range", "B range", ranges)
    rates = [_compared(one, other, chance) for one, other in pairs if one.kind != "sync"]
    safe = [_compared(one, other, chance) for one, other in pairs if one.kind == "sync"]
    tables = [("", Table(("MB/s", *head), tuple(rates)))] if rates else []
    tables += [("", Table(("flushed WAL writes per second", *head), tuple(safe)))] if safe else []
    for words, metric in (("mean", "storage_latency_mean_s"), ("p99", "storage_latency_p99_s")):
        cells = [
            (_title(one), TableCell(x, "s"), TableCell(y, "s"), TableCell(y / x, "times"))
            for one, other in pairs
            if (x := one.centre(metric)) and (y := other.centre(metric))
        ]
        tables.append(("", Table((f"I/O latency, {words}", "A", "B", "B / A"), tuple(cells))))
    return tables


def _compared(a: StorageTestResult, b: StorageTestResult, chance: float) -> Row:
    scale = _scale(a)
    figures = (_figure(a, scale), _figure(b, scale), _ratio(a, b))
    return _title(a), *figures, _range(a, scale), _range(b, scale), _ranges(a, b, chance)


def _title(one: StorageTestResult) -> str:
    return f"{one.title} {_WORDS[one.direction]}"


def _figure(one: StorageTestResult, scale: _Scale) -> TableCell:
    of, unit = scale
    return TableCell(one.rate.centre / of, unit, bare=True)


def _scale(one: StorageTestResult) -> _Scale:
    """Returns the unit in which a test is shown. WAL tests are shown in flushed writes per second, all others in
    MB/s."""
    return (one.block_bytes, "count/s") if one.kind == "sync" else _BANDWIDTH


def _ranges(a: StorageTestResult, b: StorageTestResult, chance: float) -> str:
    if a.low == a.high and b.low == b.high:
        return "no range"
    if a.low <= b.high and b.low <= a.high:
        return "overlap"
    return "apart" if chance <= MOST_BY_CHANCE else "too few passes"
