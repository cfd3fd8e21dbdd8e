"""`--log-transactions` compared with pgbench's log and the metrics of the record."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from factories import rarely_mariadb
from raw_server import RawServer, binary
from user import User

from ironbench.records import Store, foreign
from ironbench.records.judge import ABORTED

pytestmark = pytest.mark.live

SCRIPT = "\\set a random(1, 10)\nSELECT :a;\n"


@dataclass(frozen=True)
class Line:
    """A line of a `pgbench -l` log; the fields are PostgreSQL's (manual, pgbench, "Per-Transaction Logging")."""

    client_id: int
    transaction_no: int
    time: int | None
    """None if the transaction failed."""
    script_no: int
    ended_s: float
    more: tuple[int, ...]
    """`schedule_lag` and `retries`, if present."""


def lines(file: Path) -> list[Line]:
    found = []
    for line in file.read_text().splitlines():
        client, number, time, script, epoch, us, *more = line.split(" ")
        took = None if time == "failed" else int(time)
        ended_s = int(epoch) + int(us) / 1e6
        found.append(Line(int(client), int(number), took, int(script), ended_s, tuple(map(int, more))))
    return found


def pgbench_log(server: RawServer, place: Path, *words: str) -> list[Line]:
    """Returns pgbench's log of the script, with a thread for each client."""
    (place / "script.sql").write_text(SCRIPT)
    command = [binary("pgbench"), "-n", "-l", "-f", "script.sql", *words]
    command += ["-h", server.host, "-p", str(server.port), "-U", "postgres", "postgres"]
    subprocess.run(command, cwd=place, check=True, capture_output=True, timeout=60)
    return [line for file in place.glob("pgbench_log.*") for line in lines(file)]


def numbers(log: list[Line]) -> dict[int, list[int]]:
    """Returns the numbers of each client's transactions, in order."""
    return {one: sorted(line.transaction_no for line in log if line.client_id == one) for one in range(3)}


LOADS = {
    "closed": ((), ()),
    "rate": (("-R", "2000"), ("--rate", "2000", "--duration", "0.5s")),
    "tries": (("--max-tries", "3"), ("--max-tries", "3")),
    "both": (("-R", "2000", "--max-tries", "3"), ("--rate", "2000", "--duration", "0.5s", "--max-tries", "3")),
}


@pytest.mark.parametrize("load", LOADS)
def test_a_log_has_the_fields_and_numbers_of_pgbenchs_own(
    load: str, raw_server: RawServer, user: User, place: Path
) -> None:
    theirs_words, ours_words = LOADS[load]
    theirs = pgbench_log(raw_server, place, "-c3", "-j3", "-t40", *theirs_words)
    bounded = () if "--duration" in ours_words else ("--transactions", "40")
    dsn = f"postgresql://postgres@/postgres?host={raw_server.host}&port={raw_server.port}"
    words = ("run", "script", str(place / "script.sql"), "--dsn", dsn, "--clients", "3", "--threads", "3")
    user.measured(*words, *bounded, *ours_words, "--warmup", "0s", "--no-observe", "--log-transactions", "log")
    ours = lines(user.home / "log")
    assert {len(line.more) for line in ours} == {len(line.more) for line in theirs}
    assert numbers(theirs) == {client: list(range(1, 41)) for client in range(3)}
    if bounded:
        assert numbers(ours) == numbers(theirs)
    assert {line.script_no for line in ours} == {line.script_no for line in theirs} == {0}
    assert abs(ours[0].ended_s - theirs[0].ended_s) < 600


@rarely_mariadb("postgres", "sqlite")
def test_a_log_has_a_line_for_each_transaction_that_the_record_counts(engine: str, user: User, place: Path) -> None:
    (place / "some-fail.sql").write_text("\\set b random(0, 9)\n\\set x 1 / :b\nSELECT :x;\n")
    words = ("run", "script", str(place / "some-fail.sql"), "--engine", engine, "--on-error", "continue")
    load = ("--clients", "4", "--threads", "2", "--duration", "0.5s", "--warmup", "0.3s", "--think-time", "2ms")
    # many transactions fail, so the trial may be invalid
    user(*words, *load, "--no-observe", "--log-transactions", "log")
    (record,) = user.records()
    log = lines(user.home / "log")
    kinds = Counter(line.time is None for line in log)
    taken = Store(user.results).histograms(record["id"])["service_time"]
    assert kinds[False] == taken.count
    assert kinds[True] == record["metrics"]["failed"] > 0
    assert all(line.client_id in range(4) for line in log)
    # `record import --from pgbench` reads the log as one of pgbench
    (read,) = foreign.read("pgbench", user.home / "log", "")
    assert (read.metrics["transactions"], read.metrics["failed"], read.clients) == (kinds[False], kinds[True], 4)
    assert read.metrics["response_time_mean_s"] * kinds[False] == pytest.approx(
        sum(line.time or 0 for line in log) / 1e6
    )
    # a line has whole microseconds
    assert sum(line.time or 0 for line in log) / 1e6 == pytest.approx(taken.sum_s, rel=0.02, abs=1e-6 * taken.count)


def test_trials_of_a_sweep_have_a_log_each_and_a_second_run_overwrites_none(user: User) -> None:
    words = ("run", "select-only", "--engine", "null", "--transactions", "50", "--warmup", "0s", "--no-observe")
    user.measured(*words, "--clients", "1,2", "--log-transactions", "log")
    # The sweep confirms its peak with three further trials.
    assert {file.name for file in user.home.glob("log*")} == {f"log.{one['id']}" for one in user.records()}
    for one in user.records():
        assert len(lines(user.home / f"log.{one['id']}")) == 50 * one["cell"]["load"]["clients"]
    user.measured(*words, "--clients", "1", "--log-transactions", "log", "--sampling-rate", "0.5")
    before = (user.home / "log").read_text()
    again = user(*words, "--clients", "1", "--log-transactions", "log")
    assert again.code == 2
    assert (user.home / "log").read_text() == before


def test_a_full_disk_ends_the_trial_and_the_record_names_the_file(
    user: User, small_disk: Callable[[int], Path]
) -> None:
    log = small_disk(1) / "log"
    words = ("run", "select-only", "--engine", "null", "--duration", "20s", "--warmup", "0s", "--no-observe")
    assert user(*words, "--log-transactions", str(log)).code == 1
    (record,) = user.records()
    (cause,) = record["causes"]
    assert (record["status"], cause["code"]) == ("voided", ABORTED)
    assert cause["values"]["error"].startswith(f"{log}: ")
