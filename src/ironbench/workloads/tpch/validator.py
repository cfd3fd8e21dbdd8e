"""Decides whether the data of a trial must be validated, and validates them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from ironbench.host.child_connection import CANCELLED
from ironbench.model.note import Note, note
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.work import Work
from ironbench.workloads.base import Dataset
from ironbench.workloads.tpch import parameters, refresh_position, streams, texts, validation
from ironbench.workloads.tpch.answers import QueryAnswer
from ironbench.workloads.tpch.parameters import QUERIES, Values
from ironbench.workloads.tpch.refresh_position import Position
from ironbench.workloads.tpch.streams import OVER_LIMIT, StepRun
from ironbench.workloads.tpch.trial_choices import TrialChoices
from ironbench.workloads.tpch.validation import AnsweredQuery, Ledger

_UNCHECKED = "answers-unchecked"
REFRESHED, UNKNOWN_SCALE, DRAWN = "refreshed data", "unknown scale factor", "drawn parameters"
NOT_REQUESTED, WRITTEN = "not requested", "written to files"
"""Reasons why answers were not checked. `REFRESHED`: refresh functions had changed the data. `UNKNOWN_SCALE`: no
answers are stored for the scale factor. `DRAWN`: parameters were drawn at random, and the user named no answers of
another engine. `NOT_REQUESTED`: the user requested no check. `WRITTEN`: answers were only written to files."""


@dataclass(frozen=True, slots=True)
class Validated:
    """Result of a validation: its checks, its warnings, and a note about it for the record."""

    checks: tuple[Check, ...] = ()
    answers: Note | None = None
    warnings: tuple[Note, ...] = ()

    @property
    def cause(self) -> Note | None:
        wrong = tuple((check.name, check.actual) for check in self.checks if not check.passed)
        return note("answers-wrong", answers=wrong) if wrong else None


class Validator:
    """Validates the data of one trial."""

    def __init__(self, work: Work, asked: TrialChoices, dataset: Dataset, at: Position) -> None:
        self._work = work
        self._asked = asked
        self._at = at
        options = work.choice.options
        self._how = options["check"]
        self._write = options["answers"]
        self._expected = options["expected"]
        self._ledger = _ledger(work.session, asked, dataset, at)

    def validated(self, *, changed: bool = False) -> Validated:
        """Validates the answers if requested. Raises FailureError.

        `changed`: whether this trial's refresh functions have already run.
        """
        drawn = self._how == "drawn"
        if not _asks_for_checks(self._work.choice.options):
            return Validated(answers=note(_UNCHECKED, reason=NOT_REQUESTED))
        known = self._ledger.read(self._asked.limit_s)
        if known and _once(self._work.choice.options):
            when = "same data" if self._at.fresh else "before refresh"
            return Validated(answers=Note(known.code, {**known.values, "earlier": when}))
        if changed or not self._at.fresh:
            return _unchecked(REFRESHED)
        expected = self._right()
        if expected is None and not self._write:
            return _unchecked(DRAWN if drawn else UNKNOWN_SCALE)
        return self._validated(expected)

    def _right(self) -> Mapping[int, QueryAnswer] | None:
        return _right(self._work.choice.options)

    def _values(self, query: int) -> Values:
        return self._asked.values(query, 0) if self._how == "drawn" else parameters.validation(query)

    def _validated(self, expected: Mapping[int, QueryAnswer] | None) -> Validated:
        queries = QUERIES if self._write else self._asked.queries
        answers: dict[int, QueryAnswer] = {}
        engine = self._work.session.engine
        with contextlib.closing(self._work.session.line(self._work.system.server_cpus or ())) as line:
            steps = [
                AnsweredQuery(query, texts.text(query, engine, self._values(query)), line, self._asked.limit_s, answers)
                for query in queries
            ]
            pass_ = streams.Stream(0, steps)
            streams.run(
                [pass_],
                self._work.stopping,
                lambda done, running: self._work.show(0.0, f"answers {done + 1} of {len(steps)} {running}"),
            )
        if self._write:
            validation.into_folder(Path(self._write), answers)
        if expected is None:
            return Validated(answers=note(_UNCHECKED, reason=WRITTEN, written=len(answers)))
        checks = validation.checks(answers, expected)
        missing = [texts.name(query) for query in queries if query not in answers]
        right = sum(1 for _ in answers) - sum(1 for check in checks[:-1] if not check.passed)
        found = _checked(right, len(queries), missing, pass_.ran, self._asked.limit_s)
        if right == len(answers) and self._how == "once" and not self._expected and not self._work.stopping():
            self._ledger.write(found, self._asked.limit_s if missing else None)
        return Validated(checks, found)


def _checked(right: int, of: int, missing: Sequence[str], ran: Sequence[StepRun], limit_s: float) -> Note:
    """Returns a note with the number of correct answers and the reasons for missing ones."""
    refused = {one.name: one.error for one in ran if missing and one.error not in ("", OVER_LIMIT, CANCELLED)}
    slow = tuple(name for name in missing if name not in refused)
    return note("answers-checked", right=right, of=of, slow=slow, limit_s=limit_s, refused=tuple(refused.items()))


def needs_untouched(session: Session, asked: TrialChoices, dataset: Dataset, options: Mapping[str, str]) -> bool:
    """Returns whether the next trial needs the data in their original state. This is the case if its answers must be
    checked but refresh functions have changed the data.

    Raises FailureError, or InputError if the expected answers cannot be read.
    """
    if not _asks_for_checks(options) or not (options["answers"] or _right(options)):
        return False
    at = refresh_position.read(session, refresh_position.loaded_at(session, dataset.name))
    if at.fresh or not at.loaded_at:  # data that another program loaded are not restored
        return False
    return not (_once(options) and _ledger(session, asked, dataset, at).read(asked.limit_s))


def _ledger(session: Session, asked: TrialChoices, dataset: Dataset, at: Position) -> Ledger:
    version = str(session.facts().get("version", ""))
    part = "" if asked.whole else f"queries {asked.queries}"
    return Ledger(dataset.key, at.loaded_at, session.engine, version, part)


def _asks_for_checks(options: Mapping[str, str]) -> bool:
    """Returns whether answers must be compared or written."""
    return options["check"] != "no" or bool(options["answers"] or options["expected"])


def _once(options: Mapping[str, str]) -> bool:
    """Returns whether data that were already checked need no further check."""
    return options["check"] == "once" and not (options["answers"] or options["expected"])


def _right(options: Mapping[str, str]) -> Mapping[int, QueryAnswer] | None:
    """Returns the expected answers. Returns None if they are unknown. Raises InputError if they cannot be read."""
    if options["expected"]:
        return validation.from_folder(Path(options["expected"]))
    if options["check"] == "drawn":
        return None
    return validation.stored(f"{Decimal(options['sf']).normalize():f}")


def _unchecked(reason: str) -> Validated:
    found = note(_UNCHECKED, reason=reason)
    return Validated(answers=found, warnings=(found,))
