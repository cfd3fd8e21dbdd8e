"""Notes that people make on records and labs: files beside them, `notes/ID.md`, never in them."""

from __future__ import annotations

from pathlib import Path

from ironbench.errors import InputError
from ironbench.records import durable
from ironbench.serve.shelf import is_name

LONGEST = 65_536
"""Bytes of a note."""
OF_LAB = "lab"
"""What the note on a whole lab is called."""


def read(store: Path, id: str) -> str:
    """Empty where there is none."""
    try:
        return _path(store, id).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def write(store: Path, id: str, text: str) -> None:
    """An empty text removes the note. InputError, UnwrittenError."""
    path, data = _path(store, id), text.replace("\r\n", "\n").strip().encode(errors="replace")
    if len(data) > LONGEST:
        raise InputError(f"note on {id}", f"is longer than {LONGEST >> 10} KiB", "shorten it")
    if data:
        durable.write_whole(path, data + b"\n")
    else:
        path.unlink(missing_ok=True)


def note(store: Path, id: str, action: str) -> tuple[str, str]:
    """For a form: the text, and where a new one is sent."""
    return read(store, id), action


def _path(store: Path, id: str) -> Path:
    if not is_name(id):
        raise InputError(f"note on {id}", "is no name of a record", "open the record first")
    return store / "notes" / f"{id}.md"
