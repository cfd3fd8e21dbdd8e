"""Maintenance operations on a MariaDB in use: backups, OPTIMIZE TABLE, index builds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ironbench.engines.maintenance import BackupRequest, IndexState, TableState
from ironbench.engines.mariadb import backups
from ironbench.host.programs import Program
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import System


class MariadbMaintaining:
    vacuums: Mapping[str, str] = {"full": "optimize table {}"}
    """Statement for each kind of vacuum. InnoDB removes old row versions in the background (purge), and needs no
    freezing."""
    index_builds: Mapping[str, str] = {
        "off": "create index {} on {} (amount, number) lock = shared",
        "on": "create index {} on {} (amount, number) lock = none",
    }
    index_removal = "drop index if exists {} on {}"
    restorable = "plain"

    def require_backup(self, system: System, options: Mapping[str, str]) -> None:
        backups.require(system, options)

    def tool(self, system: System) -> str:
        return backups.version(system)

    def backup_bytes(self, session: Session) -> int:
        rows = session.query("select sum(file_size) from information_schema.innodb_sys_tablespaces")
        return int(rows[0][0] or 0)

    def backup(self, system: System, session: Session, backup: BackupRequest) -> Program:
        return backups.tool(system).backup(system, session, backup)

    def verified(self, system: System, folder: Path) -> Check:
        return backups.tool(system).verified(folder)

    def unpack(self, system: System, backup: Path, data: Path) -> Sequence[Program]:
        return backups.tool(system).unpack(system, backup, data)

    def replayed(self, system: System, session: Session, backup: Path) -> Program | None:
        return backups.tool(system).replayed(system, session, backup)

    def make_dead_tuples(self, session: Session, table: str, percent: int) -> None:
        """Creates dead tuples by moving rows to the other end of their table and back. This leaves empty pages."""
        for sign in (">", "<"):
            session.query(f"update {table} set id = -id where number % 100 < {percent} and id {sign} 0")

    def packed_pages(self, rows: int, row_bytes: int) -> int:
        """Returns the number of pages that the rows need. Pages have 16 kB and are 15/16 full. A row has a header, a
        transaction id and a roll pointer."""
        return -(-rows // (15_000 // (row_bytes + 24)))

    def table_state(self, session: Session, table: str) -> TableState:
        session.query(f"analyze table {table}")
        of = f"from mysql.innodb_index_stats where database_name = database() and table_name = '{table}'"
        [(pages, size)] = session.query(
            f"select (select max(stat_value) {of} and index_name = 'PRIMARY' and stat_name = 'n_leaf_pages'), "
            f"(select sum(stat_value) {of} and stat_name = 'size') * @@innodb_page_size"
        )
        return TableState(int(size or 0), int(pages or 0), 0)

    def index_state(self, session: Session, table: str, index: str) -> IndexState:
        size = self.table_state(session, table).bytes
        [(own, valid, entries)] = session.query(
            "select (select stat_value * @@innodb_page_size from mysql.innodb_index_stats where stat_name = 'size' "
            f"and database_name = database() and table_name = '{table}' and index_name = '{index}'), "
            "(select count(distinct index_name) from information_schema.statistics where table_schema = database() "
            f"and table_name = '{table}' and index_name = '{index}'), "
            f"(select count(*) from {table} force index ({index}))"
        )
        return IndexState(size - int(own or 0), int(own or 0), valid == "1", int(entries or 0))
