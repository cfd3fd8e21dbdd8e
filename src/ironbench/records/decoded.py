"""Decodes the JSON document of a record, no matter which version of ironbench wrote it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from ironbench.model.note import TEXT, Note, text_note
from ironbench.model.purpose import Purpose
from ironbench.model.record import CAUSES_SINCE, DUET, NOT_BACK, NOT_WHOLE, NOTES_SINCE, SLICES, Record
from ironbench.model.search import Limit


class _Warning(msgspec.Struct):
    code: str
    text: str = ""


class _WithSentences(msgspec.Struct):
    warnings: tuple[_Warning, ...] = ()


class _WithCause(msgspec.Struct):
    cause: str = ""


# The decoder is created when the module is imported. msgspec 0.22 crashes if two threads use a type for the first time
# at the same moment (see serve/app.py).
_RECORD = msgspec.json.Decoder(Record)
_WITH_SENTENCES = msgspec.json.Decoder(_WithSentences)
_WITH_CAUSE = msgspec.json.Decoder(_WithCause)


def decoded(data: bytes) -> Record:
    """Returns the record in a JSON document. Raises msgspec.DecodeError.

    Old records contain sentences: warnings are sentences before schema 4, and causes are sentences before schema 5.
    Each sentence is converted to a note with a code and the sentence.
    """
    found = _RECORD.decode(data)
    if found.schema >= CAUSES_SINCE:
        return found
    cause = _WITH_CAUSE.decode(data).cause
    fields: dict[str, Any] = {"causes": (_cause(cause),) if cause else ()}
    if found.schema < NOTES_SINCE and found.warnings:
        warnings = _WITH_SENTENCES.decode(data).warnings
        fields["warnings"] = tuple(Note(one.code, {TEXT: one.text}) for one in warnings)
    return replace(found, **fields, **_from_conditions(found))


def _cause(text: str) -> Note:
    """Converts the cause in an old record to a note. Two kinds of causes get their own code. These two kinds are
    recognised by the wording of the sentence."""
    if text.startswith("its block is not whole"):
        return Note(NOT_WHOLE, {TEXT: text})
    if "afterwards the database does not start" in text:
        return Note(NOT_BACK, {TEXT: text})
    return text_note(text)


def _from_conditions(record: Record) -> dict[str, Any]:
    """Converts conditions of a record before schema 5 to present fields. Returns the fields and the remaining
    conditions."""
    conditions = dict(record.conditions)
    fields: dict[str, Any] = {"conditions": conditions}
    if since := conditions.pop("side by side since", ""):
        fields |= {"turns_since": since, "method": DUET if "at once" in conditions else SLICES}
    fields["seed_given"] = bool(conditions.pop("seed", ""))
    fields["crash"] = conditions.pop("crash", "")
    fields["power_cut"] = "power" in conditions
    if record.purpose != Purpose.SEARCH and (result := conditions.pop("search", "")):
        fields["search_result"] = text_note(result)
    if answers := conditions.pop("answers", ""):
        unchecked = answers.startswith("not checked")
        words = f"answers {answers}" if unchecked else f"answers checked: {answers}"
        fields["answers"] = Note("answers-unchecked" if unchecked else "answers-checked", {TEXT: words})
    for name, between in (("search limits", " <= "), ("limits", " at most ")):
        if limits := _limits(conditions.get(name, ""), between):
            del conditions[name]
            fields["limits"] = limits
    if span := _range(conditions.get("range searched", "")):
        del conditions["range searched"]
        fields["search_range"] = span
    return fields


def _limits(text: str, between: str) -> tuple[Limit, ...]:
    """Parses `response_time_p99_s at most 0.02, …`. Returns an empty tuple for other texts."""
    try:
        pairs = (one.rpartition(between) for one in text.split(", "))
        return tuple(Limit(metric, float(most)) for metric, _, most in pairs)
    except ValueError:
        return ()


def _range(text: str) -> tuple[int, int] | None:
    """Parses `1 to 128 clients`. Returns None for other texts."""
    try:
        low, _, high = text.split()[:3]
        return int(low), int(high)
    except ValueError:
        return None
