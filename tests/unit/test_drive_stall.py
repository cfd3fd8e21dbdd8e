"""A trial without a time limit on a server that stops answering."""

from __future__ import annotations

import pytest

from ironbench import _core
from ironbench.errors import FailureError
from ironbench.trial.drive import run
from ironbench.trial.drive.run import Stall


def fails() -> None:
    raise FailureError("server", "it does not answer")


def test_a_trial_without_progress_ends_when_its_server_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "STALLED_S", 0.0)
    for require_answer, stopped in ((fails, True), (lambda: None, False)):
        progress, stall = _core.Progress(), Stall(require_answer)
        for _ in range(3):
            stall.look(progress)
        assert (progress.stopping, stall.error is not None) == (stopped, stopped)


def test_nothing_is_asked_while_transactions_end() -> None:
    progress, stall = _core.Progress(), Stall(fails)
    for ended in range(3):
        progress.show("run", 1.0, ended, 0, [])
        stall.look(progress)
    assert stall.error is None
