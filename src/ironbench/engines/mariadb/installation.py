"""Finds the MariaDB programs and their version."""

from __future__ import annotations

import functools
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from ironbench.errors import InputError, written
from ironbench.host import trust
from ironbench.host.programs import last_words, output
from ironbench.paths import expanded

TITLE = "MariaDB"
OLDEST = (10, 6)
_SERVERS = ("mariadbd", "mysqld")
_SYSTEM_TABLES = ("system_tables", "performance_tables", "system_tables_data", "sys_schema")
"""SQL files that create the schemas `mysql` and `sys`. The files are in the order in which `mariadb-install-db` runs
them. The help tables are omitted."""
_VERSION_IN_FILE = rb"\d+\.\d+\.\d+-MariaDB[-+.\w]*"
"""Pattern of the server's version. The version is a constant in the program file (MYSQL_SERVER_VERSION,
mysql_version.h)."""
_ERROR = re.compile(r"\[ERROR\] (.*)")
_FOLLOW_UP = ("Aborting", "Plugin 'InnoDB' registration", "Unknown/unsupported storage engine")
"""Beginnings of error messages that only follow from an earlier error."""
_NUMBERED = re.compile(r"\b(?:failed with error|error number) (\d{1,3})\b(?! \()")
"""Pattern of an operating system error (errno(3)) in a message of InnoDB."""


@dataclass(frozen=True, slots=True)
class MariadbInstallation:
    """An installation of MariaDB."""

    server: Path
    texts: tuple[Path, ...]
    """SQL files that create the system tables when `mariadbd --bootstrap` reads them. `mariadb-install-db` is not used,
    because it needs a program that Debian ships in a different package."""
    version: str
    """Full version, such as `10.11.19-MariaDB-0+deb12u1`."""
    major: str
    """Major version, such as `10.11`. Data directories of different major versions are incompatible."""
    may_run: bool = True
    """Whether ironbench may run the programs. While a lab file is only read, it may not run programs that the file
    names (`trust.reading_only`)."""

    def system_tables(self) -> str:
        """Returns SQL that creates the system tables in an empty data directory. The user `root` has no password."""
        made = ["CREATE DATABASE mysql;", "USE mysql;", "SET @auth_root_socket = NULL;"]
        return "\n".join([*made, *(path.read_text(encoding="utf-8") for path in self.texts)])

    @property
    def base(self) -> Path:
        """Directory of error messages and character sets (`basedir`)."""
        return self.server.parent.parent


def find(directory: str | None = None) -> MariadbInstallation:
    """Returns the installation in `directory`, or the one on PATH. Raises InputError and FailureError."""
    if directory is not None:
        folder = expanded(directory).absolute()
        subject = written("system.set", f"bin={directory}")
        server = next((folder / name for name in _SERVERS if (folder / name).is_file()), None)
        hint = f"give the path of the directory that contains {_SERVERS[0]}"
    else:
        subject = TITLE
        server = next((Path(path) for path in map(shutil.which, _SERVERS) if path), None)
        there = written("system.set", "bin=/usr/sbin")
        hint = f"`apt install mariadb-server-core`, or set the directory of the server program: {there}"
    if server is None:
        where = "on PATH" if directory is None else f"in {directory}"
        raise InputError(subject, f"there is no {' or '.join(_SERVERS)} {where}", hint)
    may_run = trust.may_run(None if directory is None else server.parent)
    return _installation(server.resolve(), subject, may_run)


@functools.cache
def _installation(server: Path, subject: str, may_run: bool) -> MariadbInstallation:
    if may_run:
        words = output([str(server), "--no-defaults", "--version"], subject)
    elif not (words := f"Ver {trust.found_in(server, _VERSION_IN_FILE)}").removeprefix("Ver "):
        raise trust.unknown_version(subject)
    number = re.search(r"Ver (\d+)\.(\d+)\S*", words)
    if number is None or TITLE not in words:
        cause = f"is not {TITLE}: {words.strip()!r}"
        raise InputError(subject, cause, f"start the server yourself, and connect with {written('system.dsn')}")
    if (int(number[1]), int(number[2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        cause = f"{TITLE} {number[1]}.{number[2]} is too old: ironbench starts {oldest} or later"
        raise InputError(subject, cause, "use a newer version")
    texts = tuple(path for part in _SYSTEM_TABLES for path in _texts(server, part)[:1])
    if len(texts) < len(_SYSTEM_TABLES):
        cause = f"the SQL scripts for its system tables are not installed with {server}"
        raise InputError(subject, cause, "install the complete server package")
    return MariadbInstallation(server, texts, number[0].removeprefix("Ver "), f"{number[1]}.{number[2]}", may_run)


def _texts(server: Path, part: str) -> list[Path]:
    """Returns the existing SQL files for a part of the system tables. Debian and MariaDB's own archives keep these
    files in different directories."""
    base = server.parent.parent
    places = (base / "share" / "mysql", base / "share" / "mariadb", base / "share", base / "scripts")
    paths = (place / f"{brand}_{part}.sql" for place in places for brand in ("mariadb", "mysql"))
    return [path for path in paths if path.is_file()]


def complaint(text: str) -> str:
    """Returns why a server died: the errors in its log, or else the last lines."""
    errors = [_NUMBERED.sub(_explained, match[1].strip()) for match in _ERROR.finditer(text)]
    telling = [error for error in errors if not error.startswith(_FOLLOW_UP)]
    return " / ".join(dict.fromkeys(telling[:3])) or last_words(text)


def _explained(match: re.Match[str]) -> str:
    return f"{match[0]} ({os.strerror(int(match[1]))})"
