"""Where CPU time goes, for the machine and per core (proc_stat(5))."""

from __future__ import annotations

from collections.abc import Callable

from ironbench.machine.tree import Tree
from ironbench.model.observation import Observation, Series, Source
from ironbench.model.observer import Samples
from ironbench.model.points import Growth, Values, growth, points, rate_of, rate_series, steps
from ironbench.model.session import Session

STAT = "cpu.stat"
_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""The first eight; guest time, which follows, is already part of user and nice."""
SHARES = {
    "user": ("user", "nice"),
    "system": ("system", "irq", "softirq"),
    "iowait": ("iowait",),
    "steal": ("steal",),
    "idle": ("idle",),
    "irq": ("irq", "softirq"),
}
"""Share → the kernel's fields; `irq` is a part of `system`, the others together are all time."""


class Cpu:
    name = "cpu"
    doc = "CPU time by kind, for the machine and per core"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        return (Source(STAT, "file", "/proc/stat"),)

    def parse(self, samples: Samples, window_s: float) -> Observation:
        found = points(samples.get(STAT), parse_stat)
        grown = growth(found, window_s)
        if grown is None:
            return Observation()
        cores = sorted(
            {key.partition(".")[0] for key in grown.by} - {"cpu", "switches"}, key=lambda core: int(core[3:])
        )
        metrics = {f"cpu_{kind}_share": value for kind in SHARES if (value := share(grown, "cpu", kind)) is not None}
        metrics["context_switches_per_s"] = grown.rate("switches")
        busiest = [idle for core in cores if (idle := share(grown, core, "idle", "iowait")) is not None]
        if busiest:
            metrics["cpu_busiest_core_share"] = 1.0 - min(busiest)
        return Observation(metrics, tuple(_series(steps(found), cores)))


def _series(each: list[tuple[float, Growth]], cores: list[str]) -> list[Series]:
    series = [rate_series("context_switches_per_s", each, rate_of("switches"))]
    for core in ["cpu", *cores]:
        label = "" if core == "cpu" else f"{{core={core[3:]}}}"
        for kind in SHARES:
            series.append(rate_series(f"cpu_{kind}_share{label}", each, _share_of(core, kind)))
    return series


def parse_stat(text: str) -> Values:
    """`cpu.user`, `cpu3.idle` … in clock ticks, and `switches`."""
    values: Values = {}
    for line in text.splitlines():
        words = line.split()
        if words and words[0].startswith("cpu"):
            for field, ticks in zip(_FIELDS, words[1:], strict=False):
                values[f"{words[0]}.{field}"] = float(ticks)
        elif words and words[0] == "ctxt":
            values["switches"] = float(words[1])
    return values


def share(grown: Growth, core: str, *kinds: str) -> float | None:
    """Share of a core's time (or, for `cpu`, of all cores' time) in these kinds; None when no time passed."""
    total = sum(grown.by.get(f"{core}.{field}", 0.0) for field in _FIELDS)
    part = sum(grown.by.get(f"{core}.{field}", 0.0) for kind in kinds for field in SHARES[kind])
    return part / total if total > 0 else None


def _share_of(core: str, kind: str) -> Callable[[Growth], float | None]:
    return lambda grown: share(grown, core, kind)


OBSERVER = Cpu()
