"""Results of work that has an end: how long it took, what it left behind, and what others felt meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.analyse.study import Part, Study
from ironbench.analyse.summarise import Summary
from ironbench.report.charts.base import Table
from ironbench.report.numbers import measured, quantity, times, unit_of
from ironbench.report.section import Section

POPULATION = "populate"
MAINTENANCE = ("backup", "restore", "index-build", "vacuum")
WORKLOADS = (POPULATION, *MAINTENANCE)
HIDES = frozenset({"curves", "law", "scripts"})

_FIGURES = {
    "elapsed": "population_elapsed_s",
    "values": "population_bytes_per_s",
    "rows": "population_rows_per_s",
    "elapsed, and the checkpoint after it": "population_settled_s",
    "left: pages to write": "debt_data_bytes",
    "left: log to replay after a crash": "debt_log_bytes",
    "left: time to settle it": "debt_settle_s",
    "log written": "population_log_bytes",
    "log per byte of values": "population_log_share",
    "flushes of the log": "population_log_flushes",
    "checkpoints": "population_checkpoints",
    "table and index": "population_stored_bytes",
    "took": "maintenance_elapsed_s",
    "worked on": "maintenance_bytes",
    "per second": "maintenance_bytes_per_s",
    "left": "maintenance_result_bytes",
    "until files were in place": "restore_copy_s",
    "until the server answered": "restore_recovery_s",
}
_FELT = {"reading a row": "select", "opening a connection": "connect"}
_STATISTICS = {"mean": "mean_s", "median": "p50_s", "99 %": "p99_s", "longest": "max_s"}
_LEAD = {
    POPULATION: (
        "Rows are committed when the log is safe; pages of the table may still wait in memory. What was left to do "
        "is part of the price: compare the elapsed time together with the checkpoint right after it."
    )
}
_LEAD_FELT = (
    "Somebody read single rows by their key and opened connections, before it began and meanwhile. Times count from "
    "the moment each was due."
)


def metrics_of(part: Part) -> dict[str, Summary]:
    return part.curve.main.metrics if part.curve.main else {}


def headline(study: Study) -> list[tuple[str, str]]:
    return [(part.name, _sentence(part.subject.records[0].choice.workload, metrics_of(part))) for part in study.parts]


def _sentence(workload: str, found: dict[str, Summary]) -> str:
    if not found:
        return "has no usable trial."
    if workload == POPULATION:
        rate = _told(found, "population_bytes_per_s")
        said = f"filled the table in {_told(found, 'population_elapsed_s')} ({rate} of values)"
        settle = found.get("debt_settle_s")
        return f"{said}, and owed {quantity(settle.centre, 's')} of writing then." if settle else f"{said}."
    said = f"took {_told(found, 'maintenance_elapsed_s')} ({_told(found, 'maintenance_bytes_per_s')})"
    felt = [
        f"{words} took {times(slow.centre)} as long"
        for words, kind in _FELT.items()
        if (slow := found.get(f"bystander_{kind}_slowdown"))
    ]
    return f"{said}; meanwhile {' and '.join(felt)}." if felt else f"{said}."


def _told(found: dict[str, Summary], metric: str) -> str:
    value = found.get(metric)
    return quantity(value.centre if value else None, unit_of(metric))


def card(part: Part) -> tuple[str, str, list[tuple[str, str]]]:
    found = metrics_of(part)
    facts = [(name, _told(found, metric)) for name, metric in _FIGURES.items() if metric in found]
    if not facts:
        return "", "no usable trial", []
    return facts[0][1], facts[0][0], facts[1:7]


def table(study: Study) -> Table:
    """A row per figure, a column per system, and ratios to the first."""
    columns = [metrics_of(part) for part in study.parts]
    rows = [
        (name, *(measured(column.get(metric), unit_of(metric)) for column in columns), *_ratios(columns, metric))
        for name, metric in _FIGURES.items()
        if any(metric in column for column in columns)
    ]
    names = [part.name for part in study.parts]
    return Table(("", *names, *(f"{name} / {names[0]}" for name in names[1:])), tuple(rows), numbers=True)


def _ratios(columns: Sequence[dict[str, Summary]], metric: str) -> list[str]:
    first = columns[0].get(metric)
    return [
        times(other.centre / first.centre) if first and first.centre and (other := column.get(metric)) else "–"
        for column in columns[1:]
    ]


def felt(part: Part) -> Table:
    """What the bystander felt: before, meanwhile, and how many times as long."""
    found, rows = metrics_of(part), []
    for words, kind in _FELT.items():
        for name, suffix in _STATISTICS.items():
            metric = f"bystander_{kind}_{suffix}"
            now, calm = found.get(metric), found.get(f"{metric}{{phase=calm}}")
            if now is not None:
                ratio = times(now.centre / calm.centre) if calm and calm.centre else "–"
                rows.append((f"{words}, {name}", measured(calm, "s") if calm else "–", measured(now, "s"), ratio))
    return Table(("", "before", "meanwhile", "meanwhile / before"), tuple(rows), numbers=True)


def sections(study: Study) -> list[Section]:
    workload = study.parts[0].subject.records[0].choice.workload
    whole = Section("finished", "What it came to", _LEAD.get(workload, ""), tables=(("", table(study)),), at_end=True)
    many = len(study.parts) > 1
    tables = tuple((part.name if many else "", felt(part)) for part in study.parts)
    others = Section("bystander", "Who felt it", _LEAD_FELT, tables=tables, at_end=True)
    return [whole, others]
