"""The user's own data in SQLite: the file of a database, which is copied and never opened where it lies."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ironbench.catalogue.typed import text_of
from ironbench.engines.data_import import DataImport, Dump, Show
from ironbench.engines.sqlite.session import FILE
from ironbench.errors import FailureError, InputError
from ironbench.machine import copies
from ironbench.model.session import Session
from ironbench.model.system import System
from ironbench.process import place

_MAGIC = b"SQLite format 3\0"
_LOGS = ("-wal", "-journal")
_LARGEST_SETUP = 1 << 28
"""Bytes of SQL, which are in memory as a whole."""


class SqliteDataImport(DataImport):
    dumps = "the file of an SQLite database, closed"
    setup = True

    def examined(self, system: System, dump: Path) -> Dump:
        subject = f"dump {dump}"
        if dump.is_dir():
            raise InputError(subject, "is a directory", "name the file of the database")
        with dump.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                hint = "name the file itself; SQL goes into setup files"
                raise InputError(subject, "is not the file of an SQLite database", hint)
        for suffix in _LOGS:
            log = dump.with_name(dump.name + suffix)
            if log.exists() and log.stat().st_size:
                cause = f"{log.name} beside it holds changes that are not in it, or it is in use"
                hint = 'close it, or copy it by sqlite3 FILE ".backup COPY"'
                raise InputError(subject, cause, hint)
        return Dump("SQLite database file", "SQLite", dump.stat().st_size)

    def placed(self, system: System, dump: Path) -> None:
        folder = place.claim(str(system.layout.data), "data")
        copies.file(dump, folder / FILE)
        os.chmod(folder / FILE, stat.S_IRUSR | stat.S_IWUSR)  # noqa: PTH101 - whatever the original's owner allows

    def restored(self, session: Session, dump: Path, jobs: int, show: Show) -> None:
        verdict = session.query("pragma quick_check(1)")[0][0] or ""
        if verdict != "ok":
            raise FailureError(
                f"dump {dump}", f"the file is damaged: {verdict}", "nothing of it is measured; repair it"
            )

    def set_up(self, session: Session, file: Path, show: Show) -> None:
        text = text_of(file, str(file), "name a file of SQL", _LARGEST_SETUP)
        session.query("pragma synchronous = off")  # of this connection: the file is synced as a whole afterwards
        try:
            session.query(text)
        except FailureError as error:
            raise FailureError(str(file), error.cause, "nothing of it is measured; correct the file") from None

    def settled(self, session: Session) -> int:
        session.query("analyze")
        session.query("pragma wal_checkpoint(truncate)")
        return int(
            session.query("select page_count * page_size from pragma_page_count(), pragma_page_size()")[0][0] or 0
        )
