"""Dumps as pg_dump makes them, and the programs that restore them."""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ironbench.engines.postgres import installation
from ironbench.engines.postgres.cluster import environment
from ironbench.errors import FailureError, InputError, written
from ironbench.model.redact import redacted_sql
from ironbench.process.programs import last_words, run_program

_HEAD_BYTES = 65536
_FROM = re.compile(r"(?:Dumped from database version:?) (\d+)(\.\d+)?")
_GROWTH = {"custom": 6.0, "directory": 6.0, "tar": 1.5, "plain": 1.5}
"""Loaded data by the size of their dump: compressed dumps of pgbench's and of TPC-H-like tables came to 5 to 9 times,
plain ones to 1.3 to 1.6 times (rows with their heads, and indexes)."""
_CHUNK_BYTES = 1 << 24
_OUTSIDE = re.compile(
    rb"(?:^|;)[ \t]*(?:\\(?:!|(?:c|connect|i|ir|include|include_relative|copy|cd|o|out|w|write|g|gx|gexec|setenv)\b)"
    rb"[^\n]{0,80}"
    rb"|(?:CREATE|DROP|ALTER)[ \t]+(?:DATABASE|TABLESPACE|ROLE|USER[ \t](?!MAPPING)|SUBSCRIPTION|SYSTEM)[^\t\n]{0,80})"
    rb"|(?<!\\)\\gexec\b",
    re.MULTILINE | re.IGNORECASE,
)
"""Lines of SQL or of psql that reach beyond the one database and the one file."""
_LINE_BYTES = 256
"""What two chunks share, so that no such line is cut between them."""
_NO_TLS = ("disable", "prefer")
"""What programs without TLS can do (libpq: sslmode)."""


@dataclass(frozen=True, slots=True)
class PgDump:
    path: Path
    form: str
    """`custom`, `directory`, `tar` or `plain`."""
    major: int
    """Of the server it came from; 0: it does not say."""
    version: str
    extensions: tuple[str, ...]
    schemas: tuple[str, ...]
    """Besides `public`."""
    items: int
    """Entries of its table of contents; 0 of a plain one."""


@dataclass(frozen=True, slots=True)
class Tools:
    """pg_restore and psql of one installation."""

    bin: Path
    version: str

    def program(self, name: str) -> str:
        return str(self.bin / name)


def read(path: Path) -> PgDump:
    """What a dump is. InputError: it is none, or newer than every pg_restore here."""
    subject = f"dump {path}"
    form = _form(path, subject)
    if form == "plain":
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES).decode(errors="replace")
        refuse_outside(path, subject)
        extensions = re.findall(r"^CREATE EXTENSION (?:IF NOT EXISTS )?\"?([\w-]+)", head, re.MULTILINE)
        schemas = re.findall(r"^CREATE SCHEMA (?:IF NOT EXISTS )?\"?([^\s\";]+)", head, re.MULTILINE)
        return _dump(path, form, head, extensions, schemas, 0)
    done = run_program([tools().program("pg_restore"), "--list", str(path)], environment=environment())
    if done.returncode != 0 or "does not support" in done.stderr:
        cause = last_words(done.stderr).replace("pg_restore: error: ", "")
        newer = "unsupported version" in cause
        hint = f"install the programs of the PostgreSQL that made it: pg_restore {tools().version} is the newest here"
        raise InputError(subject, f"pg_restore cannot read it: {cause}", hint if newer else "make the dump again")
    items = [line for line in done.stdout.splitlines() if line and not line.startswith(";")]
    # A line ends with the owner (pg_restore --list).
    schemas = [found[1] for line in items if (found := re.search(r" SCHEMA - (.+) \S+$", line))]
    extensions = [found[1] for line in items if (found := re.search(r" EXTENSION - (\S+)", line))]
    return _dump(path, form, done.stdout, extensions, schemas, len(items))


def contents(path: Path, left_out: Sequence[str]) -> str:
    """The table of contents of a dump without these extensions, as `pg_restore --use-list` takes it."""
    done = run_program([tools().program("pg_restore"), "--list", str(path)], environment=environment())
    endings = re.compile(rf" EXTENSION (?:- )?(?:{'|'.join(map(re.escape, left_out))})\s*$")
    return "".join(f"{line}\n" for line in done.stdout.splitlines() if not endings.search(line))


