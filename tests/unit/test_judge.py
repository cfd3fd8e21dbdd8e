"""The cause of a trial that is not `ok` comes from the best source: the engine itself, if it died."""

from typing import Any

import pytest

from ironbench.model.driven import Driven, client_cpu_s, driving_cpu_s
from ironbench.model.note import note
from ironbench.model.observation import Observation
from ironbench.model.record import ENGINE_DIED, SUSPICIOUS, Budget, Status
from ironbench.model.system import Load, System
from ironbench.records.judge import ABORTED, status, warnings
from ironbench.report import wording
from ironbench.trial.observe import late

ENDED = {"aborted": True, "cause": "the connection broke", "cut_short": False, "transactions": 5}
NOW = "2026-11-21T01:00:00"


def test_an_engine_that_died_has_the_last_word() -> None:
    died = Driven(NOW, alive=False, summary=ENDED, last_words="killed by SIGKILL")
    assert status(died, ()) == (
        Status.VOIDED,
        (note(ABORTED, error="the connection broke", last_words="killed by SIGKILL"),),
    )


def test_what_the_cause_says_already_is_not_said_twice() -> None:
    died = Driven(
        NOW, alive=False, failure=note("error", error="the server died: out of memory"), last_words="out of memory"
    )
    assert status(died, ()) == (
        Status.VOIDED,
        (note(ENGINE_DIED, error="the server died: out of memory", last_words=""),),
    )


def test_a_failure_of_a_server_that_survived_names_the_kill_of_its_process() -> None:
    failed = Driven(NOW, alive=True, failure=note("error", error="connection closed"), last_words="out of memory")
    assert status(failed, ()) == (
        Status.FAILED,
        (note("error", error="connection closed", last_words="out of memory"),),
    )


def test_many_last_words_do_not_swell_a_record() -> None:
    died = Driven(NOW, alive=False, summary=ENDED, last_words="PANIC " * 10_000)
    (cause,) = status(died, ())[1]
    assert len(cause.values["last_words"]) < 400


def test_an_engine_that_lives_is_not_quoted() -> None:
    broken = Driven(NOW, alive=True, summary=ENDED)
    cause = note(ABORTED, error="the connection broke", last_words="")
    assert status(broken, ()) == (Status.VOIDED, (cause,))


SUMMARY = {"elapsed_s": 30.0, "transactions": 1000, "cut_short": False, "aborted": False, "errors": {}}
COUNTED = {"others_cpu_cores": 1.0, "engine_cpu_s": 3.0}
OURS = System("postgres", "a")
THEIRS = System("postgres", "a", dsn="postgresql://db.example/bench")


def judged(system: System, metrics: dict[str, float], **shares: float) -> tuple[Status, str]:
    driven = Driven(NOW, alive=True, summary=SUMMARY)
    budget = Budget(server=0.2, client=0.01, idle=0.7 - sum(shares.values()), **shares)
    found = warnings(system, Load(), driven, Observation(metrics), budget, cycles=False)
    return status(driven, found)[0], "; ".join(wording.texts(one for one in found if one.code in SUSPICIOUS))


@pytest.mark.parametrize(
    ("io", "threads", "cpu_s", "words"),
    [
        (
            "driver",
            4,
            28.5,
            "used 0.95 CPU cores and may be the bottleneck, because it serves its connections one after the other",
        ),
        ("driver", 1, 20.0, ""),
        ("epoll", 1, 28.5, "increase `--threads`"),
        ("epoll", 4, 28.5, ""),
        ("blocking", 1, 28.5, ""),
    ],
)
def test_a_client_is_the_limit_where_its_threads_or_its_one_process_are_busy(
    io: str, threads: int, cpu_s: float, words: str
) -> None:
    summary = SUMMARY | {"io": io, "client_cpu_s": {"user": cpu_s, "system": 0.0}}
    driven = Driven(NOW, alive=True, summary=summary)
    budget = Budget(server=0.2, client=0.01, idle=0.7)
    found = warnings(OURS, Load(8, threads=threads), driven, Observation(COUNTED), budget, cycles=False)
    texts = [wording.text(one) for one in found if one.code == "client-saturated"]
    assert [words in text for text in texts] == ([True] if words else [])
    assert ("--threads" in "".join(texts)) == (io == "epoll" and bool(words))


