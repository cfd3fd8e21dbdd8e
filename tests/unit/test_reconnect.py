"""Clients that reconnect: who may request it, what plans and reports show, and differences between runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from factories import DISK, Shelf, record

from ironbench.errors import InputError
from ironbench.lab import declare
from ironbench.lab.benches import most_clients
from ironbench.lab.run_plan import planned
from ironbench.model.note import note
from ironbench.model.system import Load, connections
from ironbench.plan import run_file
from ironbench.report import formats
from ironbench.report.reproduce import run_command
from ironbench.study.comparability import unlike
from ironbench.study.runstudy import studies

NEW = Load(duration_s=30.0, warmup_s=5.0, on_error="stop", seed=1, reconnect=1)
LAB = """question = "What do connections cost?"
workload.name = "select-only"
load.clients = 100
[vary]
reconnect = [0, 1]
[measure]
method = "slices"
"""


@pytest.mark.parametrize(
    ("workload", "engine", "cause"),
    [
        ("select-only", "sqlite", "clients of sqlite cannot open new connections"),
        ("select-only", "null", "clients of null cannot open new connections"),
        ("directory", "slapd", "is a number of transactions"),
        ("populate", "postgres", "does not run scripts"),
        ("tpch", "postgres", "controls its own load"),
    ],
)
def test_what_keeps_its_connections_refuses_new_ones(workload: str, engine: str, cause: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=cause) as refused:
        planned(run_file.read(workload, engine=engine, reconnect=1, data=str(tmp_path / "d")))
    assert refused.value.subject.startswith("--reconnect") and refused.value.hint


def test_a_number_below_0_is_refused() -> None:
    with pytest.raises(InputError, match="out of range"):
        planned(run_file.read("select-only", engine="null", reconnect=-1))


def test_it_is_a_factor_of_labs_which_are_measured_by_trials(tmp_path: Path) -> None:
    file = tmp_path / "connections.toml"
    file.write_text(f'{LAB}\n[layout]\ndata = "{tmp_path / "d"}"\n')
    lab = declare.lab(file)[0]
    assert [setup.cell.load.reconnect for setup in lab.setups] == [0, 1]
    assert lab.method.slice_s is None and "clients open new connections" in lab.method.why_trials
    assert most_clients(lab) == 200, "all engines of a lab are made alike"
    assert not lab.rated, "cells that differ in it do not do the same work"


def test_a_server_of_ours_has_room_for_connections_that_have_not_ended() -> None:
    assert (connections(DISK, NEW, 8), connections(DISK, Load(), 8)) == (16, 8)
    assert connections(replace(DISK, dsn="postgresql:///b"), NEW, 8) == 8


def test_runs_that_differ_in_it_are_unlike_and_each_is_repeated_by_its_own_command() -> None:
    anew, kept = record(load=NEW), record(load=replace(NEW, reconnect=0))
    assert note("fact-differs", fact="load.reconnect", a="0", b="1") in unlike([kept], [anew])
    assert "--reconnect 1" in run_command([anew]) and "--reconnect" not in run_command([kept])


def test_a_report_says_how_many_there_were_and_how_much_of_the_clients_time_they_took() -> None:
    """8 clients had 240 s together: 60,000 connections of 2 ms take half of it, of 1 ms a quarter."""
    trials = [
        record(load=NEW, block=block, metrics={"reconnects": 60_000.0, "reconnect_mean_s": mean_s})
        for block, mean_s in enumerate((2e-3, 1e-3, 1e-3))
    ]
    (study,) = studies(trials, Shelf(trials))
    text = formats.get("text")([study]).decode()
    (row,) = [" ".join(line.split()) for line in text.splitlines() if "2,000/s" in line.replace("\u202f", " ")]
    assert "1.00 ms" in row and "25" in row and "50" in row, row
    (without,) = studies([record()], Shelf([record()]))
    assert "New connections" not in formats.get("text")([without]).decode()


@pytest.mark.parametrize(
    ("workload", "engine"), [("select-only", "sqlite"), ("populate", "postgres"), ("tpch", "postgres")]
)
def test_what_keeps_its_connections_refuses_to_reconnect_after_a_loss_too(
    workload: str, engine: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as refused:
        planned(run_file.read(workload, engine=engine, reconnect_on_loss=True, data=str(tmp_path / "d")))
    assert refused.value.subject.startswith("--reconnect-on-loss")


def test_reconnecting_after_a_loss_is_repeated_by_its_own_command_and_needs_room_on_the_server() -> None:
    load = replace(NEW, reconnect=0, reconnect_on_loss=True)
    assert "--reconnect-on-loss" in run_command([record(load=load)])
    assert connections(DISK, load, 8) == 16
    assert load.shape == replace(load, reconnect_on_loss=False).shape, "without a loss it measures the same"


def test_a_directory_reconnects_after_a_loss(tmp_path: Path) -> None:
    plan = planned(run_file.read("directory", engine="slapd", reconnect_on_loss=True, data=str(tmp_path / "d")))[0]
    assert plan.trials[0].cell.load.reconnect_on_loss
