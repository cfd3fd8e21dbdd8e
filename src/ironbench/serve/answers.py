"""The answers of labs, kept in memory: each is computed again only when the lab has changed."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from ironbench.errors import FailureError
from ironbench.records.labs import LabDirectory
from ironbench.serve.shelf import Shelf

_MOST = 200


@dataclass(frozen=True, slots=True)
class LabAnswer:
    question: str
    decision: str
    """As one sentence."""


class Answers:
    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, int], LabAnswer]] = {}
        self._lock = threading.Lock()
        """A study takes a processor: one at a time."""

    def newest(self, shelf: Shelf) -> list[str]:
        """Names of labs; first that in which something was measured last."""
        changed = {name: changes(shelf.lab(name))[0] for name in shelf.labs()}
        return sorted(changed, key=lambda name: -changed[name])

    def of(self, shelf: Shelf, name: str) -> LabAnswer:
        """InputError, FailureError."""
        directory = shelf.lab(name)
        state = changes(directory)
        with self._lock:
            known = self._known.get(name)
            if known is None or known[0] != state:
                if len(self._known) >= _MOST:
                    self._known.pop(next(iter(self._known)))
                known = self._known[name] = state, _computed(directory)
            return known[1]


def changes(directory: LabDirectory) -> tuple[int, int]:
    """When something was measured last, and when the plan changed (nanoseconds)."""

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
    except (KeyError, ValueError, ArithmeticError) as error:  # a record that does not belong to this plan
        raise FailureError(f"lab {directory.path.name}", f"its records do not fit its plan ({error})") from error
    return LabAnswer(study.lab.question if study.lab else directory.path.name, answer(study).decision.sentence)
