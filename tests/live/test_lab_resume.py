"""A lab may be killed at any time, and continues where it was. The tests use real processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from user import Begun, User

from bench.kills import killed
from ironbench.host import processes
from ironbench.records.labs import LabDirectory

pytestmark = pytest.mark.live

LAB = """
question = "Do two clients get more done than one?"
[system]
engine = "{engine}"
[workload]
name = "select-only"
[load]
duration = "{duration}"
warmup = "0s"
think_time = "2ms"
[vary]
"load.clients" = [1, 2]
[measure]
repeats = {repeats}
quiet = "0s"
"""


def written(user: User, engine: str = "null", duration: str = "0.2s", repeats: int = 6, name: str = "small") -> Path:
    path = user.home / f"{name}.toml"
    path.write_text(LAB.format(engine=engine, duration=duration, repeats=repeats))
    return path


def directories(user: User) -> list[LabDirectory]:
    return [LabDirectory(path.parent) for path in sorted(user.results.glob("labs/*/plan.json"))]


def only(user: User) -> LabDirectory:
    (found,) = directories(user)
    return found


def kept(user: User) -> list[tuple[str, int, int, str]]:
    """Returns (configuration, block, attempt, status) of every record."""
    records = only(user).records()
    return sorted((record.cell.name, record.block, record.attempt, record.status.value) for record in records)


def places(user: User) -> set[tuple[str, int]]:
    return {(cell, block) for cell, block, _, status in kept(user) if status in ("ok", "suspect")}


def test_a_lab_runs_to_its_verdict_and_says_where_it_is(user: User) -> None:
    told = user("lab", "run", str(written(user)))
    assert told.code in (0, 3), told
    assert "trial 12 of 12" in told.stderr
    assert "Do two clients get more done than one?" in told.stdout
    assert len(places(user)) == 12
    again = user("lab", "resume", "small.toml", "--json")
    assert again.code == told.code
    assert "trial 1" not in again.stderr  # no trials were left
    measured = {(one["cell"], one["block"]) for one in again.document["trials"]}
    assert len(measured) == 12  # even if a trial had to be repeated
    assert again.document["lab"]["findings"]


@pytest.mark.parametrize("engine", ["null", pytest.param("sqlite", marks=pytest.mark.long)])
def test_a_lab_killed_at_random_instants_ends_as_if_it_had_not_been(user: User, engine: str) -> None:
    file = written(user, engine, "0.3s", 3)
    kills = 2 if engine == "null" else 5
    found = killed(file, user.home, kills, 1.2, 11, user.environment)
    assert found.faults == ()
    assert found.kills == kills


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_lab_on_postgresql_survives_fifty_kills(user: User) -> None:
    found = killed(written(user, "postgres", "0.6s", 8), user.home, 50, 4.0, 1, user.environment)
    assert found.faults == ()


@pytest.mark.alone
def test_ctrl_c_ends_within_a_second_keeps_the_trial_as_cut_short_and_resume_repeats_it(user: User) -> None:
    with user.begun("lab", "run", str(written(user, "postgres", "30s", 1))) as run:
        wait_until_driving(run, "trial 1 of 2")
        told, took_s = run.end(signal.SIGINT)
    assert told.code == 130, told
    assert "interrupted: 0 of 2 trials measured; to continue: `ironbench lab resume" in told.stderr
    assert took_s < 3  # a second on an idle machine
    (first,) = kept(user)
    assert first[2:] == (1, "cut-short")
    assert user.nothing_runs()
    shorten(only(user))
    again = user("lab", "resume", str(only(user).path), "--changed")
    assert again.code in (0, 3), again
    assert [row[2:] for row in kept(user) if row[:2] == first[:2]] == [(1, "cut-short"), (2, row_status(user, first))]
    assert len(places(user)) == 2


def row_status(user: User, first: tuple[str, int, int, str]) -> str:
    return next(status for cell, block, attempt, status in kept(user) if (cell, block, attempt) == (*first[:2], 2))


def wait_until_driving(run: Begun, words: str) -> None:
    run.wait_for(words)
    time.sleep(1.0)


def shorten(directory: LabDirectory) -> None:
    """Shortens the remaining trials of a lab, so that a test need not wait."""
    for name in ("plan.json", "stage-1.json"):
        path = directory.path / name
        path.write_text(path.read_text().replace('"duration_s": 30.0', '"duration_s": 0.3'))


def test_a_lab_that_somebody_works_on_is_refused_with_the_worker_s_process(user: User) -> None:
    with user.begun("lab", "run", str(written(user, duration="20s"))) as run:
        run.wait_for("trial 1 of 12")
        told = user("lab", "resume", str(only(user).path))
        assert told.code == 2, told
        assert f"is using this directory ({run.process.pid})" in told.stderr
        run.end(signal.SIGINT)


@pytest.mark.long
def test_two_labs_of_one_file_have_directories_of_their_own(user: User) -> None:
    for _ in range(2):
        assert user("lab", "run", str(written(user, repeats=1))).code in (0, 3)
    assert len(directories(user)) == 2
    into_the_first = user("lab", "run", "small.toml", "--results", str(directories(user)[0].path))
    assert into_the_first.code == 2
    assert "already contains a lab" in into_the_first.stderr


def interrupted(user: User, engine: str = "null") -> LabDirectory:
    """Returns a lab with one trial stored and the rest missing."""
    with user.begun("lab", "run", str(written(user, engine, "0.8s", 2))) as run:
        run.wait_for("trial 2 of 4")
        run.end(signal.SIGKILL)
    assert len(kept(user)) == 1
    return only(user)


@pytest.mark.long
def test_a_resumed_lab_repeats_the_warnings_of_its_start(user: User) -> None:
    path = written(user)
    (user.home / "one.sql").write_text("SELECT :typo;\n")
    path.write_text(path.read_text().replace('name = "select-only"', 'name = "script"\nfiles = ["one.sql"]'))
    began = user("lab", "run", path.name)
    warnings = [line for line in began.stderr.splitlines() if line.startswith("warning: ")]
    assert warnings and "typo" in warnings[0]
    gone_on = user("lab", "resume", path.name)
    assert [line for line in gone_on.stderr.splitlines() if line.startswith("warning: ")] == warnings
    assert "trials already measured; no trial was run" in gone_on.stderr


def test_a_changed_lab_file_is_refused_unless_told_otherwise(user: User) -> None:
    interrupted(user)
    file = user.home / "small.toml"
    file.write_text(file.read_text().replace("repeats = 2", "repeats = 3"))
    told = user("lab", "resume", "small.toml")
    assert told.code == 2, told
    assert "lab file" in told.stderr and "--changed" in told.stderr
    assert len(kept(user)) == 1
    told = user("lab", "resume", "small.toml", "--changed")
    assert told.code in (0, 3), told
    assert len(places(user)) == 4  # as it was planned
    warned = [warning.code for record in only(user).records() for warning in record.warnings]
    assert warned.count("lab-changed") == 3


@pytest.mark.long
def test_a_changed_machine_is_refused_and_named(user: User) -> None:
    mine = os.sched_getaffinity(0)
    if len(mine) < 2:
        pytest.skip("needs two CPUs to take one away")
    directory = interrupted(user)
    os.sched_setaffinity(0, {min(mine)})  # simulates a container with fewer CPUs
    try:
        told = user("lab", "resume", str(directory.path))
    finally:
        os.sched_setaffinity(0, mine)
    assert told.code == 2, told
    assert "machine.limits.cpu_list" in told.stderr
    assert user("lab", "resume", str(directory.path)).code in (0, 3)


def test_a_changed_program_is_refused_and_named(user: User) -> None:
    directory = interrupted(user)
    plan = directory.path / "plan.json"
    document: dict[str, Any] = json.loads(plan.read_text())
    for known in document["engines"].values():
        known["version"] = "0.0.1"
    plan.write_text(json.dumps(document))
    told = user("lab", "resume", str(directory.path))
    assert told.code == 2, told
    assert "version: was 0.0.1, is " in told.stderr


def test_a_lab_that_never_began_cannot_go_on(user: User) -> None:
    told = user("lab", "resume", str(written(user)))
    assert told.code == 2
    assert "no lab has been started" in told.stderr
    told = user("lab", "resume", str(user.home))
    assert told.code == 2
    assert "contains no lab" in told.stderr


@pytest.mark.long
def test_more_blocks_are_measured_as_a_round_of_their_own_of_six_at_least(user: User) -> None:
    assert user("lab", "run", str(written(user, duration="0.1s", repeats=1))).code in (0, 3)
    too_few = user("lab", "resume", "small.toml", "--more", "5")
    assert too_few.code == 2 and "--more" in too_few.stderr
    told = user("lab", "resume", "small.toml", "--more", "6", "--json")
    assert told.code in (0, 3), told
    assert {(record.stage, record.block) for record in only(user).records()} == {(1, 0), *((2, n) for n in range(1, 7))}
    assert [one["round"] for one in told.document["lab"]["earlier"]] == [1]


def fill(path: Path) -> None:
    """Uses up the free space."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as ballast:
        while ballast.write(b"x" * 4096):
            pass


