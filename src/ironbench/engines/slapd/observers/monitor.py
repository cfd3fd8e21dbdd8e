"""slapd's own counters in cn=Monitor. The counters show completed operations, active threads, and operations that wait
for a thread. Entries of cn=Threads contain current numbers of the thread pool as text (slapd-monitor(5))."""

from __future__ import annotations

from ironbench.engines.slapd import facts
from ironbench.errors import IronbenchError
from ironbench.host.tree import Tree
from ironbench.model.observation import Observation, Source
from ironbench.model.observer import Samples
from ironbench.model.points import Values, count_rate_of, gauge_series, growth, mean_within, points, rate_series, steps
from ironbench.model.session import Session

_OPERATIONS, _THREADS = "slapd_monitor.operations", "slapd_monitor.threads"
_POOL = "search cn=Threads,cn=Monitor?monitoredInfo?one"
_PERIOD_S = 0.25
_GAUGES = {"directory_threads_active": "active", "directory_operations_waiting": "pending"}


class SlapdMonitor:
    name = "slapd_monitor"
    doc = "slapd's operations by kind, busy threads, and operations that wait for a thread"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        each = (Source(_OPERATIONS, "sql", facts.OPERATIONS), Source(_THREADS, "sql", _POOL, _PERIOD_S))
        return tuple(source for source in each if _is_readable(session, source.target))

    def parse(self, samples: Samples, window_s: float) -> Observation:
        operations = points(samples.get(_OPERATIONS), _by_name)
        pool = points(samples.get(_THREADS), _by_name)
        metrics, series = {}, []
        if (grown := growth(operations, window_s)) is not None:
            each = steps(operations)
            for kind in (name for name in facts.KINDS if grown.by.get(name)):
                name = f"directory_operations_per_s{{operation={kind}}}"
                metrics[name] = grown.count_rate(kind)
                series.append(rate_series(name, each, count_rate_of(kind)))
        for name, key in _GAUGES.items():
            if (mean := mean_within(pool, key, window_s)) is not None:
                metrics[name] = mean
                series.append(gauge_series(name, pool, key))
        return Observation(metrics, tuple(series))


def _is_readable(session: Session, search: str) -> bool:
    try:
        return bool(session.query(search))
    except IronbenchError:
        return False


def _by_name(text: str) -> Values:
    """Parses rows, each with a DN and a number. Returns the numbers. The key is the value of the DN's first RDN in
    lower case. Skips rows without a number."""
    cells = (line.split("\t") for line in text.splitlines())
    pairs = ((cell[0].partition(",")[0].rpartition("=")[2].lower(), cell[1]) for cell in cells if len(cell) > 1)
    return {name: float(value) for name, value in pairs if value.isdigit()}


OBSERVER = SlapdMonitor()
