"""`run --crash`: the power of emulated devices is cut after a trial, and the checks judge what is left."""

from pathlib import Path

import pytest
from emulated import needs_devices, nothing_left
from factories import require_installed
from user import User

from ironbench.records.labs import LabDirectory

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("devices"), needs_devices]


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path / "home")


def crashed(user: User, how: str, *words: str, workload: str = "tpcb-like"):
    told = user("run", workload, "--crash", how, "--warmup", "0s", "--no-observe", "--seed", "1", *words)
    (record,) = user.records()
    assert nothing_left(user.home) and user.nothing_runs()
    return told, record


def test_what_sqlite_confirmed_survives_a_power_cut(user: User) -> None:
    words = ("--engine", "sqlite", "--set", "synchronous=full", "--data", "free", "--duration", "0.5s")
    told, record = crashed(user, "torn", *words)
    assert told.code in (0, 3), told.stderr
    assert record["power_cut"] and record["crash"] == "torn"
    shown = user("report", "--format", "md").stdout
    assert "--crash torn" in shown, shown
    assert record["checks"] and all(check["passed"] for check in record["checks"])


@pytest.mark.long
@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
@pytest.mark.parametrize("how", ["lose", "subset", "torn"])
def test_what_a_server_confirmed_survives_a_power_cut(user: User, engine: str, how: str) -> None:
    require_installed(engine)
    places = ("--engine", engine, "--data", "hdd-7200", "--log", "ssd-sata-2011")
    told, record = crashed(user, how, *places, "--clients", "4", "--duration", "5s", "--checkpoint", "1s")
    assert told.code in (0, 3), told.stderr
    assert record["metrics"]["transactions"] > 10 and all(check["passed"] for check in record["checks"])


@pytest.mark.long
@pytest.mark.parametrize(
    ("engine", "settings"),
    [
        # Without a reason to write, the last 200 ms of commits are only in the server's memory.
        ("postgres", ("fsync=off", "wal_writer_delay=10s")),
        ("postgres", ("synchronous_commit=off", "wal_writer_delay=10s")),
        # With 2, the log is written at each commit; with 0, it is not even written. Both flush the log at this
        # interval.
        ("mariadb", ("innodb_flush_log_at_trx_commit=2", "innodb_flush_log_at_timeout=60")),
        ("mariadb", ("innodb_flush_log_at_trx_commit=0", "innodb_flush_log_at_timeout=60")),
    ],
)
def test_what_a_server_did_not_make_safe_is_missed_by_the_checks(
    user: User, engine: str, settings: tuple[str, ...]
) -> None:
    require_installed(engine)
    set_them = [word for setting in settings for word in ("--set", setting)]
    words = ("--engine", engine, "--data", "free", "--clients", "4", "--duration", "3s", *set_them)
    told, record = crashed(user, "lose", *words)
    assert told.code == 1 and record["status"] == "voided", told.stderr


ADDING = ("--with", "entries=200", "--with", "job=mixed", "--with", "weights=add=1", "--clients", "4")


@pytest.mark.long
@pytest.mark.parametrize("how", ["lose", "subset", "torn"])
def test_entries_that_a_directory_confirmed_survive_a_power_cut(user: User, how: str) -> None:
    require_installed("slapd")
    told, record = crashed(user, how, "--data", "hdd-7200", *ADDING, "--duration", "3s", workload="directory")
    assert told.code in (0, 3), told.stderr
    checks = {check["name"]: check["passed"] for check in record["checks"]}
    assert checks["entries added"] and all(checks.values()) and record["metrics"]["transactions"] > 10


@pytest.mark.long
def test_entries_that_a_directory_did_not_flush_are_missed_by_the_checks(user: User) -> None:
    require_installed("slapd")
    words = ("--data", "free", "--set", "dbnosync=on", *ADDING, "--duration", "2s")
    told, record = crashed(user, "lose", *words, workload="directory")
    assert told.code == 1 and record["status"] == "voided", told.stderr


@pytest.mark.long
def test_several_trials_each_have_a_power_cut(user: User) -> None:
    words = (
        "--data",
        "free",
        "--duration",
        "1s",
        "--warmup",
        "0s",
        "--repeats",
        "2",
        "--crash",
        "lose",
        "--no-observe",
    )
    user.measured("run", "tpcb-like", *words)
    assert ["power" in record["conditions"] for record in user.records()] == [True, True]


@pytest.mark.long
def test_a_lab_cuts_the_power_after_each_of_its_trials(user: User) -> None:
    file = user.home / "cut.toml"
    file.write_text(
        'question = "Does every commit survive?"\n[system]\nengine = "sqlite"\nset.synchronous = "full"\n'
        '[layout]\ndata = "free"\n[workload]\nname = "tpcb-like"\n[load]\nduration = "0.5s"\nwarmup = "0s"\n'
        '[vary]\nclients = [1, 2]\n[measure]\ncrash = "torn"\nrepeats = 1\nquiet = "0s"\n'
    )
    user.measured("lab", "run", str(file), "--results", str(user.home / "lab"), "--json")
    records = LabDirectory(user.home / "lab").records()
    assert len(records) == 2
    assert all(record.power_cut and record.crash == "torn" for record in records)
    assert all(check.passed for record in records for check in record.checks)
    assert nothing_left(user.home) and user.nothing_runs()


def test_the_power_is_cut_under_scripts_of_the_user_and_their_check_judges_what_is_left(user: User) -> None:
    setup, script = user.home / "kept.sql", user.home / "add.sql"
    setup.write_text("create table kept (n integer);")
    script.write_text("insert into kept values (1);")
    words = ("--engine", "sqlite", "--data", "free", "--set", "synchronous=off", "--duration", "0.5s")
    own = ("--setup", str(setup), "--check", "select count(*) > 0 from kept")
    told, record = crashed(user, "lose", str(script), *words, *own, workload="script")
    assert record["conditions"]["power"].startswith("cut after the measured time: "), told.stderr
    assert told.code == 1 and record["status"] == "voided", told.stderr
