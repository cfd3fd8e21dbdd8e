"""Reads dumps made by pg_dump, and finds the programs that restore them."""

from __future__ import annotations

import functools
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ironbench.catalogue import text_files
from ironbench.engines.postgres import installation, psql_text
from ironbench.engines.postgres.cluster import environment
from ironbench.engines.postgres.psql_text import PostgresSqlText
from ironbench.errors import FailureError, InputError, written
from ironbench.host.programs import last_words, run_program

_FROM = re.compile(r"(?:Dumped from database version:?) (\d+)(\.\d+)?")
_TYPE = re.compile(
    r"\d+; \d+ \d+ (MATERIALIZED VIEW(?: DATA)?|FOREIGN TABLE|TABLE (?:DATA|ATTACH)|TABLE|INDEX ATTACH|INDEX"
    r"|(?:FK |CHECK )?CONSTRAINT|VIEW|SEQUENCE(?: SET| OWNED BY)?|FUNCTION|PROCEDURE|AGGREGATE|TRIGGER) "
)
"""Pattern of an entry's type in the output of pg_restore --list."""
_GROWTH = {"custom": 6.0, "directory": 6.0, "tar": 1.5, "plain": 1.5}
"""Size of the restored data divided by the size of the dump. Measured: 5 to 9 for compressed dumps of pgbench's and
TPC-H-like tables, 1.3 to 1.6 for plain dumps (because of row headers and indexes)."""
_NO_TLS = ("disable", "prefer")
"""Values of sslmode that programs without TLS support also accept (libpq: sslmode)."""


@dataclass(frozen=True, slots=True)
class PgDump:
    path: Path
    form: str
    """Format of the dump: `custom`, `directory`, `tar` or `plain`."""
    major: int
    """Major version of the server from which the dump was made, or 0 if unknown."""
    version: str
    extensions: tuple[str, ...]
    schemas: tuple[str, ...]
    """Names of the schemas besides `public`."""
    items: int
    """Number of entries in the table of contents. A plain dump has none."""
    entries: Mapping[str, int] = field(default_factory=dict)
    """Number of entries of each type, for example 12 for `TABLE`. The mapping is empty if pg_dump did not write the
    file."""
    text: PostgresSqlText | None = None
    """The SQL of a plain dump."""

    @property
    def has_end_mark(self) -> bool:
        """Whether truncation of the dump is always detected. pg_dump ends its SQL files with a comment, and pg_restore
        refuses incomplete archives. SQL files from other programs may have no such end."""
        return self.text is None or bool(self.text.written_by)


@dataclass(frozen=True, slots=True)
class Tools:
    """The programs pg_restore and psql of one installation."""

    bin: Path
    version: str

    def program(self, name: str) -> str:
        return str(self.bin / name)


def read(path: Path) -> PgDump:
    """Reads the properties of a dump. Raises InputError if the file is not a dump, or if no installed pg_restore is new
    enough for it."""
    subject = f"dump {path}"
    form = _form(path, subject)
    if form == "plain":
        return _plain(path, path.stat().st_mtime_ns, subject)
    done = run_program([tools().program("pg_restore"), "--list", str(path)], environment=environment())
    if done.returncode != 0 or "does not support" in done.stderr:
        cause = last_words(done.stderr).replace("pg_restore: error: ", "")
        newer = "unsupported version" in cause
        hint = (
            "install pg_restore of the version that made the dump; the newest version on this machine is "
            f"{tools().version}"
        )
        raise InputError(subject, f"pg_restore cannot read it: {cause}", hint if newer else "recreate the dump")
    items = [line for line in done.stdout.splitlines() if line and not line.startswith(";")]
    types = Counter(found[1] for line in items if (found := _TYPE.match(line)))
    # A line of pg_restore --list ends with the name of the owner.
    schemas = [found[1] for line in items if (found := re.search(r" SCHEMA - (.+) \S+$", line))]
    extensions = [found[1] for line in items if (found := re.search(r" EXTENSION - (\S+)", line))]
    match = _FROM.search(done.stdout)
    version = match[1] + (match[2] or "") if match else ""
    return PgDump(path, form, _major(version), version, tuple(extensions), _others(schemas), len(items), types)


@functools.lru_cache(maxsize=4)
def _plain(path: Path, mtime_ns: int, subject: str) -> PgDump:
    """Examines a plain dump. Plan and load share the cached result, so that a large file is read only once. `mtime_ns`:
    modification time, which is in the cache key so that a changed file is read again."""
    text = psql_text.examined(path, subject)
    return PgDump(
        path,
        "plain",
        major=_major(text.version),
        version=text.version,
        extensions=tuple(text.extensions),
        schemas=_others(text.schemas),
        items=0,
        entries=text.entries,
        text=text,
    )


def _major(version: str) -> int:
    return int(version.partition(".")[0] or 0)


def _others(schemas: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in schemas if name != "public")


def contents(path: Path, left_out: Sequence[str]) -> str:
    """Returns the table of contents in the format of `pg_restore --use-list`. The extensions in `left_out` are
    removed."""
    done = run_program([tools().program("pg_restore"), "--list", str(path)], environment=environment())
    endings = re.compile(rf" EXTENSION (?:- )?(?:{'|'.join(map(re.escape, left_out))})\s*$")
    return "".join(f"{line}\n" for line in done.stdout.splitlines() if not endings.search(line))


def data_bytes(dump: PgDump) -> int:
    """Returns the approximate size of the restored data."""
    return int(size(dump.path) * _GROWTH[dump.form])


def size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _form(path: Path, subject: str) -> str:
    if path.is_dir():
        if not (path / "toc.dat").is_file():
            hint = "give the path of a file that pg_dump wrote, or of a directory that `pg_dump -Fd` wrote"
            raise InputError(subject, "this directory does not contain toc.dat", hint)
        return "directory"
    with path.open("rb") as file:
        head = file.read(512)
    if head.startswith(b"PGDMP"):
        return "custom"
    if head[257:262] == b"ustar":
        return "tar"
    text_files.refuse_unreadable(head, subject, "SQL or a pg_dump archive")
    return "plain"


@functools.cache
def tools(sslmode: str = "disable") -> Tools:
    """Returns the programs to use. These are the newest installed programs that support `sslmode`, because newer
    programs can read all older dumps and connect to all older servers. Raises FailureError if no such programs are
    installed."""
    usable = [one for one in _installed() if sslmode in _NO_TLS or one.bin != installation.find().bin]
    if not usable:
        raise FailureError(
            "pg_restore",
            f"no PostgreSQL program on this machine supports TLS, but {written('system.dsn')} has sslmode={sslmode}",
            "install the package postgresql-client",
        )
    return max(usable, key=lambda one: [int(part) for part in re.findall(r"\d+", one.version)])


def _installed() -> list[Tools]:
    """Returns the programs that came with ironbench, those on PATH, and the versions in the directories of Debian and
    Red Hat."""
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
