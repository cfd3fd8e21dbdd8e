"""User data files, loaded by ironbench and by the server's own client, and the resulting databases."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from raw_mysql import PASSWORD, RawMysql
from raw_server import RawServer, binary

from ironbench import engines
from ironbench.engines.data_import import RestoreResult
from ironbench.engines.mariadb.copies import MariadbCopies
from ironbench.model.system import System

CASES = Path(__file__).parents[1] / "data" / "dumps"
"""Small files, each with one construct that has been misread."""
REAL = Path(__file__).parents[1] / "data" / "real"
"""Files written by the programs in their names."""
_ELSEWHERE = re.compile(
    rb"^(?:\\connect .*|(?:CREATE|DROP|ALTER) (?:DATABASE|ROLE) .*;|GRANT app TO .*;)$", re.MULTILINE
)
"""Pattern of the statements of a dump that have effects outside the database under test."""
_NEW_EACH_TIME = re.compile(r"^\\(?:un)?restrict .*$|^SET @.*$|^/\*M!999999.*$", re.MULTILINE)
_DEFINER = re.compile(r"(?:/\*!50\d\d\d )?DEFINER=`[^`]*`@`[^`]*`(?: SQL SECURITY DEFINER)? ?(?:\*/)?")


def new_postgres(server: RawServer, database: str) -> None:
    boss = server.connect()
    boss.query(f"drop database if exists {database} with (force)")
    boss.query(f"create database {database} template template0")
    boss.close()


def into_postgres(server: RawServer, file: Path, database: str = "brought", *, setup: bool = False) -> RestoreResult:
    """Loads a file into a new database as ironbench does for a trial."""
    new_postgres(server, database)
    dsn = f"postgresql://postgres@/{database}?host={server.host}&port={server.port}"
    engine = engines.get("postgres")
    system, secrets = engine.validated(System("postgres", "t", dsn=dsn), 1)
    with engines.running(system, secrets, 1) as session:
        if setup:
            return RestoreResult(left_out=engine.data_import.set_up(session, file, lambda *_: None))
        engine.data_import.examined(system, file)
        return engine.data_import.restored(session, file, 1, lambda *_: None)


def by_psql(server: RawServer, file: Path, database: str) -> None:
    """Loads the file with psql, which continues after errors."""
    new_postgres(server, database)
    words = [binary("psql"), "-X", "-q", "-h", server.host, "-p", str(server.port), "-U", "postgres", "-d", database]
    subprocess.run(words, input=_ELSEWHERE.sub(b"", file.read_bytes()), check=False, capture_output=True)


def as_pg_dump_shows(server: RawServer, database: str) -> str:
    """Dumps everything in a database in a canonical form."""
    words = [binary("pg_dump"), "-h", server.host, "-p", str(server.port), "-U", "postgres", database]
    shown = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return _NEW_EACH_TIME.sub("", shown)


@contextmanager
def into_mariadb(server: RawMysql, file: Path, user: str = "maker") -> Iterator[str]:
    """Yields the name of a new database into which ironbench has loaded a file; it is dropped afterwards."""
    engine = engines.get("mariadb")
    address = f"mysql://{user}:{PASSWORD}@localhost/d?socket={server.socket}"
    system, secrets = engine.validated(System("mariadb", "t", dsn=address), 1)
    copies = MariadbCopies(system, secrets)
    copy = copies.new("key")
    try:
        engine.data_import.examined(system, file)
        with engines.running(copies.with_database(system, copy.name), secrets, 1) as session:
            engine.data_import.restored(session, file, 1, lambda *_: None)
        yield copy.name
    finally:
        copies.drop(copy.name)
        copies.close()


def by_mariadb(server: RawMysql, file: Path, database: str, *, keep_comments: bool = True) -> None:
    """Loads a file with the client mariadb, which continues after errors, into a new database.

    `keep_comments`: routines keep their comments, but the client (10.11) mistakes a DELIMITER after a comment for SQL.
    """
    server.query(f"drop database if exists `{database}`; create database `{database}`")
    words = [
        "mariadb",
        "--no-defaults",
        "--default-character-set=utf8mb4",
        "--force",
        f"--socket={server.socket}",
        "-uroot",
        database,
    ]
    words += ["--comments"] if keep_comments else []
    subprocess.run(words, input=file.read_bytes(), check=False, capture_output=True)


def as_mariadb_dump_shows(server: RawMysql, database: str) -> str:
    """Dumps everything in a database in a canonical form, without definers."""
    words = ["mariadb-dump", "--no-defaults", f"--socket={server.socket}", "-uroot", "--skip-comments", "--hex-blob"]
    options = ["--routines", "--events", "--triggers", "--skip-dump-date", database]
    shown = subprocess.run([*words, *options], check=True, capture_output=True).stdout.decode(errors="surrogateescape")
    return _DEFINER.sub("", _NEW_EACH_TIME.sub("", shown))


def entries_shown(host: str, base: str, *who: str) -> dict[str, list[str]]:
    """Returns the entries that ldapsearch finds below a base, as DN → lines, without entries added by ironbench."""
    words = ["ldapsearch", "-x", "-LLL", "-o", "ldif-wrap=no", "-H", host, *who, "-b", base]
    shown = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    found = {}
    for record in shown.split("\n\n"):
        dn, _, lines = record.strip().partition("\n")
        if dn and not dn.lower().endswith(f"ou=directory,{base}") and dn != f"dn: {base}":
            found[dn] = sorted(lines.splitlines())
    return found


def by_ldapadd(host: str, text: bytes, who: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    """Adds the entries of an LDIF file with ldapadd, which continues after errors."""
    return subprocess.run(["ldapadd", "-x", "-c", "-H", host, *who], input=text, check=False, capture_output=True)


def differences(found: Mapping[str, list[str]], wanted: Mapping[str, list[str]]) -> list[str]:
    """Describes differences between two directories for a failed assertion."""
    return [
        f"{dn}: {found.get(dn)} is not {wanted.get(dn)}"
        for dn in sorted({*found, *wanted})
        if found.get(dn) != wanted.get(dn)
    ]
