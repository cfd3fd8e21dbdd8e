"""What observers ask for, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ironbench.model.note import Note


@dataclass(frozen=True, slots=True)
class Source:
    """One thing that a sampling thread of the core reads at a fixed period, raw."""

    name: str
    """`observer.part`, e.g. `cpu.stat`."""
    kind: str
    """`file` (target: path; `*` allowed, files joined as `==> path\\n`) or `sql` (target: one statement).

    `request`: a statement that does something, on a connection of its own, so that it delays no sample.
    """
    target: str
    period_s: float = 1.0
    """The shortest; a source that would cost too much with many backends is read less often."""
    cost_s: float = 0.0
    """CPU time of one reading, where it is known, with no backend …"""
    backend_cost_s: float = 0.0
    """… and more for each backend."""
    most_cost: float = 0.008
    """Share of a core that reading it may cost by the figures above; less than the 1 % promised, as they vary."""


@dataclass(frozen=True, slots=True)
class Sample:
    """`raw` as read `t_s` after the start of the measured window (negative during warm-up).

    The raw bytes of a `sql` source are rows of tab-separated values, one per line, NULL as `\\N`.
    """

    t_s: float
    raw: bytes


@dataclass(frozen=True, slots=True)
class Series:
    """One quantity over time: `t_s[i]`, `value[i]`; unit and meaning by the metric of the same name."""

    name: str
    t_s: tuple[float, ...]
    value: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """How often one quantity had which value during the measured window."""

    name: str
    """As a metric's, e.g. `device_read_latency_s{role=data}`; unit and meaning by that."""
    edges: tuple[float, ...]
    """Upper ends of the buckets that counted something, ascending."""
    counts: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Observation:
    """What one observer makes of its samples."""

    metrics: dict[str, float] = field(default_factory=dict)
    series: tuple[Series, ...] = ()
    counted: tuple[Counted, ...] = ()
    late: Mapping[str, float] = field(default_factory=dict)
    """Metrics and series made of what the server publishes late → by up to how many seconds, while clients work."""
    withheld: Note | None = None
    """Why those were left out; None: they were not."""
