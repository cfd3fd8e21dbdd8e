"""Decodes the document of a record, whichever version wrote it."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from ironbench.model.note import TEXT, Note
from ironbench.model.record import NOTES_SINCE, Record


class _Warning(msgspec.Struct):
    code: str
    text: str = ""


class _Earlier(msgspec.Struct):
    warnings: tuple[_Warning, ...] = ()


# Made at import: two threads that use a type for the first time at once crash (msgspec 0.22, serve/app.py).
_RECORD = msgspec.json.Decoder(Record)
_EARLIER = msgspec.json.Decoder(_Earlier)


def decoded(data: bytes) -> Record:
    """Returns the record in a document. msgspec.DecodeError.

    The warnings of records before schema 4 are sentences: their notes have a code and that text.
    """
    found = _RECORD.decode(data)
    if found.schema >= NOTES_SINCE or not found.warnings:
        return found
    warnings = tuple(Note(one.code, {TEXT: one.text}) for one in _EARLIER.decode(data).warnings)
    return replace(found, warnings=warnings)
