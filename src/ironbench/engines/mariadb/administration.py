"""Operations on a running MariaDB before, during and after a trial, and its counters."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from ironbench.engines.administration import (
    DATABASES,
    MARK,
    REQUEST,
    Administration,
    MarkedObjects,
    ServerLocation,
    WriteCounters,
)
from ironbench.engines.dialect import listed
from ironbench.engines.examination import Examination
from ironbench.engines.mariadb import copies, existing_server, facts
from ironbench.engines.mariadb.copies import quoted
from ironbench.engines.mariadb.dialect import CHECKPOINT, TABLES
from ironbench.engines.mariadb.insight import MariadbInsight
from ironbench.engines.mariadb.maintenance import MariadbMaintaining
from ironbench.engines.mariadb.session import MariadbSession
from ironbench.errors import FailureError
from ironbench.host.tree import Tree
from ironbench.model.digest import Digests, Wait
from ironbench.model.observation import Source
from ironbench.model.session import Session

_ROUTINE = re.compile(r"create (?:or replace )?(?:function|procedure) (\w+)", re.IGNORECASE)
_TABLES = f"""
    select table_name, coalesce(data_length + index_length, 0) from information_schema.tables
     where table_schema = database() and table_type in {TABLES} and table_comment = '{MARK}' order by table_name
"""
_ROUTINES = f"""
    select concat(routine_type, ' ', routine_name) from information_schema.routines
     where routine_schema = database() and routine_comment = '{MARK}' order by 1
"""
_FOREIGN = f"""
    select routine_name from information_schema.routines
     where routine_schema = database() and routine_name in ({{names}}) and routine_comment <> '{MARK}' order by 1
"""
_OTHERS = """
    select id from information_schema.processlist
     where db = database() and id <> connection_id() and user = substring_index(current_user(), '@', 1)
"""
_REFERENCES = """
    select constraint_schema = database(), table_name, referenced_table_name
      from information_schema.referential_constraints
     where unique_constraint_schema = database() and referenced_table_name in ({names})
     order by constraint_schema, table_name
"""
_LEAVING_S = 3.0
_INDEXES = """
    select table_name, index_name from information_schema.statistics
     where table_schema = database() and seq_in_index = 1 and index_type = 'BTREE' {which}
     order by table_name, index_name <> 'PRIMARY', index_name
