"""The user's commands around trials: run, recorded, and undone on every exit, with real processes."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from patience import eventually
from user import PAUSED, SHORT, User

from ironbench.records.labs import LabDirectory
from ironbench.report import wording

pytestmark = pytest.mark.live

LAB = """
question = "Does the governor matter?"
[system]
engine = "null"
[workload]
name = "select-only"
[load]
duration = "{duration}"
warmup = "0s"
think_time = "5ms"
{commands}
[vary.governor]
powersave = {{}}
performance = {{ {level} }}
[measure]
repeats = {repeats}
quiet = "0s"
rates = "none"
seed = 1
"""


def lab(user: User, level: str, commands: str = "", duration: str = "0.2s", repeats: int = 1) -> str:
    path = user.home / "governor.toml"
    path.write_text(LAB.format(level=level, commands=commands, duration=duration, repeats=repeats))
    return path.name


def lines(user: User, name: str = "done") -> list[str]:
    path = user.home / name
    return path.read_text().splitlines() if path.exists() else []


def directory(user: User) -> LabDirectory:
    (path,) = user.results.glob("labs/*/plan.json")
    return LabDirectory(path.parent)


def of_level(user: User, level: str) -> list[Any]:
    return [record for record in directory(user).records() if record.cell.levels["governor"] == level]


def pending(user: User) -> list[Path]:
    return list((user.home / "data" / "undo").glob("*.json"))


def running(word: str) -> bool:
    """Returns whether a process with this word in its command line is running."""
    return subprocess.run(["pgrep", "-f", word], capture_output=True, check=False).returncode == 0


def test_commands_of_lab_blocks_and_levels_are_run_and_undone_in_order_and_kept_in_the_records(user: User) -> None:
    own = 'prepare = "echo on $IRONBENCH_LEVEL_GOVERNOR $IRONBENCH_CELL >> done", cleanup = "echo off >> done"'
    around = """[commands]
