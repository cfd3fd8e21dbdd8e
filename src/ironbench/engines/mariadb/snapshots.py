"""Makes snapshots of a stopped server's files, including its redo log, and restores them."""

from __future__ import annotations

import shutil
from pathlib import Path

from ironbench.engines import own_files
from ironbench.engines.mariadb import home as homes
from ironbench.engines.mariadb.home import LOG_FILE, MariadbHome
from ironbench.engines.own_files import NOTE
from ironbench.host import copies
from ironbench.host.copies import CopyResult

FILES = "files"
"""Name of the data directory in a snapshot's folder."""
_LEFT_OUT = (NOTE, f"{NOTE}.new", LOG_FILE, "ib_buffer_pool")


def take(home: MariadbHome, folder: Path, *, keep: bool) -> CopyResult:
    """Copies the files of a stopped server into a new `folder`. Without `keep`, files are hard-linked. The copy
    includes the log, so it is consistent even if the server crashed. Raises FailureError."""
    own_files.refuse_running(home.files, home.place)
    log, known = homes.log_file(home.files), own_files.note(home.files)
    with copies.atomic_directory(folder) as aside:
        done = copies.tree(home.files, aside / FILES, _LEFT_OUT.__contains__, link=not keep)
        link = not keep and log.stat().st_dev == aside.stat().st_dev
        done += copies.file(log, aside / FILES / LOG_FILE, link=link)
        own_files.write_note(aside / FILES, {"version": known.get("version", "")})
    return done


def put_back(home: MariadbHome, folder: Path) -> CopyResult:
    """Replaces the files of a stopped server with the copy in `folder`. The caller holds the lock of the directory.
    Raises FailureError, and InputError if there is not enough space. If the replaced files did not come from a
    snapshot, they are renamed to `files.kept-N`."""
    own_files.refuse_running(home.files, home.place)
    _remove_or_keep(home)
    return own_files.copy_back(folder, home.files)


def restored(home: MariadbHome) -> bool:
    """Returns whether the files were restored from a snapshot."""
    return "snapshot" in own_files.note(home.files)


def _remove_or_keep(home: MariadbHome) -> None:
    gone = home.place / "files.old"
    shutil.rmtree(gone, ignore_errors=True)  # an earlier removal was interrupted if the directory exists
    if not home.files.exists():
        return
    if restored(home):
        homes.remove_log(home.files)
        home.files.rename(gone)
        shutil.rmtree(gone)
        return
    homes.move_log_into_data(home.files)
    home.files.rename(own_files.next_kept(home.files))
