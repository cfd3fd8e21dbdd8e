"""`ironbench device`: modelled storage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ironbench.catalogue.devices import DeviceModel
from ironbench.cli import device_mount
from ironbench.cli.known_names import names_of
from ironbench.cli.list import encoded
from ironbench.cli.mistakes import whole
from ironbench.cli.options import JSON, group
from ironbench.devices import models as known_models
from ironbench.devices.device_probe import ProbedDevice, seen
from ironbench.errors import FailureError, InputError
from ironbench.fields.lab import range_of
from ironbench.fields.sections import CAPACITY
from ironbench.printer import Printer
from ironbench.report.cell import TableCell
from ironbench.report.numbers import quantity, times
from ironbench.report.text_layout import Column, fitted
from ironbench.words import counted, in_percent

if TYPE_CHECKING:
    from ironbench.devices.replay import Prediction, ReplayCheck

app = group("device")
trace = group("trace", "Replay I/O traces of emulated devices.")
app.add_typer(trace)

MODELS = Annotated[
    list[str] | None,
    typer.Option(
        "--models", metavar="FILE", help="TOML file with your own models; also IRONBENCH_DEVICES.", show_default=False
    ),
]


@app.command("show")
def show(
    model: Annotated[
        str,
        typer.Argument(
            help='A model or expression, e.g. hdd-7200 or "raid0(4, ssd-sata-2011)".',
            autocompletion=names_of("devices"),
        ),
    ],
    capacity: Annotated[
        str, typer.Option(metavar="SIZE", help="Scale the device to this size.  [default: the size of its models]")
    ] = "",
    models: MODELS = None,
    json: JSON = False,
) -> int:
    """Show a device model and the sources of its figures. Also shows what a storage benchmark would measure on it."""
    files, name = models or (), model.strip().lower()
    known = known_models.models(files)
    core = known_models.for_core(known)
    size = int(CAPACITY.read("--capacity", capacity)) if capacity else None
    lone = known.get(name)
    is_controller = lone is not None and lone.kind == "controller"
    normal = name if is_controller else known_models.normal(model, files)
    seen_by = () if is_controller else seen(normal, core, size)
    parts = [one for known_name, one in known.items() if known_name in _names(normal)]
    printer = Printer()
    if json:
        document = {"device": normal, "models": [asdict(one) for one in parts], "seen": [asdict(s) for s in seen_by]}
        printer.data(encoded(document))
        return 0
    pages = [_page(one, printer.width()) for one in parts]
    pages += [_seen(normal, seen_by, printer.width())] if seen_by else []
    printer.data("\n\n".join(pages))
    return 0


@app.command("mount")
def mount(
    model: Annotated[
        str, typer.Argument(help="A device expression, e.g. hdd-7200.", autocompletion=names_of("devices"))
    ],
    directory: Annotated[
        str, typer.Argument(metavar="[DIR]", help="Mount point: an empty or new directory.", show_default=False)
    ] = "",
    capacity: Annotated[str, typer.Option(metavar="SIZE", help="Size of the device.")] = "1GB",
    fs: Annotated[str, typer.Option(metavar="NAME", help="ext4, xfs or btrfs; btrfs:compress=zstd.")] = "ext4",
    backing: Annotated[
        str, typer.Option(metavar="DIR|ram", help="What stores the bytes: a directory, or `ram`.")
    ] = "ram",
    seed: Annotated[
        int,
        typer.Option(
            parser=whole("--seed", range_of("measure.seed")), metavar="N", help="Seed for random values in the model."
        ),
    ] = 0,
    trace: Annotated[
        str, typer.Option(metavar="FILE", help="Parquet file with every I/O, written when the device is unmounted.")
    ] = "",
    detach: Annotated[
        bool, typer.Option("--detach", help="Return immediately; unmount with `device unmount`.")
    ] = False,
) -> int:
    """Mount an emulated device. Prints the mount point; to unmount, press Ctrl-C or use `ironbench device unmount`."""
    return device_mount.mounted(device_mount.wanted(model, directory, capacity, fs, backing), seed, detach, trace)


@app.command("unmount")
def unmount(
    device: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|DIR", help="Mount point, or the device expression if only one such device is mounted."
        ),
    ],
) -> int:
    """Unmount an emulated device that `device mount` mounted."""
    return device_mount.unmounted(device)


@trace.command("replay")
def replay(
    file: Annotated[str, typer.Argument(metavar="TRACE", help="A trace (Parquet).")],
    on: Annotated[
        str,
        typer.Option(
            "--on", metavar="MODEL", help="Device on which to replay the trace.", autocompletion=names_of("devices")
        ),
    ],
    capacity: Annotated[
        str, typer.Option(metavar="SIZE", help="Size of that device.  [default: size of the recorded device]")
    ] = "",
    trial: Annotated[
        str,
        typer.Option(
            metavar="N|all",
            help="Replay the I/Os of trial N, or of `all` trials.  [default: the only trial, or all I/Os if the "
            "trace names no trials]",
            show_default=False,
        ),
    ] = "",
    arrivals: Annotated[
        bool,
        typer.Option(
            "--keep-arrivals",
            help="Keep the recorded arrival times (open loop) instead of waiting for earlier I/Os and think times.",
        ),
    ] = False,
    emulated: Annotated[
        bool,
        typer.Option("--emulated", help="Add the CPU time of the emulation for each I/O."),
    ] = False,
    models: MODELS = None,
    json: JSON = False,
) -> int:
    """Predict how long a trace takes on another device, without waiting.

    First replays the trace on the recorded device. If the time differs by more than 25%, no prediction is made.
    """
    from ironbench.devices import replay as replays
    from ironbench.devices import trace as traces

    if emulated and arrivals:
        cause = "cannot be combined with --keep-arrivals, which does not wait for completions"
        raise InputError("--emulated", cause, "remove one of them")
    core = known_models.for_core(known_models.models(models or ()))
    size = int(CAPACITY.read("--capacity", capacity)) if capacity else None
    recorded = traces.read(Path(file)).measured(trial)
    answering_ns = 0
    if emulated:
        if recorded.processors is None:
            cause = f"trace {file} of an older version has no CPU times"
            raise InputError("--emulated", cause, "remove --emulated, or record the trace again")
        answering_ns = recorded.processors.answering_ns()
    known_models.normal(on, models or ())  # parsed first: the check below takes long
    if recorded.recorded is not None:
        _require_known(file, recorded.recorded.device, models or ())
    check = replays.checked(recorded, core, not arrivals)
    if check is not None and check.missed:
        cause = (
            f"no prediction: a replay on the recorded device ({check.device}) takes {quantity(check.replayed_s, 's')}, "
            f"but the recording took {quantity(check.recorded_s, 's')} ({in_percent(abs(check.miss))} off)"
        )
        raise FailureError(f"trace {file}", cause, "record the trace again while no other program uses the machine")
    size = size or (recorded.recorded.capacity if recorded.recorded else None)
    prediction = replays.predicted(recorded, on, core, size, not arrivals, answering_ns)
    printer = Printer()
    if json:
        printer.data(encoded(_prediction(prediction, check)))
    else:
        printer.data(_prediction_page(prediction, check, printer.width()))
    return 0


def _require_known(file: str, device: str, models: Iterable[str]) -> None:
    try:
        known_models.normal(device, models)
    except InputError as error:
        cause = f"was recorded on {device}, which is unknown here: {error.cause}"
        raise InputError(f"trace {file}", cause, "add the file with its models: --models FILE") from error


_ORIGINS = {"source": "published", "derived": "derived", "assumed": "ASSUMED", "yours": "yours"}


def _names(expression: str) -> set[str]:
    """Returns the words of an expression. Words that are names of models are its models."""
    return set("".join(c if c.isalnum() or c in "-_." else " " for c in expression).split())


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
    note = (
        f"\n{counted(assumed, 'figure is', 'figures are')} assumed, because no published values exist."
        if assumed
        else ""
    )
    return f"{model.name}{year}: {model.doc}\n\n{table.rstrip()}{note}"


def _written(text: str) -> str:
    return {"True": "yes", "False": "no"}.get(text, text)


def _seen(text: str, found: tuple[ProbedDevice, ...], width: int | None) -> str:
    columns = [
        Column("benchmark result (predicted)", tuple(one.what for one in found)),
        Column("I/Os per s", tuple(TableCell(one.iops, "count/s", bare=True) for one in found), right=True),
        Column("MB/s", tuple(TableCell(one.bytes_per_s, "MB/s", bare=True) for one in found), right=True),
        Column("mean", tuple(TableCell(one.mean_s, "s") for one in found), right=True),
        Column("99th percentile", tuple(TableCell(one.p99_s, "s") for one in found), right=True),
    ]
    return f"{text}\n\n{fitted(columns, width)[0].rstrip()}"


def _prediction(prediction: Prediction, check: ReplayCheck | None) -> dict[str, Any]:
    plain = {name: getattr(prediction, name) for name in prediction.__slots__ if name not in ("latencies",)}
    latencies = [
        {
            "op": one.op,
            "count": one.count,
            "recorded": _quantiles(one.recorded),
            "predicted": _quantiles(one.predicted),
        }
        for one in prediction.latencies
    ]
    return plain | {"latencies": latencies, "check": asdict(check) if check else None}


def _quantiles(histogram: Any) -> dict[str, float]:
    p50, p99, p999 = histogram.quantiles([0.5, 0.99, 0.999])
    return {"mean_s": histogram.mean_s, "p50_s": p50, "p99_s": p99, "p999_s": p999, "max_s": histogram.max_s}


def _check_line(check: ReplayCheck | None) -> str:
    if check is None:
        return "check: not possible, because the trace does not name its recorded device"
    way = "longer" if check.miss > 0 else "shorter"
    return (
        f"check: a replay on the recorded device ({check.device}) takes {quantity(check.replayed_s, 's')}, "
        f"{in_percent(abs(check.miss))} {way} than recorded"
    )


def _prediction_page(prediction: Prediction, check: ReplayCheck | None, width: int | None) -> str:
    held = "closed loop with recorded think times" if prediction.closed else "recorded arrival times"
    lines = [
        f"{counted(prediction.ios, 'I/O')}, {quantity(prediction.read_bytes, 'bytes')} read and "
        f"{quantity(prediction.written_bytes, 'bytes')} written, on {prediction.model}; {held}",
        f"recorded {quantity(prediction.recorded_s, 's')}, "
        f"predicted {quantity(prediction.predicted_s, 's')} ({times(prediction.ratio)})",
    ]
    lines.insert(1, _check_line(check))
    if prediction.closed:
        lines.append(f"this includes at least {quantity(prediction.thinking_s, 's')} of the program's own time")
    if prediction.cores:
        cores = counted(prediction.cores, "core")
        lines.append(f"computation takes {quantity(prediction.computing_s, 's')} of CPU time on {cores}, as recorded")
    if prediction.host_cpu_s:
        lines.append(f"the device's driver would take {quantity(prediction.host_cpu_s, 's')} of CPU time")
    rows = [(one, kind, getattr(one, kind)) for one in prediction.latencies for kind in ("recorded", "predicted")]
    columns = [
        Column("operation", tuple(one.op for one, _, _ in rows)),
        Column("latency", tuple(kind for _, kind, _ in rows)),
        Column("mean", tuple(TableCell(h.mean_s, "s") for _, _, h in rows), right=True),
        Column("median", tuple(TableCell(h.quantile(0.5), "s") for _, _, h in rows), right=True),
        Column("99th percentile", tuple(TableCell(h.quantile(0.99), "s") for _, _, h in rows), right=True),
        Column("longest", tuple(TableCell(h.max_s, "s") for _, _, h in rows), right=True),
    ]
    doubts = [f"out of range: {doubt}" for doubt in prediction.out_of_range]
    return "\n".join([*lines, "", fitted(columns, width)[0].rstrip(), *([""] if doubts else []), *doubts])