"""


def _using(session: Session, made: MarkedObjects) -> list[tuple[str, str]]:
    """Returns other connections that use objects to be removed, each with its database and connection id. In the
    session's database, these are connections of this user. In databases that ironbench created, these are connections
    of any user."""
    users = [(made.database, str(row[0])) for row in session.query(_OTHERS)]
    if made.databases:
        rows = session.query(
            "select db, id from information_schema.processlist where id <> connection_id() "
            f"and db in ({listed(list(made.databases))})"
        )
        users += [(str(name), str(number)) for name, number in rows]
    return users


def _drop(session: Session, tables: Collection[str]) -> None:
    """Drops the tables. If a table that is not among them references one of them, raises FailureError and drops
    nothing."""
    inside: list[tuple[str, str]] = []
    for here, child, parent in session.query(_REFERENCES.format(names=listed(list(tables)))):
        if here != "1" or child not in tables:
            cause = f"referenced by a foreign key of table {child}, which ironbench did not create"
            raise FailureError(f"table {parent}", cause, "drop the foreign key first")
        inside.append((child or "", parent or ""))
    session.query(f"drop table {', '.join(in_order(tables, inside))}")


def in_order(tables: Iterable[str], references: Iterable[tuple[str, str]]) -> list[str]:
    """Sorts tables so that each comes before the tables that it references. The server drops tables one by one, and
    refuses to drop a table while another one references it. `references`: pairs of a table and a table that it
    references."""
    order: TopologicalSorter[str] = TopologicalSorter()
    for name in tables:
        order.add(name)
    for child, parent in references:
        if child != parent:
            order.add(parent, child)
    try:
        return list(order.static_order())
    except CycleError:
        return list(tables)  # tables with circular references: the server decides whether it can drop them


class MariadbAdministration(Administration):
    maintaining = MariadbMaintaining()
    marks = True
    insight = MariadbInsight()
    paces_existing_server = False
    """A full checkpoint needs settings that only a server started by ironbench has."""

    @property
    def digests(self) -> Callable[[Session, float, bool, Wait], Digests]:
        from ironbench.engines.mariadb.digests import watch

        return watch

    @property
    def examination(self) -> Examination:
        from ironbench.engines.mariadb.probes import EXAMINATION

        return EXAMINATION

    def mark(self, session: Session, tables: Sequence[str]) -> None:
        for table in tables:
            session.query(f"alter table {table} comment = '{MARK}'")

    def marked(self, statement: str) -> str:
        names = _ROUTINE.findall(statement)
        kind = "function" if re.search(r"\bfunction\b", statement, re.IGNORECASE) else "procedure"
        return "; ".join([statement, *(f"alter {kind} {name} comment '{MARK}'" for name in names)])

    def unmarked_routines(self, session: Session, statements: Sequence[str]) -> Sequence[str]:
        names = [name for statement in statements for name in _ROUTINE.findall(statement)]
        return [row[0] or "" for row in session.query(_FOREIGN.format(names=listed(names)))] if names else []

    def made(self, session: Session) -> MarkedObjects:
        ((database, server),) = session.query("select database(), concat_ws(' ', @@hostname, @@port, @@datadir)")
        databases = copies.made(session)
        return MarkedObjects(
            database or "",
            {name or "": int(size or 0) for name, size in session.query(_TABLES)},
            tuple(row[0] or "" for row in session.query(_ROUTINES)),
            server or "",
            {name: size for name, (size, _) in databases.items()},
            {name: key for name, (_, key) in databases.items() if key},
        )

    def remove_made(self, session: Session) -> MarkedObjects:
        made = self.made(session)
        # The connection of a killed client ends only when the client's current statement ends.
        deadline = time.monotonic() + _LEAVING_S
        while (busy := _using(session, made)) and time.monotonic() < deadline:
            time.sleep(0.1)
        for name, number in busy:
            cause = f"in use by connection {number}, possibly of another ironbench process"
            raise FailureError(f"database {name}", cause, "wait until that connection is closed")
        if made.tables:
            _drop(session, made.tables)
        for routine in made.routines:
            session.query(f"drop {routine}")
        for name in made.databases:
            copies.drop(session, name)
        return made

    def require_rights(self, session: Session, needs: Collection[tuple[str, str]]) -> None:
        for subject, name in needs:
            if name == DATABASES and isinstance(session, MariadbSession):
                copies.require_databases(session, subject, session.role)

    def locate(self, session: Session, machine: Tree) -> ServerLocation:
        return existing_server.locate(session, machine)

    def warm(self, session: Session, tables: tuple[str, ...]) -> str:
        """Reads every index in key order. The primary key contains the rows, so this also reads the rows."""
        which = f"and table_name in ({listed(tables)})" if tables else ""
        done = 0
        for table, index in session.query(_INDEXES.format(which=which)):
            session.query(f"select count(*) from {quoted(table or '')} force index ({quoted(index or '')})")
            done += 1
        return f"{done} indexes read in key order"

    def hits(self, session: Session) -> Mapping[str, int]:
        known = facts.read_counters(session.query)
        return {"hit": known["pages_hit"] - known["pages_read"], "read": known["pages_read"]}

    def pace_checkpoints(
        self, session: Session, interval_s: float, own: bool, by_clock: bool = True
    ) -> tuple[tuple[Source, ...], Mapping[str, str]]:
        """Requests full checkpoints. InnoDB itself only makes fuzzy checkpoints: it flushes pages continuously and
        records its progress. A full checkpoint, with its burst of writes, happens only on request."""
        if not own:
            return (), {"checkpoints": "timed by the server"}
        session.query(CHECKPOINT)
        how = f"one checkpoint requested every {interval_s:.3g} s (all dirty pages, at innodb_io_capacity_max)"
        return (Source(REQUEST, "request", CHECKPOINT, interval_s),), {"checkpoints": how}

    def clients(self, session: Session) -> int:
        return len(session.query(_OTHERS))

    def written(self, session: Session) -> WriteCounters | None:
        """Returns the write counters. Sources: manual, "InnoDB Server Status Variables" and "Information Schema
        INNODB_METRICS Table"."""
        known = facts.status(session.query)
        lsn = known.get("INNODB_LSN_CURRENT", "")
        if not lsn.isdigit():
            return None
        rows = session.query("select count from information_schema.innodb_metrics where name = 'log_checkpoints'")
        page = int(session.query("select @@global.innodb_page_size")[0][0] or 0)
        flushed = int(known.get("INNODB_BUFFER_POOL_PAGES_FLUSHED", "0")) * page
        return WriteCounters(int(lsn), int(known.get("INNODB_LOG_WRITES", "0")), int(rows[0][0] or 0), flushed)

    def log_since_checkpoint(self, session: Session, log_bytes: int) -> int:
        return max(0, log_bytes - int(facts.status(session.query).get("INNODB_LSN_LAST_CHECKPOINT", "0")))
