"""CPU time of the machine and of each core (proc_stat(5)), and its breakdown for a trial."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ironbench.host.tree import Tree
from ironbench.model.observation import Observation, Series, Source
from ironbench.model.observer import Samples
from ironbench.model.points import CounterGrowth, Values, growth, points, rate_of, rate_series, steps
from ironbench.model.record import Budget
from ironbench.model.session import Session
from ironbench.trial.observe import processes

STAT = "cpu.stat"
_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""The first eight fields of a line of /proc/stat. The fields after these are not used: they contain guest time, which
is already included in `user` and `nice`."""
SHARES = {
    "user": ("user", "nice"),
    "system": ("system", "irq", "softirq"),
    "iowait": ("iowait",),
    "steal": ("steal",),
    "idle": ("idle",),
    "irq": ("irq", "softirq"),
}
"""For each category of CPU time, the kernel's fields that belong to it. The category `irq` is a part of `system`. The
sum of the other categories is the total time."""


class CpuObserver:
    name = "cpu"
    doc = "CPU time by mode (user, system, idle, I/O wait, steal, interrupts), for the whole machine and for each core"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        return (Source(STAT, "file", "/proc/stat"),)

    def parse(self, samples: Samples, window_s: float) -> Observation:
        readings = points(samples.get(STAT), parse_stat)
        grown = growth(readings, window_s)
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
        return Observation(metrics, tuple(_series(steps(readings), cores)))


def _series(each: list[tuple[float, CounterGrowth]], cores: list[str]) -> list[Series]:
    series = [rate_series("context_switches_per_s", each, rate_of("switches"))]
    for core in ["cpu", *cores]:
        label = "" if core == "cpu" else f"{{core={core[3:]}}}"
        for kind in SHARES:
            series.append(rate_series(f"cpu_{kind}_share{label}", each, _share_of(core, kind)))
    return series


def parse_stat(text: str) -> Values:
    """Parses /proc/stat to `cpu.user`, `cpu3.idle` … in clock ticks, and `switches`."""
    values: Values = {}
    for line in text.splitlines():
        words = line.split()
        if words and words[0].startswith("cpu"):
            for field, ticks in zip(_FIELDS, words[1:], strict=False):
                values[f"{words[0]}.{field}"] = float(ticks)
        elif words and words[0] == "ctxt":
            values["switches"] = float(words[1])
    return values


def share(grown: CounterGrowth, core: str, *kinds: str) -> float | None:
    """Returns the fraction of a core's time (for `cpu`: of all cores) in these categories. Returns None if no time has
    passed."""
    total = sum(grown.by.get(f"{core}.{field}", 0.0) for field in _FIELDS)
    part = sum(grown.by.get(f"{core}.{field}", 0.0) for kind in kinds for field in SHARES[kind])
    return part / total if total > 0 else None


def _share_of(core: str, kind: str) -> Callable[[CounterGrowth], float | None]:
    return lambda grown: share(grown, core, kind)


_DIGITS = 5
"""Number of digits of a fraction, because records must be small and the kernel counts in hundredths of a second."""


@dataclass(frozen=True, slots=True)
class CpuSeconds:
    """CPU time measured separately from the kernel's totals, over the same window."""

    client: float = 0.0
    observers: float = 0.0
    emulation: float = 0.0
    relay: float = 0.0
    """CPU time of the relay that adds latency between clients and server."""
    library: float = 0.0
    """CPU time of the process in which a library engine runs, including client threads that call the engine, and the
    engine's own threads."""
    programs: float | None = None
    """CPU time of other programs, or None if some of them are not visible (in a container)."""


def budget(
    samples: Samples,
    window_s: float,
    ours: CpuSeconds,
    observer_pids: Iterable[int] = (),
) -> Budget | None:
    """Returns the breakdown of the time of all cores, as fractions that add up to 1. Returns None if /proc/stat was not
    sampled.

    `observer_pids`: server processes that answered the queries of ironbench's observers. The time of these processes
    counts as the observers' time.

    Time waiting for a device counts as idle. The known parts may exceed the busy time by a tick, because they come from
    other clocks. The known parts are scaled down in this case. The remaining busy time is split into `other`, the time
    of other programs, and the time of the kernel. If the time of other programs was not measured, `other` contains
    everything except interrupts.
    """
    grown = growth(points(samples.get(STAT), parse_stat), window_s)
    if grown is None or (idle := share(grown, "cpu", "idle", "iowait")) is None:
        return None
    steal = share(grown, "cpu", "steal") or 0.0
    busy = max(0.0, 1.0 - idle - steal)
    cores = len({key.partition(".")[0] for key in grown.by if key.startswith("cpu")} - {"cpu"}) or 1
    whole_s = cores * grown.span_s
    engine = processes.engine_growth(samples, window_s, frozenset(observer_pids))
    # The samples of the engine may cover a shorter time than those of the machine. CPU time is therefore computed from
    # the engine's rate and the length of the machine's samples.
    server_cpu_s = engine.rate("engine") * grown.span_s if engine else 0.0
    served_cpu_s = engine.rate("observers") * grown.span_s if engine else 0.0
    scale = grown.span_s / window_s / whole_s if window_s > 0 else 0.0
    known = {
        "server": server_cpu_s / whole_s + ours.library * scale,
        "client": ours.client * scale,
        "observers": ours.observers * scale + served_cpu_s / whole_s,
        "emulation": ours.emulation * scale,
        "relay": ours.relay * scale,
    }
    total = sum(known.values())
    if total > busy:
        known = {part: of_all * busy / total for part, of_all in known.items()}
    rest = max(0.0, busy - sum(known.values()))
    if ours.programs is not None:
        other = min(rest, ours.programs * scale)
    else:
        other = max(0.0, rest - (share(grown, "cpu", "irq") or 0.0))
    others = {"other": other, "steal": steal, "idle": max(0.0, 1.0 - busy - steal), "kernel": rest - other}
    return Budget(**{part: round(of_all, _DIGITS) for part, of_all in (known | others).items()})


OBSERVER = CpuObserver()
