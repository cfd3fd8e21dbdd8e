"""The brokerage's score per core, socket and unit of money is ranked separately from published results."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from factories import DISK, MACHINE, MEMORY, record, unfolded

from ironbench import workloads
from ironbench.model.cost import CostRange
from ironbench.model.record import Record
from ironbench.model.system import Choice, System
from ironbench.records import Store
from ironbench.report import cost as cost_report
from ironbench.report import leaderboard as report
from ironbench.report.cost import compared
from ironbench.report.leaderboard import NOT_COMPARABLE, rankings
from ironbench.workloads.brokerage.figures import SCORE

CHOICE = Choice("brokerage", workloads.get("brokerage").validated({}))
LICENCE = "sql-server-2014-enterprise"
WHOLE, HELD = replace(DISK, label="whole"), replace(MEMORY, label="held", server_cpus=(1,))
"""All of a machine with two cores, and one core of it."""


def trial(system: System, results: float) -> Record:
    return record(system, 8, 10 * results, choice=CHOICE, metrics={SCORE: results})


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Results in which `whole` has the higher score, and `held` the higher score per core."""
    store = Store(tmp_path)
    machine = store.keep_shared("machines", MACHINE)
    for one in (trial(WHOLE, 100.0), trial(HELD, 70.0)):
        store.keep(replace(one, machine=machine))
    return tmp_path


@pytest.mark.parametrize(
    ("per", "first", "values"),
    [
        ("score", "whole", [100.0, 70.0]),
        ("core", "held", [70.0, 50.0]),
        ("socket", "whole", [100.0, 70.0]),
        # A socket needs at least four core licences.
        ("currency", "whole", [100_000 / (4 * 6872), 70_000 / (4 * 6872)]),
    ],
)
def test_results_per_second_are_ranked_for_each_core_socket_and_licence(
    results: Path, per: str, first: str, values: list[float]
) -> None:
    (ranking,) = rankings("brokerage", "" if per == "score" else per, "", LICENCE, (), str(results))
    assert ranking.places[0].system == first
    field = {"score": "score", "core": "per_core", "socket": "per_socket", "currency": "per_currency"}[per]
    assert [getattr(place, field) for place in ranking.places] == pytest.approx(values)
    assert "not comparable with published TPC-E results" in ranking.derived


@pytest.mark.parametrize("name", ["", "tpce"])
def test_published_results_and_ours_are_tables_of_their_own(results: Path, name: str) -> None:
    found = rankings(name, "core", "", "", (), str(results))
    (ours,) = [one for one in found if one.source == "records"]
    assert {place.system for place in ours.places} == {"whole", "held"}
    for published in found:
        if published is not ours:
            assert not {place.system for place in published.places} & {"whole", "held"}
            assert published.score != ours.score
    text = unfolded(report.page(found))
    assert NOT_COMPARABLE in text and "own results: brokerage" in text
    assert "Derived from TPC-E" in text


def test_a_bill_has_the_results_for_each_core_and_for_the_money(results: Path) -> None:
    systems = results / "systems.toml"
    systems.write_text(
        f'[system.whole]\nrecords = "whole"\nsockets = 1\ncores = 2\nbuy = ["{LICENCE}"]\n'
        f'[system.held]\nrecords = "held"\nsockets = 1\ncores = 1\nbuy = ["{LICENCE}"]\n'
    )
    found = compared((), "", str(systems), (), "", str(results))
    # One run: a score without bounds.
    assert [row.score for row in found.rows] == [CostRange(0, math.inf, 100), CostRange(0, math.inf, 70)]
    assert [row.per_core.centre for row in found.rows if row.per_core] == [50, 70]
    money = found.rows[0].per_thousand
    assert money is not None and money.centre == pytest.approx(100_000 / (4 * 6872))
    text = unfolded(cost_report.page(found))
    assert "not comparable with published TPC-E results" in text
    assert "tpsE" not in text