lab = { prepare = "echo lab >> done; echo shown", cleanup = "echo end >> done" }
block.prepare = "echo block $IRONBENCH_BLOCK >> done"
block.cleanup = "echo over $IRONBENCH_BLOCK >> done"
"""
    told = user("lab", "run", lab(user, own, around, repeats=2))
    assert told.code in (0, 3), told
    assert "echo off >> done" in told.stderr.partition("trial 1 of 4")[0]  # listed before anything starts
    of_block = ["on performance governor=performance", "off"]
    assert lines(user) == ["lab", "block 1", *of_block, "over 1", "block 2", *of_block, "over 2", "end"]
    runs = [run for record in directory(user).records() for run in record.commands]
    assert [(run.of, run.when, run.status) for run in runs][:3] == [
        ("lab", "prepare", 0), ("block", "prepare", 0), ("governor=performance", "prepare", 0)
    ]  # fmt: skip
    assert all(0 < run.took_s < 60 for run in runs)
    kept = [json.loads(line) for line in (directory(user).path / "commands.jsonl").read_text().splitlines()]
    assert [line["command"] for line in kept][-1] == "echo end >> done"
    assert kept[0]["output"] == "shown\n"
    assert not pending(user)
    page = user.home / "page.md"
    assert user("report", str(directory(user).path), "-o", str(page)).code == 0
    assert "## Commands" in page.read_text() and "echo off" in page.read_text()


def test_a_prepare_that_fails_makes_a_failed_trial_with_its_own_words_and_is_undone(user: User) -> None:
    own = 'prepare = "echo tried >> done; echo no such governor >&2; exit 3", cleanup = "echo undone >> done"'
    told = user("lab", "run", lab(user, own))
    assert told.code == 1, told
    assert lines(user) == ["tried", "undone"] * 2
    failed = of_level(user, "performance")
    assert [record.status.value for record in failed] == ["failed", "failed"]
    assert "exited with status 3: no such governor" in wording.cause(failed[0])
    assert [run.when for run in failed[0].commands] == ["prepare", "cleanup"]
    assert all(record.status.comparable for record in of_level(user, "powersave"))
    assert not pending(user)


def test_a_prepare_that_hangs_is_ended_at_its_limit_with_its_whole_tree(user: User) -> None:
    own = 'prepare = "setsid sleep 4711.1 & sleep 4711.2 | cat", cleanup = "echo undone >> done", command_limit = "1s"'
    began = time.monotonic()
    told = user("lab", "run", lab(user, own))
    assert told.code == 1, told
    assert time.monotonic() - began < 60
    assert "took longer than its limit of 1 s" in wording.cause(of_level(user, "performance")[0])
    assert not running("sleep 4711")
    assert lines(user) == ["undone", "undone"]


def test_a_prepare_that_is_killed_fails_its_trial(user: User) -> None:
    told = user("lab", "run", lab(user, 'prepare = "kill -KILL $$", cleanup = "echo undone >> done"'))
    assert told.code == 1, told
    assert "was killed by SIGKILL" in wording.cause(of_level(user, "performance")[0])
    assert lines(user) == ["undone", "undone"]


def test_what_a_prepare_leaves_running_is_not_waited_for_and_stays_until_its_cleanup_ends_it(user: User) -> None:
    own = 'prepare = "sleep 4712 & echo $! > pid", cleanup = "kill $(cat pid) && echo ended >> done"'
    told = user("lab", "run", lab(user, own))
    assert told.code in (0, 3), told
    assert of_level(user, "performance")[0].commands[0].took_s < 30
    assert lines(user) == ["ended"]
    assert not running("sleep 4712")


def test_a_password_that_a_command_prints_reaches_no_record_and_no_message(user: User) -> None:
    (user.home / "config").write_text("trying postgresql://bench:geheim-4713@db/shop\npassword=geheim-4713 refused\n")
    told = user("lab", "run", lab(user, 'prepare = "cat config; exit 1"'))
    assert told.code == 1, told
    assert "password=•••" in told.stderr
    kept = [path.read_bytes() for path in (user.home / "results").rglob("*") if path.is_file()]
    assert not any(b"geheim-4713" in one for one in (*kept, (told.stdout + told.stderr).encode()))
    assert any(b"postgresql://bench:" in one for one in kept)


def test_a_password_in_a_command_is_refused(user: User) -> None:
    told = user("lab", "run", lab(user, "prepare = \"psql 'host=db password=geheim'\""))
    assert told.code == 2, told
    assert "contains a password" in told.stderr and "geheim" not in told.stderr
    assert user.untouched()


def test_a_cleanup_that_fails_makes_later_trials_suspect_and_is_tried_again(user: User) -> None:
    own = 'prepare = "true", cleanup = "echo tried >> done; test -e mended"'
    told = user("lab", "run", lab(user, own, repeats=2))
    assert told.code == 1, told
    assert "not reverted: governor=performance" in told.stderr
    later = [record for record in directory(user).records() if record.block == 1]
    assert all("not-undone" in {warning.code for warning in record.warnings} for record in later)
    assert all(record.status.value == "suspect" for record in later)
    assert len(pending(user)) == 1
    again = user("cleanup")
    assert again.code == 1 and "cannot undo" in again.stderr and "cleanup --forget" in again.stderr
    (user.home / "mended").touch()
    assert user("cleanup").code == 0
    assert not pending(user)
    assert "nothing to clean up" in user("cleanup").stderr


def test_a_cleanup_that_never_succeeds_is_forgotten_when_that_is_asked_for(user: User) -> None:
    told = user("run", "select-only", "--engine", "sqlite", *SHORT, "--cleanup", "echo tried >> done; exit 3")
    assert told.code == 1 and "cleanup --forget" in told.stderr, told.stderr
    said = user("doctor", "--data", str(user.home)).stderr
    assert "not reverted" in said and "killed" not in said, said
    told = user("cleanup", "--forget")
    assert told.code == 0 and "discarded: run" in told.stderr and lines(user) == ["tried", "tried"], told.stderr
    assert not pending(user) and "not reverted" not in user("doctor", "--data", str(user.home)).stderr


def rarely(*words: object) -> Any:
    """Returns another variant of the test, for the long tests."""
    return pytest.param(*words, marks=pytest.mark.long)


@pytest.mark.parametrize(
    ("number", "while_"),
    [
        (signal.SIGINT, "trial"),
        (signal.SIGTERM, "prepare"),
        rarely(signal.SIGINT, "prepare"),
        rarely(signal.SIGTERM, "trial"),
        rarely(signal.SIGHUP, "trial"),
    ],
)
def test_who_asks_it_to_end_has_it_undone_first(user: User, number: int, while_: str) -> None:
    sleep = f"sleep 4714.{os.getpid()}{int(number)}{len(while_)}"  # unique: others may run at the same time
    prepare = "echo on >> done" if while_ == "trial" else f"echo on >> done; {sleep}"
    file = lab(user, f'prepare = "{prepare}", cleanup = "echo off >> done"', duration="20s")
    text = (
        (user.home / file).read_text().replace("powersave = {}\n", "").replace("[measure]", "powersave = {}\n[measure]")
    )
    (user.home / file).write_text(text + 'order = "fixed"\n')  # the value with the command comes first
    with user.begun("lab", "run", file) as run:
        assert eventually(lambda: lines(user) == ["on"])
        time.sleep(1.0)
        told, _ = run.end(number)
    assert told.code == 130, told
    assert "lab resume" in told.stderr
    assert lines(user) == ["on", "off"]
    assert not running(sleep) and not pending(user) and user.nothing_runs()


@pytest.mark.long
@pytest.mark.parametrize(
    ("while_", "by"),
    [("trial", "cleanup"), ("prepare", "resume"), rarely("trial", "resume"), rarely("prepare", "cleanup")],
)
def test_what_sigkill_left_is_undone_by_cleanup_and_by_resume(user: User, while_: str, by: str) -> None:
    sleep = f"sleep 4715.{os.getpid()}{len(while_)}{len(by)}"  # unique: others may run at the same time
    prepare = "echo on >> done" if while_ == "trial" else f"echo on >> done; test -e again || {sleep}"
    file = lab(user, f'prepare = "{prepare}", cleanup = "echo off >> done; touch again"', duration="2s")
    with user.begun("lab", "run", file) as run:
        assert eventually(lambda: lines(user) == ["on"])
        time.sleep(0.3)
        run.end(signal.SIGKILL)
    assert lines(user) == ["on"]
    assert len(pending(user)) == 1
    assert "not reverted" in user("doctor").stderr
    if by == "cleanup":
        told = user("cleanup")
        assert told.code == 0, told
        assert "reverted: governor=performance" in told.stderr and "not reverted" not in told.stderr
        assert lines(user) == ["on", "off"]
    else:
        told = user("lab", "resume", file)
        assert told.code in (0, 3), told
        assert lines(user) == ["on", "off", "on", "off"]
    assert not pending(user) and not running(sleep)


def test_a_lab_of_which_a_person_is_part_is_refused_without_a_terminal(user: User) -> None:
    file = lab(user, 'prepare = "ask: change the driver, then press Enter"')
    assert user("lab", "plan", file).code == 0
    told = user("lab", "run", file)
    assert told.code == 2, told
    assert "change the driver" in told.stderr and "no terminal" in told.stderr
    assert user.untouched()


def at_a_terminal(user: User, *words: str, answers: int) -> tuple[int, str]:
    """Presses Enter at each prompt; returns the exit code and the terminal's output."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(user.home)
        os.execvpe(sys.executable, [sys.executable, "-m", "ironbench.start", *words], user.environment)
    shown = b""
    for _ in range(answers):
        while b">>>" not in shown.rpartition(b"\x07")[2]:
            shown += os.read(terminal, 4096)
        os.write(terminal, b"\n")
        shown += b"\x07"
    try:
        while more := os.read(terminal, 4096):
            shown += more
    except OSError:  # the other side of the terminal is closed (pty(7))
        pass
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), shown.decode(errors="replace")


