"""Maintenance operations on a PostgreSQL in use: base backups, vacuums, index builds.

Source for backups: PostgreSQL 18 documentation, 25.3.2, pg_basebackup and pg_verifybackup.
"""

from __future__ import annotations

import json
import os
import re
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ironbench.engines.maintenance import BackupRequest, IndexState, TableState, answering
from ironbench.engines.postgres import dsn, dumps, facts, installation
from ironbench.errors import FailureError, InputError, shortened, written
from ironbench.host import data_dirs, programs
from ironbench.host.programs import Program
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import System

_BACKUP, _VERIFY = "pg_basebackup", "pg_verifybackup"
_FORMAT = {"plain": ("-F", "p", "-X", "stream"), "tar": ("-F", "t", "-X", "stream"), "discard": ("-X", "fetch")}
_READS_TAR = 18
"""First version of pg_verifybackup that can read tar files."""


class PostgresMaintaining:
    vacuums: Mapping[str, str] = {"plain": "vacuum {}", "freeze": "vacuum (freeze) {}", "full": "vacuum (full) {}"}
    index_builds: Mapping[str, str] = {
        "off": "create index {} on {} (amount, number)",
        "on": "create index concurrently {} on {} (amount, number)",
    }

    index_removal = "drop index if exists {}"
    restorable = "tar"

    def require_backup(self, system: System, options: Mapping[str, str]) -> None:
        _program(system, _BACKUP)

    def tool(self, system: System) -> str:
        return (
            programs.output([str(_program(system, _BACKUP)), "--version"], _BACKUP).strip().replace(" (PostgreSQL)", "")
        )

    def backup_bytes(self, session: Session) -> int:
        """Returns the size of all databases together."""
        return int(session.query("select sum(pg_database_size(oid)) from pg_database")[0][0] or 0)

    def backup(self, system: System, session: Session, backup: BackupRequest) -> Program:
        discarded = backup.format == "discard"
        if not discarded:
            _refuse_tablespaces(session, backup.format)
        connection = session.target()["connection"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        if connection.get("password"):
            environment["PGPASSWORD"] = connection["password"]
        environment |= dsn.for_programs(connection)
        where = ("-h", connection["host"], "-p", str(connection["port"]), "-U", connection["user"])
        words = [*_FORMAT[backup.format], "-c", backup.checkpoint, "--no-sync" if discarded else "--progress"]
        if backup.most_bytes_per_s:
            words += ["--max-rate", str(backup.most_bytes_per_s // 1024)]
        words += ["--target", "blackhole"] if discarded else ["-D", str(backup.folder)]
        command = [str(_program(system, _BACKUP)), *where, "--no-password", *words]
        return Program(command, environment, answering(session))

    def verified(self, system: System, folder: Path) -> Check:
        """Compares every file with the backup's manifest. The checksums are compared if pg_verifybackup can read the
        backup. Otherwise, only the sizes are compared."""
        tool = str(_program(system, _VERIFY))
        if not _reads(tool, folder):
            wrong = _wrong_sizes(folder)
            return Check("files match the manifest (sizes only)", not wrong, "all", ", ".join(wrong[:3]) or "all")
        # Checking the WAL would require pg_waldump of the server's version.
        words = [tool, "--no-parse-wal", "--quiet", str(folder)]
        done = programs.run_program(words, timeout_s=None)
        words_of_it = " / ".join(done.stderr.splitlines()[:2])
        name = "files match the manifest (pg_verifybackup)"
        return Check(name, done.returncode == 0, "all", words_of_it or "all")

    def unpack(self, system: System, backup: Path, data: Path) -> Sequence[Program]:
        files = data_dirs.claim(str(data), "data") / "cluster"
        (files / "pg_wal").mkdir(parents=True, mode=0o700)
        files.chmod(0o700)
        return [_extracted(backup / "base.tar", files), _extracted(backup / "pg_wal.tar", files / "pg_wal")]

    def replayed(self, system: System, session: Session, backup: Path) -> Program | None:
        return None

    def make_dead_tuples(self, session: Session, table: str, percent: int) -> None:
        session.query(f"alter table {table} set (autovacuum_enabled = off)")
        session.query(f"update {table} set amount = amount where number % 100 < {percent}")
        facts.flush_counts(session)  # otherwise, the counters might include the dead tuples only after the vacuum

    def packed_pages(self, rows: int, row_bytes: int) -> int:
        """Returns the number of pages that the rows need. Pages have 8 kB. A row has a header, four numbers, a text
        with its length, and a line pointer (PostgreSQL 18 documentation, 66.6)."""
        row = 24 + row_bytes + 4
        return -(-rows // (8168 // (-(-row // 8) * 8 + 4)))

    def table_state(self, session: Session, table: str) -> TableState:
        sql = (
            f"select pg_total_relation_size('{table}'), "
            f"pg_relation_size('{table}') / current_setting('block_size')::integer, "
            f"n_dead_tup from pg_stat_user_tables where relname = '{table}'"
        )
        return TableState(*(int(value or 0) for value in session.query(sql)[0]))

    def index_state(self, session: Session, table: str, index: str) -> IndexState:
        sql = (
            f"select pg_table_size('{table}'), pg_relation_size('{index}'), indisvalid::integer, reltuples::bigint "
            f"from pg_index join pg_class on pg_class.oid = indexrelid where indexrelid = '{index}'::regclass"
        )
        table_bytes, index_bytes, valid, entries = (int(value or 0) for value in session.query(sql)[0])
        return IndexState(table_bytes, index_bytes, bool(valid), entries)


def _refuse_tablespaces(session: Session, form: str) -> None:
    """Raises InputError for a server with tablespaces. A plain backup would write their files to the same paths on this
    machine as on the server."""
    sql = "select spcname from pg_tablespace where spcname not in ('pg_default', 'pg_global') order by spcname"
    if rows := session.query(sql):
        raise InputError(
            written("workload.with", f"format={form}"),
            f"the server has tablespaces ({shortened(', '.join(name or '' for (name,) in rows), 60)}), but a "
            "backup of this kind cannot contain tablespaces",
            f"use {written('workload.with', 'format=discard')}",
        )


def _reads(tool: str, folder: Path) -> bool:
    """Returns whether pg_verifybackup can run and can read the backup. The program that came with ironbench cannot run.
    Backups in tar format can be read since version 18 (release notes)."""
    if not programs.works(tool, "--version"):
        return False
    version = re.search(r"\d+", programs.output([tool, "--version"], _VERIFY))
    return not (folder / "base.tar").exists() or version is None or int(version[0]) >= _READS_TAR


def _program(system: System, name: str) -> Path:
    """Returns the path of a PostgreSQL program. Raises InputError.

    If ironbench starts the server, the program belongs to the server's installation. For an existing server, it is the
    newest installed program that can connect with the DSN's sslmode. If there is no such program, it is the one that
    came with ironbench.
    """
    if system.dsn is not None:
        try:
            speaks = dumps.tools(dsn.parse(system.dsn)[0].sslmode).bin / name
        except FailureError as error:
            raise InputError(name, error.cause, error.hint) from None
        if speaks.is_file():
            return speaks
    own = installation.find(system.settings.get("bin")).bin / name
    if own.is_file():
        return own
    ours = installation.find().bin / name
    if not ours.is_file():
        raise InputError(
            name, f"is neither in {own.parent} nor in {ours.parent}", "install PostgreSQL's client programs"
        )
    return ours


def _wrong_sizes(folder: Path) -> list[str]:
    """Returns the files of the manifest that are missing or have a different size (PostgreSQL 18 documentation,
    68.1)."""
    listed = json.loads((folder / "backup_manifest").read_text())["Files"]
    archive = folder / "base.tar"
    if archive.exists():
        with tarfile.open(archive) as tar:
            sizes = {member.name.removeprefix("./"): member.size for member in tar if member.isfile()}
    else:
        sizes = {str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    # Files whose name is not UTF-8 are skipped. The manifest has such names in hexadecimal under a different key. The
    # server itself creates no such names.
    return [one["Path"] for one in listed if "Path" in one and sizes.get(one["Path"]) != one["Size"]]


def _extracted(archive: Path, folder: Path) -> Program:
    # The owner in the archive is a uid of the server's user namespace, which has no meaning outside it, so the owner is
    # not restored.
    words = ["tar", "--extract", "--no-same-owner", "--file", str(archive), "--directory", str(folder)]
    return Program(words, dict(os.environ))
