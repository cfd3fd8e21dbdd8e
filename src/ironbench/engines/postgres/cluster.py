"""The files of a PostgreSQL cluster. The files are created once and then reused. The WAL is moved to the directory that
the layout names."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from ironbench.engines.identity import Identity
from ironbench.engines.own_files import refuse_running, refuse_version
from ironbench.engines.postgres.installation import PostgresInstallation, complaint
from ironbench.errors import FailureError, InputError, written
from ironbench.host import data_dirs, programs
from ironbench.model.system import Layout

USER = "ironbench"
DATABASE = "ironbench"
_SEGMENT = re.compile(r"[0-9A-F]{24}")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Locations of one cluster's files."""

    place: Path
    """Directory of ironbench that contains the data directory `cluster` and the server's log `server.log`."""
    log_place: Path | None = None
    temp_place: Path | None = None

    @property
    def files(self) -> Path:
        return self.place / "cluster"

    @property
    def messages(self) -> Path:
        return self.place / "server.log"

    @property
    def wal(self) -> Path:
        """Location of pg_wal according to the layout."""
        return self.files / "pg_wal" if self.log_place is None else self.log_place / "wal"

    @property
    def temp(self) -> Path | None:
        """Location of the temp tablespace according to the layout."""
        return None if self.temp_place is None else self.temp_place / "temp"


def of(layout: Layout, installation: PostgresInstallation) -> Cluster:
    """Returns the locations of a layout's cluster."""
    data = layout.data or str(data_dirs.default("postgres", str(installation.major)))
    return Cluster(
        Path(data),
        None if layout.log is None else Path(layout.log),
        None if layout.temp is None else Path(layout.temp),
    )


def validate(cluster: Cluster, installation: PostgresInstallation) -> None:
    """Raises InputError if the directories cannot be used. Changes nothing."""
    data_dirs.check(str(cluster.place), "data")
    version_file = cluster.files / "PG_VERSION"
    if version_file.is_file():
        made_by = version_file.read_text().strip()
        refuse_version(cluster.place, "PostgreSQL", made_by, str(installation.major), installation.version)
    for path, role in ((cluster.log_place, "log"), (cluster.temp_place, "temp")):
        if path is not None:
            data_dirs.check(str(path), role)
    _refuse_log_of_another(cluster)


def prepare(cluster: Cluster, installation: PostgresInstallation, identity: Identity) -> None:
    """Creates the cluster if it is missing. The caller must hold the lock. Raises InputError and FailureError."""
    refuse_running(cluster.files, cluster.place)
    _refuse_log_of_another(cluster)
    for path, role in ((cluster.log_place, "log"), (cluster.temp_place, "temp")):
        if path is not None:
            data_dirs.claim(str(path), role)
    if cluster.log_place is not None:
        (cluster.log_place / "cluster").write_text(f"{cluster.files}\n")
    if (cluster.files / "PG_VERSION").is_file():
        for tree in (cluster.files, Path(os.path.realpath(cluster.files / "pg_wal")), cluster.temp):
            if tree is not None and tree.is_dir():
                identity.give_tree(tree)
        _drop_stale_pid_file(cluster)
    else:
        _create(cluster, installation, identity)
    if cluster.temp is not None:
        cluster.temp.mkdir(mode=0o700, exist_ok=True)
        identity.give(cluster.temp)


def checksums_differ(cluster: Cluster, installation: PostgresInstallation, wanted: bool | None) -> bool:
    """Returns whether the cluster's page checksums must be enabled or disabled."""
    return wanted is not None and wanted != (_controldata(cluster, installation, "Data page checksum version") != "0")


def set_checksums(
    cluster: Cluster, installation: PostgresInstallation, identity: Identity, wanted: bool | None
) -> None:
    """Enables or disables page checksums. This requires a clean shutdown (PostgreSQL 18 documentation,
    pg_checksums)."""
    if wanted is not None and checksums_differ(cluster, installation, wanted):
        change = "--enable" if wanted else "--disable"
        _run([installation.program("pg_checksums"), change, "-D", str(cluster.files)], cluster, identity)


def needs_recovery(cluster: Cluster, installation: PostgresInstallation) -> bool:
    """Returns whether the server must run crash recovery before the WAL can be moved. The recovery needs the WAL in its
    previous directory."""
    return _log_is_elsewhere(cluster) and not shut_down(cluster, installation)


def place_log(cluster: Cluster, installation: PostgresInstallation, identity: Identity) -> None:
    """Moves pg_wal to the directory of the layout. After a clean shutdown, the WAL is not needed. The WAL is therefore
    not copied, and pg_resetwal starts a new one. This also repairs a cluster that has lost its WAL, because the WAL was
    in memory and the machine restarted. Raises FailureError."""
    link = cluster.files / "pg_wal"
    before = Path(os.path.realpath(link))
    moved = _log_is_elsewhere(cluster)
    if not moved and _has_segments(cluster.wal):
        return
    if not shut_down(cluster, installation):
        raise FailureError(
            f"data directory {cluster.place}",
            f"the server was not shut down cleanly, and its WAL is missing in {before}",
            "remove the data directory; ironbench then creates a new one",
        )
    _make_log_directory(cluster, identity)
    if moved:
        _point(link, cluster)
    _run([installation.program("pg_resetwal"), "-D", str(cluster.files)], cluster, identity)
    if moved and before.is_dir() and before.name == "wal":
        shutil.rmtree(before, ignore_errors=True)
        (before.parent / "cluster").unlink(missing_ok=True)
    shutil.rmtree(cluster.files / "pg_wal.old", ignore_errors=True)


