"""A good trial never contains failed transactions, whatever their script."""

from dataclasses import replace
from typing import Any

import pytest

from ironbench.model.driven import Driven
from ironbench.model.observation import Observation
from ironbench.model.record import CLIENTS_LOST, CONNECTIONS_LOST, STOPPED_ON_LOSS, Status
from ironbench.model.system import Load, System
from ironbench.records.judge import STOPPED_ON_ERROR, status, warnings
from ironbench.report import wording
from ironbench.words import grouped

NOW = "2026-11-21T01:00:00"
FIRST = 'script bad.sql, line 2, command 2: relation "nix" does not exist (SQLSTATE 42P01); in: SELECT * FROM nix'


def script(name: str, transactions: int, failed: int, warmed: int = 0, failed_before: int = 0) -> dict[str, Any]:
    first = FIRST if failed or failed_before else ""
    everything = {"completed": transactions + warmed, "failed_in_all": failed + failed_before}
    return {"name": name, "transactions": transactions, "failed": failed, "first_failure": first, **everything}


def driven(*scripts: dict[str, Any], **changes: Any) -> Driven:
    """Returns a trial of these scripts on a running engine."""
    summary = {"aborted": False, "cause": "", "cut_short": False, "errors": {}, "elapsed_s": 30.0, "scripts": scripts}
    summary |= {name: sum(one[name] for one in scripts) for name in ("transactions", "failed")}
    return Driven(NOW, alive=True, summary=summary | changes)


def judged(found: Driven) -> tuple[Status, str, list[str]]:
    said = warnings(System("postgres", "x"), Load(), found, Observation(), None, False)
    found_status, causes = status(found, said)
    return found_status, "; ".join(wording.texts(causes or said)), [warning.code for warning in said]


@pytest.mark.parametrize(
    ("failed", "expected", "code"),
    [
        (0, Status.OK, []),
        (10, Status.OK, ["few-transactions-failed"]),
        (11, Status.SUSPECT, ["transactions-failed"]),
        (500, Status.SUSPECT, ["transactions-failed"]),
        (501, Status.VOIDED, ["transactions-failed"]),
        (9_999, Status.VOIDED, ["transactions-failed"]),
        (10_000, Status.VOIDED, ["transactions-failed"]),
    ],
)
def test_above_one_in_a_thousand_a_trial_is_suspect_above_one_in_twenty_void(
    failed: int, expected: Status, code: list[str]
) -> None:
    found = judged(driven(script("bad.sql", 10_000 - failed, failed)))
    assert (found[0], found[2]) == (expected, code)
    if expected is not Status.OK:
        assert f"{grouped(failed)} of 10,000 transactions" in found[1] and FIRST in found[1]
    beside = {11: "(0.11%)", 500: "(5%)", 501: "(5.01%)"}
    assert beside.get(failed, "") in found[1], "a share shows on which side of its limit it is"


def test_a_rare_script_that_always_fails_is_not_hidden_by_the_others() -> None:
    found = judged(driven(script("good.sql", 1_000_000, 0), script("bad.sql", 0, 20)))
    assert found[0] is Status.VOIDED
    assert found[1].startswith("20 of 20 transactions of script bad.sql failed") and FIRST in found[1]


def test_failures_of_the_warm_up_make_a_trial_suspect() -> None:
    found = judged(driven(script("bad.sql", 10_000, 0, warmed=500, failed_before=500)))
    assert found[0] is Status.SUSPECT and found[2] == ["failed-outside-window"]
    assert "500 of 1,000 transactions that ended during the warm-up" in found[1]


def test_a_trial_that_its_first_error_ended_says_how_to_let_it_go_on() -> None:
    ended = driven(script("bad.sql", 1, 3), aborted=True, cause=FIRST, stopped_on_error=True)
    assert judged(ended) == (Status.VOIDED, FIRST, [STOPPED_ON_ERROR])


@pytest.mark.parametrize(("code", "reason"), [("42P01", "other"), ("42501", "denied")])
def test_a_trial_that_its_first_error_ended_names_the_way_out_of_that_error(code: str, reason: str) -> None:
    cause = FIRST.replace("42P01", code)
    for errors in ({code: 1}, {}):  # in the window, and in the warm-up
        ended = driven(script("bad.sql", 0, 1), aborted=True, cause=cause, stopped_on_error=True, errors=errors)
        (told,) = warnings(System("postgres", "x"), Load(), ended, Observation(), None, False)
        assert told.values == {"reason": reason}


def test_queries_that_an_engine_refused_count_as_failed_and_those_over_their_limit_do_not() -> None:
    power = {"inside": False, "transactions": 21, "failed": 1, "errors": {"over-limit": 1}}
    assert judged(driven(**power))[0] is Status.OK
    assert judged(driven(**power | {"errors": {"42P01": 1}}))[0] is Status.SUSPECT


@pytest.mark.parametrize("transactions", [21, 0])
def test_what_failed_has_the_name_that_the_work_gives_it(transactions: int) -> None:
    ended = driven(inside=False, transactions=transactions, failed=9, errors={"42P01": 9})
    cause = judged(replace(ended, counts=("query", "queries")))[1]
    assert f"9 of {transactions + 9} queries failed" in cause and "transaction" not in cause


def test_a_trial_that_lost_clients_is_suspect_and_one_whose_clients_reconnected_is_not() -> None:
    lost = {"connections_lost": 2, "loss_cause": "terminating connection (SQLSTATE 57P01)"}
    found = judged(driven(script("good.sql", 10_000, 0), clients_lost=1, **lost))
    assert (found[0], found[2]) == (Status.SUSPECT, [CLIENTS_LOST]) and "57P01" in found[1]
    found = judged(driven(script("good.sql", 10_000, 0), clients_lost=0, **lost))
    assert (found[0], found[2]) == (Status.OK, [CONNECTIONS_LOST])


def test_a_trial_that_a_lost_connection_ended_says_how_to_let_it_continue() -> None:
    lost = {"aborted": True, "cause": "terminating connection", "loss_cause": "terminating connection"}
    ended = driven(script("good.sql", 10, 0), **lost)
    for load, expected in (
        (Load(on_error="stop"), [STOPPED_ON_LOSS]),
        (Load(on_error="continue"), []),
        (Load(on_error="stop", reconnect_on_loss=True), []),
    ):
        said = warnings(System("postgres", "x"), load, ended, Observation(), None, False)
        assert [warning.code for warning in said] == expected
        assert status(ended, said)[0] is Status.VOIDED
