"""Root blockers of backends that wait for locks (PostgreSQL 18 documentation, 9.27, pg_blocking_pids).

The backend that holds a lock may itself wait for another lock. The root of such a chain is the first backend that waits
for no lock. All other backends in the chain wait for its work. `pg_blocking_pids` briefly locks the whole lock table.
Therefore only a few waiting backends are followed, once a second, and less often if there are many backends.
"""

from __future__ import annotations

from ironbench.engines.postgres.observers.catalog import has_relation
from ironbench.host.tree import Tree
from ironbench.model.observation import Observation, Source
from ironbench.model.observer import IDLE, Samples
from ironbench.model.points import Values, points
from ironbench.model.session import Session

_SOURCE = "pg_blocking.chains"
_PERIOD_S = 1.0
_COST_S = 0.5e-3
_BACKEND_COST_S = 10e-6
FOLLOWED = 4
"""Number of waiting backends followed per sample, chosen at random."""
LONGEST = 16
"""Maximum length of a chain of lock waits. A longer chain is a deadlock that the server has not yet detected."""
ENDED = "ended"
DEADLOCK = "deadlock"
_IN_RECORD = 5
_SQL = f"""
with recursive seen as materialized (
    select pid, wait_event_type, wait_event, state, datid from pg_stat_get_activity(null)
), waiting as materialized (
    select pid from seen where wait_event_type = 'Lock'
       and datid = (select oid from pg_database where datname = current_database())
     order by random() limit {FOLLOWED}
), chain (waiter, pid, step) as (
    select pid, pid, 0 from waiting
    union all
    select chain.waiter, (pg_blocking_pids(chain.pid))[1], step + 1
      from chain join seen using (pid)
     where seen.wait_event_type = 'Lock' and step < {LONGEST}
), root as (
    select distinct on (waiter) waiter, pid, step from chain where step > 0 and pid is not null
     order by waiter, step desc
), held as materialized (
    select pid, relation, locktype = 'tuple' or not granted as waited
      from pg_locks
     where exists (select from waiting) and pid in (select pid from waiting) and relation is not null
       and (locktype = 'tuple' or not granted or mode in ('RowShareLock', 'RowExclusiveLock'))
), wanted as (
    select pid, coalesce(
               min(relation) filter (where waited),
               min(relation) filter (where relkind in ('r', 'm')
                   and not exists (select from held as more join pg_class as c on c.oid = more.relation
                                    where more.pid = held.pid and c.relkind in ('r', 'm')
                                      and c.oid <> held.relation)))::regclass::text as name
      from held join pg_class on pg_class.oid = relation
     group by pid
)
select coalesce(wanted.name, ''), root.step,
       case when seen.wait_event_type is null then 'CPU'
            when seen.wait_event = 'ClientRead' and seen.state not like 'idle in%' then 'idle'
            else seen.wait_event_type || '.' || seen.wait_event end
  from root join seen on seen.pid = root.pid left join wanted on wanted.pid = root.waiter
"""


class PgBlocking:
    name = "pg_blocking"
    doc = "PostgreSQL backends that block other backends: the root of each chain of lock waits"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        if not has_relation(session, "pg_locks"):
            return ()
        return (Source(_SOURCE, "sql", " ".join(_SQL.split()), _PERIOD_S, _COST_S, _BACKEND_COST_S),)

    def parse(self, samples: Samples, window_s: float) -> Observation:
        taken = [sample for sample in samples.get(_SOURCE, ()) if 0.0 <= sample.t_s <= window_s]
        readings = points(taken, _parse)
        total: Values = {}
        for point in readings:
            for key, value in point.values.items():
                total[key] = total.get(key, 0.0) + value
        chains = total.pop("chains", 0.0)
        steps = total.pop("steps", 0.0)
        if not chains:
            return Observation()
        metrics = {"lock_chain_length": steps / chains}
        for kind, metric in (("event", "lock_root_share"), ("table", "lock_table_share")):
            counts = {key: value for key, value in total.items() if key.startswith(f"{kind}=")}
            for key in sorted(counts, key=lambda key: (-counts[key], key))[:_IN_RECORD]:
                metrics[f"{metric}{{{key}}}"] = counts[key] / chains
        return Observation(metrics)


def _parse(text: str) -> Values:
    """Returns the number of chains, their total length, and how often each table and each state of a root occurred.

    A backend may wait for the end of another transaction. Such a wait does not show the table. If the backend is
    changing only one table, this table is counted.
    """
    values: Values = {}

    def add(key: str, amount: float) -> None:
        values[key] = values.get(key, 0.0) + amount

    for line in text.splitlines():
        table, step, event = line.split("\t")
        # The server follows a chain shortly after reading the states. In the meantime, the blocking may have ended. The
        # root is then between two transactions, or it waits for a lock that no backend holds.
        if event == IDLE or event.startswith("Lock."):
            event = DEADLOCK if int(step) >= LONGEST else ENDED
        add("chains", 1.0)
        add("steps", float(step))
        add(f"event={event}", 1.0)
        if table:
            add(f"table={table}", 1.0)
    return values


OBSERVER = PgBlocking()
