"""Makes snapshots of a stopped cluster, and restores them.

A snapshot contains no WAL, because the WAL is not needed after a clean shutdown. `cluster.place_log` starts a new WAL
in the directory of the layout. Usage statistics are also omitted, so that the counters of every restored cluster start
from zero.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

from ironbench.engines import own_files
from ironbench.engines.postgres import cluster as clusters
from ironbench.engines.postgres.cluster import Cluster
from ironbench.engines.postgres.installation import PostgresInstallation
from ironbench.errors import FailureError
from ironbench.host import copies, data_dirs, space
from ironbench.host.copies import CopyResult
from ironbench.host.programs import output

FILES = "cluster"
"""Name of the cluster's directory in a snapshot's folder."""
NOTE = "ironbench-restored"
"""Name of a file in a restored cluster. The file contains the name of the snapshot. A cluster without this file is
never removed, because it may be the user's."""
_EMPTIED = ("pg_stat", "pg_stat_tmp")
"""Directories whose contents a snapshot omits."""
_LEFT_OUT = ("postmaster.pid", "postmaster.opts", NOTE)


def take(cluster: Cluster, installation: PostgresInstallation, folder: Path, *, keep: bool) -> CopyResult:
    """Copies a stopped cluster into a new `folder`. Without `keep`, files are hard-linked. Raises FailureError."""
    own_files.refuse_running(cluster.files, cluster.place)
    _require_shut_down(cluster, installation)
    with copies.atomic_directory(folder) as aside:
        done = copies.tree(cluster.files, aside / FILES, _skipped, link=not keep)
        _empty_log(aside / FILES)
    return done


def put_back(cluster: Cluster, installation: PostgresInstallation, folder: Path) -> CopyResult:
    """Replaces a stopped cluster with the copy in `folder`. The caller holds the lock of the directory. Raises
    FailureError, and InputError if there is not enough space. If the replaced cluster did not come from a snapshot, it
    is renamed to `cluster.kept-N`."""
    own_files.refuse_running(cluster.files, cluster.place)
    _remove_or_keep(cluster, installation)
    aside = cluster.place / "cluster.new"
    shutil.rmtree(aside, ignore_errors=True)
    space.require(cluster.place, copies.size(folder), "the copy of the data")
    done = copies.tree(folder / FILES, aside)
    _point_tablespaces(aside, cluster, installation)
    (aside / NOTE).write_text(json.dumps({"snapshot": folder.name}) + "\n")
    copies.put(aside, cluster.files)
    copies.evict(folder)
    return done


def restored(cluster: Cluster) -> bool:
    """Returns whether the cluster was restored from a snapshot."""
    return (cluster.files / NOTE).is_file()


def _skipped(name: str) -> bool:
    top, _, rest = name.partition("/")
    return name in _LEFT_OUT or top == "pg_wal" or (top in _EMPTIED and bool(rest))


def _empty_log(files: Path) -> None:
    for name in ("pg_wal", "pg_wal/archive_status", "pg_wal/summaries"):
        (files / name).mkdir(mode=0o700)


def _require_shut_down(cluster: Cluster, installation: PostgresInstallation) -> None:
    if not clusters.shut_down(cluster, installation):
        raise FailureError(
            f"data directory {cluster.place}",
            "the server was not shut down cleanly, so its files alone are inconsistent",
            "start and stop the server once, or remove the directory",
        )


def _remove_or_keep(cluster: Cluster, installation: PostgresInstallation) -> None:
    gone = cluster.place / "cluster.old"
    shutil.rmtree(gone, ignore_errors=True)  # an earlier removal was interrupted if the directory exists
    if not cluster.files.exists():
        return
    if not restored(cluster):
        _keep(cluster, installation)
        return
    _give_up_log(cluster)
    cluster.files.rename(gone)
    shutil.rmtree(gone)


def _keep(cluster: Cluster, installation: PostgresInstallation) -> None:
    """Keeps the cluster under a new name. Raises FailureError if the cluster still needs a separate WAL, because such a
    cluster cannot be moved."""
    if (cluster.files / "pg_wal").is_symlink():
        _require_shut_down(cluster, installation)
    cluster.files.rename(own_files.next_kept(cluster.files))


def _give_up_log(cluster: Cluster) -> None:
    """Removes this cluster's WAL if it is in a separate directory of ironbench."""
    link = cluster.files / "pg_wal"
    if not link.is_symlink():
        return
    log = Path(os.path.realpath(link))
    note = log.parent / "cluster"
    if (
        log.name == "wal"
        and data_dirs.ours(log.parent)
        and note.is_file()
        and note.read_text().strip() == str(cluster.files)
    ):
        shutil.rmtree(log, ignore_errors=True)


def _point_tablespaces(files: Path, cluster: Cluster, installation: PostgresInstallation) -> None:
    """If the copied cluster has a temporary tablespace, points its link to the empty directory that the server expects.
    The directory is created again when the server starts."""
    empty = cluster.temp or cluster.place / "temp.none"
    for link in (files / "pg_tblspc").iterdir():
        if link.is_symlink():
            link.unlink()
            link.symlink_to(empty)
            _empty_tablespace(empty, files, installation)
            return
    if cluster.temp is not None and cluster.temp_place is not None and data_dirs.ours(cluster.temp_place):
        shutil.rmtree(cluster.temp, ignore_errors=True)  # the restored cluster has no tablespace in this directory


def _empty_tablespace(directory: Path, files: Path, installation: PostgresInstallation) -> None:
    """Creates a tablespace's subdirectory `PG_<major>_<catalog version>` (PostgreSQL: GetTablespaceDirectory,
    catalog.h)."""
    control = output([installation.program("pg_controldata"), "-D", str(files)], "pg_controldata")
    number = re.search(r"^Catalog version number:\s+(\d+)$", control, re.MULTILINE)
    if number is None:
        raise FailureError(f"data directory {files}", "pg_controldata did not print a catalog version")
    shutil.rmtree(directory, ignore_errors=True)
    (directory / f"PG_{installation.major}_{number.group(1)}").mkdir(mode=0o700, parents=True)
