"""Pressure stall information: share of time in which work stood still for want of CPU, memory or I/O.

Linux: Documentation/accounting/psi.rst. `some`: at least one task waited; `full`: all that were not idle waited.
"""

from __future__ import annotations

from ironbench.host.tree import Tree
from ironbench.model.observation import Observation, Series, Source
from ironbench.model.observer import Samples
from ironbench.model.points import Values, growth, points, rate_of, rate_series, steps
from ironbench.model.session import Session

_RESOURCES = ("cpu", "memory", "io")


class Pressure:
    name = "pressure"
    doc = "Share of time in which work waited for CPU, memory or I/O (kernels with PSI)"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        return tuple(
            Source(f"pressure.{resource}", "file", f"/proc/pressure/{resource}")
            for resource in _RESOURCES
            # The file exists but refuses to be read when PSI is compiled in and switched off.
            if machine.read(f"/proc/pressure/{resource}")
        )

    def parse(self, samples: Samples, window_s: float) -> Observation:
        metrics: dict[str, float] = {}
        series: list[Series] = []
        for resource in _RESOURCES:
            readings = points(samples.get(f"pressure.{resource}"), _parse)
            if (grown := growth(readings, window_s)) is None:
                continue
            each = steps(readings)
            # "full" means nothing for the CPU of a whole machine (psi.rst): it is always zero there.
            for kind in ("some",) if resource == "cpu" else ("some", "full"):
                name = f"psi_{resource}_{kind}_share"
                metrics[name] = grown.rate(kind)
                series.append(rate_series(name, each, rate_of(kind)))
        return Observation(metrics, tuple(series))


def _parse(text: str) -> Values:
    """Seconds stalled since the start of the machine, by kind."""
    return {
        line.split()[0]: float(line.rpartition("total=")[2]) / 1e6 for line in text.splitlines() if "total=" in line
    }


OBSERVER = Pressure()
