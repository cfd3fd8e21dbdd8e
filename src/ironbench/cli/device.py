"""`ironbench device`: shows, mounts and replays modelled storage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ironbench import units
from ironbench.catalogue.devices import DeviceModel
from ironbench.cli import device_mount
from ironbench.cli.known_names import names_of
from ironbench.cli.list import encoded
from ironbench.cli.mistakes import whole
from ironbench.cli.options import JSON, group
from ironbench.devices import emulation_rate
from ironbench.devices import models as known_models
from ironbench.devices.device_probe import ProbedDevice, probed_devices
from ironbench.devices.emulation_rate import EmulatedSpeed, EmulationRate, Fidelity
from ironbench.errors import FailureError, InputError
from ironbench.fields.lab import range_of
from ironbench.fields.sections import CAPACITY
from ironbench.printer import Printer
from ironbench.report.cell import TableCell
from ironbench.report.numbers import quantity
from ironbench.report.text_layout import Column, fitted, folded
from ironbench.words import counted, grouped, in_percent

if TYPE_CHECKING:
    from ironbench.devices.replay import Prediction, ReplayCheck

app = group("device")
trace = group("trace", "Replay I/O traces of emulated devices.")
app.add_typer(trace)

MODELS = Annotated[
    list[str] | None,
    typer.Option(
        "--models",
        metavar="FILE",
        help="TOML file with your own device models; alternatively, set IRONBENCH_DEVICES.",
        show_default=False,
    ),
]


@app.command("show")
def show(
    model: Annotated[
        str,
        typer.Argument(
            help='A device model or expression, e.g. hdd-7200 or "raid0(4, ssd-sata-2011)".',
            autocompletion=names_of("devices"),
        ),
    ],
    capacity: Annotated[
        str, typer.Option(metavar="SIZE", help="Scale the device to this size.  [default: the size of its models]")
    ] = "",
    models: MODELS = None,
    json: JSON = False,
) -> int:
    """Show a device model and the sources of its figures. The command also shows the results that a storage benchmark
    would show for the device."""
    files, name = models or (), model.strip().lower()
    known = known_models.models(files)
    core = known_models.for_core(known)
    size = int(CAPACITY.read("--capacity", capacity)) if capacity else None
    lone = known.get(name)
    is_controller = lone is not None and lone.kind == "controller"
    normal = name if is_controller else known_models.normalized(model, files)
    seen_by = () if is_controller else probed_devices(normal, core, size)
    parts = [one for known_name, one in known.items() if known_name in _names(normal)]
    printer = Printer()
    if json:
        document = {"device": normal, "models": [asdict(one) for one in parts], "seen": [asdict(s) for s in seen_by]}
        printer.data(encoded(document))
        return 0
    pages = [_page(one, printer.width()) for one in parts]
    pages += [_probe_text(normal, seen_by, printer.width())] if seen_by else []
    printer.data("\n\n".join(pages))
    return 0


@app.command("calibrate")
def calibrate(models: MODELS = None, json: JSON = False) -> int:
    """Measure how fast this machine can emulate devices. Lists the device models that it can emulate.

    Run it as root, while no other program uses the machine. `lab plan` and `lab new storage` use the result.
    """
    known = known_models.models(models or ())
    rate = device_mount.calibrated()
    core = known_models.for_core(known)
    speeds = {
        name: emulation_rate.speed(name, core, None, rate)
        for name, model in known.items()
        if model.kind not in ("controller", "free")
    }
    if json:
        printer = Printer()
        printer.data(encoded({"rate": asdict(rate), "models": {name: asdict(one) for name, one in speeds.items()}}))
        return 0
    Printer().data(_calibration_page(rate, speeds, Printer().width()))
    return 0


_FIDELITIES = {
    Fidelity.FAITHFUL: "yes",
    Fidelity.LIMITED: "only below {limit} I/Os per second",
    Fidelity.SHORT: "late: an individual I/O takes longer than the model predicts",
    Fidelity.REFUSED: "no: refused",
}


def _calibration_page(rate: EmulationRate, speeds: Mapping[str, EmulatedSpeed], width: int | None) -> str:
    columns = [
        Column("model", tuple(speeds)),
        Column(
            "reads/s", tuple(TableCell(one.reads_per_s, "count/s", bare=True) for one in speeds.values()), right=True
        ),
        Column("one read", tuple(TableCell(one.read_s, "s") for one in speeds.values()), right=True),
        Column("WAL write", tuple(TableCell(one.log_write_s, "s") for one in speeds.values()), right=True),
        Column(
            "can be emulated",
            tuple(_FIDELITIES[one.fidelity].format(limit=grouped(rate.faithful_per_s)) for one in speeds.values()),
            prose=True,
        ),
    ]
    lines = (
        f"This machine can emulate up to {grouped(rate.reads_per_s)} reads of 4 KiB per second; a single read takes at "
        f"least {quantity(rate.read_latency_s, 's')}.",
        f"Above {grouped(rate.faithful_per_s)} I/Os per second, or if other programs use the CPU, emulated I/Os may be "
        "late; such trials are flagged.",
    )
    text = "\n".join(folded(line, width or 100) for line in lines)
    return f"{text}\n\n{fitted(columns, width)[0].rstrip()}"


@app.command("mount")
def mount(
    model: Annotated[
        str, typer.Argument(help="A device model or expression, e.g. hdd-7200.", autocompletion=names_of("devices"))
    ],
    directory: Annotated[
        str, typer.Argument(metavar="[DIR]", help="Mount point: an empty or new directory.", show_default=False)
    ] = "",
    capacity: Annotated[str, typer.Option(metavar="SIZE", help="Size of the device.")] = "1GB",
    fs: Annotated[
        str, typer.Option(metavar="NAME", help="File system: ext4, xfs, btrfs or btrfs:compress=zstd.")
    ] = "ext4",
    backing: Annotated[
        str, typer.Option(metavar="DIR|ram", help="Where to store the contents of the device: a directory, or `ram`.")
    ] = "ram",
    seed: Annotated[
        int,
        typer.Option(
            parser=whole("--seed", range_of("measure.seed")), metavar="N", help="Seed for random values in the model."
        ),
    ] = 0,
    trace: Annotated[
        str,
        typer.Option(metavar="FILE", help="Write every I/O to this Parquet file when the device is unmounted."),
    ] = "",
    detach: Annotated[
        bool,
        typer.Option("--detach", help="Return immediately after mounting; `device unmount` unmounts the device."),
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
    file: Annotated[str, typer.Argument(metavar="TRACE", help="An I/O trace (Parquet file).")],
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="MODEL",
            help="Device model or expression on which to replay the trace.",
            autocompletion=names_of("devices"),
        ),
    ],
    capacity: Annotated[
        str,
        typer.Option(metavar="SIZE", help="Size of the device of --on.  [default: size of the recorded device]"),
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
    models: MODELS = None,
    json: JSON = False,
) -> int:
    """Predict the latencies of recorded I/Os on another device, and whether the device can sustain the load.

    The replay computes latencies and does not wait for I/Os. The replay uses the recorded arrival times of the I/Os, so
    the command does not predict throughput. To measure throughput, run the program on the emulated device. ironbench
    first replays the trace on a model of the recorded device. If the replayed mean latency differs from the recorded
    mean latency by more than 25%, ironbench makes no prediction.
    """
    from ironbench.devices import replay as replays
    from ironbench.devices import trace as traces

    core = known_models.for_core(known_models.models(models or ()))
    size = int(CAPACITY.read("--capacity", capacity)) if capacity else None
    recorded = traces.read(Path(file)).measured(trial)
    known_models.normalized(on, models or ())  # a mistake is reported before the slow check below
    if recorded.recorded is not None:
        _require_known(file, recorded.recorded.device, models or ())
    check = replays.checked(recorded, core)
    if check is not None and check.missed:
        cause = (
            f"no prediction: in a replay on the model of the recorded device ({units.device(check.device)}), I/Os take "
            f"{quantity(check.replayed_mean_s, 's')} on average, but they took "
            f"{quantity(check.recorded_mean_s, 's')} in the recording (a difference of "
            f"{in_percent(abs(check.miss))})"
        )
        raise FailureError(f"trace {file}", cause, "record the trace again while no other program uses the machine")
    size = size or (recorded.recorded.capacity if recorded.recorded else None)
    prediction = replays.predicted(recorded, on, core, size)
    printer = Printer()
    if json:
        printer.data(encoded(_prediction(prediction, check)))
    else:
        device = recorded.recorded.device if recorded.recorded else ""
        printer.data(_prediction_page(prediction, _check_line(check, device), printer.width()))
    return 0


def _require_known(file: str, device: str, models: Iterable[str]) -> None:
    try:
        known_models.normalized(device, models)
    except InputError as error:
        cause = f"was recorded on {device}, which is not a known model: {error.cause}"
        raise InputError(
            f"trace {file}", cause, "add --models FILE, the file that contains the models of this device"
        ) from error


_ORIGINS = {"source": "published", "derived": "derived", "assumed": "ASSUMED", "yours": "yours"}


def _names(expression: str) -> set[str]:
    """Returns all words of a device expression, including the names of the models that it uses."""
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


def _probe_text(text: str, found: tuple[ProbedDevice, ...], width: int | None) -> str:
    columns = [
        Column("benchmark result (predicted)", tuple(one.what for one in found)),
        Column("I/Os per s", tuple(TableCell(one.iops, "count/s", bare=True) for one in found), right=True),
        Column("MB/s", tuple(TableCell(one.bytes_per_s, "MB/s", bare=True) for one in found), right=True),
        Column("mean", tuple(TableCell(one.mean_s, "s") for one in found), right=True),
        Column("99th percentile", tuple(TableCell(one.p99_s, "s") for one in found), right=True),
    ]
    return f"{text}\n\n{fitted(columns, width)[0].rstrip()}"


def _prediction(prediction: Prediction, check: ReplayCheck | None) -> dict[str, Any]:
    return {
        "model": prediction.model,
        "ios": prediction.ios,
        "read_bytes": prediction.read_bytes,
        "written_bytes": prediction.written_bytes,
        "keeps_up": prediction.keeps_up,
        "recorded": asdict(prediction.recorded),
        "predicted": asdict(prediction.predicted),
        "host_cpu_s": prediction.host_cpu_s,
        "latencies": [
            {
                "op": one.op,
                "count": one.count,
                "recorded": _quantiles(one.recorded),
                "predicted": _quantiles(one.predicted) if prediction.keeps_up else None,
            }
            for one in prediction.latencies
        ],
        "check": asdict(check) | {"miss": check.miss} if check else None,
    }


def _quantiles(histogram: Any) -> dict[str, float]:
    p50, p99, p999 = histogram.quantiles([0.5, 0.99, 0.999])
    return {"mean_s": histogram.mean_s, "p50_s": p50, "p99_s": p99, "p999_s": p999, "max_s": histogram.max_s}


def _check_line(check: ReplayCheck | None, device: str) -> str:
    """Returns a line about the check of the prediction. The check replays the trace on a model of the recorded device.
    `device`: the recorded device, or an empty text if it is unknown."""
    if check is None:
        why = (
            f"the recorded device ({units.device(device)}) has no latency"
            if device
            else "the trace does not name the recorded device"
        )
        return f"The prediction could not be checked, because {why}."
    way = "more" if check.miss > 0 else "less"
    change = f"{in_percent(abs(check.miss))} {way} than recorded" if abs(check.miss) > 0.001 else "as recorded"
    return (
        f"Check of the prediction: in a replay on the model of the recorded device ({units.device(check.device)}), "
        f"I/Os take {quantity(check.replayed_mean_s, 's')} on average, {change}."
    )


def _prediction_page(prediction: Prediction, check: str, width: int | None) -> str:
    recorded, predicted = prediction.recorded, prediction.predicted
    model = units.device(prediction.model)
    moved = f"{quantity(prediction.read_bytes, 'bytes')} read, {quantity(prediction.written_bytes, 'bytes')} written"
    lines = [
        f"{counted(prediction.ios, 'I/O')} ({moved}) in {quantity(recorded.elapsed_s, 's')}, replayed on "
        f"{model} at the recorded times",
        check,
        "",
    ]
    if prediction.keeps_up:
        lines += [
            f"{model} keeps up with these I/Os. The device is busy {in_percent(predicted.busy_share)} "
            f"of the time (recorded: {in_percent(recorded.busy_share)}), with "
            f"{quantity(predicted.in_flight, '1')} I/Os in flight on average (recorded: "
            f"{quantity(recorded.in_flight, '1')}).",
            *_driver_line(prediction),
            "",
            _latency_table(prediction, width),
        ]
    else:
        rates = [
            quantity(prediction.ios / one.elapsed_s if one.elapsed_s else None, "count/s")
            for one in (predicted, recorded)
        ]
        lines += [
            f"{model} does not keep up with these I/Os: it needs {quantity(predicted.elapsed_s, 's')} "
            f"for them ({rates[0]} instead of {rates[1]}). The queue of the device grows until the end of the "
            "load, so no latencies are predicted.",
            *_driver_line(prediction),
        ]
    name = quote(model)
    lines += [
        "",
        "Throughput is not predicted, because a program that waits for I/O issues the next I/Os sooner on a "
        "faster device and later on a slower device. To measure a program on this device, run the program on the "
        f"emulated device: `ironbench run WORKLOAD --data {name}`, or `ironbench device mount {name}` for any "
        "program.",
    ]
    return "\n".join(line if "\n" in line else folded(line, width or 100) for line in lines)


def _driver_line(prediction: Prediction) -> list[str]:
    seconds = prediction.host_cpu_s
    return (
        [f"On a host with this device, the device's driver would use {quantity(seconds, 's')} of CPU time."]
        if seconds
        else []
    )


def _latency_table(prediction: Prediction, width: int | None) -> str:
    rows = [(one, kind, getattr(one, kind)) for one in prediction.latencies for kind in ("recorded", "predicted")]
    columns = [
        Column("operation", tuple(one.op for one, _, _ in rows)),
        Column("latency", tuple(kind for _, kind, _ in rows)),
        Column("mean", tuple(TableCell(h.mean_s, "s") for _, _, h in rows), right=True),
        Column("median", tuple(TableCell(h.quantile(0.5), "s") for _, _, h in rows), right=True),
        Column("99th percentile", tuple(TableCell(h.quantile(0.99), "s") for _, _, h in rows), right=True),
        Column("longest", tuple(TableCell(h.max_s, "s") for _, _, h in rows), right=True),
    ]
    return fitted(columns, width)[0].rstrip()
