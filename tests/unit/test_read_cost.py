"""CPU time per read: the same work from a real device and cached, and by size in the storage workload."""

from dataclasses import replace

import pytest
from factories import DISK, record

from ironbench.model.own_data import OwnData
from ironbench.model.record import Budget, Record
from ironbench.model.system import Device
from ironbench.report.sections import sections
from ironbench.report.sections.devices import read_cost_table
from ironbench.study.device_io import read_costs
from ironbench.study.runstudy import studies
from ironbench.words import THIN


def trial(label: str, reads: float, engine_s: float, block: int = 0, size: int = 8192, **more: object) -> Record:
    """Returns a trial of 10 s on 2 cores."""
    metrics = {
        "device_reads_per_s{role=data}": reads / 10,
        "device_read_bytes_per_s{role=data}": reads * size / 10,
        "engine_cpu_s": engine_s,
    }
    budget = Budget(engine_s / 20, 0.0, 0.0, 0.0, 0.05, 0.0, 1 - engine_s / 20 - 0.05)
    one = record(replace(DISK, label=label), 1, 10.0, block=block, metrics=metrics, budget=budget)
    return replace(one, elapsed_s=10.0, **more)


def test_what_reading_adds_is_shared_out_among_the_reads_pair_by_pair() -> None:
    cold = [trial("cold", 100_000, 3.0, 0), trial("cold", 100_000, 3.4, 1)]
    hot = [trial("hot", 0, 2.0, 0), trial("hot", 100, 2.0, 1)]
    (found,) = read_costs([("hot", hot), ("cold", cold)])
    assert (found.name, found.cached, found.engine_s.n) == ("cold", "hot", 2)
    assert found.engine_s.low == pytest.approx(10e-6)
    assert found.engine_s.high == pytest.approx(1.4 / 99_900)
    assert found.size_bytes.centre == pytest.approx(8192)
    assert found.whole_s is not None and found.whole_s.low == pytest.approx(10e-6), "nobody's time is the same in both"
    (of_both,) = studies([*hot, *cold])
    row = read_cost_table(replace(of_both, details=replace(of_both.details, read_costs=(found,)))).texts[0]
    assert [cell.replace(THIN, " ") for cell in row[:3]] == [
        "cold vs. hot",
        "99,950",
        "8.19 kB",
    ]


def test_nothing_is_said_without_a_cached_side_of_emulated_devices_and_of_few_reads() -> None:
    cold, hot = trial("cold", 100_000, 3.0), trial("hot", 0, 2.0)
    assert read_costs([("cold", [cold])]) == ()
    assert read_costs([("a", [cold]), ("b", [trial("b", 50_000, 2.0)])]) == ()
    assert read_costs([("hot", [hot]), ("few", [trial("few", 500, 2.1)])]) == ()
    layout = replace(DISK.layout, devices=(Device("hdd-10k", ()),))
    emulated = replace(cold, system=replace(cold.system, layout=layout))
    assert read_costs([("hot", [hot]), ("cold", [emulated])]) == ()


def test_nothing_is_said_of_trials_that_differ_in_more_than_device_cache_and_memory() -> None:
    hot, cold = trial("hot", 0, 2.0), trial("cold", 100_000, 3.0)
    elsewhere = replace(cold.system, layout=replace(DISK.layout, data="/elsewhere"), memory_bytes=1 << 26)
    for same in (
        replace(cold, system=elsewhere),
        replace(cold, cell=replace(cold.cell, load=replace(cold.cell.load, cache="cold"))),
    ):
        assert read_costs([("hot", [hot]), ("cold", [same])])
    for other in (
        replace(cold, system=replace(cold.system, settings={"random_page_cost": "1.1"})),
        replace(cold, choice=replace(cold.choice, data=OwnData(setup=("index.sql",)))),
        replace(cold, cell=replace(cold.cell, load=replace(cold.cell.load, clients=8))),
    ):
        assert read_costs([("hot", [hot]), ("cold", [other])]) == ()


@pytest.mark.parametrize(
    ("reads", "engine_s"),
    [(100_000, (1.7,)), (100_000, (3.0, 1.9)), (100_000, (2.1, 6.0, 2.1)), (2_000, (5.0,))],
    ids=["less than nothing", "less in one pair", "nothing within its interval", "more than a read can cost"],
)
def test_a_cost_that_reads_do_not_explain_has_no_row(reads: float, engine_s: tuple[float, ...]) -> None:
    cold = [trial("cold", reads, spent, block) for block, spent in enumerate(engine_s)]
    hot = [trial("hot", 0, 2.0, block) for block in range(len(engine_s))]
    assert read_costs([("hot", hot), ("cold", cold)]) == ()


def test_a_report_of_runs_has_the_table() -> None:
    (found,) = studies([trial("cold", 100_000, 3.0), trial("hot", 0, 2.0)])
    assert "read-cost" in [section.id for section in sections(found)]
