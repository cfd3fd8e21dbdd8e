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
from ironbench.engines.sampled_waits import SampledWaits
from ironbench.errors import IronbenchError
from ironbench.host.tree import Tree
from ironbench.model.observation import Source
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


class PgWaits(SampledWaits):
    name = "pg_waits"
    doc = "What PostgreSQL's client backends wait for, up to 20 times a second"
    activity, backends, schedstat = _SOURCE, _BACKENDS, _SCHEDSTAT

    def part_of(self, event: str) -> str:
        return part_of_event(event)

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


def _own_backend(session: Session) -> int:
    """The process that serves the session itself: idle during a trial, and no client."""
    try:
        return int(session.query("select pg_backend_pid()")[0][0] or 0)
    except (IronbenchError, ValueError, IndexError):
        return 0


OBSERVER = PgWaits()
