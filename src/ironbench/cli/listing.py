"""What `list` and `show` show: everything the tool knows by name, and every record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ironbench.errors import InputError, nearest
from ironbench.model.record import Record
from ironbench.printer import Printer
from ironbench.record import Store

Rows = list[dict[str, Any]]


def workloads() -> Rows:
    from ironbench import workloads

    found = [workloads.get(name) for name in workloads.names()]
    return [
        {
            "name": one.name,
            "what": one.doc,
            "engines": list(one.engines),
            "options": {option.name: {"default": option.default, "what": option.doc} for option in one.options},
        }
        for one in found
    ]


def engines() -> Rows:
    from ironbench import engines

    return [{"name": name, "what": engines.get(name).doc} for name in engines.names()]


def metrics() -> Rows:
    from ironbench import catalogue

    return [
        {"name": name, "unit": metric.unit, "better": metric.better, "what": metric.doc}
        for name, metric in catalogue.metrics().items()
    ]


def observers() -> Rows:
    from ironbench import observe

    return [{"name": one.name, "what": one.doc} for one in observe.observers()]


def records(results: str) -> Rows:
    return [_row(record) for record in Store(Path(results)).all()]


def _row(record: Record) -> dict[str, Any]:
    return {
        "name": record.id,
        "label": record.system.label,
        "workload": record.choice.workload,
        "cell": record.cell.name,
        "purpose": record.purpose,
        "status": str(record.status),
        "throughput": record.metrics.get("throughput"),
        "response_time_p99_s": record.metrics.get("response_time_p99_s"),
    }


def listed(kind: str, results: str, json: bool) -> int:
    """Shows every thing of a kind; unknown kinds are refused with the nearest name."""
    kinds: dict[str, Callable[[], Rows]] = {
        "workloads": workloads,
        "engines": engines,
        "metrics": metrics,
        "observers": observers,
        "records": lambda: records(results),
    }
    if kind not in kinds:
        raise InputError(f"list {kind}", "there is no such list", nearest(kind, list(kinds)))
    rows = kinds[kind]()
    printer = Printer()
    if json:
        printer.data(_json({kind: rows}))
    elif rows:
        _table(rows, printer)
    else:
        printer.say(f"there are no {kind} in {results} yet; make some with `ironbench run`")
    return 0


def shown(name: str, results: str, json: bool) -> int:
    """Shows one thing by name: something the tool knows, else records."""
    printer = Printer()
    for rows in (workloads(), engines(), metrics(), observers()):
        for row in rows:
            if row["name"] == name:
                printer.data(_json(row) if json else _text(row))
                return 0
    store = Store(Path(results))
    found = store.select([name])
    if json:
        printer.data(_json([msgspec.to_builtins(record) for record in found]))
        return 0
    for record in found:
        detail = {"machine": store.machine(record.machine), "engine": store.engine(record.engine)}
        printer.data(_text({**msgspec.to_builtins(record), **detail} if len(found) == 1 else _row(record)))
    return 0


def _table(rows: Rows, printer: Printer) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    shown = [column for column in rows[0] if not isinstance(rows[0][column], dict)]
    for column in shown:
        table.add_column(column, overflow="fold", justify="right" if _numeric(rows, column) else "left")
    for row in rows:
        table.add_row(*(_cell(column, row[column]) for column in shown))
    printer.console().print(table)


def _numeric(rows: Rows, column: str) -> bool:
    return any(isinstance(row[column], float) for row in rows)


def _cell(column: str, value: Any) -> str:
    from rich.markup import escape

    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value * 1e3:,.2f} ms" if column.endswith("_s") else f"{value:,.0f}"
    return escape(", ".join(value) if isinstance(value, list) else str(value))


def _text(value: Any, indent: str = "") -> str:
    lines = []
    for key, item in value.items():
        if isinstance(item, dict) and item:
            lines.append(f"{indent}{key}:\n{_text(item, indent + '  ')}")
        elif isinstance(item, list) and item and isinstance(item[0], dict):
            parts = [_text(one, indent + "    ").replace(indent + "    ", indent + "  - ", 1) for one in item]
            lines.append(f"{indent}{key}:\n" + "\n".join(parts))
        elif item not in (None, "", {}, []):
            lines.append(f"{indent}{key}: {', '.join(map(str, item)) if isinstance(item, list) else item}")
    return "\n".join(lines)


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
