"""An idealised client has no think time and, if possible, a separate core; idealised data are cached from the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from ironbench.engines import ideal as memory
from ironbench.lab import declare
from ironbench.model.lab import Lab
from ironbench.model.system import Load, System
from ironbench.plan import resolve


def test_an_ideal_client_is_held_back_by_nothing_of_ours() -> None:
    system = System("postgres", "x", ideal=("client",), client_cpus=(1,))
    system, load = resolve.with_ideal_parts(system, Load(clients=8, think_time_s=0.1), range(4))
    assert (system.client_cpus, load.threads, load.think_time_s) == (None, 4, 0.0)


def test_there_are_never_more_threads_than_clients() -> None:
    _, load = resolve.with_ideal_parts(System("postgres", "x", ideal=("client",)), Load(clients=2), range(64))
    assert load.threads == 2


def test_without_ideal_parts_nothing_changes() -> None:
    system, load = System("postgres", "x"), Load(clients=8, cache="cold")
    assert resolve.with_ideal_parts(system, load, range(4)) == (system, load)


def lab(folder: Path) -> Lab:
    file = folder / "lab.toml"
    file.write_text(
        'question = "Is the log what holds this database back?"\n'
        '[system]\nengine = "postgres"\n'
        f'[layout]\ndata = "{folder}/d"\n'
        '[workload]\nname = "tpcb-like"\n[load]\nclients = 4\nduration = "5s"\n'
        '[vary]\nideal = ["none", "log", "data", "temp", "client"]\n'
    )
    return declare.lab(file)[0]


def test_each_ideal_part_is_a_level_of_a_lab(tmp_path: Path) -> None:
    setups = {setup.cell.name: setup for setup in lab(tmp_path).setups}
    assert not any(setup.skipped for setup in setups.values())
    root = str(memory.root(str(tmp_path / "d")))
    assert setups["ideal=none"].system.layout.log is None
    assert setups["ideal=log"].system.layout.log == f"{root}/log"
    assert setups["ideal=temp"].system.layout.temp == f"{root}/temp"
    assert setups["ideal=data"].cell.load.cache == "hot"
    assert not Path(root).exists(), "planning makes nothing"


def test_a_part_for_which_there_is_no_memory_is_skipped_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 20 << 20)
    setups = {setup.cell.name: setup for setup in lab(tmp_path).setups if setup.skipped}
    assert set(setups) == {"ideal=log", "ideal=data", "ideal=temp"}
    assert "of memory" in setups["ideal=data"].skipped
