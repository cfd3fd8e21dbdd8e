"""Backups of a server that ironbench started.

The backups are physical and made by mariadb-backup if it is installed. Otherwise the backups are logical and made by
mariadb-dump. mariadb-backup reads the server's files, so it must run on the server's machine. mariadb-dump reads a
snapshot over a connection. Sources: manual, "Full Backup and Restore with mariadb-backup" and "mariadb-dump".
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from ironbench.engines import own_files
from ironbench.engines.maintenance import BackupRequest, answering
from ironbench.engines.mariadb import home as homes
from ironbench.engines.mariadb import installation
from ironbench.errors import InputError, written
from ironbench.host import data_dirs
from ironbench.host.programs import Program, output
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import System

_COPY, _DUMP, _CLIENT = "mariadb-backup", "mariadb-dump", "mariadb"
_FILE = "dump.sql"
_POSSIBLE = {
    "format": ("plain", "discard"),
    "checkpoint": ("fast",),
    "rate": ("0",),
}
"""For each backup option, the values that both programs support. Both programs run without a rate limit, because
mariadb-backup does not count its limit in bytes but in chunks."""


class BackupProgram(Protocol):
    """A backup program, and how to restore its backups."""

    name: str

    def backup(self, system: System, session: Session, backup: BackupRequest) -> Program: ...

    def verified(self, folder: Path) -> Check: ...

    def unpack(self, system: System, backup: Path, data: Path) -> Sequence[Program]: ...

    def replayed(self, system: System, session: Session, backup: Path) -> Program | None: ...


class _Copies:
    """Physical backups: data files, and the redo log written during the copy."""

    name = _COPY

    def backup(self, system: System, session: Session, backup: BackupRequest) -> Program:
        options = homes.of(system.layout, installation.find(system.settings.get("bin"))).options
        words = [str(_program(system, _COPY)), f"--defaults-file={options}", "--backup", *_where(session)]
        # The program requires a target directory, but does not use it if the backup is streamed. Nothing reads the
        # stream.
        aside = backup.folder.with_name(f"{backup.folder.name}.discarded")
        to = ["--stream=xbstream", f"--target-dir={aside}"] if backup.format == "discard" else [_into(backup.folder)]
        return Program([*words, *to], homes.environment(), answering(session))

    def verified(self, folder: Path) -> Check:
        """Checks that the files exist that mariadb-backup writes at its end. mariadb-backup creates no manifest."""
        notes = (folder / f"{name}_checkpoints" for name in ("mariadb_backup", "xtrabackup"))
        text = next((path.read_text() for path in notes if path.is_file()), "")
        known = dict(line.split(" = ") for line in text.splitlines() if " = " in line)
        kind = known.get("backup_type", "none")
        return Check("backup marked complete by its program", kind == "full-backuped", "full-backuped", kind)

    def unpack(self, system: System, backup: Path, data: Path) -> Sequence[Program]:
        """Applies the redo log to the files of the backup, then copies the files into a data directory."""
        files = data_dirs.claim(str(data), "data") / "files"
        files.mkdir(mode=0o700)
        own_files.write_note(files, {"version": installation.find(system.settings.get("bin")).major})
        prepare = [str(_program(system, _COPY)), "--prepare", _into(backup)]
        copy = ["cp", "--archive", f"{backup}/.", str(files)]
        return [Program(prepare, homes.environment()), Program(copy, dict(os.environ))]

    def replayed(self, system: System, session: Session, backup: Path) -> Program | None:
        return None


class _Dumps:
    """Logical backups: SQL statements that recreate the session's database."""

    name = _DUMP

    def backup(self, system: System, session: Session, backup: BackupRequest) -> Program:
        if backup.format != "discard":
            backup.folder.mkdir()
        to = os.devnull if backup.format == "discard" else str(backup.folder / _FILE)
        words = [str(_program(system, _DUMP)), "--no-defaults", *_where(session), f"--result-file={to}"]
        # The dump is a consistent snapshot that is read row by row without locks. It includes routines.
        what = ["--single-transaction", "--quick", "--hex-blob", "--routines", "--databases", homes.DATABASE]
        return Program([*words, *what], homes.environment(), answering(session))

    def verified(self, folder: Path) -> Check:
        """Checks the last line of the dump. mariadb-dump writes this line only after success."""
        with (folder / _FILE).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 200))
            last = file.read().decode(errors="replace").strip().rpartition("\n")[2]
        name = "dump ends with its completion line"
        return Check(name, last.startswith("-- Dump completed"), "-- Dump completed", last[:80])

    def unpack(self, system: System, backup: Path, data: Path) -> Sequence[Program]:
        return []

    def replayed(self, system: System, session: Session, backup: Path) -> Program | None:
        words = [str(_program(system, _CLIENT)), "--no-defaults", *_where(session), "--batch"]
        return Program([*words, f"--execute=source {backup / _FILE}"], homes.environment(), answering(session))


_TOOLS: Sequence[tuple[BackupProgram, Sequence[str]]] = ((_Copies(), (_COPY,)), (_Dumps(), (_DUMP, _CLIENT)))


def tool(system: System) -> BackupProgram:
    """Returns mariadb-backup if it is installed, because copying files is much faster than dumping. Otherwise returns
    mariadb-dump. Raises InputError."""
    for one, programs in _TOOLS:
        if all(_find_program(system, name) for name in programs):
            return one
    raise InputError(
        f"{_COPY} and {_DUMP}",
        "are not on PATH",
        "install one of them: `apt install mariadb-backup` or `apt install mariadb-client`",
    )


def require(system: System, options: Mapping[str, str]) -> None:
    """Raises InputError for an existing server, for unsupported options, or if neither program is installed."""
    if system.dsn is not None:
        cause = f"backups require a server started by ironbench, because {_COPY} reads its files"
        raise InputError(written("system.dsn"), cause, "remove it so that ironbench starts its own server")
    for name, values in _POSSIBLE.items():
        if options.get(name, values[0]) not in values:
            subject = written("workload.with", f"{name}={options[name]}")
            cause = f"neither {_COPY} nor {_DUMP} supports this value"
            raise InputError(subject, cause, f"use {name}={' or '.join(values)}")
    tool(system)


def version(system: System) -> str:
    """Returns the backup program and its version, such as `mariadb-dump 10.11.19-MariaDB`."""
    name = tool(system).name
    program = str(_program(system, name))
    words = output([program, "--no-defaults", "--version"] if name == _DUMP else [program, "--version"], name)
    number = re.search(r"\d+\.\d+\.\d+\S*", words.replace(",", " "))
    return f"{name} {number[0]}" if number else name


def _into(folder: Path) -> str:
    return f"--target-dir={folder}"


def _where(session: Session) -> list[str]:
    connection = session.target()["connection"]
    return [f"--user={connection['user']}", f"--socket={connection['socket']}"]


def _find_program(system: System, name: str) -> Path | None:
    """Finds a program in the server's directory or on PATH."""
    sibling = installation.find(system.settings.get("bin")).server.with_name(name)
    program = sibling if sibling.is_file() else shutil.which(name)
    return None if program is None else Path(program)


def _program(system: System, name: str) -> Path:
    program = _find_program(system, name)
    if program is None:
        raise InputError(name, "is no longer on PATH", "install it again")
    return program
