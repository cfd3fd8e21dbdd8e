"""Findings of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How strongly a finding affects measurements, in ascending order."""

    OK = "ok"
    NOTE = "note"
    """Results describe the machine in this state only, so the state should be published together with them."""
    WARNING = "warning"
    """Results are likely to be wrong by several percent, or to vary more than necessary."""
    SEVERE = "severe"
    """Results of trials would not be trustworthy, so this must be fixed before any trial starts."""

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check."""

    severity: Severity
    seen: str
    """The value that was read or measured by the check."""
    meaning: str = ""
    """The effect on a database or on a measurement. Empty if the check passed."""
    remedy: str = ""
    """The exact command that fixes the problem, or instructions if no command does."""
    visible: bool = True
    """Whether the value can be read. If not, `seen` contains the reason, and `remedy` explains how to make the value
    readable."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A finding of the doctor, together with its subject."""

    area: str
    """For a machine: `cpu`, `memory`, `time`, `storage`, `power`, `facilities`, `load` or `software`. For a database:
    an area that its engine defines."""
    name: str
    """Name of the check, such as `governor`."""
    about: str
    severity: Severity
    seen: str
    meaning: str
    remedy: str
    visible: bool = True
    """Whether the value can be read on this machine or server. If not, `seen` contains the reason."""
    query: str = ""
    """For a database: the statement that shows the value."""


def unseen(why: str, remedy: str = "") -> CheckResult:
    return CheckResult(Severity.NOTE, why, "", remedy, visible=False)


def ok(seen: str) -> CheckResult:
    return CheckResult(Severity.OK, seen)


def note(seen: str, meaning: str, remedy: str = "") -> CheckResult:
    return CheckResult(Severity.NOTE, seen, meaning, remedy)


def warning(seen: str, meaning: str, remedy: str) -> CheckResult:
    return CheckResult(Severity.WARNING, seen, meaning, remedy)


def severe(seen: str, meaning: str, remedy: str) -> CheckResult:
    return CheckResult(Severity.SEVERE, seen, meaning, remedy)
