"""The command to repeat a trial declares the same trial, for every option in the table of fields."""

from __future__ import annotations

import shlex
from typing import Any

import typer.main
from factories import record
from hypothesis import given, settings
from hypothesis import strategies as st

from ironbench import cli
from ironbench.fields.run import RunFile
from ironbench.model.system import Choice
from ironbench.plan import resolve, run_file
from ironbench.report.reproduce import run_command


def parsed(command: str) -> RunFile:
    """Returns the command line as `ironbench run` reads it."""
    words = shlex.split(command)
    group: Any = typer.main.get_command(cli.program({"run"}))
    context = group.commands["run"].make_context("run", words[2:])
    return run_file.read(**context.params)


LOADS = st.fixed_dictionaries(
    {"clients": st.integers(1, 10_000), "warmup": st.sampled_from(["auto", "0s", "1.5s"])},
    optional={
        "threads": st.integers(1, 1024),
        "workers": st.integers(0, 1000),
        "rate": st.floats(0.001, 1e9),
        "arrivals": st.sampled_from(["poisson", "fixed"]),
        "duration": st.floats(0.001, 1e6),
        "reconnect": st.integers(0, 10**9),
        "max_tries": st.integers(1, 2**31 - 1),
        "on_error": st.sampled_from(["stop", "continue"]),
        "reconnect_on_loss": st.booleans(),
        "report_per_statement": st.booleans(),
        "protocol": st.sampled_from(["prepared", "extended", "simple"]),
        "cache": st.sampled_from(["", "cold", "warm", "hot"]),
        "io": st.sampled_from(["auto", "io_uring", "epoll"]),
        "checkpoint": st.floats(0.001, 86400),
    },
)


@settings(max_examples=25)
@given(LOADS, st.integers(0, 2**63 - 1))
def test_the_command_of_a_trial_declares_its_load(fields: dict[str, Any], seed: int) -> None:
    load = resolve.load(run_file.read("script", **fields).load, seed)
    again = parsed(run_command([record(clients=load.clients, choice=Choice("script"), load=load)]))
    usual = {"usual_protocol": "simple"}  # protocol of `script`
    assert resolve.load(again.load, again.measure.seed or 0, **usual) == load


def test_options_and_their_document_are_two_spellings_of_one_thing() -> None:
    typed: dict[str, Any] = {"set": ("work_mem=1MB",), "define": ("a=1", "b=x y"), "ideal": "log,client"}
    typed |= {"observe": False, "report_per_statement": True, "threads": 3, "setup": ("a.sql", "b.sql")}
    file = run_file.read("script", ("my.sql",), **typed)
    document = {
        "system": {"set": {"work_mem": "1MB"}, "ideal": ["log", "client"]},
        "workload": {"define": {"a": "1", "b": "x y"}},
        "load": {"threads": 3, "report_per_statement": True},
        "data": {"setup": ["a.sql", "b.sql"]},
        "run": {"observe": False},
    }
    assert parsed(shlex.join(["ironbench", "run", "script", "my.sql", *run_file.words(document)])) == file
