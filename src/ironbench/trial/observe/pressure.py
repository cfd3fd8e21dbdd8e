"""Pressure stall information: the fraction of time during which tasks had to wait because CPU, memory or I/O was
scarce.

The kernel counts two times for each resource (Linux: Documentation/accounting/psi.rst). `some` is the time in which at
least one task waited. `full` is the time in which all tasks that were not idle waited.
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
    doc = "Fraction of time in which tasks waited for CPU, memory or I/O (requires a kernel with PSI)"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        return tuple(
            Source(f"pressure.{resource}", "file", f"/proc/pressure/{resource}")
            for resource in _RESOURCES
            # The file is read to find out whether it can be read. If PSI is compiled in but disabled, the file exists
            # but is not readable.
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
            # For the CPU of a whole machine, `full` has no meaning and is always 0 (psi.rst).
            for kind in ("some",) if resource == "cpu" else ("some", "full"):
                name = f"psi_{resource}_{kind}_share"
                metrics[name] = grown.rate(kind)
                series.append(rate_series(name, each, rate_of(kind)))
        return Observation(metrics, tuple(series))


def _parse(text: str) -> Values:
    """Returns seconds stalled since boot, by kind."""
    return {
        line.split()[0]: float(line.rpartition("total=")[2]) / 1e6 for line in text.splitlines() if "total=" in line
    }


OBSERVER = Pressure()