@pytest.mark.long
def test_a_disk_full_of_records_is_named_and_the_lab_goes_on_when_there_is_room(
    user: User, small_disk: Callable[[int], Path]
) -> None:
    disk = small_disk(2)
    lab = disk / "lab"
    with user.begun("lab", "run", str(written(user, duration="0.8s", repeats=3)), "--results", str(lab)) as run:
        run.wait_for("trial 2 of 6")
        fill(disk / "ballast")
        told, _ = run.end()
    assert told.code == 1, told
    assert "No space left on device" in told.stderr and "hint:" in told.stderr
    assert "Traceback" not in told.stderr
    before = {record.id for record in LabDirectory(lab).records()}
    (disk / "ballast").unlink()
    assert user("lab", "resume", str(lab)).code in (0, 3)
    records = LabDirectory(lab).records()
    assert before <= {record.id for record in records}
    assert len({(record.cell.name, record.block) for record in records if record.status.comparable}) == 6


@pytest.mark.long
def test_a_server_that_is_killed_costs_one_attempt(user: User) -> None:
    with user.begun("lab", "run", str(written(user, "postgres", "3s", 1))) as run:
        wait_until_driving(run, "trial 1 of 2")
        (cluster,) = (user.home / "data").glob("postgres-*/cluster")
        os.kill(min(processes.working_in(cluster)), signal.SIGKILL)
        told, _ = run.end()
    assert told.code in (0, 3), told
    assert sorted((attempt, status == "voided") for _, _, attempt, status in kept(user)) == [
        (1, False),
        (1, True),
        (2, False),
    ]
    assert user.nothing_runs()


@pytest.mark.long
def test_a_lab_against_itself_gives_a_variation_that_later_labs_quote(user: User) -> None:
    told = user("lab", "noise", str(written(user)), "--blocks", "6", "--json")
    assert told.code in (0, 3), told
    assert "run-to-run variation of throughput" in told.stderr
    (directory,) = directories(user)
    assert {record.cell.name for record in directory.records()} == {"side=A", "side=again"}
    (kept_floors,) = (user.results / "noise").glob("*.json")
    floors = json.loads(kept_floors.read_text())
    assert "throughput" in {floor["metric"] for floor in floors}
    later = user("lab", "run", "small.toml", "--json")
    assert later.code in (0, 3), later
    assert later.document["lab"]["noise"]["floor"] > 0
