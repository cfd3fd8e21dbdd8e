"""Work on a server that stops answering: a trial without a time limit, and a data load."""

from __future__ import annotations

from ironbench import _core
from ironbench.errors import FailureError
from ironbench.host.stall import Stall
from ironbench.trial.drive.drive_trial import _stop_stalled


def fails() -> None:
    raise FailureError("server", "does not answer")


def answers() -> None:
    pass


def test_a_trial_without_progress_ends_when_its_server_does_not_answer() -> None:
    for require_answer, stopped in ((fails, True), (answers, False)):
        progress, stall = _core.Progress(), Stall(require_answer, 0.0)
        for _ in range(3):
            _stop_stalled(stall, progress)
        assert (progress.stopping, stall.error is not None) == (stopped, stopped)


def test_nothing_is_asked_while_transactions_end() -> None:
    progress, stall = _core.Progress(), Stall(fails, 0.0)
    for ended in range(3):
        progress.show("run", 1.0, ended, 0, [])
        _stop_stalled(stall, progress)
    assert stall.error is None


def test_work_that_waits_for_a_server_that_answers_others_ends_at_the_longer_limit() -> None:
    waiting, patient = Stall(answers, 0.0, most_s=0.0), Stall(answers, 0.0, most_s=3600.0)
    assert [waiting.is_over(7), waiting.is_over(8), waiting.is_over(8)] == [False, False, True]
    assert [patient.is_over(7), patient.is_over(7), patient.is_over(7)] == [False, False, False]