def _log_is_elsewhere(cluster: Cluster) -> bool:
    """Returns whether pg_wal is outside the directory of the layout."""
    link = cluster.files / "pg_wal"
    if cluster.log_place is None:
        return link.is_symlink()
    return os.path.realpath(link) != os.path.realpath(cluster.wal)


def _point(link: Path, cluster: Cluster) -> None:
    """Replaces pg_wal with a link to the layout's directory. After a crash between any two steps, all steps can be
    repeated."""
    if cluster.log_place is None:
        link.unlink()
        (cluster.files / "pg_wal.new").rename(link)
        return
    if not link.is_symlink():
        link.rename(cluster.files / "pg_wal.old")
    aside = cluster.files / "pg_wal.link"
    aside.unlink(missing_ok=True)
    aside.symlink_to(cluster.wal)
    aside.replace(link)


def _make_log_directory(cluster: Cluster, identity: Identity) -> None:
    wal = cluster.wal
    if cluster.log_place is None and (cluster.files / "pg_wal").is_symlink():
        wal = cluster.files / "pg_wal.new"
    shutil.rmtree(wal, ignore_errors=True)
    parts = (wal, wal / "archive_status", wal / "summaries")
    for part in parts:
        part.mkdir(mode=0o700)
    identity.give(*parts)


def _create(cluster: Cluster, installation: PostgresInstallation, identity: Identity) -> None:
    """Runs initdb in a temporary directory and renames it, so that `cluster` is always complete."""
    aside = cluster.place / "cluster.new"
    shutil.rmtree(aside, ignore_errors=True)
    shutil.rmtree(cluster.files, ignore_errors=True)
    aside.mkdir(mode=0o700)
    identity.give(aside)
    command = [installation.program("initdb"), "-D", str(aside), "--no-instructions", *flags(installation)]
    if cluster.log_place is not None:
        shutil.rmtree(cluster.wal, ignore_errors=True)
        cluster.wal.mkdir(mode=0o700)
        identity.give(cluster.wal)
        command += ["--waldir", str(cluster.wal)]
    try:
        _run(command, cluster, identity)
    except FailureError:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    aside.rename(cluster.files)


def flags(installation: PostgresInstallation) -> tuple[str, ...]:
    """Returns the options of initdb. These options affect the files permanently."""
    # The builtin provider sorts in the same way everywhere, and needs neither ICU nor the C library's locales.
    locale = ("--locale-provider=builtin", "--locale=C.UTF-8") if installation.major >= 17 else ("--no-locale",)
    return ("-U", USER, "-E", "UTF8", "--auth=trust", *locale)


def _run(command: list[str], cluster: Cluster, identity: Identity) -> None:
    # initdb must end together with ironbench. Otherwise, it might fail later and delete its directory, although the
    # directory may contain another cluster by then.
    done = programs.run_program(
        [*identity.prefix, *programs.tied(), *command], environment=environment(), timeout_s=None
    )
    if done.returncode != 0:
        raise FailureError(
            f"data directory {cluster.place}", f"{Path(command[0]).name} failed: {complaint(done.stderr)}"
        )


def environment() -> dict[str, str]:
    """Returns the environment for the server's programs. The user's PG* variables are removed, and messages are in
    English."""
    return programs.environment_without("PG")


def shut_down(cluster: Cluster, installation: PostgresInstallation) -> bool:
    """Returns whether the last server on the cluster was shut down cleanly."""
    return _controldata(cluster, installation, "Database cluster state") == "shut down"


def _controldata(cluster: Cluster, installation: PostgresInstallation, line: str) -> str:
    """Returns a value printed by pg_controldata. Returns "" if the value is missing."""
    words = [installation.program("pg_controldata"), "-D", str(cluster.files)]
    done = programs.run_program(words, environment=environment())
    found = re.search(rf"^{line}:\s+(.*)$", done.stdout, re.MULTILINE)
    return found[1].strip() if found else ""


def _has_segments(wal: Path) -> bool:
    try:
        return any(_SEGMENT.fullmatch(path.name) for path in wal.iterdir())
    except OSError:
        return False


def _drop_stale_pid_file(cluster: Cluster) -> None:
    """Removes postmaster.pid. No process works in the directory, so the process in this file is dead. If its process id
    has been reused, PostgreSQL would refuse to start."""
    (cluster.files / "postmaster.pid").unlink(missing_ok=True)


def _refuse_log_of_another(cluster: Cluster) -> None:
    """Raises InputError if the log directory belongs to another cluster. The note `cluster` in it names the cluster to
    which it belongs."""
    if cluster.log_place is None:
        return
    try:
        owner = Path((cluster.log_place / "cluster").read_text().strip())
    except OSError:
        return
    if owner != cluster.files and os.path.realpath(owner / "pg_wal") == os.path.realpath(cluster.wal):
        raise InputError(
            f"log directory {cluster.log_place}",
            f"contains the WAL of the cluster in {owner.parent}",
            f"use another directory with {written('layout.log')}",
        )
