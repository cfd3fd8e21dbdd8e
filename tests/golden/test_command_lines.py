"""Tests what command lines and lab files declare: every option, every field, and the messages for invalid values.

`command-lines.text` contains each command, followed by the differences of its plan from the first command's plan, or by
the message that refuses it. Add a command as a line `$ ironbench …`; `IRONBENCH_GOLDEN=write pytest tests/golden` fills
in the rest.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer.main

from ironbench import cli
from ironbench.model.lab import Lab
from ironbench.model.plan import Plan

HERE = Path(__file__).parent
PLANS = HERE / "command-lines.text"
PAGES = ["run", "lab plan", "lab run", "lab resume", "lab noise", "lab new", "tune"]


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields every leaf of a document with its path."""
    if isinstance(value, dict) and value:
        for name, one in value.items():
            yield from flat(one, f"{path}.{name}" if path else str(name))
    else:
        yield path, value


def of_run(plan: Plan) -> dict[str, Any]:
    """Returns the plan without its name, with each load once."""
    order = " ".join(f"{trial.block}:{trial.cell.name}" for trial in plan.trials)
    loads = {trial.cell.name: trial.cell.load for trial in plan.trials}
    first = next(iter(loads.values()))
    document = msgspec.to_builtins(replace(plan, series="", trials=()))
    other = {name: dict(_other(load, first)) for name, load in loads.items()}
    return {**document, "trials": order, "load": msgspec.to_builtins(first), "other loads": other}


def _other(load: Any, first: Any) -> Iterator[tuple[str, Any]]:
    known = dict(flat(msgspec.to_builtins(first)))
    return ((path, value) for path, value in flat(msgspec.to_builtins(load)) if known.get(path) != value)


def of_lab(lab: Lab) -> dict[str, Any]:
    """Returns the lab without name, source and estimates: the first configuration, and the others' differences from
    it."""
    plain = replace(lab, series="", source="", folder="", trials=(), setups=(), estimate_s=0.0, estimate_bytes=0)
    other = {setup.cell.name: dict(_other(setup, lab.setups[0])) for setup in lab.setups}
    first = msgspec.to_builtins(lab.setups[0])
    return {**msgspec.to_builtins(plain), "trials": len(lab.trials), "setup": first, "other setups": other}


class Planner:
    """Plans command lines in an empty directory with the files that they name."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        from ironbench.lab.dry_run import lab, run

        self.folder, self.monkeypatch, self.capsys = folder, monkeypatch, capsys
        self.plans: list[dict[str, Any]] = []
        for file in (HERE / "declared").iterdir():
            shutil.copy(file, folder)
        monkeypatch.chdir(folder)
        monkeypatch.delenv("IRONBENCH_RESULTS", raising=False)
        monkeypatch.setattr(run, "show", lambda plan, *_: self.plans.append(of_run(plan)))
        monkeypatch.setattr(lab, "show", lambda plan, *_: self.plans.append(of_lab(plan.lab)))
        self.usual: dict[str, Any] = {}

    def planned(self, command: str) -> str:
        """Returns the plan in lines, or the exit code and the message."""
        words = shlex.split(command)
        extra = ["--plan"] if words[1] == "run" else []
        self.monkeypatch.setattr("sys.argv", [*words, *extra])
        self.plans.clear()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = self.capsys.readouterr().err
        if ended.value.code != 0:
            lines = [f"exit code {ended.value.code}", *said.splitlines()]
        else:
            plan = dict(flat(self.plans[0]))
            self.usual = self.usual or plan
            usual = self.usual if words[1] == "run" and plan is not self.usual else {}
            lines = [f"{path} = {json.dumps(value, ensure_ascii=False)}" for path, value in plan.items()
                     if path not in usual or usual[path] != value]  # fmt: skip
        return "".join(f"{line}\n" for line in lines).replace(str(self.folder), "/FOLDER")


def test_command_lines_declare_the_plans_that_they_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = PLANS.read_text(encoding="utf-8")
    planner = Planner(tmp_path, monkeypatch, capsys)
    found = "\n".join(f"$ {one}\n{planner.planned(one)}" for one in re.findall(r"^\$ (.*)$", known, re.MULTILINE))
    if os.environ.get("IRONBENCH_GOLDEN") == "write":
        PLANS.write_text(found, encoding="utf-8")
        return
    assert found == known


@pytest.mark.parametrize("page", PAGES)
def test_pages_of_help(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IRONBENCH_RESULTS", raising=False)
    command: Any = typer.main.get_command(cli.program({page.split()[0]}))
    for word in page.split():
        command = command.commands[word]
    text = command.get_help(typer.Context(command, info_name=f"ironbench {page}", terminal_width=78)) + "\n"
    path = HERE / f"help-{page.replace(' ', '-')}.text"
    if os.environ.get("IRONBENCH_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
