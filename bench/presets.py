"""Compares device models with published results that were not used to build them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.figures import report, within
from ironbench.catalogue.devices import DeviceModel, PublishedFigure
from ironbench.devices import models
from ironbench.devices.device_probe import probed

TOLERANCE = 0.10


def main() -> None:
    known = models.models()
    core = models.for_core(known)
    for model in known.values():
        for figure in model.published:
            _beside(model, figure, core)
    none = [model.name for model in known.values() if model.kind not in ("free", "controller") and not _held_to(model)]
    report("models without a published figure to compare with", ", ".join(none))


def _held_to(model: DeviceModel) -> bool:
    return any(figure.not_held is None for figure in model.published)


def _beside(model: DeviceModel, figure: PublishedFigure, core: bytes) -> None:
    value = _of(figure, figure.load, core)
    if figure.against is not None:
        value /= _of(figure, figure.against, core)
    expected = f"{figure.low:g}" if figure.low == figure.high else f"{figure.low:g} to {figure.high:g}"
    # For a published range, its ends; for a single value, 10% around it.
    low, high = (
        (figure.low * (1 - TOLERANCE), figure.high * (1 + TOLERANCE))
        if figure.low == figure.high
        else (figure.low, figure.high)
    )
    off = f", {value / figure.low - 1:+.1%}" if figure.low == figure.high else ""
    what, shown = f"{model.name}: {figure.what}", f"{value:.4g} (published {expected}{off})"
    if figure.not_held is None:
        report(what, value, within(low, high), shown)
    else:
        report(what, f"{shown}; not held: {figure.not_held}")


def _of(figure: PublishedFigure, load: Mapping[str, Any], core: bytes) -> float:
    seen = probed(figure.on, core, load)
    return seen.iops if figure.of == "iops" else seen.bytes_per_s


if __name__ == "__main__":
    main()
