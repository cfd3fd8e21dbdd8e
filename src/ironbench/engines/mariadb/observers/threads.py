"""States of the threads that serve clients, sampled 20 times a second (information_schema.processlist).

The state of a thread is a step of its statement, not a wait event. Three waits can be recognised nevertheless. In
`commit`, the log is written and flushed. For `row lock`, InnoDB counts the waiting threads. The number of pending reads
gives `data read`. All other states count as `CPU`, including short waits for latches.
"""

from __future__ import annotations

from ironbench.engines.sampled_waits import SampledWaits
from ironbench.errors import IronbenchError
from ironbench.host.tree import Tree
from ironbench.model.observation import Source
from ironbench.model.observer import (
    CLIENT,
    CPU,
    DATA_READ,
    IDLE,
    INTERNAL_LOCKS,
    LOCKS,
    LOG_FLUSH,
    OTHER,
    WORKING,
)
from ironbench.model.points import Values
from ironbench.model.session import Session

_SOURCE, _BACKENDS, _SCHEDSTAT = "threads.states", "threads.ids", "threads.schedstat"
_PERIOD_S = 0.05
_COST_S = 250e-6
_BACKEND_COST_S = 8e-6
_IDS_PERIOD_S = 5.0
_SCHEDSTAT_COST_S = 0.5e-3
_THREAD_COST_S = 25e-6
COMMIT, ROW_LOCK, READ = "commit", "row lock", "data read"
_WHO = (
    "from information_schema.processlist where db = database() and id not in (connection_id(), {ours}) "
    # A session that requests a checkpoint sleeps until the checkpoint is complete. It is excluded, and recognised by
    # its state. Its statement text would also identify it, but reading that column creates a temporary table on disk.
    "and coalesce(state, '') <> 'User sleep'"
)
_SQL = (
    "select case when command = 'Sleep' then 'idle' when state = 'Commit' then 'commit' "
    "when state like 'Waiting %' or state in ('Reading from net', 'Writing to net', 'Opening tables') then state "
    "else 'CPU' end, count(*) " + _WHO + " group by 1 "
    "union all select 'row lock', variable_value from information_schema.global_status "
    "where variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS' "
    "union all select 'data read', variable_value from information_schema.global_status "
    "where variable_name = 'INNODB_DATA_PENDING_READS'"
)
_PARTS = {
    IDLE: CLIENT,
    WORKING: CPU,
    COMMIT: LOG_FLUSH,
    ROW_LOCK: LOCKS,
    READ: DATA_READ,
    "Reading from net": CLIENT,
    "Writing to net": CLIENT,
    "Opening tables": INTERNAL_LOCKS,
}
HOLDER = {WORKING: "runs without a known wait", COMMIT: "flushes the redo log", READ: "reads data pages"}
"""For each state, what the holder of a lock is doing in this state (`Traits.events`)."""


def wait_class_of(event: str) -> str:
    """Returns the wait class of a thread's state. The observer determines the name of the state."""
    if event.startswith("Waiting for") and event.endswith("lock"):
        return LOCKS
    return _PARTS.get(event, OTHER)


class ThreadStates(SampledWaits):
    name = "threads"
    doc = "Activity of MariaDB's client threads, sampled up to 20 times per second"
    activity, backends, schedstat = _SOURCE, _BACKENDS, _SCHEDSTAT

    def wait_class(self, event: str) -> str:
        return wait_class_of(event)

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        try:
            ours = int(session.query("select connection_id()")[0][0] or 0)
            session.query(_SQL.format(ours=ours))
        except (IronbenchError, ValueError, IndexError):
            return ()
        activity = Source(_SOURCE, "sql", _SQL.format(ours=ours), _PERIOD_S, _COST_S, _BACKEND_COST_S)
        pids = session.processes()
        if not pids:
            return (activity,)
        who = Source(_BACKENDS, "sql", ("select tid " + _WHO).format(ours=ours), _IDS_PERIOD_S)
        path = f"/proc/{pids[0]}/task/*/schedstat"
        return (activity, who, Source(_SCHEDSTAT, "file", path, 1.0, _SCHEDSTAT_COST_S, _THREAD_COST_S, 0.002))

    def parsed(self, text: str) -> Values:
        """Parses a sample. Threads that wait for a row lock or a read are not counted as working threads.

        The number of pending reads may be larger than the number of waiting threads, because no thread waits for
        read-ahead. The number of waits is therefore limited to the number of working threads.
        """
        values = super().parsed(text)
        working = values.get(WORKING, 0.0)
        for event in (ROW_LOCK, READ):
            inside = min(values.pop(event, 0.0), working)
            working -= inside
            if inside:
                values[event] = inside
        return values | ({WORKING: working} if WORKING in values else {})


OBSERVER = ThreadStates()
