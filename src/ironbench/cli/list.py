"""`ironbench list`: lists workloads, engines, devices, metrics, observers, records, labs and foreign records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ironbench import catalogue
from ironbench import engines as every_engine
from ironbench import workloads as every_workload
from ironbench.cli import foreign
from ironbench.cli.options import JSON, RESULTS
from ironbench.errors import InputError, IronbenchError, nearest
from ironbench.model.purpose import Purpose
from ironbench.model.record import Status
from ironbench.printer import Printer
from ironbench.records import Store
from ironbench.records.labs import LabDirectory, begun_in

KINDS = {
    "workloads": "workloads for databases and storage",
    "engines": "databases that ironbench can start or connect to",
    "devices": "models of storage devices and controllers that can be emulated",
    "metrics": "numbers in a record: unit, better direction, meaning",
    "observers": "samplers that run during a trial",
    "records": "trials in --results, including its labs",
    "labs": "labs in --results, in the order of their start",
    "foreign": "results of other programs in --results, from `ironbench record import --from`",
}


def list_(
    kind: Annotated[
        str,
        typer.Argument(
            help=f"What to list: {', '.join(KINDS)}. Without KIND, these kinds are listed.",
            autocompletion=lambda: list(KINDS),
        ),
    ] = "",
    results: RESULTS = "ironbench-results",
    json: JSON = False,
) -> int:
    known = kinds(results)
    if kind and kind not in known:
        raise InputError(f"list {kind}", "unknown kind", nearest(kind, list(known)))
    rows = known[kind]() if kind else [{"name": name, "what": what} for name, what in KINDS.items()]
    printer = Printer()
    if json:
        printer.data(encoded({kind or "kinds": rows}))
    elif rows:
        _table(rows, printer)
        if kind == "records":
            foreign.print_left_out(results)
    else:
        verb = {"labs": "lab run", "foreign": "record import --from PROGRAM FILE"}.get(kind, "run")
        things = "foreign records" if kind == "foreign" else kind
        printer.say(f"there are no {things} in {results} yet; to create {things}, use `ironbench {verb}`")
    return 0


Rows = list[dict[str, Any]]
_PROSE, _TAGS, _LAB = "what", "tags", "lab"
RANKS = {
    "throughput": 1,
    "status": 2,
    "cell": 3,
    "label": 4,
    "response_time_p99_s": 5,
    "workload": 6,
    "tags": 7,
    "purpose": 8,
    "lab": 9,
}
"""Ranks of columns. If the terminal is too narrow for all columns, those with the highest rank are left out first.
Columns without a rank are always shown."""


def workloads() -> Rows:
    known = [every_workload.get(name) for name in every_workload.names()]
    return [
        {
            "name": one.name,
            "what": one.doc,
            "engines": list(one.engines),
            "options": {option.name: {"default": option.default, "what": option.doc} for option in one.options},
        }
        for one in known
    ]


def engines() -> Rows:
    return [{"name": one.name, "what": one.traits.doc} for one in every_engine.with_variants()]


def devices() -> Rows:
    from ironbench.devices import models

    return [
        {"name": name, "kind": model.kind, "year": model.year, "what": model.doc}
        for name, model in models.models().items()
    ]


def metrics() -> Rows:
    return [
        {"name": name, "unit": metric.unit, "better": metric.better, "what": metric.doc}
        for name, metric in catalogue.metrics().items()
    ]


def observers() -> Rows:
    from ironbench.trial import observe

    return [{"name": one.name, "what": one.doc} for one in observe.observers()]


def records(results: str) -> Rows:
    runs = Store(Path(results))
    labs = {name: runs.of_lab(name) for name in begun_in(runs.directory)}
    return [
        {
            "name": row.id,
            "lab": lab,
            "label": row.label,
            "workload": row.workload,
            "cell": row.cell,
            "purpose": row.purpose,
            "status": row.status,
            "tags": row.tags,
            "throughput": row.throughput,
            "response_time_p99_s": row.response_time_p99_s,
        }
        for lab, store in {"": runs, **labs}.items()
        for row in store.listed()
    ]


def labs(results: str) -> Rows:
    runs = Store(Path(results))
    return [_lab(runs.directory / "labs" / name, runs.of_lab(name)) for name in begun_in(runs.directory)]


def _lab(directory: Path, store: Store) -> dict[str, Any]:
    from ironbench.report.numbers import moment

    row = {"name": directory.name}
    try:
        plan = LabDirectory(directory).lab()
    except IronbenchError as error:  # a lab with a damaged plan is also listed
        return {**row, "began": "", "trials": "", "what": f"cannot be read: {error.cause}"}
    rows = [one for one in store.listed() if one.purpose == Purpose.LAB]
    began = min((one.started_at for one in rows), default="")
    measured = sum(Status(one.status).comparable for one in rows)
    trials = f"{measured} of {len(plan.trials)}"
    return {**row, "began": moment(began) if began else "", "trials": trials, "what": plan.question}


def foreign_records(results: str) -> Rows:
    from ironbench.records.foreign import every
    from ironbench.report.wording.answers.foreign import PROGRAMS

    return [
        {
            "id": one.id,
            "label": one.label,
            "program": PROGRAMS[one.program],
            "workload": one.facts.get("workload", ""),
            "clients": str(one.clients or ""),
            **{name: one.metrics.get(name) for name in ("new_orders_per_min", "throughput", "response_time_p99_s")},
            "file": one.file,
        }
        for one in every(Path(results))
    ]


def kinds(results: str) -> dict[str, Callable[[], Rows]]:
    """Returns the kinds of things that `ironbench list` shows. The value of each kind is the function that lists
    them."""
    return {
        "workloads": workloads,
        "engines": engines,
        "devices": devices,
        "metrics": metrics,
        "observers": observers,
        "records": lambda: records(results),
        "labs": lambda: labs(results),
        "foreign": lambda: foreign_records(results),
    }


def _table(rows: Rows, printer: Printer) -> None:
    from ironbench.report.text_layout import Column, fitted

    names = [name for name in rows[0] if name == _TAGS or not isinstance(rows[0][name], dict)]
    names = [name for name in names if name not in (_TAGS, _LAB) or any(row[name] for row in rows)]
    columns = [
        Column(
            name,
            _cells(name, rows),
            right=_numeric(rows, name),
            rank=RANKS.get(name, 0),
            prose=name == _PROSE,
        )
        for name in sorted(names, key=lambda name: name == _PROSE)
    ]
    text, out = fitted(columns, printer.width())
    printer.data(text)
    if out:
        printer.say(f"columns omitted because the terminal is too narrow: {', '.join(out)}")


def _numeric(rows: Rows, column: str) -> bool:
    return any(isinstance(row[column], float) for row in rows)


def _cells(column: str, rows: Rows) -> tuple[str, ...]:
    """Formats the cells of one column. The unit is looked up once per column, because there may be ten thousand
    rows."""
    from ironbench.report.numbers import quantity, unit_of

    unit = unit_of(column)
    values = (row[column] for row in rows)
    return tuple(
        value if isinstance(value, str) else quantity(value, unit) if isinstance(value, float) else _words(value)
        for value in values
    )


def _words(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, dict):
        return " ".join(f"{key}={one}" for key, one in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)


def encoded(value: Any) -> str:
    """Formats a value as JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
