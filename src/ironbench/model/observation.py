"""The sources that observers request, and the results of sampling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ironbench.model.note import Note


@dataclass(frozen=True, slots=True)
class Source:
    """A data source that one of the core's sampling threads reads at a fixed period without parsing the data."""

    name: str
    """Name of the source in the form `observer.part`, such as `cpu.stat`."""
    kind: str
    """Kind of the source. `file`: the target is a path that may contain `*`; the content of each file follows a line
    `==> path`. `sql`: the target is one statement. `request`: the target is a statement with an effect, which is sent
    on a separate connection so that it does not delay samples.
    """
    target: str
    period_s: float = 1.0
    """Minimum period in seconds. A source is read less often if reading it is expensive, for example because there are
    many backends."""
    cost_s: float = 0.0
    """CPU time of one reading without backends, in seconds. 0 if unknown."""
    backend_cost_s: float = 0.0
    """Additional CPU time of one reading for each backend, in seconds."""
    most_cost: float = 0.008
    """Maximum fraction of a core that reading this source may use, according to the costs above. The value is below the
    promised 1%, because real costs vary."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A reading of a source: `raw` bytes, read `t_s` seconds after the start of the measured window (negative during
    warm-up).

    The raw bytes of a `sql` source are rows of tab-separated values, one per line, NULL as `\\N`.
    """

    t_s: float
    raw: bytes


@dataclass(frozen=True, slots=True)
class Series:
    """A time series of one quantity: `value[i]` at `t_s[i]`. The metric of the same name defines unit and meaning."""

    name: str
    t_s: tuple[float, ...]
    value: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """Histogram of one quantity inside the measured window."""

    name: str
    """Name of the metric that defines unit and meaning, such as `device_read_latency_s{role=data}`."""
    edges: tuple[float, ...]
    """Upper bounds of the non-empty buckets, ascending."""
    counts: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Observation:
    """Metrics and series that one observer computes from its samples."""

    metrics: dict[str, float] = field(default_factory=dict)
    series: tuple[Series, ...] = ()
    counted: tuple[Counted, ...] = ()
    late: Mapping[str, float] = field(default_factory=dict)
    """Metrics and series that are computed from delayed statistics of the server. For each of them, the maximum delay
    in seconds while clients work."""
    withheld: Note | None = None
    """Why delayed metrics were left out, or None if they are included."""


NOT_OBSERVED = Observation()
