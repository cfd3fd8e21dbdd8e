"""`ironbench run --resume` continues the same command where it was stopped, however it was stopped."""

from __future__ import annotations

import signal

import pytest
from patience import eventually
from user import PAUSED, User

pytestmark = pytest.mark.live

SHORT = ("--duration", "0.8s", "--warmup", "0s", "--no-observe")
WORDS = ("run", "igen-oltp", "--engine", "null", *PAUSED, "--clients", "1,2", *SHORT)


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.long)])
def test_a_run_that_was_stopped_goes_on_with_what_is_missing(user: User, how: signal.Signals) -> None:
    with user.begun(*WORDS) as run:
        assert eventually(lambda: len(list(user.results.glob("trials/*/record.json"))) == 2)
        told, _ = run.end(how)
    assert told.code == (130 if how is signal.SIGINT else -signal.SIGKILL), told
    assert how is signal.SIGKILL or "to continue, add --resume to the same command" in told.stderr
    kept = {path.name: path.read_text() for path in user.results.glob("trials/[!.]*/record.json")}
    stopped = [record for record in user.records() if record["status"] != "cut-short"]
    told = user(*WORDS, "--resume", "--json")
    assert told.code in (0, 3), told
    assert {path.name: path.read_text() for path in user.results.glob("trials/*/record.json")}.items() >= kept.items()
    done = [record for record in user.records() if record["status"] != "cut-short"]
    assert [record["purpose"] for record in done] == ["sweep"] * 2 + ["confirmation"] * 3
    assert {record["series"] for record in done} == {stopped[0]["series"]}
    assert len({record["cell"]["load"]["seed"] for record in done}) == 1
    again = user(*WORDS, "--resume", "--json")
    assert len(user.records()) == len(again.document["trials"]), "nothing was left to be measured"


@pytest.mark.long
def test_a_run_that_somebody_measures_is_not_gone_on_with_by_a_second_one(user: User) -> None:
    words = tuple("1.5s" if word == "0.8s" else word for word in WORDS)
    with user.begun(*words) as run:
        assert eventually(lambda: len(list(user.results.glob("trials/*/record.json"))) == 1)
        told = user(*words, "--resume")
        assert told.code == 2, told
        assert f"another ironbench process is using this directory ({run.process.pid})" in told.stderr
        run.end(signal.SIGKILL)
    assert user(*words, "--resume", "--json").code in (0, 3)
    assert not list(user.results.glob(".*.lock"))


def test_another_command_is_not_gone_on_with(user: User) -> None:
    assert user(*WORDS).code in (0, 3)
    told = user(*WORDS, "--resume", "--max-tries", "3")
    assert told.code == 2
    assert "no run of this command on this machine" in told.stderr


def test_a_plan_starts_nothing(user: User) -> None:
    told = user(*WORDS, "--plan")
    assert told.code == 0, told
    assert "5 trials" in told.stdout and "3 new trials that confirm the peak" in told.stdout
    assert user.untouched()


def test_a_plan_shows_the_order_that_the_run_takes_or_that_it_is_drawn(user: User) -> None:
    words = (*WORDS, "--repeats", "6")
    drawn = user(*words, "--plan")
    assert "6 blocks of clients=1, clients=2" in drawn.stdout and "set --seed to fix the order" in drawn.stdout
    assert "minimum detectable effect in a lab of 6 such blocks:" in drawn.stdout
    document = user(*words, "--plan", "--json").document
    assert document["seed"] is None and 0 < document["resolution"]["detectable"] < 10
    assert "block 6: clients=" in user(*words, "--plan", "--seed", "1").stdout


def test_a_plan_of_repeats_promises_no_verdict_and_resolves_nothing_of_unknown_length(user: User) -> None:
    one = ("run", "select-only", "--engine", "sqlite", "--rate", "50", "--duration", "2s", "--repeats", "3", "--plan")
    text = user(*one).stdout
    assert "each with clients=1" in text and "target rate 50/s" in text
    assert "a run has no verdict; a lab of 3 such blocks has no verdict either, because a verdict needs 6" in text
    counted = ("run", "select-only", "--engine", "sqlite", "--transactions", "5", "--repeats", "3", "--plan")
    assert "power" not in user(*counted).stdout
    assert user(*counted, "--json").document["resolution"] is None


def test_a_plan_of_a_run_that_goes_on_says_what_is_left(user: User) -> None:
    with user.begun(*WORDS) as run:
        assert eventually(lambda: len(list(user.results.glob("trials/*/record.json"))) == 1)
        run.end(signal.SIGKILL)
    kept = len(user.records())
    told = user(*WORDS, "--plan", "--resume")
    assert f"{kept} trial" in told.stdout and "already measured; remaining:" in told.stdout
    (left,) = (line for line in told.stdout.splitlines() if line.startswith(f"{5 - kept} trials, about"))
    ended = user(*WORDS, "--resume")
    assert ended.code in (0, 3)
    assert f"{kept} of 5 trials already measured; {left}" in ended.stderr
    over = user(*WORDS, "--plan", "--resume").stdout
    assert "5 trials already measured; no trial is left" in over
    assert "loaded first" not in over
    again = user(*WORDS, "--resume")
    assert again.stderr.splitlines()[0] == "5 trials already measured; no trial was run", again
    assert again.code == ended.code, "the code is that of the trials, whoever measured them"
