"""Puts notes into words: one function for each code, grouped by subject."""

from __future__ import annotations

from collections.abc import Iterable

from ironbench.model.note import Note
from ironbench.model.record import Record
from ironbench.report.wording import caches, load, machine, slices, storage, study, work
from ironbench.report.wording.registry import WORDING, text

__all__ = ["WORDING", "caches", "cause", "load", "machine", "slices", "storage", "study", "text", "texts", "work"]


def texts(notes: Iterable[Note]) -> list[str]:
    """Each sentence once."""
    return list(dict.fromkeys(map(text, notes)))


def cause(record: Record) -> str:
    """Why a trial is not `ok`."""
    return record.cause or "; ".join(texts(record.flags))
