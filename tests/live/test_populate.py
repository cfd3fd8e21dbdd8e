"""Populations through the whole pipeline: every way to send rows, on every engine, and failures."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import launch
import pytest
from factories import require_installed
from patience import eventually
from raw_mysql import RawMysql
from user import records
from workload_trial import Target

from ironbench.printer import Printer
from ironbench.trial.load.prepare import fill
from ironbench.workloads.wide_table import WideTable

pytestmark = pytest.mark.live


def command(place: Path, results: Path, *words: str) -> list[str]:
    return ["run", *words, "--results", str(results), *_data(place, words)]


def _data(place: Path, words: tuple[str, ...]) -> list[str]:
    return [] if "null" in words else ["--data", str(place / "data")]


def run(place: Path, results: Path, *words: str, code: int = 0) -> dict[str, Any]:
    done = launch.run(command(place, results, *words))
    # Flagged if the client uses much of a small machine's CPU; this test is about rows.
    assert done.returncode in ({0, 3} if code == 0 else {code}), done.stderr
    assert code or "filled the table in" in done.stdout
    return records(results)[-1]


OFTEN = {("postgres", "copy", "random"), ("postgres", "rows", "identity"), ("mariadb", "batch", "random")}
"""Combinations in the short tests: each method, each kind of keys and each engine. The long tests run all
combinations."""
EVERY = itertools.product(("postgres", "mariadb"), ("rows", "batch", "copy"), ("identity", "random"))


@pytest.mark.parametrize(
    ("engine", "method", "keys"), [pytest.param(*one, marks=() if one in OFTEN else pytest.mark.long) for one in EVERY]
)
def test_every_row_arrives_on_a_server(place: Path, tmp_path: Path, engine: str, method: str, keys: str) -> None:
    require_installed(engine)
    words = [
        "populate",
        "--engine",
        engine,
        "--clients",
        "3",
        "--with",
        "gb=0.004",
        "--with",
        f"method={method}",
        "--with",
        f"keys={keys}",
    ]
    found = run(place, tmp_path, *words, "--with", "commit=333", "--with", "batch=50")
    assert found["status"] in ("ok", "suspect"), found["cause"]
    assert {check["name"]: check["passed"] for check in found["checks"]} == {
        "rows in the table": True,
        "checksum of their content": True,
        # An engine's counters may have gaps.
        **({"checksum of their keys": True} if keys == "random" else {}),
    }
    metrics = found["metrics"]
    assert metrics["transactions"] == 13
    assert metrics["population_bytes_per_s"] == pytest.approx(4e6 / metrics["population_elapsed_s"])
    assert metrics["population_log_share"] > 1
    # MariaDB maps a log in tmpfs into memory, and flushes none.
    assert metrics["population_log_flushes"] >= 1 or engine == "mariadb"
    assert metrics["debt_log_bytes"] <= metrics["population_log_bytes"] * 1.1 + 100_000
    assert metrics["debt_data_bytes"] > 4e6, "no checkpoint has written any of it"
    assert metrics["population_settled_s"] >= metrics["population_elapsed_s"]


@pytest.mark.parametrize("method", ["rows", "batch"])
def test_every_row_arrives_in_an_sqlite_file_whoever_writes_at_the_time(
    place: Path, tmp_path: Path, method: str
) -> None:
    words = ["populate", "--engine", "sqlite", "--clients", "3", "--with", "gb=0.003", "--with", f"method={method}"]
    found = run(place, tmp_path, *words, "--with", "commit=100", "--with", "batch=30", "--repeats", "2")
    statuses = [record["status"] for record in records(tmp_path)]
    assert len(statuses) == 2 and set(statuses) <= {"ok", "suspect"}
    assert found["metrics"]["transactions"] == 30
    assert len(found["checks"]) == 2


@pytest.mark.parametrize("method", ["rows", "copy"])
def test_the_null_engine_shows_what_making_rows_costs(place: Path, tmp_path: Path, method: str) -> None:
    found = run(place, tmp_path, "populate", "--engine", "null", "--with", "gb=0.01", "--with", f"method={method}")
    assert found["metrics"]["population_bytes_per_s"] > 1e6


def test_a_missing_row_is_found(place: Path, postgres: Any) -> None:
    table = WideTable(100, 64, "number")
    for statement in table.dataset("postgres", loaded=True).schema:
        postgres.query(statement)
    assert [check.passed for check in table.checks(postgres)] == [False] * 3


@pytest.mark.parametrize(
    "change",
    [
        "payload = 'x' || substr(payload, 2)",
        "payload = substr(payload, 1, 35) || 'x'",
        "amount = amount + 1",
        "moment = '2020-01-01 00:00:00'",
    ],
)
def test_a_row_that_differs_in_one_character_is_found(target: Target, change: str) -> None:
    table = WideTable(300, 36, "number")
    fill(target, table.dataset(target.engine, loaded=True), 2, Printer.silent())
    assert [check.passed for check in table.checks(target)] == [True] * 3
    if target.engine == "mariadb":
        change = re.sub(r"= (.*) \|\| (.*)", r"= concat(\1, \2)", change)
    target.query(f"update wide_row set {change} where number = 123")
    assert [check.name for check in table.checks(target) if not check.passed] == ["checksum of their content"]


def test_what_a_population_owes_is_not_told_of_a_running_server_without_a_statement_for_a_checkpoint(
    place: Path, tmp_path: Path, raw_mysql: RawMysql, mysql_database: str
) -> None:
    dsn = f"mysql://root@localhost/{mysql_database}?socket={raw_mysql.socket}"
    done = launch.run(["run", "populate", "--dsn", dsn, "--with", "gb=0.003", "--results", str(tmp_path)])
    assert done.returncode in (0, 3), done.stderr
    metrics = records(tmp_path)[-1]["metrics"]
    assert metrics["population_log_bytes"] > 0
    assert not {"debt_settle_s", "debt_data_bytes", "population_settled_s"} & metrics.keys()


def test_an_interrupted_population_is_cut_short_and_leaves_no_server(place: Path, tmp_path: Path) -> None:
    words = ["populate", "--clients", "2", "--with", "gb=2", "--with", "method=copy", "--with", "commit=100000"]
    running = launch.Command(command(place, tmp_path, *words))
    _until_it_fills(place, running)
    running.send_signal(signal.SIGINT)
    assert running.wait(30) == 130
    assert records(tmp_path)[0]["status"] == "cut-short"
    assert not (place / "data" / "cluster" / "postmaster.pid").exists()


def test_a_server_killed_in_the_middle_voids_the_population(place: Path, tmp_path: Path) -> None:
    words = ["populate", "--clients", "2", "--with", "gb=2", "--with", "method=copy"]
    running = launch.Command(command(place, tmp_path, *words))
    _until_it_fills(place, running)
    os.kill(int((place / "data" / "cluster" / "postmaster.pid").read_text().splitlines()[0]), signal.SIGKILL)
    assert running.wait(60) == 1
    assert records(tmp_path)[0]["status"] == "voided"


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_voids_the_population_and_says_so(place: Path, tmp_path: Path) -> None:
    small = place / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=800m", "none", str(small)], check=False).returncode:
        pytest.skip("this container may not mount")
    try:
        words = ["populate", "--clients", "2", "--with", "gb=0.2", "--with", "method=copy"]
        running = launch.Command(command(small, tmp_path, *words))
        _until_it_fills(small, running)
        # Another file uses the space that was free when the trial started.
        with contextlib.suppress(OSError), (small / "filler").open("wb") as file:
            while True:
                file.write(bytes(8 << 20))
        _, said = running.communicate(timeout=90)
        assert running.returncode == 1, said
        (found,) = records(tmp_path)
        assert found["status"] == "voided"
        assert "No space left on device" in found["cause"], found["cause"]
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=False)


def _until_it_fills(place: Path, running: launch.Command) -> None:
    """Waits until the table has some megabytes."""
    files = place / "data" / "cluster" / "base"
    assert eventually(lambda: running.poll() is not None or any(size > 3 << 20 for size in _sizes(files)), 60.0)
    assert running.poll() is None, "it does not fill"


def _sizes(files: Path) -> list[int]:
    """Returns the sizes of the tables' files that still exist."""
    found = []
    for path in files.glob("*/*"):
        with contextlib.suppress(OSError):
            if path.name.isdigit():
                found.append(path.stat().st_size)
    return found
