"""The command that a report prints runs, and declares the experiment that was measured."""

from __future__ import annotations

import json
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from factories import record
from user import User

from ironbench.devices import capability
from ironbench.errors import InputError
from ironbench.model.record import Record
from ironbench.model.system import Choice, Load, System
from ironbench.report.reproduce import run_command

TPCH = "tpch --engine postgres --with sf=0.01"
LOADS = [
    "tpcb-like --engine postgres",
    "tpcb-like --engine postgres --clients 1,4 --threads 2 --repeats 3 --with scale=3",
    "select-only --engine sqlite --rate 1234567.5 --arrivals fixed --duration 1.25s --warmup 0s",
    "simple-update --engine postgres --transactions 10 --think-time 1.5ms --max-tries 3 --on-error continue",
    "tpcb-like --engine postgres --set work_mem=7MB --memory 64MB --label mine --checkpoint 7s",
    "tpcb-like --engine postgres --ideal log,temp,client --clients 4",
    "tpcb-like --engine postgres --ideal data",
    "igen-cpu --duration 2s --client-cpus 0",
    "select-only --engine sqlite --ideal temp",
]
QUERIES = [TPCH, f"{TPCH} --set work_mem=7MB --parallelism 1", "tpch --engine sqlite --with sf=0.01 --with queries=1,6"]
EMULATED = ["--data hdd-7200", "--data hdd-7200 --log hdd-7200 --capacity 4GB", "--log hdd-7200"]


def planned(user: User, words: list[str]) -> dict[str, Any]:
    told = user("run", *words, "--plan", "--json")
    assert told.code == 0, told.stderr
    found: dict[str, Any] = told.document
    return {name: found[name] for name in ("system", "choice", "trials", "loads", "seed")}


def as_if_measured(plan: dict[str, Any]) -> list[Record]:
    system, choice = msgspec.convert(plan["system"], System), msgspec.convert(plan["choice"], Choice)
    loads = {name: msgspec.convert(load, Load) for name, load in plan["loads"].items()}
    return [
        record(system, loads[one["cell"]].clients, choice=choice, load=loads[one["cell"]], block=one["block"])
        for one in plan["trials"]
    ]


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> User:
    user = User(tmp_path / "user")
    monkeypatch.setenv("IRONBENCH_DATA", user.environment["IRONBENCH_DATA"])
    return user


@pytest.mark.parametrize("words", LOADS + QUERIES)
def test_the_command_declares_what_was_measured_and_nothing_that_follows_from_it(user: User, words: str) -> None:
    asked = [*shlex.split(words), "--seed", "7"]
    plan = planned(user, asked)
    command = shlex.split(run_command(as_if_measured(plan)))
    assert planned(user, command[2:]) == plan
    given = {word for flag, word in pairwise(asked) if flag in ("--set", "--with")}
    printed = {word for flag, word in pairwise(command) if flag in ("--set", "--with")}
    assert printed == given and "--data" not in command


@pytest.mark.parametrize("words", EMULATED)
def test_emulated_devices_are_named_by_their_models(user: User, words: str) -> None:
    try:
        capability.require("--data")
    except InputError as error:
        pytest.skip(str(error))
    plan = planned(user, ["tpcb-like", "--engine", "postgres", *words.split(), "--seed", "7"])
    text = run_command(as_if_measured(plan))
    assert words.split(" --capacity")[0] in text and "--set" not in text
    assert ("--capacity" in text) == ("--capacity" in words)
    again = planned(user, shlex.split(text)[2:])
    assert sizes(again) == pytest.approx(sizes(plan), abs=4096)
    assert folded(again, again) == folded(plan, plan)


def sizes(plan: dict[str, Any]) -> list[int]:
    return [part["bytes"] for device in plan["system"]["layout"]["devices"] for part in device["partitions"]]


def folded(plan: dict[str, Any], of: dict[str, Any]) -> str:
    """Removes sizes and names of directories, which depend on the spelling of a capacity."""
    text = json.dumps(plan)
    for device in of["system"]["layout"]["devices"]:
        for part in device["partitions"]:
            text = text.replace(part["directory"], part["role"]).replace(str(part["bytes"]), "")
    return text