@pytest.mark.long
def test_a_person_is_asked_once_for_all_trials_of_a_block_that_need_the_same(user: User) -> None:
    file = lab(user, 'prepare = "ask: install the driver", cleanup = "ask: take the driver out"', repeats=2)
    text = (user.home / file).read_text().replace("[measure]", "[vary]\nclients = [1, 2]\n[measure]")
    (user.home / file).write_text('design = "full"\n' + text)
    assert "ironbench prompts for a change at the terminal 4 times" in user("lab", "plan", file).stdout
    code, shown = at_a_terminal(user, "lab", "run", file, answers=4)
    assert code in (0, 3), shown
    assert shown.count(">>> install the driver") == shown.count(">>> take the driver out") == 2
    assert len(directory(user).records()) == 8


def test_a_file_system_that_commands_mount_is_a_level(user: User) -> None:
    (user.home / "mnt").mkdir()
    mount = f"mount -t tmpfs -o size=300m none {user.home}/mnt"
    if subprocess.run(f"{mount} && umount {user.home}/mnt", shell=True, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not permitted here")
    file = lab(user, f'prepare = "{mount}", cleanup = "umount {user.home}/mnt"', '[layout]\ndata = "./mnt"', repeats=2)
    text = (user.home / file).read_text().replace('engine = "null"', 'engine = "sqlite"')
    (user.home / file).write_text(text)
    told = user("lab", "run", file)
    assert told.code in (0, 3), told
    assert "error" not in told.stderr
    assert len(directory(user).records()) == 4
    assert str(user.home) not in Path("/proc/mounts").read_text()
    assert not pending(user)


@pytest.mark.long
def test_a_run_has_one_pair_of_commands_and_its_report_repeats_it(user: User) -> None:
    around = ("--prepare", "echo on >> done", "--cleanup", "echo off >> done")
    options = ("--engine", "null", *PAUSED, "--clients", "1,2", "--duration", "0.2s", "--warmup", "0s", "--no-observe")
    plan = user("run", "select-only", *options, *around, "--plan")
    assert plan.code == 0 and "echo off >> done" in plan.stdout and not lines(user)
    told = user("run", "select-only", *options, *around)
    assert told.code in (0, 3), told
    assert lines(user) == ["on", "off"]
    page = user.home / "page.html"
    assert user("report", "-o", str(page)).code == 0
    assert "--prepare" in page.read_text() and "--cleanup" in page.read_text()


def test_a_run_whose_prepare_fails_measures_nothing_and_says_why(user: User) -> None:
    told = user(
        "run", "select-only", "--engine", "null", "--prepare", "echo no; false", "--cleanup", "echo off >> done"
    )
    assert told.code == 1, told
    assert "exited with status 1: no" in told.stderr
    assert lines(user) == ["off"] and not user.records()