def test_more_threads_than_clients_are_not_asked_for() -> None:
    summary = SUMMARY | {"io": "epoll", "client_cpu_s": {"user": 57.0, "system": 0.0}}
    driven = Driven(NOW, alive=True, summary=summary)
    found = warnings(OURS, Load(2, threads=2), driven, Observation(COUNTED), None, cycles=False)
    (busy,) = found
    assert (busy.values["threads"], busy.values["clients"]) == (2, 2)
    assert "increase `--clients` and `--threads`" in wording.text(busy)


@pytest.mark.parametrize("shares", [{"other": 0.06}, {"steal": 0.06}, {"other": 0.03, "steal": 0.03}])
def test_whatever_took_cpu_time_from_the_work_makes_a_trial_suspect(shares: dict[str, float]) -> None:
    found, cause = judged(OURS, COUNTED, **shares)
    assert found is Status.SUSPECT
    assert cause.startswith("6% of CPU time was lost")
    assert ("to other programs" in cause) == ("other" in shares)
    assert ("to steal time" in cause) == ("steal" in shares)


@pytest.mark.parametrize(
    ("system", "metrics", "shares"),
    [
        (OURS, COUNTED, {"other": 0.025, "steal": 0.024}),
        (OURS, COUNTED, {"kernel": 0.3}),
        (OURS, {"engine_cpu_s": 3.0}, {"other": 0.15}),
        (THEIRS, {"others_cpu_cores": 1.0}, {"other": 0.6}),
    ],
    ids=[
        "little",
        "the kernel works for us",
        "the kernel cannot be told apart",
        "the server is out of sight",
    ],
)
def test_what_the_work_itself_needs_is_not_called_taken(
    system: System, metrics: dict[str, float], shares: dict[str, float]
) -> None:
    assert judged(system, metrics, **shares) == (Status.OK, "")


def test_where_other_programs_cannot_be_counted_only_more_than_a_kernel_needs_is_called_taken() -> None:
    assert judged(OURS, {"engine_cpu_s": 3.0}, other=0.25)[0] is Status.SUSPECT


def test_steal_is_taken_from_a_client_whose_server_is_out_of_sight() -> None:
    assert judged(THEIRS, {}, other=0.5, steal=0.06)[0] is Status.SUSPECT


WROTE = {"checkpoints": 0.0, "wal_bytes_per_transaction": 300.0}


def short(metrics: dict[str, float], transactions: int = 1000) -> bool:
    """Returns whether a trial of scripts that may write is flagged as too short for its writes."""
    driven = Driven(NOW, alive=True, summary={**SUMMARY, "transactions": transactions})
    found = warnings(OURS, Load(), driven, Observation(WROTE | metrics), None, cycles=True)
    return "short-of-two-checkpoints" in [warning.code for warning in found]


def test_what_a_trial_wrote_is_measured_and_not_assumed() -> None:
    assert short({}), "not observed: its scripts may write"
    assert short({"writing_transactions_per_s": 33.0})
    assert not short({"writing_transactions_per_s": 0.0}), "the log is that of others"
    assert not short({"writing_transactions_per_s": 0.3}), "autovacuum and its statistics"
    assert not short({"writing_transactions_per_s": 33.0, "wal_bytes_per_transaction": 3.0}), "temporary tables alone"
    assert short({"writing_transactions_per_s": 0.9}, transactions=30), "few transactions, but each of them writes"


SAYS = "the server's counters of commits, rows and I/O lag by up to 1 s"


