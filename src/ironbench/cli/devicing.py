"""What `device show` and `device trace replay` print."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from ironbench import ranges
from ironbench.catalogue.devices import DeviceModel
from ironbench.cli.listing import encoded
from ironbench.devices import models as known_models
from ironbench.devices import replay
from ironbench.devices.seen import Seen, seen
from ironbench.printer import Printer
from ironbench.report.columns import Column, fitted
from ironbench.report.numbers import count, quantity, times
from ironbench.words import counted

_ORIGINS = {"source": "published", "derived": "derived", "assumed": "ASSUMED", "yours": "yours"}


def shown(text: str, capacity: str, files: tuple[str, ...], json: bool) -> int:
    """Prints the models of an expression and what a benchmark would see. InputError: it is none."""
    known = known_models.models(files)
    core = known_models.for_core(known)
    size = int(ranges.read("capacity", "--capacity", capacity)) if capacity else None
    lone = known.get(text.strip().lower())
    is_controller = lone is not None and lone.kind == "controller"
    normal = text.strip().lower() if is_controller else known_models.normal(text, files)
    found = () if is_controller else seen(normal, core, size)
    parts = [model for name, model in known.items() if name in _names(normal)]
    printer = Printer()
    if json:
        printer.data(
            encoded({"device": normal, "models": [_document(one) for one in parts], "seen": [asdict(s) for s in found]})
        )
        return 0
    pages = [_page(model, printer.width()) for model in parts]
    pages += [_seen(normal, found, printer.width())] if found else []
    printer.data("\n\n".join(pages))
    return 0


def _names(expression: str) -> set[str]:
    """Every word of an expression: those that are models' names are its models."""
    return set("".join(c if c.isalnum() or c in "-_." else " " for c in expression).split())


def _document(model: DeviceModel) -> dict[str, Any]:
    return asdict(model)


def _page(model: DeviceModel, width: int | None) -> str:
    columns = [
        Column("figure", tuple(figure.name for figure in model.figures)),
        Column("value", tuple(_written(figure.written) for figure in model.figures), right=True),
        Column("origin", tuple(_ORIGINS[figure.origin] for figure in model.figures)),
        Column("from", tuple(figure.why for figure in model.figures), prose=True),
    ]
    year = f" ({model.year})" if model.year else ""
    table, _ = fitted(columns, width)
    assumed = len(model.assumed)
    note = f"\n{counted(assumed, 'figure is', 'figures are')} assumed: nobody published them." if assumed else ""
    return f"{model.name}{year}: {model.doc}\n\n{table.rstrip()}{note}"


def _written(text: str) -> str:
    return {"True": "yes", "False": "no"}.get(text, text)


def _seen(text: str, found: tuple[Seen, ...], width: int | None) -> str:
    columns = [
        Column("what a benchmark would see", tuple(one.what for one in found)),
        Column("I/Os per s", tuple(count(one.iops) for one in found), right=True),
        Column("MB/s", tuple(f"{one.bytes_per_s / 1e6:,.1f}" for one in found), right=True),
        Column("mean", tuple(quantity(one.mean_s, "s") for one in found), right=True),
        Column("99th percentile", tuple(quantity(one.p99_s, "s") for one in found), right=True),
    ]
    return f"{text}\n\n{fitted(columns, width)[0].rstrip()}"


def replayed(
    file: str,
    on: str,
    capacity: str,
    arrivals: bool,
    files: tuple[str, ...],
    json: bool,
    trial: str = "",
    emulated: bool = False,
) -> int:
    """Prints a prediction. InputError: the trace or the expression cannot be used."""
    from ironbench.devices import trace

    core = known_models.for_core(known_models.models(files))
    size = int(ranges.read("capacity", "--capacity", capacity)) if capacity else None
    recorded = trace.read(Path(file)).measured(trial)
    answering_ns = recorded.processors.answering_ns() if emulated and recorded.processors else 0
    found = replay.predicted(recorded, on, core, size, not arrivals, answering_ns)
    printer = Printer()
    if json:
        printer.data(encoded(_prediction(found)))
    else:
        printer.data(_told(found, printer.width()))
    return 0


def _prediction(found: replay.Prediction) -> dict[str, Any]:
    plain = {name: getattr(found, name) for name in found.__slots__ if name not in ("latencies",)}
    latencies = [
        {
            "op": one.op,
            "count": one.count,
            "recorded": _quantiles(one.recorded),
            "predicted": _quantiles(one.predicted),
        }
        for one in found.latencies
    ]
    return plain | {"latencies": latencies}


def _quantiles(histogram: Any) -> dict[str, float]:
    p50, p99, p999 = histogram.quantiles([0.5, 0.99, 0.999])
    return {"mean_s": histogram.mean_s, "p50_s": p50, "p99_s": p99, "p999_s": p999, "max_s": histogram.max_s}


def _told(found: replay.Prediction, width: int | None) -> str:
    held = "the work and its think times held" if found.closed else "the arrivals held"
    lines = [
        f"{counted(found.ios, 'I/O')}, {quantity(found.read_bytes, 'bytes')} read and "
        f"{quantity(found.written_bytes, 'bytes')} written, on {found.model}; {held}",
        f"recorded {quantity(found.recorded_s, 's')}, "
        f"predicted {quantity(found.predicted_s, 's')} ({times(found.ratio)})",
    ]
    if found.closed:
        lines.append(f"of that at least {quantity(found.thinking_s, 's')} is the program's own time")
    if found.cores:
        cores = counted(found.cores, "core")
        lines.append(f"computing takes {quantity(found.computing_s, 's')} of CPU, and there are {cores} as recorded")
    if found.host_cpu_s:
        lines.append(f"the device's driver would take {quantity(found.host_cpu_s, 's')} of CPU")
    rows = [(one, kind, getattr(one, kind)) for one in found.latencies for kind in ("recorded", "predicted")]
    columns = [
        Column("operation", tuple(one.op for one, _, _ in rows)),
        Column("latency", tuple(kind for _, kind, _ in rows)),
        Column("mean", tuple(quantity(h.mean_s, "s") for _, _, h in rows), right=True),
        Column("median", tuple(quantity(h.quantile(0.5), "s") for _, _, h in rows), right=True),
        Column("99th percentile", tuple(quantity(h.quantile(0.99), "s") for _, _, h in rows), right=True),
        Column("longest", tuple(quantity(h.max_s, "s") for _, _, h in rows), right=True),
    ]
    doubts = [f"out of range: {doubt}" for doubt in found.out_of_range]
    return "\n".join([*lines, "", fitted(columns, width)[0].rstrip(), *([""] if doubts else []), *doubts])