def _dump(path: Path, form: str, head: str, extensions: list[str], schemas: list[str], items: int) -> PgDump:
    match = _FROM.search(head)
    version, major = (match[1] + (match[2] or ""), int(match[1])) if match else ("", 0)
    others = tuple(name for name in schemas if name != "public")
    return PgDump(path, form, major, version, tuple(extensions), others, items)


def data_bytes(dump: PgDump) -> int:
    """About how large the data are once they are in."""
    return int(size(dump.path) * _GROWTH[dump.form])


def size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _form(path: Path, subject: str) -> str:
    if path.is_dir():
        if not (path / "toc.dat").is_file():
            hint = "name what pg_dump has written: a file, or the directory of pg_dump -Fd"
            raise InputError(subject, "there is no toc.dat in this directory", hint)
        return "directory"
    with path.open("rb") as file:
        head = file.read(512)
    if head.startswith(b"PGDMP"):
        return "custom"
    if head[257:262] == b"ustar":
        return "tar"
    if not head.strip(b"\0 \n"):
        raise InputError(subject, "it holds nothing", "make the dump again")
    for magic, name in ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2"), (b"\xfd7zXZ", "xz")):
        if head.startswith(magic):
            raise InputError(subject, f"it is compressed by {name}", "unpack it, or make it by pg_dump -Fc")
    if b"\0" in head:
        raise InputError(subject, "it is no dump of PostgreSQL's", "make one by pg_dump -Fc")
    return "plain"


def refuse_outside(path: Path, subject: str) -> None:
    """InputError for text that would change more than its own database, or read other files than itself.

    A dump made with --create connects to the database that it came from, which may be there.
    """
    for number, line in _outside(path):
        hint = "leave it out; the rows and functions of a dump by pg_dump -Fc are not looked at"
        hint = "make the dump by pg_dump without --create" if _about_database(line) else hint
        raise InputError(subject, f"line {number}, {line!r}, reaches beyond the database of the trials", hint)


def _about_database(line: str) -> bool:
    return bool(re.match(r"\\c|(create|drop|alter)\s+database", line, re.IGNORECASE))


def _outside(path: Path) -> list[tuple[int, str]]:
    """The first such line with its number."""
    lines, kept = 0, b"\n"
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            text = kept + chunk
            for found in _OUTSIDE.finditer(text):
                if found.start():  # the very first character is of the chunk before
                    number = lines + text.count(b"\n", 0, found.start())
                    return [(number, redacted_sql(found[0].decode(errors="replace").strip("; \t\n")))]
            kept = text[-_LINE_BYTES:]
            kept = kept[max(kept.rfind(b"\n"), 0) :]
            lines += text.count(b"\n", 0, len(text) - len(kept))
    return []


@functools.cache
def tools(sslmode: str = "disable") -> Tools:
    """The newest there are that can speak to a server so: they read every older dump and speak to every older server.

    FailureError: there are none.
    """
    usable = [one for one in _installed() if sslmode in _NO_TLS or one.bin not in _without_tls()]
    if not usable:
        raise FailureError(
            "pg_restore",
            f"no PostgreSQL programs on this machine do TLS ({written('system.dsn')} asks for sslmode={sslmode})",
            "install the package postgresql-client",
        )
    return max(usable, key=lambda one: [int(part) for part in re.findall(r"\d+", one.version)])


def _without_tls() -> list[Path]:
    return [installation.find().bin]


def _installed() -> list[Tools]:
    """What came with ironbench, what is on PATH, and where Debian and Red Hat put their versions."""
    folders = [installation.find().bin]
    if (on_path := shutil.which("pg_restore")) is not None:
        folders.append(Path(on_path).parent)
    folders += [*Path("/usr/lib/postgresql").glob("*/bin"), *Path("/usr").glob("pgsql-*/bin")]
    installed = []
    for folder in folders:
        if (folder / "pg_restore").is_file() and (folder / "psql").is_file():
            done = run_program([str(folder / "pg_restore"), "--version"])
            if number := re.search(r"\d+(\.\d+)*", done.stdout):
                installed.append(Tools(folder, number[0]))
    return installed
