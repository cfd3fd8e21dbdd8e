"""`ironbench device`: modelled storage. One function per verb; heavy imports wait until one runs."""

from __future__ import annotations

from typing import Annotated

import typer

from ironbench.cli.mistakes import whole

app = typer.Typer(
    name="device",
    help="Look at modelled storage, mount it as a real file system, replay traces on it.",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
trace = typer.Typer(
    name="trace",
    help="Use what emulated devices recorded.",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(trace)

MODELS = Annotated[
    list[str] | None,
    typer.Option(
        "--models", metavar="FILE", help="TOML with models of your own; also IRONBENCH_DEVICES.", show_default=False
    ),
]
JSON = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]


@app.command("show")
def show(
    model: Annotated[str, typer.Argument(help='A model or expression, e.g. hdd-7200 or "raid0(4, ssd-sata-2011)".')],
    capacity: Annotated[
        str, typer.Option(metavar="SIZE", help="Scale the device to this; else as its models are.")
    ] = "",
    models: MODELS = None,
    json: JSON = False,
) -> int:
    """Show a device model: its figures, where each comes from, and what a storage benchmark would see of it."""
    from ironbench.cli import devicing

    return devicing.shown(model, capacity, tuple(models or ()), json)


@app.command("mount")
def mount(
    model: Annotated[str, typer.Argument(help="A device expression, e.g. hdd-7200.")],
    directory: Annotated[
        str, typer.Argument(metavar="[DIR]", help="Where: an empty directory, or one that is made.", show_default=False)
    ] = "",
    capacity: Annotated[str, typer.Option(metavar="SIZE", help="Of the device.")] = "1GB",
    fs: Annotated[str, typer.Option(metavar="NAME", help="ext4, xfs or btrfs; btrfs:compress=zstd.")] = "ext4",
    backing: Annotated[str, typer.Option(metavar="DIR|ram", help="What holds the bytes.")] = "ram",
    seed: Annotated[
        int, typer.Option(parser=whole("--seed"), metavar="N", help="Of whatever in the model is random.")
    ] = 0,
    trace: Annotated[
        str, typer.Option(metavar="FILE", help="Parquet file for every I/O, written when the device ends.")
    ] = "",
    detach: Annotated[bool, typer.Option("--detach", help="Return at once; `device unmount` ends it.")] = False,
) -> int:
    """Mount an emulated device, until Ctrl-C or `ironbench device unmount`. Prints where it is mounted."""
    from ironbench.cli import mounting

    return mounting.mounted(mounting.wanted(model, directory, capacity, fs, backing), seed, detach, trace)


@app.command("unmount")
def unmount(
    device: Annotated[
        str, typer.Argument(metavar="MODEL|DIR", help="Where it is mounted, or its expression if only one is.")
    ],
) -> int:
    """Unmount an emulated device that `device mount` mounted."""
    from ironbench.cli import mounting

    return mounting.unmounted(device)


@trace.command("replay")
def replay(
    file: Annotated[str, typer.Argument(metavar="TRACE", help="A trace (Parquet).")],
    on: Annotated[str, typer.Option("--on", metavar="MODEL", help="The device to replay it on.")],
    capacity: Annotated[
        str, typer.Option(metavar="SIZE", help="Of that device; else as large as the trace needs.")
    ] = "",
    trial: Annotated[
        str,
        typer.Option(
            metavar="N|all",
            help="What arrived while this trial was measured; else its only one, or all where none was.",
            show_default=False,
        ),
    ] = "",
    arrivals: Annotated[
        bool,
        typer.Option("--keep-arrivals", help="Keep the moments of arrival instead of the work and its think times."),
    ] = False,
    emulated: Annotated[
        bool,
        typer.Option("--emulated", help="Count the CPU that the emulation took for each I/O here, too."),
    ] = False,
    models: MODELS = None,
    json: JSON = False,
) -> int:
    """Predict how long the work of a trace takes on another device, without waiting, and how far to believe it."""
    from ironbench.cli import devicing

    return devicing.replayed(file, on, capacity, arrivals, tuple(models or ()), json, trial, emulated)
