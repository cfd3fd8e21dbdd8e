"""The files of a directory server. The files are created once, filled offline, and copied while the server is
stopped."""

from __future__ import annotations

import itertools
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ironbench.engines.own_files import NOTE, copy_back, next_kept, note, refuse_running, refuse_version, write_note
from ironbench.engines.slapd import settings as server_settings
from ironbench.engines.slapd.installation import OpenldapInstallation
from ironbench.engines.slapd.settings import BASE
from ironbench.errors import EntryRefusedError, FailureError
from ironbench.host import copies, data_dirs, programs
from ironbench.host.copies import CopyResult
from ironbench.model.system import Layout

FILES = "files"
"""Name of the data directory in a snapshot's folder."""
_LEFT_OUT = (NOTE, f"{NOTE}.new", "lock.mdb")
"""Files that are not copied. lock.mdb lists the processes that have the database open. The first such process recreates
the file (lmdb.h)."""
SUFFIX = f"dn: {BASE}\nobjectClass: dcObject\nobjectClass: organization\no: example\n\n".encode()


@dataclass(frozen=True, slots=True)
class SlapdHome:
    place: Path
    """Directory of ironbench that contains the database in `files` and the server's log `server.log`."""

    @property
    def files(self) -> Path:
        return self.place / FILES

    @property
    def messages(self) -> Path:
        return self.place / "server.log"

    @property
    def options(self) -> Path:
        return self.place / "slapd.conf"


def of(layout: Layout, installation: OpenldapInstallation) -> SlapdHome:
    return SlapdHome(Path(layout.data or str(data_dirs.default("slapd", installation.major))))


def validate(home: SlapdHome, installation: OpenldapInstallation) -> None:
    """Raises InputError if the directory cannot be used. Changes nothing."""
    data_dirs.check(str(home.place), "data")
    made_by = note(home.files).get("version") or installation.major
    refuse_version(home.place, "OpenLDAP", made_by, installation.major, installation.version)


def prepare(home: SlapdHome, installation: OpenldapInstallation, settings: Mapping[str, str]) -> None:
    """Creates missing files. A new database contains only the entry of its suffix. Raises FailureError."""
    refuse_running(home.files, home.place)
    if not home.files.is_dir():
        load_offline(home, installation, settings, ())


def load_offline(
    home: SlapdHome, installation: OpenldapInstallation, settings: Mapping[str, str], pieces: Iterable[bytes]
) -> None:
    """Loads the suffix and LDIF data into a new database. Then the new database replaces the old one. If loading fails,
    keeps the old database and raises FailureError."""
    aside = home.place / "files.new"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(mode=0o700)
    options = home.place / "load.conf"
    try:
        write_private(options, server_settings.as_file(settings, installation, aside, "none"))
        words = [str(installation.loader), "-q", "-f", str(options), "-b", BASE]
        programs.fed(words, environment(), itertools.chain((SUFFIX,), pieces))
        write_note(aside, {"version": installation.major})
        shutil.rmtree(home.files, ignore_errors=True)
        aside.rename(home.files)
    except FailureError as error:
        shutil.rmtree(aside, ignore_errors=True)
        cause = _LINE.sub("", error.cause)
        refused = EntryRefusedError(f"data directory {home.place}", f"cannot load the entries: {cause}")
        if found := _REFUSED.search(error.cause):
            refused.dn = found[1]
        raise refused from error
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    finally:
        options.unlink(missing_ok=True)


_LINE = re.compile(r" \(line=\d+\)")
"""Pattern of a line number in messages. The number refers to slapadd's input, whose lines differ from the lines of the
user's file."""
_REFUSED = re.compile(rf'dn="(.*?)"{_LINE.pattern}')
"""Pattern of a message of slapadd about a refused entry. The message names the entry (`get_dn` in
servers/slapd/slapadd.c)."""


def environment() -> dict[str, str]:
    """Returns the environment for the server's programs. Variables that select another server are removed."""
    return programs.environment_without("LDAP", "SLAPD")


def write_private(path: Path, text: str) -> None:
    """Writes a file that only its owner can read, because the file contains the password for this start."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


def take(home: SlapdHome, folder: Path, *, keep: bool) -> CopyResult:
    """Copies a stopped server's files into a new `folder`. Without `keep`, files are hard-linked. Raises
    FailureError."""
    refuse_running(home.files, home.place)
    with copies.atomic_directory(folder) as aside:
        done = copies.tree(home.files, aside / FILES, _LEFT_OUT.__contains__, link=not keep)
        write_note(aside / FILES, {"version": note(home.files).get("version", "")})
    return done


def put_back(home: SlapdHome, folder: Path) -> CopyResult:
    """Replaces the files of a stopped server with the copy in `folder`. Raises FailureError, and InputError if there is
    not enough space. If the replaced files did not come from a snapshot, they are renamed to `files.kept-N`."""
    refuse_running(home.files, home.place)
    if home.files.exists():
        if "snapshot" in note(home.files):
            shutil.rmtree(home.files)
        else:
            home.files.rename(next_kept(home.files))
    return copy_back(folder, home.files)
