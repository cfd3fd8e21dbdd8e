"""Reads the cases from PostgreSQL's test files: perl runs them with modules that record instead of running.

The files stay where they are; none of their text is copied here.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

FILES = ("001_pgbench_with_server.pl", "002_pgbench_no_server.pl")
HOW_TO_GET = """\
PostgreSQL's test files of pgbench are not part of ironbench. Get them from the source of the version whose pgbench is
installed (`pgbench --version`), on Debian:

    echo 'deb-src http://deb.debian.org/debian bookworm main' > /etc/apt/sources.list.d/src.list
    apt-get update && apt-get source --download-only postgresql-15
    tar xf postgresql-15_*.orig.tar.bz2

and name the directory that holds them:

    make pgbench-cases PGBENCH_TESTS=postgresql-15.18/src/bin/pgbench/t"""


@dataclass(frozen=True, slots=True)
class Case:
    """One call of pgbench, with the result that its author expects."""

    name: str
    arguments: list[str]
    """Arguments as on the command line; scripts by their path in `scripts`, possibly with a weight."""
    status: int
    """0: done, 1: refused before the run, 2: failed during the run."""
    stdout: list[str]
    """Regular expressions, all of which must match."""
    stderr: list[str]
    scripts: dict[str, str]
    pgoptions: str


@dataclass(frozen=True, slots=True)
class Preparation:
    """Commands for the server between two cases."""

    sql: str = ""
    settings: str = ""


def missing(directory: Path) -> list[str]:
    return [name for name in FILES if not (directory / name).is_file()]


def read(path: Path) -> list[Case | Preparation]:
    """Returns everything that one file does, in order."""
    perl = shutil.which("perl")
    assert perl, "perl is needed to read PostgreSQL's test files"
    recorder = Path(__file__).parent / "recorder"
    done = subprocess.run([perl, "-I", recorder, path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [_entry(json.loads(line)) for line in done.stdout.splitlines()]


def _entry(entry: dict[str, object]) -> Case | Preparation:
    kind = entry.pop("kind")
    if kind == "sql":
        return Preparation(sql=str(entry["text"]))
    if kind == "settings":
        return Preparation(settings=str(entry["text"]))
    case = Case(**entry)  # type: ignore[arg-type]
    return Case(
        case.name,
        case.arguments,
        case.status,
        [_python(one) for one in case.stdout],
        [_python(one) for one in case.stderr],
        case.scripts,
        case.pgoptions,
    )


def _python(perl: str) -> str:
    """Converts a compiled expression. Perl writes `(?^i:…)`, where `^` represents its default flags."""
    return re.sub(r"\(\?\^([a-z]*):", lambda found: f"(?{found[1].replace('u', '')}:", perl)
