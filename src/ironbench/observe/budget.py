"""Where the machine's CPU time went in the measured window."""

from __future__ import annotations

from collections.abc import Iterable

from ironbench.model.observer import Samples
from ironbench.model.points import growth, points
from ironbench.model.record import Budget
from ironbench.observe import cpu, processes

_DIGITS = 5
"""A record stays small, and the kernel counts in hundredths of a second."""


def budget(
    samples: Samples,
    window_s: float,
    client_cpu_s: float,
    observer_cpu_s: float,
    emulation_cpu_s: float = 0.0,
    observer_pids: Iterable[int] = (),
    library_cpu_s: float = 0.0,
    programs_cpu_s: float | None = None,
) -> Budget | None:
    """Shares of all cores' time, summing to 1; None when /proc/stat was not sampled.

    `client_cpu_s`, `observer_cpu_s` and `emulation_cpu_s`: CPU seconds of our threads over the same window.
    `observer_pids`: server processes that answered our observers; their time is the observers', not the server's.
    `library_cpu_s`: CPU seconds of client threads inside which the engine itself works.
    `programs_cpu_s`: CPU seconds of other programs; None where some of them are out of sight (in a container).
    Waiting for a device is idle time. Clocks differ by a tick here and there: where the known parts exceed what ran,
    they are scaled down to it. Of the rest, `other` is what other programs used, or where that was not counted all but
    interrupts; what is left is the kernel's.
    """
    grown = growth(points(samples.get(cpu.STAT), cpu.parse_stat), window_s)
    if grown is None or (idle := cpu.share(grown, "cpu", "idle", "iowait")) is None:
        return None
    steal = cpu.share(grown, "cpu", "steal") or 0.0
    busy = max(0.0, 1.0 - idle - steal)
    cores = len({key.partition(".")[0] for key in grown.by if key.startswith("cpu")} - {"cpu"}) or 1
    whole_s = cores * grown.span_s
    engine = processes.engine_growth(samples, window_s, frozenset(observer_pids))
    # The engine's readings may span a shorter time than the machine's: rates make them comparable.
    server_cpu_s = engine.rate("engine") * grown.span_s if engine else 0.0
    served_cpu_s = engine.rate("observers") * grown.span_s if engine else 0.0
    scale = grown.span_s / window_s / whole_s if window_s > 0 else 0.0
    known = {
        "server": server_cpu_s / whole_s + library_cpu_s * scale,
        "client": client_cpu_s * scale,
        "observers": observer_cpu_s * scale + served_cpu_s / whole_s,
        "emulation": emulation_cpu_s * scale,
    }
    total = sum(known.values())
    if total > busy:
        known = {part: share * busy / total for part, share in known.items()}
    rest = max(0.0, busy - sum(known.values()))
    if programs_cpu_s is not None:
        other = min(rest, programs_cpu_s * scale)
    else:
        other = max(0.0, rest - (cpu.share(grown, "cpu", "irq") or 0.0))
    others = {"other": other, "steal": steal, "idle": max(0.0, 1.0 - busy - steal), "kernel": rest - other}
    return Budget(**{part: round(share, _DIGITS) for part, share in (known | others).items()})
