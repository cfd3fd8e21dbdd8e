"""Failures under `ironbench run` as users meet them: reported clearly, stored, nothing left running."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from factories import rarely_mariadb, require_installed
from own_server import FILES
from patience import eventually
from raw_mysql import PASSWORD as MYSQL_PASSWORD
from raw_server import PASSWORD, RawServer
from user import PAUSED, SHORT, User

from ironbench.host import processes

pytestmark = pytest.mark.live

LONG = (*PAUSED, "--duration", "60s", "--warmup", "0s", "--no-observe")


@pytest.fixture
def script(user: User) -> str:
    path = user.home / "one.sql"
    path.write_text("SELECT 1;\n")
    return str(path)


@pytest.fixture(params=FILES)
def engine(request: pytest.FixtureRequest) -> str:
    require_installed(request.param)
    return request.param


def servers(data: Path, engine: str = "postgres") -> list[int]:
    """Returns the running server processes that use files below `data`."""
    return list(processes.working_in(data / FILES[engine]))


def written_anywhere(folder: Path, words: str) -> list[Path]:
    needle = words.encode()
    return [path for path in folder.rglob("*") if path.is_file() and needle in path.read_bytes()]


def test_what_is_unknown_costs_nothing_and_the_nearest_is_suggested(user: User) -> None:
    data = str(user.home / "data")
    for words, hint in (
        (("igen-olpt",), "did you mean igen-oltp"),
        (("igen-oltp", "--with", "scael=2"), "did you mean scale?"),
        (("igen-oltp", "--set", "shared_bufers=1MB"), "did you mean shared_buffers"),
    ):
        told = user("run", *words, "--data", data)
        assert (told.code, told.stdout) == (2, ""), told
        assert f"hint: {hint}" in told.stderr
        assert told.stderr.count("\n") == 2
        assert user.untouched()


def test_a_script_s_mistake_is_shown_whole_with_its_caret_under_it(user: User) -> None:
    (user.home / "bad.sql").write_text("\\set x 1\n\\set n random(1, 100\nSELECT :n;\n")
    told = user("run", "script", "bad.sql")
    assert told.code == 2
    first, line, caret = told.stderr.splitlines()[:3]
    assert first.startswith("error: bad.sql:2:21: ")
    assert line.strip() == r"\set n random(1, 100"
    assert caret.index("^") == line.index("100") + 3
    assert user.untouched()


def test_results_and_data_that_cannot_be_written_are_refused(user: User) -> None:
    (user.home / "file").write_text("a file")
    for option in ("--results", "--data"):
        told = user("run", "igen-oltp", option, str(user.home / "file" / "below"))
        assert told.code == 2, told
        assert "not a directory" in told.stderr.lower(), told.stderr
        assert user.untouched()


def test_a_stranger_s_directory_is_refused_and_untouched(user: User, engine: str) -> None:
    theirs = user.home / "thesis"
    theirs.mkdir()
    (theirs / "chapter.txt").write_text("mine")
    for option in ("--data", "--log", "--temp"):
        told = user("run", "igen-oltp", "--engine", engine, option, str(theirs))
        assert told.code == 2
        assert "chapter.txt" in told.stderr
    assert [path.name for path in theirs.iterdir()] == ["chapter.txt"]
    assert user.untouched()


def test_a_wrong_password_is_your_input_and_is_written_nowhere(
    user: User, engine: str, guarded: Callable[[str], str], script: str
) -> None:
    told = user("run", "script", script, "--dsn", guarded("open-barley"), *SHORT)
    assert told.code == 2, told
    assert "_user" in told.stderr
    assert "open-barley" not in told.stdout + told.stderr
    assert written_anywhere(user.home, "open-barley") == []


def test_a_right_password_is_written_nowhere_either(
    user: User, engine: str, guarded: Callable[[str], str], script: str
) -> None:
    told = user.measured("run", "script", script, "--dsn", guarded(""), *SHORT, "--json")
    page = user("report", "-o", "report.html")
    assert page.code == 0, page.stderr
    shown = user("show", told.document["trials"][0]["id"], "--json")
    password = {"postgres": PASSWORD, "mariadb": MYSQL_PASSWORD}[engine]
    assert password not in told.stdout + told.stderr + shown.stdout
    assert written_anywhere(user.home, password) == []


def test_more_clients_than_a_running_server_takes_are_refused_before_the_trial(
    user: User, engine: str, guarded: Callable[[str], str], script: str
) -> None:
    told = user("run", "script", script, "--dsn", guarded(""), "--clients", "1,500", *SHORT)
    assert told.code == 2, told
    assert re.search("--clients 500: the server at --dsn accepts 1[05][01] connections", told.stderr)
    assert "hint: use at most " in told.stderr
    assert not user.results.exists()


@rarely_mariadb("postgres", indirect=True)
def test_a_server_killed_mid_trial_voids_it_ends_the_sweep_and_keeps_what_was_finished(
    user: User, engine: str, fast_directory: Path
) -> None:
    data = fast_directory / f"mortal-{engine}"
    words = ("run", "select-only", "--engine", engine, "--data", str(data))
    with user.begun(*words, "--clients", "1,2", "--seed", "2", "--json", *LONG) as run:
        run.wait_for("sweep 1")
        time.sleep(1.0)
        os.kill(min(servers(data, engine)), signal.SIGKILL)
        told, _ = run.end()
    assert told.code == 1, told.stderr
    (record,) = user.records()
    assert record["status"] == "voided"
    assert "last log lines: killed by SIGKILL" in record["cause"], record["cause"]
    assert record["metrics"]["transactions"] > 0
    assert [trial["id"] for trial in told.document["trials"]] == [record["id"]]
    assert eventually(lambda: not servers(data, engine))
    assert user.nothing_runs()
    # The directory is still usable.
    assert user(*words, *SHORT).code in (0, 3)


@pytest.mark.long
def test_a_server_that_stands_still_for_five_seconds_is_waited_for_and_seen(
    user: User, engine: str, fast_directory: Path
) -> None:
    data = fast_directory / f"halted-{engine}"
    words = ("run", "select-only", "--engine", engine, "--data", str(data), "--rate", "200", "--clients", "4")
    with user.begun(*words, "--duration", "12s", "--warmup", "0s", "--json") as run:
        run.wait_for("trial 1")
        time.sleep(2.0)
        halted = servers(data, engine)
        try:
            for pid in halted:
                os.kill(pid, signal.SIGSTOP)
            time.sleep(5.0)
        finally:
            for pid in halted:
                os.kill(pid, signal.SIGCONT)
        run.measured()
    (record,) = user.records()
    assert record["status"] in ("ok", "suspect"), record["cause"]
    # An open loop: transactions scheduled in the meantime waited for the end of the halt.
    assert 4.5 < record["metrics"]["response_time_max_s"] < 8
    assert record["metrics"]["response_time_p90_s"] > 1
    assert not servers(data, engine) and user.nothing_runs()


@pytest.mark.long
@rarely_mariadb("postgres", indirect=True)
def test_a_second_run_on_a_directory_in_use_is_refused_and_the_first_goes_on(
    user: User, engine: str, fast_directory: Path
) -> None:
    data = fast_directory / f"shared-{engine}"
    words = ("run", "select-only", "--engine", engine, "--data", str(data))
    with user.begun(*words, *PAUSED, "--duration", "4s", "--warmup", "0s", "--no-observe", "--json") as run:
        run.wait_for("trial 1")
        second = user(*words, *SHORT)
        assert second.code == 2 and "in use by a running server" in second.stderr, second
        run.measured()
    assert [record["status"] for record in user.records()] in (["ok"], ["suspect"])


def test_ctrl_c_keeps_the_trial_as_cut_short_and_ends_the_sweep(user: User, fast_directory: Path) -> None:
    data = fast_directory / "interrupted"
    words = ("run", "select-only", "--data", str(data), "--clients", "1,2,4", "--json")
    with user.begun(*words, *LONG) as run:
        run.wait_for("sweep 1")
        time.sleep(1.5)
        told, took_s = run.end(signal.SIGINT)
    assert told.code == 130, told
    assert took_s < 15
    (record,) = user.records()
    assert record["status"] == "cut-short"
    assert record["metrics"]["transactions"] > 0
    assert [trial["status"] for trial in told.document["trials"]] == ["cut-short"]
    assert not servers(data)
    assert user.nothing_runs()


def test_ctrl_c_while_the_server_starts_says_that_nothing_was_measured(user: User, fast_directory: Path) -> None:
    with user.begun("run", "select-only", "--data", str(fast_directory / "early"), *LONG) as run:
        run.wait_for("of measuring")
        told, _ = run.end(signal.SIGINT)
    assert told.code == 130, told
    assert "interrupted: 0 trials measured; start the run again" in told.stderr
    assert not user.records()
    assert eventually(user.nothing_runs)


def test_sigkill_keeps_finished_trials_and_leaves_no_server(user: User, fast_directory: Path) -> None:
    data = fast_directory / "killed"
    words = ("run", "select-only", "--data", str(data), "--clients", "1", "--repeats", "9", "--no-observe", *PAUSED)
    with user.begun(*words, "--duration", "1.5s", "--warmup", "0s") as run:
        run.wait_for("trial 2")
        time.sleep(0.5)
        assert servers(data)
        run.end(signal.SIGKILL)
    assert eventually(lambda: not servers(data) and user.nothing_runs())
    assert [record["status"] for record in user.records()] in (["ok"], ["suspect"])
    cleaned = user("cleanup")
    assert cleaned.code == 0
    # The live file of a trial is removed last, and no process has it open any more.
    assert all(line.endswith(".live") for line in cleaned.stderr.splitlines() if line.startswith("removed: "))
    assert "nothing to clean up" in user("cleanup").stderr
    assert user("list", "records").code == 0


EMPTY_MB = {"postgres": 100, "mariadb": 400}
"""Size of a disk that has space for a database without rows and not much more."""


def test_too_little_room_is_refused_before_anything_is_started(
    user: User, engine: str, small_disk: Callable[[int], Path]
) -> None:
    disk = small_disk(100)
    told = user("run", "igen-oltp", "--engine", engine, "--with", "scale=20", "--data", str(disk / "d"), *SHORT)
    assert told.code == 2, told
    assert "free" in told.stderr and "hint:" in told.stderr
    assert list(disk.iterdir()) == []
    assert user.untouched()


@rarely_mariadb("postgres", indirect=True)
def test_a_disk_that_fills_during_the_load_is_named_and_nothing_keeps_running(
    user: User, engine: str, small_disk: Callable[[int], Path]
) -> None:
    """Estimates do not include other programs that write to the device, as here from the start of the load."""
    disk = small_disk(EMPTY_MB[engine])
    data = disk / "d"
    words = ("run", "igen-oltp", "--engine", engine, "--data", str(data), "--with")
    with user.begun(*words, "scale=1", *SHORT) as run:
        run.wait_for("load igen-oltp")
        with (disk / "ballast").open("wb") as ballast:
            try:
                while ballast.write(b"x" * (1 << 20)):
                    ballast.flush()
            except OSError:
                pass
        told, _ = run.end()
    assert told.code == 1, told
    # MariaDB may report a file that cannot grow; then the hint names the disk.
    assert re.search(r"No space left on device|is full|hint: free some space", told.stderr), told.stderr
    assert "Traceback" not in told.stderr
    assert eventually(lambda: not servers(data, engine))
    assert user.nothing_runs()
    # A partial load is not treated as complete.
    (disk / "ballast").unlink()
    again = user(*words, "scale=1", *SHORT)
    assert again.code in (0, 3), again
    assert "reused" not in again.stderr


def test_a_failed_check_voids_the_trial(user: User, raw_server: RawServer, database: str, dsn: str) -> None:
    words = ("run", "igen-oltp", "--dsn", dsn, *PAUSED, "--duration", "4s", "--warmup", "0s", "--no-observe", "--json")
    with user.begun(*words) as run:
        run.wait_for("trial 1")
        time.sleep(1.0)
        stranger = raw_server.connect(database=database)
        stranger.query("UPDATE igen_stock SET quantity = -1 WHERE product_id = 1")
        stranger.close()
        told, _ = run.end()
    assert told.code == 1, told
    (record,) = user.records()
    assert record["status"] == "voided"
    failed = [check for check in record["checks"] if not check["passed"]]
    assert failed
    assert failed[0]["name"] in record["cause"]


def test_a_script_that_the_server_refuses_voids_the_trial_with_the_server_s_code(user: User, dsn: str) -> None:
    (user.home / "wrong.sql").write_text("SELECT nothing FROM nowhere;\n")
    told = user("run", "script", "wrong.sql", "--dsn", dsn, *SHORT, "--json")
    assert told.code == 1, told
    (record,) = user.records()
    assert record["status"] == "voided"
    assert "42P01" in record["cause"]  # undefined_table
    assert record["cause"] in told.stderr
