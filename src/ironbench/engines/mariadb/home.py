"""The files of a MariaDB server. The files are created once and then reused.

The redo log is moved to the directory that the layout names. InnoDB cannot open data without their redo log, not even
after a clean shutdown. The log is therefore always kept, copied and removed together with its data.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ironbench.engines.identity import Identity
from ironbench.engines.mariadb.installation import MariadbInstallation, complaint
from ironbench.engines.own_files import note, refuse_running, refuse_version, write_note
from ironbench.errors import FailureError, InputError, written
from ironbench.host import copies, data_dirs, programs
from ironbench.model.system import Layout

DATABASE = "ironbench"
LOG_FILE = "ib_logfile0"
_OWNER = "owner"
"""Name of a file next to a redo log. The file contains the path of the data directory to which the log belongs."""


@dataclass(frozen=True, slots=True)
class MariadbHome:
    """Locations of one server's files."""

    place: Path
    """Directory of ironbench that contains the data directory `files` and the server's log `server.log`."""
    log_place: Path | None = None
    temp_place: Path | None = None

    @property
    def files(self) -> Path:
        return self.place / "files"

    @property
    def messages(self) -> Path:
        return self.place / "server.log"

    @property
    def options(self) -> Path:
        return self.place / "server.cnf"

    @property
    def log(self) -> Path:
        """Directory of the redo log according to the layout."""
        return (self.log_place or self.place) / "log"

    @property
    def temp(self) -> Path:
        """Directory of temporary files according to the layout."""
        return (self.temp_place or self.place) / "temp"


def of(layout: Layout, installation: MariadbInstallation) -> MariadbHome:
    """Returns the locations of the files of a layout."""
    data = layout.data or str(data_dirs.default("mariadb", installation.major))
    return MariadbHome(
        Path(data),
        None if layout.log is None else Path(layout.log),
        None if layout.temp is None else Path(layout.temp),
    )


def validate(home: MariadbHome, installation: MariadbInstallation) -> None:
    """Raises InputError if the directories cannot be used. Changes nothing."""
    data_dirs.check(str(home.place), "data")
    made_by = note(home.files).get("version") or installation.major
    refuse_version(home.place, "MariaDB", made_by, installation.major, installation.version)
    for path, role in ((home.log_place, "log"), (home.temp_place, "temp")):
        if path is not None:
            data_dirs.check(str(path), role)
    _refuse_log_of_another(home)


def prepare(home: MariadbHome, installation: MariadbInstallation, identity: Identity, shape: Mapping[str, str]) -> None:
    """Creates missing files, and moves the log to its directory. The caller must hold the lock.

    `shape`: settings that take effect only when the files are created. Raises InputError and FailureError.
    """
    refuse_running(home.files, home.place)
    _refuse_log_of_another(home)
    for path, role in ((home.log_place, "log"), (home.temp_place, "temp")):
        if path is not None:
            data_dirs.claim(str(path), role)
    if not home.files.is_dir():
        _create(home, installation, identity, shape)
    _place_log(home)
    for folder in (home.log, home.temp):
        folder.mkdir(mode=0o700, exist_ok=True)
    for tree in (home.files, home.log, home.temp):
        identity.give_tree(tree)
    # The log may be a new copy with a different owner, although its directory has the right owner.
    identity.give(home.log / LOG_FILE)


def log_file(files: Path) -> Path:
    """Returns the current path of a data directory's redo log. Raises FailureError if the log is missing."""
    file = Path(note(files).get("log", files)) / LOG_FILE
    for there in (file, files / LOG_FILE):
        if there.is_file():
            return there
    raise FailureError(
        f"data directory {files.parent}",
        f"the redo log is missing in {file.parent}",
        "remove the data directory; ironbench then creates a new one",
    )


def _place_log(home: MariadbHome) -> None:
    """Moves the redo log to the directory of the layout. After a crash between any two steps, all steps can be
    repeated."""
    wanted = home.log / LOG_FILE
    if wanted.is_file() and note(home.files).get("log") == str(home.log):
        return
    now = log_file(home.files)
    home.log.mkdir(mode=0o700, exist_ok=True)
    (home.log / _OWNER).write_text(f"{home.files}\n")
    _move_log(home.files, now, home.log)


def move_log_into_data(files: Path) -> None:
    """Moves the log into the data directory, so that both can be moved together. Raises FailureError."""
    now = log_file(files)
    if now.parent != files:
        _move_log(files, now, files)


def remove_log(files: Path) -> None:
    """Removes a separate log of a data directory that is about to be removed."""
    log = Path(note(files).get("log", files))
    if log != files and _owner(log) == files:
        shutil.rmtree(log, ignore_errors=True)


def _move_log(files: Path, now: Path, folder: Path) -> None:
    aside = folder / f"{LOG_FILE}.new"
    aside.unlink(missing_ok=True)
    copies.file(now, aside, link=now.stat().st_dev == folder.stat().st_dev)
    copies.put(aside, folder / LOG_FILE)
    write_note(files, note(files) | {"log": str(folder)})
    now.unlink()
    (now.parent / _OWNER).unlink(missing_ok=True)


def _owner(log: Path) -> Path | None:
    try:
        return Path((log / _OWNER).read_text().strip())
    except OSError:
        return None


def _create(home: MariadbHome, installation: MariadbInstallation, identity: Identity, shape: Mapping[str, str]) -> None:
    """Installs the data directory under a temporary name and renames it, so that `files` is always complete."""
    aside = home.place / "files.new"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(mode=0o700)
    identity.give(aside)
    options = home.place / "install.cnf"
    lines = [option_line(name, value) for name, value in shape.items()]
    options.write_text("\n".join(["[mariadbd]", option_line("tmpdir", str(aside)), *lines]) + "\n")
    command = [
        *(str(installation.server), f"--defaults-file={options}", f"--basedir={installation.base}"),
        *(f"--datadir={aside}", "--bootstrap", "--skip-name-resolve", "--enforce-storage-engine="),
    ]
    try:
        done = programs.run_program(
            [*identity.prefix, *programs.tied(), *command],
            environment=environment(),
            timeout_s=None,
            given=installation.system_tables(),
        )
        if done.returncode != 0:
            cause = f"cannot create the system tables: {complaint(done.stdout + done.stderr)}"
            raise FailureError(f"data directory {home.place}", cause)
    except FailureError:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    finally:
        options.unlink(missing_ok=True)
    write_note(aside, {"version": installation.major})
    aside.rename(home.files)


def option_line(name: str, value: str) -> str:
    """Formats a line of an option file (https://mariadb.com/kb/en/configuring-mariadb-with-option-files/)."""
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name} = "{quoted}"'


def environment() -> dict[str, str]:
    """Returns the environment for the server's programs. Variables that select another server or language are
    removed."""
    return programs.environment_without("MYSQL", "MARIADB")


def _refuse_log_of_another(home: MariadbHome) -> None:
    owner = _owner(home.log)
    if owner not in (None, home.files) and note(owner).get("log") == str(home.log):
        raise InputError(
            f"log directory {home.log.parent}",
            f"contains the redo log of the data in {owner.parent}",
            f"use another directory with {written('layout.log')}",
        )
