"""Notes that users write on records, series and labs. Notes are files beside the records (`notes/ID.md`), never in
them."""

from __future__ import annotations

from pathlib import Path

from ironbench.errors import InputError
from ironbench.host import durable
from ironbench.serve.results import is_name

LONGEST = 65_536
"""Maximum size of a note in bytes."""
OF_LAB = "lab"
"""Id of the note that belongs to a whole lab."""


def read(store: Path, id: str) -> str:
    """Returns the text of a note. Returns "" if there is none."""
    try:
        return _path(store, id).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def write(store: Path, id: str, text: str) -> None:
    """Writes a note. An empty text removes the note. Raises InputError if the text is too long, and UnwrittenError if
    the file cannot be written."""
    path, data = _path(store, id), text.replace("\r\n", "\n").strip().encode(errors="replace")
    if len(data) > LONGEST:
        raise InputError(f"note on {id}", f"is longer than {LONGEST >> 10} KiB", "shorten the note")
    if data:
        durable.write_whole(path, data + b"\n")
    else:
        path.unlink(missing_ok=True)


def note(store: Path, id: str, action: str) -> tuple[str, str]:
    """Returns the text of a note, and the URL to which its form is sent."""
    return read(store, id), action


def _path(store: Path, id: str) -> Path:
    if not is_name(id):
        raise InputError(f"note on {id}", "is not the name of a record", "open the record first")
    return store / "notes" / f"{id}.md"
