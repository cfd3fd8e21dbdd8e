"""Wait events of PostgreSQL's client backends, sampled 20 times a second (pg_stat_activity, "Wait Event Tables").

The cost of a sample grows with the number of backends. With more than about 25 backends, samples are therefore taken
less often (`Source.backend_cost_s`). `wait_samples_per_s` is the actual rate.

A backend without a wait event counts as `CPU`. Such a backend works or waits for a core (see `runqueue`). A backend
outside of a transaction that waits for its client counts in `backends_idle`. Inside a transaction, the time between two
statements counts as `Client.ClientRead`. Only backends of the database under test are counted. Backends of observers
and of ironbench's session are excluded.
"""

from __future__ import annotations

from ironbench.engines.postgres.observers.events import wait_class_of
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
"""Limits of the cost of sampling. `_COST_S` is the CPU time of server and observer for each sample, and
`_BACKEND_COST_S` is the additional CPU time for each backend. `_MOST_COST` is the maximum fraction of a core for all
samples."""
_BACKENDS_PERIOD_S = 5.0
_SCHEDSTAT_PERIOD_S = 1.0
_SCHEDSTAT_COST_S = 1e-3
_PROCESS_COST_S = 25e-6
_SCHEDSTAT_MOST_COST = 0.002
"""Limits of the cost of reading scheduler counters. `_SCHEDSTAT_COST_S` is the CPU time for the files of the processes
of a typical machine, and `_PROCESS_COST_S` is the additional CPU time for each backend. `_SCHEDSTAT_MOST_COST` is the
maximum fraction of a core."""
_WHO = (
    "from pg_stat_get_activity(null) "
    "where backend_type = 'client backend' and state is not null and pid not in (pg_backend_pid(), {ours}) "
    "and application_name is distinct from 'ironbench observer' "
    "and datid = (select oid from pg_database where datname = current_database())"
)
_SQL = (
    # The query uses the function behind pg_stat_activity. The view joins it with databases and roles, which would
    # double the cost. The function first copies the states of all backends, and later reads the wait event of each row.
    # If state and wait event contradict each other, the wait event is therefore newer. An idle backend without a wait
    # event is sending its answer or reading the next message.
    "select case when wait_event_type is null then 'CPU' "
    "when wait_event = 'ClientRead' and state not like 'idle in%' then 'idle' "
    "else wait_event_type || '.' || wait_event end, count(*) " + _WHO + " group by 1"
)


class PgWaits(SampledWaits):
    name = "pg_waits"
    doc = "Wait events of PostgreSQL's client backends, sampled up to 20 times per second"
    activity, backends, schedstat = _SOURCE, _BACKENDS, _SCHEDSTAT

    def wait_class(self, event: str) -> str:
        return wait_class_of(event)

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
    """Returns the process id of the session's own backend. This backend is idle during a trial and does not belong to a
    client."""
    try:
        return int(session.query("select pg_backend_pid()")[0][0] or 0)
    except (IronbenchError, ValueError, IndexError):
        return 0


OBSERVER = PgWaits()
