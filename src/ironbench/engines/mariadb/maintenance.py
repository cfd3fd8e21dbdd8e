"""Operations on a MariaDB that is in use: backups by mariadb-backup, OPTIMIZE TABLE, index builds.

Backups: manual, "Full Backup and Restore with mariadb-backup"; it reads the server's files and so runs beside it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from ironbench.engines.maintenance import Backup, IndexState, TableState
from ironbench.engines.mariadb import home as homes
from ironbench.engines.mariadb import installation
from ironbench.errors import InputError, written
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import System
from ironbench.process import place
from ironbench.process.programs import Program

_BACKUP = "mariadb-backup"
_CANNOT = {
    "format": ("plain", "discard"),
    "checkpoint": ("fast",),
    "rate": ("0",),
}
"""Option of a backup → its values that this program knows; to it a rate is a number of chunks."""


class MariadbMaintaining:
    vacuums: Mapping[str, str] = {"full": "optimize table {}"}
    """InnoDB takes dead rows away by itself (purge), and nothing of it is ever frozen."""
    index_builds: Mapping[str, str] = {
        "off": "create index {} on {} (amount, number) lock = shared",
        "on": "create index {} on {} (amount, number) lock = none",
    }
    index_removal = "drop index if exists {} on {}"
    restorable = "plain"

    def require_backup(self, system: System, options: Mapping[str, str]) -> None:
        if system.dsn is not None:
            cause = f"{_BACKUP} reads the files of a server, and those of a running one are out of reach"
            raise InputError(written("system.dsn"), cause, "leave it out: ironbench then starts a server of its own")
        for name, known in _CANNOT.items():
            if options.get(name, known[0]) not in known:
                subject = written("workload.with", f"{name}={options[name]}")
                raise InputError(subject, f"{_BACKUP} has no such backup", f"use {name}={' or '.join(known)}")
        _program(system)

    def backup_bytes(self, session: Session) -> int:
        rows = session.query("select sum(file_size) from information_schema.innodb_sys_tablespaces")
        return int(rows[0][0] or 0)

    def backup(self, system: System, session: Session, backup: Backup) -> Program:
        options = homes.of(system.layout, installation.find(system.settings.get("bin"))).options
        socket = session.target()["connection"]["socket"]
        words = [str(_program(system)), f"--defaults-file={options}", "--backup", "--user=root", f"--socket={socket}"]
        # A stream of which nobody keeps anything: standard output of a program is not read.
        aside = backup.folder.with_name(f"{backup.folder.name}.discarded")
        to = ["--stream=xbstream", f"--target-dir={aside}"] if backup.format == "discard" else [_into(backup.folder)]
        return Program([*words, *to], homes.environment())

    def verified(self, system: System, folder: Path) -> Check:
        """The program has no manifest: it notes at its end how far the copy of the log came."""
        notes = (folder / f"{name}_checkpoints" for name in ("mariadb_backup", "xtrabackup"))
        text = next((path.read_text() for path in notes if path.is_file()), "")
        known = dict(line.split(" = ") for line in text.splitlines() if " = " in line)
        kind = known.get("backup_type", "none")
        return Check("the program notes a complete backup", kind == "full-backuped", "full-backuped", kind)

    def unpack(self, backup: Path, data: Path) -> Sequence[Program]:
        """The log is applied to the copied files first; then they are a server's."""
        files = place.claim(str(data), "data") / "files"
        files.mkdir(mode=0o700)
        homes.write_note(files, {"version": installation.find().major})
        prepare = [shutil.which(_BACKUP) or _BACKUP, "--prepare", _into(backup)]
        copy = ["cp", "--archive", f"{backup}/.", str(files)]
        return [Program(prepare, homes.environment()), Program(copy, dict(os.environ))]

    def litter(self, session: Session, table: str, percent: int) -> None:
        """Rows move to the other end of their table and back, which leaves empty pages behind."""
        for sign in (">", "<"):
            session.query(f"update {table} set id = -id where number % 100 < {percent} and id {sign} 0")

    def packed_pages(self, rows: int, row_bytes: int) -> int:
        """Of 16 kB, fifteen sixteenths full; a row has a header, a transaction's id and where its last version is."""
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


def _into(folder: Path) -> str:
    return f"--target-dir={folder}"


def _program(system: System) -> Path:
    """Beside the server, or on PATH. InputError."""
    beside = installation.find(system.settings.get("bin")).server.with_name(_BACKUP)
    found = beside if beside.is_file() else shutil.which(_BACKUP)
    if found is None:
        raise InputError(_BACKUP, "is not on PATH", "install it: `apt install mariadb-backup`")
    return Path(found)
