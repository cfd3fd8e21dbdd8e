"""Generates the reference page of device models from the built-in models."""

from __future__ import annotations

from ironbench.catalogue.devices import DeviceModel, PublishedFigure, device_models
from ironbench.devices import models
from ironbench.devices.device_probe import LOADS, probed_devices
from ironbench.words import grouped

_INTRODUCTION = """# Devices

This page lists the built-in device models with their figures, which are the parameters of the models, for example
latencies and throughputs. The page [Device models](../understand/emulation.md) explains models and device expressions.
The column *source or reason* contains the source of a published figure, and the reason for any other figure.
**Assumed** figures have no published source, and **derived** figures are computed from other figures or facts. In
figures and expressions, KB, MB and GB are powers of 1000, and KiB, MiB and GiB are powers of 1024. A single letter
(`stripe=64K`) is a power of 1024.
"""


def page() -> str:
    """Returns the page as Markdown. The page contains the figures of each built-in model, and the results of a
    simulated storage benchmark."""
    known = device_models()
    parts = [_INTRODUCTION, _table(known), ""]
    for model in known.values():
        parts += [_model(model), ""]
    return "\n".join(parts)


def _table(known: dict[str, DeviceModel]) -> str:
    """Returns a table with the performance of every model that stores data. The table contains I/Os per second, or MB/s
    for sequential loads. The values are rounded to two digits."""
    core = models.for_core(known)
    short = [
        *("reads/s, depth 1", "reads/s, depth 32", "writes/s, depth 1", "writes/s, depth 32"),
        *("MB/s read", "MB/s written", "commits/s"),
    ]
    assert len(short) == len(LOADS)
    lines = [
        "The following table shows the results of a simulated storage benchmark on each model: random 4 KiB",
        "reads and writes per second at queue depths 1 and 32, sequential MB/s, and commits per second of one",
        "client. For each commit, the client writes 8 KiB to a WAL and syncs the WAL. After some gigabytes of",
        "writes, flash drives become slower than the table shows.",
        "",
        f"| model | {' | '.join(short)} |",
        f"|---|{'---:|' * len(short)}",
    ]
    for model in known.values():
        if model.kind in ("free", "controller"):
            continue
        cells = [
            _short(one.bytes_per_s / 1e6 if "MiB" in one.what else one.iops) for one in probed_devices(model.name, core)
        ]
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
        "| figure | value | origin | source or reason |",
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
            "`python -m bench presets` compares the model with the following published figures, which were not used to "
            "build the model:",
            "",
        ]
        lines += [_figure(one) for one in held]
    if beside:
        lines += [
            "",
            "`python -m bench presets` shows the following published figures, but does not compare them with the "
            "model:",
            "",
        ]
        lines += [f"{_figure(one)}. Not compared, because {one.not_held}" for one in beside]
    return "\n".join(lines)


def _figure(one: PublishedFigure) -> str:
    if one.of == "rate" and one.against is None:
        return f"- {one.what}: {_expected(one.low / 1e6, one.high / 1e6)} MB/s ({one.source})"
    return f"- {one.what}: {_expected(one.low, one.high)} ({one.source})"


def _expected(low: float, high: float) -> str:
    if high == float("inf"):
        return f"more than {_plain(low)}"
    return _plain(low) if low == high else f"{_plain(low)} to {_plain(high)}"


def _plain(value: float) -> str:
    return grouped(value) if value >= 1000 else f"{value:.4g}"
