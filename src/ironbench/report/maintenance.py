"""Results of the workload `populate` and of maintenance workloads. These are the duration, the write backlog, and the
effect on a probe client."""

from __future__ import annotations

from ironbench.model.sample import needed
from ironbench.report.cell import ABSENT, EMPTY, Content, TableCell, centre, ratios
from ironbench.report.charts.base import Table
from ironbench.report.numbers import quantity, unit_of
from ironbench.report.page import Section
from ironbench.report.wording.answers.ratios import duration
from ironbench.study.study import Study, SubjectResults
from ironbench.study.summarise import Summary

POPULATION = "populate"
MAINTENANCE = ("backup", "restore", "index-build", "vacuum")
WORKLOADS = (POPULATION, *MAINTENANCE)
HIDES = frozenset({"curves", "law", "scripts"})

_FIGURES = {
    "elapsed": "population_elapsed_s",
    "values": "population_bytes_per_s",
    "rows": "population_rows_per_s",
    "elapsed, including the checkpoint after the load": "population_settled_s",
    "write backlog: dirty pages": "debt_data_bytes",
    "write backlog: WAL to be replayed after a crash": "debt_log_bytes",
    "write backlog: time to flush": "debt_settle_s",
    "WAL written": "population_log_bytes",
    "WAL bytes per byte of values": "population_log_share",
    "WAL flushes": "population_log_flushes",
    "checkpoints": "population_checkpoints",
    "table and index": "population_stored_bytes",
    "took": "maintenance_elapsed_s",
    "data processed": "maintenance_bytes",
    "per second": "maintenance_bytes_per_s",
    "size of the result": "maintenance_result_bytes",
    "time until files were copied": "restore_copy_s",
    "time until the server accepted connections": "restore_recovery_s",
}
_PROBES = {"reading a row": "select", "opening a connection": "connect"}
_STATISTICS = {"mean": "mean_s", "median": "p50_s", "p99": "p99_s", "longest": "max_s"}
_LEAD = {
    POPULATION: (
        "Rows are committed as soon as the WAL is flushed, while table pages may still be dirty in memory. "
        "Flushing this write backlog is part of the cost of loading, so compare the elapsed times that include "
        "the checkpoint after the load."
    )
}
_LEAD_PROBES = (
    "A probe client read single rows by key and opened connections, both before the operation (baseline phase) "
    "and during the operation. Times count from the scheduled start. Percentiles of too few samples are left "
    f"out: the 99th percentile needs at least {needed(0.99)}."
)


def headline(study: Study) -> list[tuple[str, str]]:
    return [(part.name, _sentence(part.subject.records[0].choice.workload, part.metrics)) for part in study.parts]


def _sentence(workload: str, metrics: dict[str, Summary]) -> str:
    if not metrics:
        return "has no usable trial."
    if workload == POPULATION:
        rate = _figure(metrics, "population_bytes_per_s")
        text = f"filled the table in {_figure(metrics, 'population_elapsed_s')} ({rate} of values)"
        settle = metrics.get("debt_settle_s")
        return (
            f"{text}; flushing the write backlog took another {quantity(settle.centre, 's')}." if settle else f"{text}."
        )
    text = f"took {_figure(metrics, 'maintenance_elapsed_s')} ({_figure(metrics, 'maintenance_bytes_per_s')})"
    slower = [
        f"{words} took {duration(slow.centre)}"
        for words, kind in _PROBES.items()
        if (slow := metrics.get(f"bystander_{kind}_slowdown"))
    ]
    return f"{text}; meanwhile, {' and '.join(slower)}." if slower else f"{text}."


def _figure(metrics: dict[str, Summary], metric: str) -> str:
    value = metrics.get(metric)
    return quantity(value.centre if value else None, unit_of(metric))


def card(part: SubjectResults) -> tuple[Content, str, list[tuple[str, Content]]]:
    metrics = part.metrics
    facts: list[tuple[str, Content]] = [
        (name, centre(metrics[metric], unit_of(metric))) for name, metric in _FIGURES.items() if metric in metrics
    ]
    if not facts:
        return EMPTY, "no usable trial", []
    return facts[0][1], facts[0][0], facts[1:7]


def table(study: Study) -> Table:
    """Returns a row for each metric, with the value of each system, and its ratio to the first system."""
    columns = [part.metrics for part in study.parts]
    rows = [
        (name, *(centre(column.get(metric), unit_of(metric)) for column in columns), *ratios(columns, metric))
        for name, metric in _FIGURES.items()
        if any(metric in column for column in columns)
    ]
    names = [part.name for part in study.parts]
    return Table(("", *names, *(f"{name} / {names[0]}" for name in names[1:])), tuple(rows))


def probe_client_table(part: SubjectResults) -> Table:
    """Returns a row for each response time metric of the probe client, with the values before and during the operation,
    and their ratio."""
    metrics, rows = part.metrics, []
    for words, kind in _PROBES.items():
        for name, suffix in _STATISTICS.items():
            metric = f"bystander_{kind}_{suffix}"
            during, before = metrics.get(metric), metrics.get(f"{metric}{{phase=calm}}")
            if during is not None:
                ratio = TableCell(during.centre / before.centre, "times") if before and before.centre else ABSENT
                rows.append((f"{words}, {name}", centre(before, "s") if before else ABSENT, centre(during, "s"), ratio))
    return Table(("", "before", "during", "during / before"), tuple(rows))


def sections(study: Study) -> list[Section]:
    workload = study.parts[0].subject.records[0].choice.workload
    whole = Section("finished", "Results", _LEAD.get(workload, ""), tables=(("", table(study)),), printed_at_end=True)
    many = len(study.parts) > 1
    tables = tuple((part.name if many else "", probe_client_table(part)) for part in study.parts)
    others = Section("bystander", "Effect on other clients", _LEAD_PROBES, tables=tables, printed_at_end=True)
    return [whole, others]
