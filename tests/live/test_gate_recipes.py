"""The recipes on the page about gates run as written: their shell lines, in the order of the pipeline."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml  # type: ignore[import-untyped]  # comes with ray
from user import User

pytestmark = [pytest.mark.live, pytest.mark.long]

GUIDE = (Path(__file__).parents[2] / "docs" / "how" / "gate.md").read_text()
LAB = """question = "Is the change slower?"
[system]
engine = "null"
[workload]
name = "igen-oltp"
[load]
clients = 2
duration = "0.3s"
warmup = "0s"
[vary]
think_time = ["10ms", "{new}"]
[measure]
repeats = 6
quiet = "0s"
margin = {margin}
"""
CHANGES = [("9ms", False), ("30ms", True)]
"""Think time of the change, and whether the gate fails."""


@dataclass
class Machine:
    """The environment of a pipeline: its directory, and programs that are not installed here."""

    place: Path
    mails: Path = field(init=False)

    def __post_init__(self) -> None:
        self.mails = self.place / "mails"
        programs = self.place / "programs"
        programs.mkdir()
        mail = programs / "mail"
        mail.write_text(f'#!/bin/sh\n{{ echo "$@"; cat; }} >> {self.mails}\n')
        mail.chmod(0o755)
        user = User(self.place)
        path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = user.environment | {"PATH": path, "GITHUB_STEP_SUMMARY": str(self.place / "summary.md")}

    def lab(self, new: str, margin: float = 0.5) -> None:
        (self.place / "change.toml").write_text(LAB.format(new=new, margin=margin))

    def shell(self, line: str, *words: str) -> int:
        done = subprocess.run(
            [*words, "-c", line], cwd=self.place, env=self.environment, timeout=120, check=False, capture_output=True
        )
        assert done.returncode in (0, 4), done.stderr.decode()
        return done.returncode


@pytest.fixture
def machine(place: Path) -> Machine:
    return Machine(place)


def recipe(head: str) -> str:
    """Returns the contents of the first fence after `head`."""
    fence = re.search(r"```\w*\n(.*?)```", GUIDE[GUIDE.index(head) :], re.DOTALL)
    assert fence is not None
    return fence[1]


def test_recipe_of_github_actions(machine: Machine) -> None:
    """A failed step ends the job, except for steps that always run (`bash -e` is the runner's shell)."""
    job = yaml.safe_load(recipe("GitHub Actions"))["jobs"]["gate"]
    for new, closed in CHANGES:
        machine.lab(new)
        failed = False
        for step in job["steps"]:
            if "run" in step and (not failed or step.get("if") == "always()"):
                failed |= machine.shell(step["run"], "bash", "-e") != 0
        assert failed is closed
        summary = (machine.place / "summary.md").read_text()
        assert f"**{'FAIL' if closed else 'PASS'}: " in summary
        subprocess.run(["rm", "-r", machine.place / "lab"], check=True)


def test_recipe_of_gitlab(machine: Machine) -> None:
    job = yaml.safe_load(recipe("GitLab:"))["gate"]
    for new, closed in CHANGES:
        machine.lab(new)
        codes = []
        for line in job["script"]:
            codes.append(machine.shell(line, "bash", "-e"))
            if codes[-1]:
                break
        assert (codes[-1] != 0) is closed and len(codes) == len(job["script"])
        for name in job["artifacts"]["paths"]:
            assert (machine.place / name).stat().st_size
        suite = ElementTree.parse(machine.place / job["artifacts"]["reports"]["junit"]).getroot()
        assert suite.get("failures") == ("1" if closed else "0")
        subprocess.run(["rm", "-r", machine.place / "lab"], check=True)


def clone_of_branch(place: Path) -> None:
    """Makes the directory a clone of a branch, with the branch `main` in the directory `base`."""
    origin = place / "origin"
    commit = "git -c user.name=test -c user.email=test@example.org commit -q --allow-empty -m first"
    for line in (
        f"git init -q -b main {origin} && cd {origin} && {commit} && git branch change",
        f"git init -q && git remote add origin {origin} && git fetch -q && git checkout -q change",
        "git worktree add base origin/main",
    ):
        subprocess.run(line, shell=True, cwd=place, check=True, capture_output=True)


def test_recipe_of_cron(machine: Machine) -> None:
    clone_of_branch(machine.place)
    fields = re.fullmatch(r"(\S+ \S+ \S+ \S+ \S+)\s+(.*)\n", recipe("cron,"))
    assert fields is not None and re.fullmatch(r"[\d*,/ -]+", fields[1])
    for new, closed in CHANGES:
        machine.lab(new)
        assert machine.shell(fields[2].replace("/srv/bench", str(machine.place)), "sh") == 0
        assert machine.mails.exists() is closed
    assert "-s gate: not passed team@example.org" in machine.mails.read_text()
    assert "FAIL: " in machine.mails.read_text()


def test_a_gate_that_cannot_tell_measures_one_round_more(machine: Machine) -> None:
    machine.lab("10.1ms", margin=0.000001)
    told = User(machine.place / "home")
    done = told(
        "lab", "run", str(machine.place / "change.toml"), "--results", "lab", "--gate", "--undecided", "more:20s"
    )
    assert "more blocks, which are judged separately" in done.stderr
    assert (machine.place / "home" / "lab" / "stage-2.json").exists()
    assert done.code == 4
