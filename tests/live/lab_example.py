"""A small hand-made lab with two configurations on the null engine or SQLite."""

from __future__ import annotations

import random
from pathlib import Path

from ironbench import engines
from ironbench.model.lab import Factor, Lab, Method, Stage
from ironbench.model.system import Cell, Choice, Layout, Load, Setup, System, Trial
from ironbench.workloads import get


def small(
    engine: str = "null", stages: tuple[int, ...] = (2,), duration_s: float = 0.2, data: Path | None = None
) -> Lab:
    workload = get("select-only")
    choice = Choice(workload.name, workload.validated({}))
    layout = Layout(str(data) if data else None)
    setups = []
    for clients in (1, 2):
        cell = Cell(f"clients={clients}", Load(clients, duration_s=duration_s, seed=7), {"clients": str(clients)})
        system, _ = engines.get(engine).validated(System(engine, engine, layout=layout), 2)
        setups.append(Setup(cell, system, choice))
    order, trials, block = random.Random(7), [], 0
    for number, blocks in enumerate(stages, 1):
        for _ in range(blocks):
            trials += [Trial(one.cell, block, stage=number) for one in order.sample(setups, 2)]
            block += 1
    return Lab(
        "small",
        "series",
        "Do two clients get more done than one?",
        (Factor("clients", ("1", "2")),),
        "one-at-a-time",
        tuple(setups),
        "clients=1",
        (("clients=2", "clients=1"),),
        Method(tuple(Stage(n, blocks) for n, blocks in enumerate(stages, 1)), 7),
        (),
        tuple(trials),
        "question = 'x'\n",
    )
