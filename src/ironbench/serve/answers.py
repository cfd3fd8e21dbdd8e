"""A cache of the answers to the questions of labs. If a lab has changed, its answer is computed again."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from ironbench.errors import FailureError, IronbenchError
from ironbench.records.labs import LabDirectory
from ironbench.serve.results import Results

_MOST = 200


@dataclass(frozen=True, slots=True)
class LabAnswer:
    question: str
    decision: str
    """The answer to the question, as one sentence."""


class AnswerCache:
    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, int], LabAnswer]] = {}
        self._lock = threading.Lock()
        """Lock that is held while an answer is computed, so that at most one CPU is busy with answers."""

    def newest(self, results: Results) -> list[str]:
        """Returns the names of all labs, the most recently measured lab first."""
        changed = {name: changes(results.lab(name))[0] for name in results.labs()}
        return sorted(changed, key=lambda name: -changed[name])

    def cached(self, results: Results, name: str) -> str:
        """Returns the decision of a lab if it is cached and up to date. Otherwise, returns ""."""
        known = self._known.get(name)
        return known[1].decision if known is not None and known[0] == changes(results.lab(name)) else ""

    def decision(self, results: Results, name: str) -> str:
        """Returns the decision of a lab, or why its records cannot be read. Raises InputError if there is no such
        lab."""
        results.lab(name)
        try:
            return self.of(results, name).decision
        except IronbenchError as error:
            return f"cannot be read: {error.cause}"

    def of(self, results: Results, name: str) -> LabAnswer:
        """Returns the answer of a lab. Raises InputError if there is no such lab, and FailureError if its records do
        not match its plan."""
        directory = results.lab(name)
        state = changes(directory)
        with self._lock:
            known = self._known.get(name)
            if known is None or known[0] != state:
                if len(self._known) >= _MOST:
                    self._known.pop(next(iter(self._known)))
                known = self._known[name] = state, _computed(directory)
            return known[1]


def changes(directory: LabDirectory) -> tuple[int, int]:
    """Returns two modification times of a lab in ns: the time of its directory of trials, and the time of its own
    directory, which contains the plan. At least one of these times changes when the lab's answer may change."""

    def changed(name: str) -> int:
        try:
            return (directory.path / name).stat().st_mtime_ns
        except OSError:
            return 0

    return changed("trials"), changed(".")


def _computed(directory: LabDirectory) -> LabAnswer:
    from ironbench.report.answer import answer
    from ironbench.report.studies import study_of

    try:
        study = study_of(directory)
    except (KeyError, ValueError, ArithmeticError) as error:  # e.g. a record of an earlier plan
        raise FailureError(f"lab {directory.path.name}", f"the records do not match the plan ({error})") from error
    return LabAnswer(study.lab.question if study.lab else directory.path.name, answer(study).decision.sentence)
