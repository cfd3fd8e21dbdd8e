"""The number of cores by which a score is divided: the cores to which the system was pinned, or else the machine's
cores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from factories import DISK, MACHINE, Shelf, record

from ironbench.catalogue.prices import Sheet
from ironbench.model.note import note
from ironbench.model.system import Choice, System
from ironbench.study.balance import balance
from ironbench.study.cost import StoredTrials, costs
from ironbench.study.lead import leads
from ironbench.study.leaderboard import rankings_of_records
from ironbench.study.subjects import pinned_cpus


@pytest.mark.parametrize(
    ("system", "machine", "value", "known"),
    [
        (DISK, MACHINE, 4, {"cores": 2, "shared": True}),
        (replace(DISK, client_cpus=(0,)), MACHINE, 4, {"cores": 2, "shared": True}),
        (replace(DISK, server_cpus=(0,)), MACHINE, 8, {"cores": 1, "held_by": "engine"}),
        (replace(DISK, server_cpus=(0, 1, 2, 3)), MACHINE, 4, {"cores": 2, "held_by": "engine"}),
        (replace(DISK, server_cpus=(0,)), {}, 8, {"cores": 1, "held_by": "engine"}),
        (replace(DISK, engine="sqlite", client_cpus=(0,)), MACHINE, 8, {"cores": 1, "held_by": "engine"}),
        (System("none", "threads"), MACHINE, 4, {"cores": 2, "shared": False}),
        (System("none", "threads", client_cpus=(0,)), MACHINE, 8, {"cores": 1, "held_by": "threads"}),
        (DISK, {}, None, {}),
    ],
)
def test_a_balance_sheet_counts_the_cores_that_the_system_was_held_to(
    system: System, machine: dict[str, Any], value: float | None, known: dict[str, Any]
) -> None:
    entry = balance([record(system)], machine)[2]
    cores = note("balance-cores", **known) if known else note("balance-cores-unknown")
    assert (entry.name, entry.value, entry.note) == (note("balance-clients"), value, cores)


@pytest.mark.parametrize(
    ("engine", "workload", "held"),
    [
        ("sqlite", "tpch", (0, 1, 2)),
        ("sqlite", "igen-oltp", (3,)),
        ("sqlite", "forgotten", (3,)),
        ("postgres", "tpch", (0, 1, 2)),
        ("duckdb", "tpch", (0, 1, 2)),
        ("none", "igen-ram", (0, 1, 2)),
    ],
)
def test_what_is_bound_last_is_what_the_work_was_held_to(engine: str, workload: str, held: tuple[int, ...]) -> None:
    both = System(engine, "both", server_cpus=(0, 1, 2), client_cpus=(3,))
    assert pinned_cpus(record(both, choice=Choice(workload, {}))) == held


def test_queries_in_processes_of_their_own_inherit_the_cpus_of_the_client() -> None:
    client = System("sqlite", "client", client_cpus=(3,))
    assert pinned_cpus(record(client, choice=Choice("tpch", {}))) == (3,)


def test_balance_sheet_bill_lead_and_leaderboard_count_the_same_cores() -> None:
    ram = Choice("igen-ram", {})
    held = [record(System("none", "held", client_cpus=(0,)), 1, choice=ram, machine="m1")]
    free = [record(System("none", "free"), 1, choice=ram, machine="m1")]
    archive = Shelf((*held, *free))
    assert leads("held", held, "free", free, archive, 0.05).cores == (1, 2)
    places = rankings_of_records([*held, *free], archive, "score", Sheet({}), "")[0].places
    assert {place.system: place.cores for place in places} == {"held": 1, "free": 2}
    rows = costs(None, Sheet({}), StoredTrials({"held": held, "free": free}, {"m1": MACHINE})).rows
    assert [row.cores for row in rows] == [1, 2]
    shown = [balance(side, MACHINE)[2] for side in (held, free)]
    assert [(entry.name.code, entry.value) for entry in shown] == [("balance-clients", 1), ("balance-clients", 0.5)]


def test_the_cores_of_a_watched_server_are_those_of_its_machine_and_not_shared_with_the_clients() -> None:
    there = System("postgres", "there", dsn="postgresql://db/bench", server="ssh://db")
    one = replace(record(there, 8), machine="m0", server_machine="m1")
    entry = balance([one], MACHINE)[2]
    assert (entry.value, entry.note) == (4, note("balance-cores", cores=2, shared=False))
    ours = {"cpu": {"cores": 64}}
    row = costs(None, Sheet({}), StoredTrials({"there": [one]}, {"m0": ours, "m1": MACHINE})).rows[0]
    assert row.cores == 2
    places = rankings_of_records([one], Shelf([one]), "score", Sheet({}), "")
    assert all(place.cores == 2 for group in places for place in group.places)
