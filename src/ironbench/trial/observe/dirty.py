"""The write backlog at the end of a trial. Without it, a system that only postpones writes would look fast.

`dirty_left_bytes`: dirty pages of the kernel's page cache (Dirty + Writeback), plus those in the engine's own buffers
if the engine counts them.
"""

from __future__ import annotations

from ironbench.host.tree import Tree
from ironbench.model.observation import Observation, Source
from ironbench.model.observer import Samples
from ironbench.model.points import Values, last_within, points
from ironbench.model.session import Session
from ironbench.trial.observe.memory import parse_meminfo

_KERNEL = "dirty.meminfo"
_PERIOD_S = 5.0
"""Sampling period in seconds. The value does not matter: only the sample at the end of the window is used, and the core
always takes this sample."""


class Dirty:
    name = "dirty"
    doc = "Dirty data in memory that have not been written to devices at the end of the trial"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        return (Source(_KERNEL, "file", "/proc/meminfo", _PERIOD_S),)

    def parse(self, samples: Samples, window_s: float) -> Observation:
        end = last_within(points(samples.get(_KERNEL), _parse), window_s)
        return Observation({"dirty_left_bytes": end.values["bytes"]} if end is not None else {})


def _parse(text: str) -> Values:
    values = parse_meminfo(text)
    return {"bytes": values["Dirty"] + values.get("Writeback", 0.0)}


OBSERVER = Dirty()
