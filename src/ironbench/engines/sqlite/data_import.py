"""Imports the user's own data into SQLite. The data are a database file, which is copied and never opened in place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ironbench.engines.data_import import DataImport, Dump, RestoreResult, Show
from ironbench.engines.library import place_file, require_closed, setup_text
from ironbench.engines.sqlite.session import FILE
from ironbench.errors import FailureError
from ironbench.model.session import Session
from ironbench.model.system import System

_MAGIC = b"SQLite format 3\0"
_LOGS = ("-wal", "-journal")
_NO_WORDS = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|--[^\n]*|/\*.*?(?:\*/|\Z)""", re.DOTALL
)
"""Pattern of text without keywords: literals, quoted names and comments (https://www.sqlite.org/lang_keywords.html,
lang_comment.html)."""
_OTHER_FILE = re.compile(r"(?:\A|;)\s*(attach\b|vacuum\b[^;]*\binto\b)", re.IGNORECASE)


class SqliteDataImport(DataImport):
    dumps = "a closed SQLite database file"
    setup = True

    def examined(self, system: System, dump: Path) -> Dump:
        hint = 'close the database, or copy it: sqlite3 FILE ".backup COPY"'
        require_closed(dump, "an SQLite database", _MAGIC, 0, _LOGS, hint)
        return Dump("SQLite database file", "SQLite", dump.stat().st_size)

    def place_dump(self, system: System, dump: Path) -> None:
        place_file(system, dump, FILE)

    def restored(self, session: Session, dump: Path, jobs: int, show: Show) -> RestoreResult:
        verdict = session.query("pragma quick_check(1)")[0][0] or ""
        if verdict != "ok":
            raise FailureError(f"dump {dump}", f"the file is damaged: {verdict}", "repair the file")
        return RestoreResult()

    def set_up(self, session: Session, file: Path, show: Show, dump: Path | None = None) -> Mapping[str, int]:
        """Runs the SQL file. Statements that access other files are refused, because the content key of the data covers
        only the SQL file and the dump."""
        text = setup_text(file)
        if (word := _other_file(text)) is not None:
            cause = f"the file accesses data outside the database: {word} opens another file"
            raise FailureError(str(file), cause, "load all data into one SQLite file, and use that as the dump")
        # This setting applies only to this connection. The whole file is synced afterwards.
        session.query("pragma synchronous = off")
        try:
            session.query(text)
        except FailureError as error:
            raise FailureError(str(file), error.cause, "correct the file") from None
        return {}

    def finish_load(self, session: Session) -> None:
        session.query("analyze")
        session.query("pragma wal_checkpoint(truncate)")


def _other_file(text: str) -> str | None:
    """Returns the kind of statement that accesses another file. Returns None if no statement does."""
    if re.search(r"attach|vacuum", text, re.IGNORECASE) is None:
        return None
    found = _OTHER_FILE.search(_NO_WORDS.sub(lambda matched: " " if matched[0][0] in "-/" else "''", text))
    return None if found is None else "ATTACH" if found[1][0] in "aA" else "VACUUM INTO"
