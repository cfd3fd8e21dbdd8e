"""Diagnoses of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a reading spoils measurements, the worst last."""

    OK = "ok"
    NOTE = "note"
    """Numbers hold for this state of the machine only: publish it with them."""
    WARNING = "warning"
    """Numbers are likely to be off by several percent, or to vary more than they need to."""
    SEVERE = "severe"
    """Do not believe numbers, or do not start, before this is mended."""

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Reading:
    """A probe's answer."""

    severity: Severity
    seen: str
    """What was read or measured."""
    meaning: str = ""
    """Its effect on a database or on a measurement; empty when all is well."""
    remedy: str = ""
    """The exact command, or what to do where no command helps."""
    visible: bool = True
    """False: it cannot be seen here; `seen` says why, `remedy` how to see it."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One reading, with what it is about."""

    area: str
    """Of a machine: `cpu`, `memory`, `time`, `storage`, `power`, `facilities`, `load` or `software`. Of a database: as
    its engine says."""
    name: str
    """Of the probe, e.g. `governor`."""
    about: str
    severity: Severity
    seen: str
    meaning: str
    remedy: str
    visible: bool = True
    """False: this machine or server does not show it; `seen` says so."""
    query: str = ""
    """Of a database: the statement that shows it."""


def unseen(why: str, remedy: str = "") -> Reading:
    return Reading(Severity.NOTE, why, "", remedy, visible=False)


def ok(seen: str) -> Reading:
    return Reading(Severity.OK, seen)


def note(seen: str, meaning: str, remedy: str = "") -> Reading:
    return Reading(Severity.NOTE, seen, meaning, remedy)


def warning(seen: str, meaning: str, remedy: str) -> Reading:
    return Reading(Severity.WARNING, seen, meaning, remedy)


def severe(seen: str, meaning: str, remedy: str) -> Reading:
    return Reading(Severity.SEVERE, seen, meaning, remedy)
