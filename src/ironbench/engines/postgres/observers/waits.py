"""What PostgreSQL's client backends wait for, asked 20 times a second (pg_stat_activity, "Wait Event Tables").

An answer costs the server the more the more backends there are, so that the samples come further apart beyond
some 25 backends (`Source.backend_cost_s`); `wait_samples_per_s` says how often they came.

A backend that waits for nothing is working: `CPU` (or waits for a core: see `runqueue`). One that waits for its client
outside a transaction is counted apart, in `backends_idle`; in a transaction, `Client.ClientRead` is time the client
takes between two statements. Only backends of the driven database count, and neither the observers' own nor that of
ironbench itself.
"""

from __future__ import annotations

from ironbench.engines.postgres.observers.events import part_of_event
from ironbench.errors import IronbenchError
from ironbench.machine.tree import Tree
from ironbench.model.observation import Observation, Series, Source
from ironbench.model.observer import IDLE as _IDLE
from ironbench.model.observer import OnCores, Samples, Waits
from ironbench.model.points import Point, Values, by_file, gauge_series, growth, points
from ironbench.model.session import Session

_SOURCE = "pg_waits.activity"
_BACKENDS = "pg_waits.backends"
_SCHEDSTAT = "pg_waits.schedstat"
_PERIOD_S = 0.05
_COST_S = 200e-6
_BACKEND_COST_S = 8e-6
_MOST_COST = 0.008
"""CPU time of the server and ours for one answer, more of it for each backend, and the share of a core for all."""
_BACKENDS_PERIOD_S = 5.0
_SCHEDSTAT_PERIOD_S = 1.0
_SCHEDSTAT_COST_S = 1e-3
_PROCESS_COST_S = 25e-6
_SCHEDSTAT_MOST_COST = 0.002
"""CPU time to read the files of a usual machine's processes, and of each backend beside them."""
_SEEN_LEAST = 0.9
"""Share of the backends whose counts must be known."""
_IN_RECORD = 12
"""A record is small: it keeps the commonest waits, the series keep all."""
_WHO = (
    "from pg_stat_get_activity(null) "
    "where backend_type = 'client backend' and state is not null and pid not in (pg_backend_pid(), {ours}) "
    "and application_name is distinct from 'ironbench observer' "
    "and datid = (select oid from pg_database where datname = current_database())"
)
_SQL = (
    # The function under pg_stat_activity, without the view's joins to databases and roles: half the cost.
    # The state is copied for all backends first, the wait is read later, while rows are made: of two that disagree the
    # wait is the newer. An idle backend that waits for nothing sends its answer or reads the next message.
    "select case when wait_event_type is null then 'CPU' "
    "when wait_event = 'ClientRead' and state not like 'idle in%' then 'idle' "
    "else wait_event_type || '.' || wait_event end, count(*) " + _WHO + " group by 1"
)


class PgWaits:
    name = "pg_waits"
    doc = "What PostgreSQL's client backends wait for, 20 times a second"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        ours = _own_backend(session)
        activity = Source(_SOURCE, "sql", _SQL.format(ours=ours), _PERIOD_S, _COST_S, _BACKEND_COST_S, _MOST_COST)
        if not session.processes():
            return (activity,)
        who = Source(_BACKENDS, "sql", ("select pid " + _WHO).format(ours=ours), _BACKENDS_PERIOD_S)
        counts = Source(
            _SCHEDSTAT,
            "file",
            "/proc/*/schedstat",
            _SCHEDSTAT_PERIOD_S,
            _SCHEDSTAT_COST_S,
            _PROCESS_COST_S,
            _SCHEDSTAT_MOST_COST,
        )
        return (activity, who, counts)

    def waits(self, samples: Samples, window_s: float) -> Waits:
        return Waits(sampled(samples, window_s), counted(samples, window_s), part_of_event)

    def parse(self, samples: Samples, window_s: float) -> Observation:
        readings = points(samples.get(_SOURCE), _parse)
        inside = sampled(samples, window_s)
        if not inside:
            return Observation()
        mean = _means(inside)
        active = sum(value for event, value in mean.items() if event != _IDLE)
        metrics = {"backends_active": active, "backends_idle": mean.get(_IDLE, 0.0)}
        metrics["wait_samples_per_s"] = len(inside) / window_s
        shares = {event: value / active for event, value in mean.items() if event != _IDLE and active > 0}
        commonest = sorted(shares, key=lambda event: (-shares[event], event))[:_IN_RECORD]
        metrics |= {f"wait_share{{event={event}}}": shares[event] for event in commonest}
        return Observation(metrics, tuple(_series(readings)))


def sampled(samples: Samples, window_s: float) -> list[Point]:
    """Backends by wait event at every instant inside the window."""
    return [point for point in points(samples.get(_SOURCE), _parse) if 0.0 <= point.t_s <= window_s]


def counted(samples: Samples, window_s: float) -> OnCores | None:
    """What the kernel counted of the backends; None where it cannot be seen, or not of nearly all of them.

    A process id of another namespace would lead to a stranger, and a backend that came and went between two readings
    to nobody.
    """
    pids = {line for sample in samples.get(_BACKENDS, ()) for line in sample.raw.decode().split() if line.isdigit()}
    if not pids:
        return None

    def parse(text: str) -> Values:
        values: Values = {}
        for path, content in by_file(text).items():
            if (pid := path.split("/")[-2]) in pids and len(words := content.split()) > 1:
                values |= {f"{pid} cpu": float(words[0]), f"{pid} queue": float(words[1])}
        return values

    readings = points(samples.get(_SCHEDSTAT), parse)
    # The reading at the end of the window may come after the backends have gone.
    whole = [point for point in readings if len(point.values) / 2 >= _SEEN_LEAST * len(pids)]
    if (grown := growth(whole, window_s)) is None:
        return None
    summed = {kind: sum(ns for key, ns in grown.by.items() if key.endswith(kind)) for kind in ("cpu", "queue")}
    return OnCores(summed["cpu"] / 1e9 / grown.span_s, summed["queue"] / 1e9 / grown.span_s)


def _own_backend(session: Session) -> int:
    """The process that serves the session itself: idle during a trial, and no client."""
    try:
        return int(session.query("select pg_backend_pid()")[0][0] or 0)
    except (IronbenchError, ValueError, IndexError):
        return 0


def _means(readings: list[Point]) -> Values:
    events = {event for point in readings for event in point.values}
    return {event: sum(point.values.get(event, 0.0) for point in readings) / len(readings) for event in events}


def _series(readings: list[Point]) -> list[Series]:
    """Per second: 20 samples of a few backends say little one by one."""
    buckets: dict[int, list[Point]] = {}
    for point in readings:
        buckets.setdefault(int(point.t_s // 1.0), []).append(point)
    each = [Point(second + 0.5, _shared(_means(inside))) for second, inside in sorted(buckets.items())]
    keys = sorted({key for point in each for key in point.values})
    return [gauge_series(key, [Point(p.t_s, {key: 0.0} | p.values) for p in each], key) for key in keys]


def _shared(mean: Values) -> Values:
    active = sum(value for event, value in mean.items() if event != _IDLE)
    shares = {f"wait_share{{event={event}}}": v / active for event, v in mean.items() if event != _IDLE and active > 0}
    return {"backends_active": active, "backends_idle": mean.get(_IDLE, 0.0)} | shares


def _parse(text: str) -> Values:
    values: Values = {}
    for line in text.splitlines():
        event, _, count = line.rpartition("\t")
        if event:
            values[event] = float(count)
    return values or {_IDLE: 0.0}


OBSERVER = PgWaits()
