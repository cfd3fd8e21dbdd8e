"""Generates the reference page of device models from the built-in models."""

from __future__ import annotations

from ironbench.catalogue.devices import DeviceModel, PublishedFigure, device_models
from ironbench.devices import models
from ironbench.devices.device_probe import LOADS, seen
from ironbench.words import grouped

_INTRODUCTION = """# Devices

[Device models](../understand/emulation.md) explains models and device expressions. The source of each
figure is given next to it; **assumed** figures have no source. Units: KB, MB, GB are powers of 1000, KiB, MiB, GiB
powers of 1024, in figures and in expressions; a letter alone (`stripe=64K`) is a power of 1024.
"""


def page() -> str:
    """Returns the page: for each built-in model its figures, and what a storage benchmark would measure."""
    known = device_models()
    parts = [_INTRODUCTION, _table(known), ""]
    for model in known.values():
        parts += [_model(model), ""]
    return "\n".join(parts)


def _table(known: dict[str, DeviceModel]) -> str:
    """Table of I/Os per second (MB/s for sequential loads) of every model that stores data, rounded to two digits."""
    core = models.for_core(known)
    short = ["read, depth 1", "read, 32", "write, 1", "write, 32", "MB/s read", "MB/s write", "commits"]
    assert len(short) == len(LOADS)
    lines = [
        "Predicted results of a storage benchmark: random 4 KiB I/Os per second at two depths, sequential MB/s, and",
        "commits per second of one client that writes 8 KiB to a log and syncs. Flash slows down after gigabytes.",
        "",
        f"| model | {' | '.join(short)} |",
        f"|---|{'---:|' * len(short)}",
    ]
    for model in known.values():
        if model.kind in ("free", "controller"):
            continue
        cells = [_short(one.bytes_per_s / 1e6 if "MiB" in one.what else one.iops) for one in seen(model.name, core)]
        lines.append(f"| `{model.name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _short(value: float) -> str:
    return grouped(float(f"{value:.2g}")) if value >= 10 else f"{value:.2g}"


def _model(model: DeviceModel) -> str:
    year = f"Released in {model.year}. " if model.year else ""
    lines = [
        f"## {model.name}",
        "",
        f"{year}{model.doc}",
        "",
        "| figure | value | origin | from |",
        "|---|---|---|---|",
    ]
    for figure in model.figures:
        origin = (
            "**assumed**" if figure.origin == "assumed" else {"source": "published"}.get(figure.origin, figure.origin)
        )
        written = {"True": "yes", "False": "no"}.get(figure.written, figure.written)
        lines.append(f"| `{figure.name}` | {written} | {origin} | {figure.why.replace('|', chr(92) + '|')} |")
    held = [one for one in model.published if one.not_held is None]
    beside = [one for one in model.published if one.not_held is not None]
    if held:
        lines += [
            "",
            "Not used to build the model; `python -m bench presets` checks the model against these figures:",
            "",
        ]
        lines += [_figure(one) for one in held]
    if beside:
        lines += ["", "Not used to build the model, and only shown by `python -m bench presets`:", ""]
        lines += [f"{_figure(one)}: {one.not_held}" for one in beside]
    return "\n".join(lines)


def _figure(one: PublishedFigure) -> str:
    return f"- {one.what}: {_expected(one.low, one.high)} ({one.source})"


def _expected(low: float, high: float) -> str:
    if high == float("inf"):
        return f"more than {low:,.4g}"
    return f"{low:,.4g}" if low == high else f"{low:,.4g} to {high:,.4g}"
