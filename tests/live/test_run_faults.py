"""What goes wrong under `ironbench run`, as its users meet it: said clearly, kept, nothing left running."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from raw_server import PASSWORD, RawServer
from user import SHORT, User, eventually

from ironbench.process import processes

pytestmark = pytest.mark.live

LONG = ("--duration", "60s", "--warmup", "0s", "--no-observe")


@pytest.fixture
def user(place: Path) -> User:
    return User(place)


@pytest.fixture
def script(user: User) -> str:
    path = user.home / "one.sql"
    path.write_text("SELECT 1;\n")
    return str(path)


def servers(data: Path) -> list[int]:
    """Live server processes that work in our cluster."""
    return list(processes.working_in(data / "cluster"))


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


def test_a_stranger_s_directory_is_refused_and_untouched(user: User) -> None:
    theirs = user.home / "thesis"
    theirs.mkdir()
    (theirs / "chapter.txt").write_text("mine")
    for option in ("--data", "--log", "--temp"):
        told = user("run", "igen-oltp", option, str(theirs))
        assert told.code == 2
        assert "chapter.txt" in told.stderr
    assert [path.name for path in theirs.iterdir()] == ["chapter.txt"]
    assert user.untouched()


def test_a_wrong_password_is_your_input_and_is_written_nowhere(user: User, raw_server: RawServer, script: str) -> None:
    address = f"host={raw_server.host} port={raw_server.port} user=scram_user dbname=postgres"
    told = user("run", "script", script, "--dsn", f"{address} password=open-barley", *SHORT)
    assert told.code == 2, told
    assert "scram_user" in told.stderr
    assert "open-barley" not in told.stdout + told.stderr
    assert written_anywhere(user.home, "open-barley") == []


def test_a_right_password_is_written_nowhere_either(user: User, raw_server: RawServer, script: str) -> None:
    address = f"host={raw_server.host} port={raw_server.port} user=scram_user dbname=postgres"
    told = user("run", "script", script, "--dsn", f"{address} password='{PASSWORD}'", *SHORT, "--json")
    assert told.code in (0, 3), told.stderr
    page = user("report", "-o", "report.html")
    assert page.code == 0, page.stderr
    shown = user("show", told.document["trials"][0]["id"], "--json")
    assert PASSWORD not in told.stdout + told.stderr + shown.stdout
    assert written_anywhere(user.home, PASSWORD) == []


def test_more_clients_than_a_running_server_takes_are_refused_before_the_trial(
    user: User, dsn: str, script: str
) -> None:
    told = user("run", "script", script, "--dsn", dsn, "--clients", "1,500", *SHORT)
    assert told.code == 2, told
    assert "--clients 500: the server at --dsn takes 100 connections" in told.stderr
    assert "hint: use at most " in told.stderr
    assert not user.results.exists()


def test_a_server_killed_mid_trial_voids_it_ends_the_sweep_and_keeps_what_was_finished(
    user: User, fast_directory: Path
) -> None:
    data = fast_directory / "mortal"
    words = ("run", "select-only", "--data", str(data), "--clients", "1,2", "--seed", "2", "--json")
    with user.begun(*words, *LONG) as run:
        run.wait_for("sweep 1")
        time.sleep(1.0)
        postmaster = int((data / "cluster" / "postmaster.pid").read_text().split()[0])
        assert postmaster in servers(data)
        os.kill(postmaster, signal.SIGKILL)
        told, _ = run.end()
    assert told.code == 1, told.stderr
    (record,) = user.records()
    assert record["status"] == "voided"
    assert "its last words: killed by SIGKILL" in record["cause"], record["cause"]
    assert record["metrics"]["transactions"] > 0
    assert [trial["id"] for trial in told.document["trials"]] == [record["id"]]
    assert eventually(lambda: not servers(data))
    assert user.nothing_runs()
    # The directory is none the worse for it.
    assert user("run", "select-only", "--data", str(data), *SHORT).code in (0, 3)


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
    assert "interrupted: 0 trials measured; start it again" in told.stderr
    assert not user.records()
    assert eventually(user.nothing_runs)


def test_sigkill_keeps_finished_trials_and_leaves_no_server(user: User, fast_directory: Path) -> None:
    data = fast_directory / "killed"
    words = ("run", "select-only", "--data", str(data), "--clients", "1", "--repeats", "9", "--no-observe")
    with user.begun(*words, "--duration", "1.5s", "--warmup", "0s") as run:
        run.wait_for("trial 2")
        time.sleep(0.5)
        assert servers(data)
        run.end(signal.SIGKILL)
    assert eventually(lambda: not servers(data) and user.nothing_runs())
    assert [record["status"] for record in user.records()] in (["ok"], ["suspect"])
    cleaned = user("cleanup")
    assert cleaned.code == 0
    assert "nothing of ours is left" in cleaned.stderr
    assert user("list", "records").code == 0


@pytest.fixture
def small_disk(user: User) -> Iterator[Path]:
    """A file system of 100 MB."""
    path = user.home / "small"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=100m,mode=755", "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting is forbidden here")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


def test_too_little_room_is_refused_before_anything_is_started(user: User, small_disk: Path) -> None:
    told = user("run", "igen-oltp", "--with", "scale=20", "--data", str(small_disk / "d"), *SHORT)
    assert told.code == 2, told
    assert "free" in told.stderr and "hint:" in told.stderr
    assert list(small_disk.iterdir()) == []
    assert user.untouched()


def test_a_disk_that_fills_during_the_load_is_named_and_nothing_keeps_running(user: User, small_disk: Path) -> None:
    """Whoever else writes to the device is not in any estimate: here, from the moment the load begins."""
    data = small_disk / "d"
    with user.begun("run", "igen-oltp", "--with", "scale=1", "--data", str(data), *SHORT) as run:
        run.wait_for("load igen-oltp")
        with (small_disk / "ballast").open("wb") as ballast:
            try:
                while ballast.write(b"x" * (1 << 20)):
                    ballast.flush()
            except OSError:
                pass
        told, _ = run.end()
    assert told.code == 1, told
    assert "No space left on device" in told.stderr
    assert "Traceback" not in told.stderr
    assert eventually(lambda: not servers(data))
    assert user.nothing_runs()
    # What was loaded in part is not taken for whole.
    (small_disk / "ballast").unlink()
    again = user("run", "igen-oltp", "--with", "scale=1", "--data", str(data), *SHORT)
    assert "used again" not in again.stderr


def test_a_failed_check_voids_the_trial(user: User, raw_server: RawServer, database: str, dsn: str) -> None:
    words = ("run", "igen-oltp", "--dsn", dsn, "--duration", "4s", "--warmup", "0s", "--no-observe", "--json")
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
