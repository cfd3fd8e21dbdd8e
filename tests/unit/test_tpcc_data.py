"""Options, sizes and texts of the tables of the TPC-C-derived workload, without an engine."""

from __future__ import annotations

import re

import pytest

from ironbench.errors import InputError
from ironbench.workloads.commit_check import Commits
from ironbench.workloads.tpcc import checks, tables

ENGINES = ("postgres", "mariadb", "sqlite")
OPTIONS = {option.name: option.default for option in tables.OPTIONS}


@pytest.mark.parametrize("text", ["0", "-1", "100001", "1000000000", "1.5", "many"])
def test_numbers_of_warehouses_out_of_range_are_refused(text: str) -> None:
    with pytest.raises(InputError) as refused:
        tables.OPTIONS[0].validated(text)
    assert refused.value.hint == "use a value from 1 to 100,000"


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_has_all_tables_columns_and_keys(engine: str) -> None:
    dataset = tables.dataset(engine, OPTIONS)
    columns = {name: columns_of(text) for name, text in created(dataset.schema).items()}
    assert set(columns) == set(tables.TABLES)
    assert columns == {
        name: columns_of(text) for name, text in created(tables.dataset("postgres", OPTIONS).schema).items()
    }
    keys = [statement for statement in (*dataset.schema, *dataset.keys) if "primary key" in statement]
    assert len(keys) == len(tables.TABLES) - 1, "history has none"
    assert sum(statement.startswith("create index") for statement in dataset.keys) == 4
    assert dataset.references == ()
    declared = tables.dataset(engine, OPTIONS | {"references": "yes"}).references
    assert len(declared) == (10 if tables.has_references(engine) else 0)
    assert tables.has_references(engine) == (engine != "sqlite")


def created(schema: tuple[str, ...]) -> dict[str, str]:
    return dict(re.findall(r"create table (\w+) \(\n(.*)\n\)", statement, re.DOTALL)[0] for statement in schema)


def columns_of(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines() if "primary key (" not in line]


def test_the_key_names_whatever_changes_the_rows_or_the_schema() -> None:
    keys = {
        tables.dataset("postgres", OPTIONS | changed).key
        for changed in ({}, {"warehouses": "2"}, {"references": "yes"})
    }
    assert len(keys) == 3


def test_a_trial_checks_every_warehouse_if_there_are_few_and_different_ones_otherwise() -> None:
    assert checks.sample(1, 30_000) == range(1, 2)
    assert checks.sample(10, 300_000) == range(1, 11)
    samples = [checks.sample(1000, 30_000_000 + 1_234 * trial) for trial in range(50)]
    assert all(len(sample) == 10 and sample.start >= 1 and sample.stop <= 1001 for sample in samples)
    assert len({sample.start for sample in samples}) > 40
    ends = {checks.sample(11, orders).start for orders in range(100)}
    assert ends == {1, 2}


def test_conditions_read_only_the_checked_warehouses() -> None:
    for number, sql in checks.violations(range(21, 31)).items():
        assert sql.count("between 21 and 30") >= 1, number
        tables_read = len(re.findall(r"(?:from|join) (?:warehouse|district|customer|history|orders|order_line)\b", sql))
        assert sql.count("between 21 and 30") >= tables_read - 2, number


def test_counts_of_a_trial_are_compared_with_its_scripts() -> None:
    now = checks.TpccState(30_120, 9_100, 30_050, Commits(None))
    then = checks.TpccState(30_000, 9_000, 30_000, Commits(None))
    done = {"new-order": (121, 1), "payment": (50, 0), "delivery": (2, 0)}

    def failed(unsure: int = 0, **changed: int) -> set[str]:
        counts = {name: (changed.get(name.replace("-", "_"), count), back) for name, (count, back) in done.items()}
        scripts = [{"name": n, "completed": c, "rolled_back_in_all": b} for n, (c, b) in counts.items()]
        found = checks.grown(then, now, {"scripts": scripts, "server_commits_uncertain": unsure})
        return {check.name for check in found if not check.passed}

    assert failed() == set()
    assert failed(new_order=122) == {"orders placed = New-Orders committed"}
    assert failed(new_order=120) == {"orders placed = New-Orders committed"}
    assert failed(unsure=1, new_order=120) == set()
    assert failed(payment=51) == {"rows of history = Payments committed"}
    assert failed(delivery=1) == {"orders delivered by a Delivery"}
    assert failed(unsure=1, delivery=1) == set()
