"""Why a trial is not `ok` is said by whoever knows best: the engine itself, where it died."""

from ironbench.model.driven import Driven
from ironbench.model.record import Status
from ironbench.record.judge import status

ENDED = {"aborted": True, "cause": "the connection broke", "cut_short": False, "transactions": 5}
NOW = "2026-11-21T01:00:00"


def test_an_engine_that_died_has_the_last_word() -> None:
    died = Driven(NOW, alive=False, summary=ENDED, last_words="killed by SIGKILL")
    assert status(died, ()) == (Status.VOIDED, "the connection broke; its last words: killed by SIGKILL")


def test_what_the_cause_says_already_is_not_said_twice() -> None:
    died = Driven(NOW, alive=False, failure="the server died: out of memory", last_words="out of memory")
    assert status(died, ()) == (Status.VOIDED, "the engine died: the server died: out of memory")


def test_many_last_words_do_not_swell_a_record() -> None:
    died = Driven(NOW, alive=False, summary=ENDED, last_words="PANIC " * 10_000)
    assert len(status(died, ())[1]) < 400


def test_an_engine_that_lives_is_not_quoted() -> None:
    broken = Driven(NOW, alive=True, summary=ENDED)
    assert status(broken, ()) == (Status.VOIDED, "the connection broke")