@pytest.mark.parametrize(
    ("elapsed_s", "server_counts", "statements", "said", "shown"),
    [
        (20.0, 2000, 1, [], True),
        (5.0, 1800, 1, [f"{SAYS}, which causes an error of up to 20% in a trial of 5 s"], True),
        (
            20.0,
            2,
            1,
            [
                (
                    "the server's counters included only 0.1% of 2,000 transactions at the end of the trial, so the "
                    "counts of commits, rows and I/O are left out"
                )
            ],
            False,
        ),
        (20.0, 2, 0, [], True),
        (0.24, 2000, 1, [f"{SAYS}, so the counters are not usable in a trial of 240 ms"], False),
    ],
    ids=["in time", "short", "not published", "sends nothing", "very short"],
)
def test_counters_that_a_server_publishes_late_are_doubted_or_left_out(
    elapsed_s: float, server_counts: float, statements: int, said: list[str], shown: bool
) -> None:
    script = {"name": "a", "transactions": 2000, "statements": statements, "failed": 0, "first_failure": ""}
    summary = {**SUMMARY, "elapsed_s": elapsed_s, "transactions": 2000, "scripts": [script]}
    metrics = {"engine_commits_per_s": server_counts / elapsed_s, "wal_bytes_per_s": 1.0}
    seen = late.published(Observation(metrics, late={"engine_commits_per_s": 1.0}), summary, scripts=True)
    assert set(seen.metrics) == {"wal_bytes_per_s"} | ({"engine_commits_per_s"} if shown else set())
    found = warnings(OURS, Load(), Driven(NOW, alive=True, summary=summary), seen, None, cycles=False)
    assert [wording.text(one).split(": its")[0] for one in found if one.code == "counts-late"] == said


@pytest.mark.parametrize(
    ("shares", "who"),
    [
        ({"client": 0.3}, ("client",)),
        ({"client": 0.2, "observers": 0.1}, ("client", "observers")),
        ({"client": 0.1, "observers": 0.1, "emulation": 0.1}, ("client", "observers", "emulation")),
    ],
)
def test_our_own_cpu_share_names_those_that_used_some(shares: dict[str, float], who: tuple[str, ...]) -> None:
    budget = Budget(server=0.2, idle=0.5, **shares)
    driven = Driven(NOW, alive=True, summary=SUMMARY)
    (own,) = warnings(OURS, Load(), driven, Observation(COUNTED), budget, cycles=False)
    assert own.code == "own-cpu-share" and own.values["parts"] == who


def test_who_waits_at_the_end_of_an_open_loop_is_counted_as_people_write_and_from_where_it_began() -> None:
    behind = Driven(NOW, alive=True, summary={**SUMMARY, "not_started": 397_520, "unfinished": 6})
    for warmup_s, since in ((5.0, " transactions scheduled since the start of the warm-up"), (0.0, "")):
        load = Load(rate=1000.0, warmup_s=warmup_s)
        (found,) = warnings(OURS, load, behind, Observation(), None, cycles=False)
        assert wording.text(found).endswith(f", and 397,526{since} were still waiting at the end")


def test_threads_that_connect_anew_are_the_clients_and_no_driving_threads() -> None:
    summary = {"client_cpu_s": {"user": 1.0, "system": 0.5}, "reconnects_cpu_s": 0.6}
    assert client_cpu_s(summary) == 1.5
    assert driving_cpu_s(summary) == pytest.approx(0.9)
    assert driving_cpu_s({"client_cpu_s": summary["client_cpu_s"]}) == 1.5, "of records made before"


@pytest.mark.parametrize(
    ("each", "load", "warned"),
    [
        ({"transactions_stdev": 210.0}, Load(4), True),
        ({"transactions_stdev": 190.0}, Load(4), False),
        ({"transactions_stdev": 50.0, "transactions_mean": 99.0}, Load(4), False),
        ({"transactions_stdev": 210.0, "clients": 1}, Load(1), False),
    ],
)
@pytest.mark.parametrize(
    "more", [{}, {"clients_lost": 1, "loss_cause": "closed"}, {"figures": {"capture_statements": 9.0}}]
)
def test_clients_with_unequal_shares_of_the_work_are_noted_but_do_not_flag(
    each: dict[str, float], load: Load, warned: bool, more: dict[str, Any]
) -> None:
    per_client = {"clients": 4, "transactions_mean": 1000.0, "busy_mean_s": 30.0, "busy_stdev_s": 0.0} | each
    driven = Driven(NOW, summary=SUMMARY | {"failed": 0, "scripts": [], "per_client": per_client} | more)
    warned = warned and not more  # of lost clients, and of sessions of a capture, unequal shares are expected
    notes = warnings(OURS, load, driven, Observation(), None, cycles=False)
    assert [one.code for one in notes if one.code == "clients-uneven"] == ["clients-uneven"] * warned
    assert "clients-uneven" not in SUSPICIOUS
