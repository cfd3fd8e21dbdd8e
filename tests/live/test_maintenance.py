"""Backup, restore, index build and vacuum of a running server beside a probe client, and their failures."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import launch
import pytest
from factories import require_installed
from patience import eventually
from raw_mysql import RawMysql
from user import records

pytestmark = pytest.mark.live

SMALL = ("--with", "gb=0.005", "--with", "calm=1", "--with", "probe=50")


def command(place: Path, results: Path, *words: str) -> list[str]:
    known = ("--data", str(place / "data"), "--results", str(results))
    return ["run", *words, *known]


def run(place: Path, results: Path, *words: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    done = launch.run(command(place, results, *words), env=env)
    # 3: in such a short operation the client uses much of the CPU time, so the trial is flagged.
    assert done.returncode in (0, 3), done.stderr
    assert "meanwhile, reading a row took" in done.stdout
    return records(results)[-1]


OPERATIONS = {
    "backup": "files match",
    "backup --with format=tar": "files match",
    "backup --with format=discard": "rows in the table",
    "restore": "checksum of their content",
    "index-build": "the index is valid",
    "index-build --with concurrently=on": "the index is valid",
    "vacuum": "dead tuples left",
    "vacuum --with kind=full": "pages of the new table",
    "index-build --engine mariadb": "the index is valid",
    "index-build --engine mariadb --with concurrently=on": "the index is valid",
    "vacuum --engine mariadb --with kind=full": "pages of the new table",
    "backup --engine mariadb": "backup marked complete by its program",
    "backup --engine mariadb --with format=discard": "rows in the table",
    "restore --engine mariadb": "checksum of their content",
}


def without(name: str, programs: Path) -> dict[str, str]:
    """Returns an environment with every program on PATH except one."""
    programs.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for path in Path(folder).glob("*"):
            if path.name != name and not (programs / path.name).exists():
                (programs / path.name).symlink_to(path)
    return {**os.environ, "PATH": str(programs)}


def require_programs(words: str) -> None:
    if "mariadb" in words:
        require_installed("mariadb")
        if words.startswith(("backup", "restore")) and shutil.which("mariadb-backup") is None:
            pytest.skip("mariadb-backup is not on PATH (Debian's package of that name)")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(words, marks=pytest.mark.long if "--" in words or words == "restore" else ())
        for words in OPERATIONS
    ],
)
def test_an_operation_is_timed_checked_and_felt_by_a_bystander(place: Path, tmp_path: Path, words: str) -> None:
    require_programs(words)
    # The index on the small table exists before the probe client's next read.
    enough = ("--with", "gb=0.05") if words.startswith("index-build") else ()
    found = run(place, tmp_path, *words.split(), *SMALL, *enough)
    assert found["status"] in ("ok", "suspect"), found["cause"]
    checks = {check["name"]: check["passed"] for check in found["checks"]}
    assert all(checks.values()) and any(name.startswith(OPERATIONS[words]) for name in checks)
    metrics = found["metrics"]
    assert 0 < metrics["maintenance_elapsed_s"] <= found["elapsed_s"]
    assert metrics["maintenance_bytes_per_s"] > 0
    for kind in ("select", "connect"):
        assert metrics[f"bystander_{kind}_mean_s{{phase=calm}}"] > 0
    assert metrics["bystander_failed"] == 0
    left = {path.name for path in (place / "data").iterdir()}
    assert not {name for name in left if name.startswith(("ironbench-backup", "ironbench-restored"))}


@pytest.mark.long
@pytest.mark.parametrize("words", ["backup", "backup --with format=discard", "restore"])
def test_where_files_cannot_be_copied_a_dump_is_made_and_the_record_says_so(
    place: Path, tmp_path: Path, words: str
) -> None:
    require_installed("mariadb")
    if shutil.which("mariadb-dump") is None:
        pytest.skip("mariadb-dump is not on PATH (Debian's package mariadb-client)")
    others = without("mariadb-backup", tmp_path / "programs")
    found = run(place, tmp_path / "r", *words.split(), "--engine", "mariadb", *SMALL, env=others)
    assert found["status"] in ("ok", "suspect"), found["cause"]
    assert all(check["passed"] for check in found["checks"])
    assert found["conditions"][words.split()[0]].startswith("mariadb-dump ")
    names = [check["name"] for check in found["checks"]]
    if words == "backup":
        assert "dump ends with its completion line" in names
    if words == "restore":
        assert names.count("checksum of their content") == 2


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("vacuum", "--with kind=plain: mariadb does not support this kind of vacuum"),
        ("backup --with format=tar", "--with format=tar: neither mariadb-backup nor mariadb-dump supports this"),
        ("backup --with rate=5", "--with rate=5: neither mariadb-backup nor mariadb-dump supports this"),
        ("restore", "mariadb-backup and mariadb-dump: are not on PATH"),
    ],
)
def test_what_mariadb_cannot_do_is_refused_before_anything_starts(
    place: Path, tmp_path: Path, words: str, error: str
) -> None:
    require_installed("mariadb")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("mariadbd", "unshare", "setpriv", "taskset"):
        (programs / name).symlink_to(shutil.which(name) or "/nowhere")
    done = launch.run(
        command(place, tmp_path / "r", *words.split(), "--engine", "mariadb"),
        env={**os.environ, "PATH": str(programs)},
    )
    assert done.returncode == 2 and f"error: {error}" in done.stderr, done.stderr
    assert "hint: " in done.stderr
    assert not (place / "data").exists()


def test_a_restore_tells_copying_and_recovery_apart_and_its_rows_are_checked(place: Path, tmp_path: Path) -> None:
    found = run(place, tmp_path, "restore", *SMALL)
    metrics = found["metrics"]
    parts = metrics["restore_copy_s"] + metrics["restore_recovery_s"]
    assert parts == pytest.approx(metrics["maintenance_elapsed_s"], rel=0.1)
    names = [check["name"] for check in found["checks"]]
    assert names.count("rows in the table") == 2, "of the restored server and of the first"


@pytest.mark.long
def test_a_vacuum_that_locks_the_table_is_felt(place: Path, tmp_path: Path) -> None:
    """VACUUM FULL locks the table until it is done: a read scheduled in the meantime waits for the rest of it."""
    words = ("vacuum", "--with", "kind=full", "--with", "gb=0.1", "--with", "calm=1", "--with", "probe=50")
    metrics = run(place, tmp_path, *words)["metrics"]
    assert metrics["bystander_select_max_s"] > 0.3 * metrics["maintenance_elapsed_s"]
    assert metrics["bystander_connect_max_s"] < metrics["maintenance_elapsed_s"]


@pytest.mark.parametrize("words", ["vacuum --with kind=full", "index-build"])
def test_an_operation_begins_without_a_checkpoint_where_a_running_server_has_no_statement_for_it(
    tmp_path: Path, raw_mysql: RawMysql, mysql_database: str, words: str
) -> None:
    dsn = f"mysql://root@localhost/{mysql_database}?socket={raw_mysql.socket}"
    done = launch.run(["run", *words.split(), "--dsn", dsn, *SMALL, "--results", str(tmp_path)])
    assert done.returncode in (0, 3), done.stderr
    assert all(check["passed"] for check in records(tmp_path)[-1]["checks"])


def test_a_backup_goes_where_it_is_told_and_is_gone_afterwards(place: Path, tmp_path: Path) -> None:
    to = place / "elsewhere"
    run(place, tmp_path, "backup", *SMALL, "--with", f"to={to}")
    assert {path.name for path in to.iterdir()} == {"ironbench.json"}


def _begun(place: Path, tmp_path: Path, *more: str) -> launch.Command:
    """Returns a backup in progress that takes long enough to be observed."""
    words = ("backup", "--with", "gb=0.05", "--with", "calm=1", "--with", "rate=1", *more)
    running = launch.Command(command(place, tmp_path, *words))
    folder = place / "data" / "ironbench-backup"
    eventually(lambda: (folder / "base").exists() or running.poll() is not None, 90.0)
    assert folder.exists(), running.communicate()[1]
    return running


@pytest.mark.long
def test_an_interrupted_backup_is_cut_short_and_leaves_nothing(place: Path, tmp_path: Path) -> None:
    running = _begun(place, tmp_path)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=30)
    assert running.returncode == 130
    assert records(tmp_path)[0]["status"] == "cut-short"
    assert not (place / "data" / "ironbench-backup").exists()
    assert not (place / "data" / "cluster" / "postmaster.pid").exists()


def test_a_server_killed_in_the_middle_of_a_backup_voids_it(place: Path, tmp_path: Path) -> None:
    running = _begun(place, tmp_path)
    os.kill(int((place / "data" / "cluster" / "postmaster.pid").read_text().splitlines()[0]), signal.SIGKILL)
    running.communicate(timeout=60)
    assert running.returncode == 1
    (found,) = records(tmp_path)
    assert found["status"] == "voided", found["cause"]
    assert not (place / "data" / "ironbench-backup").exists()
