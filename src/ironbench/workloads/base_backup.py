"""Copies of a running PostgreSQL by its own pg_basebackup (PostgreSQL 18 documentation, 25.3.2)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ironbench.engines.postgres import installation
from ironbench.errors import FailureError, InputError
from ironbench.machine import space
from ironbench.model.record import Check
from ironbench.model.system import System
from ironbench.model.work import Work
from ironbench.process import place
from ironbench.workloads.operations import Program

FOLDER = "ironbench-backup"


def program(system: System, name: str) -> Path:
    """Of the server's own version where we start it, else the newest that came with ironbench. InputError."""
    own = installation.find(system.settings.get("bin")).bin / name
    if own.is_file():
        return own
    ours = installation.find().bin / name
    if not ours.is_file():
        raise InputError(
            name, f"is neither in {own.parent} nor in {ours.parent}", "install PostgreSQL's client programs"
        )
    return ours


def command(work: Work, *words: str) -> Program:
    """pg_basebackup of the trial's server."""
    connection = work.session.target()["connection"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    if connection.get("password"):
        environment["PGPASSWORD"] = connection["password"]
    if connection.get("sslrootcert"):
        environment["PGSSLROOTCERT"] = connection["sslrootcert"]
    environment["PGSSLMODE"] = connection.get("sslmode", "prefer")
    where = ("-h", connection["host"], "-p", str(connection["port"]), "-U", connection["user"])
    return Program([str(program(work.system, "pg_basebackup")), *where, "--no-password", *words], environment)


@contextmanager
def folder(work: Work, to: str, need_bytes: int, name: str = FOLDER) -> Iterator[Path]:
    """A directory that is not there yet, in `to` or beside the data, and gone afterwards. InputError: no room."""
    parent = Path(to).absolute() if to else Path(work.system.layout.data or work.folder)
    space.require(parent, need_bytes, "the backup")
    found = parent / name
    try:
        parent.mkdir(parents=True, exist_ok=True)
        if to and not place.ours(parent):
            place.claim(str(parent), "backup")
        shutil.rmtree(found, ignore_errors=True)  # what a killed ironbench left
    except OSError as error:
        raise FailureError(f"directory {parent}", error.strerror or str(error)) from error
    try:
        yield found
    finally:
        shutil.rmtree(found, ignore_errors=True)


def size(found: Path) -> int:
    """Bytes of all files below."""
    return sum(path.stat().st_size for path in found.rglob("*") if path.is_file() and not path.is_symlink())


def server_bytes(work: Work) -> int:
    """Of all databases."""
    return int(work.session.query("select sum(pg_database_size(oid)) from pg_database")[0][0] or 0)


def verified(system: System, found: Path) -> Check:
    """Every file by its checksum in the backup's manifest; by its size where pg_verifybackup does not run."""
    tool = str(program(system, "pg_verifybackup"))
    if not _runs(tool):
        wrong = _wrong_sizes(found)
        return Check("files agree with the manifest (by size)", not wrong, "all", ", ".join(wrong[:3]) or "all")
    # The log would need pg_waldump of the server's own version beside it.
    words = [tool, "--no-parse-wal", "--quiet", str(found)]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    said = " / ".join(done.stderr.splitlines()[:2])
    return Check("files agree with the manifest (pg_verifybackup)", done.returncode == 0, "all", said or "all")


def _runs(tool: str) -> bool:
    """The one that comes with ironbench breaks down even when asked for its version."""
    try:
        return subprocess.run([tool, "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _wrong_sizes(found: Path) -> list[str]:
    """Files of the manifest that are not there or are longer or shorter (PostgreSQL 18 documentation, 68.1)."""
    told = json.loads((found / "backup_manifest").read_text())["Files"]
    archive = found / "base.tar"
    if archive.exists():
        with tarfile.open(archive) as tar:
            sizes = {member.name.removeprefix("./"): member.size for member in tar if member.isfile()}
    else:
        sizes = {str(path.relative_to(found)): path.stat().st_size for path in found.rglob("*") if path.is_file()}
    # A name that is no UTF-8 is written as hexadecimal digits under another word; the server itself makes none.
    return [one["Path"] for one in told if "Path" in one and sizes.get(one["Path"]) != one["Size"]]
