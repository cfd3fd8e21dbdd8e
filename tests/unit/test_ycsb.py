"""YCSB's core workloads: their operations and statements, keys, and the range of numbers for inserts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

from ironbench import _core, workloads
from ironbench.errors import InputError
from ironbench.model.system import Choice, Load
from ironbench.workloads.ycsb import records
from ironbench.workloads.ycsb.operations import CORE
from ironbench.workloads.ycsb.records import TRIAL_NUMBERS

WORKLOAD = workloads.get("ycsb")


def choice(**options: str) -> Choice:
    return Choice("ycsb", WORKLOAD.validated(options))


def texts(engine: str = "postgres", **options: str) -> dict[str, str]:
    return {script.name: script.text for script in WORKLOAD.scripts(engine, choice(**options))}


def test_shares_are_those_of_the_core_workloads() -> None:
    shares = {
        mix: {script.name: script.weight for script in WORKLOAD.scripts("postgres", choice(mix=mix))} for mix in CORE
    }
    assert shares == {
        "a": {"read": 50, "update": 50},
        "b": {"read": 95, "update": 5},
        "c": {"read": 100},
        "d": {"read": 95, "insert": 5},
        "e": {"scan": 95, "insert": 5},
        "f": {"read": 50, "read_modify_write": 50},
    }


def test_the_usual_distribution_is_that_of_the_core_workload() -> None:
    usual = {mix: WORKLOAD.identified(choice(mix=mix), "postgres").options["distribution"] for mix in CORE}
    assert usual == {**dict.fromkeys("abcef", "zipfian"), "d": "latest"}
    assert WORKLOAD.identified(choice(mix="d", distribution="uniform"), "x").options["distribution"] == "uniform"


def test_only_inserts_make_the_data_larger() -> None:
    stable = {mix for mix in CORE if WORKLOAD.is_stable(choice(mix=mix).options)}
    assert stable == {"a", "b", "c", "f"} == {mix for mix in CORE if not WORKLOAD.chooses_new_keys({"mix": mix})}


def test_options_without_effect_on_the_core_workload_do_not_describe_it() -> None:
    told = {mix: set(WORKLOAD.telling(choice(mix=mix).options)) for mix in CORE}
    assert {mix for mix in CORE if "max_scan" in told[mix]} == {"e"}
    assert {mix for mix in CORE if "write_all_fields" in told[mix]} == {"a", "b", "f"}


def test_only_c_reads_only() -> None:
    assert {mix for mix in CORE if not WORKLOAD.writes(choice(mix=mix).options)} == {"c"}


@pytest.mark.parametrize("engine", ["postgres", "mariadb", "sqlite", "null"])
@pytest.mark.parametrize("layout", ["columns", "json"])
def test_every_operation_is_one_statement(engine: str, layout: str) -> None:
    for mix, read_all, write_all, fields in product(CORE, ("yes", "no"), ("yes", "no"), ("1", "10")):
        options = {"layout": layout, "read_all_fields": read_all, "write_all_fields": write_all, "fields": fields}
        variables = list(WORKLOAD.variables(choice(mix=mix, **options).options).items())
        for name, text in texts(engine, mix=mix, **options).items():
            sent = _core.rehearse_script(name, text, variables, 1)
            assert len(sent) == (2 if name == "read_modify_write" else 1), sent


def test_a_statement_on_one_field_names_the_drawn_one() -> None:
    for name, text in (texts(mix="a", read_all_fields="no") | texts(mix="e", read_all_fields="no")).items():
        for field in range(10):
            variables = WORKLOAD.variables(choice().options) | {"field": str(field)}
            (sent,) = _core.rehearse_script(name, text, list(variables.items()), 1)
            named = [f"field{field}"] if name != "insert" else [f"field{number}" for number in range(10)]
            assert re.findall(r"field\d", sent) == named


def test_keys_are_those_of_the_loaded_rows() -> None:
    found: list[tuple[str, ...]] = []

    def insert(columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
        assert list(columns) == ["ycsb_key", "field0", "field1"]
        found.extend(rows)

    options = WORKLOAD.validated({"records": "300", "fields": "2", "field_length": "7"})
    generator = json.dumps(records.generator(options)).encode()
    _core.hand_rows(generator, "usertable", (0, 300), 100, insert, _core.LoadProgress())
    assert [row[0] for row in found] == [records.key(number) for number in range(300)]
    assert {len(value) for row in found for value in row[1:]} == {7}


class Table:
    """A session on a table with the records of these numbers."""

    engine = "postgres"

    def __init__(self, numbers: set[int]) -> None:
        self._keys = {records.key(number) for number in numbers}
        self.asked = 0

    def query(self, sql: str) -> list[tuple[str | None, ...]]:
        self.asked += 1
        return [(str(len(self._keys & set(re.findall(r"user\d+", sql)))),)]


@pytest.mark.parametrize("trials", [0, 1, 2, 3, 7, 8, 100])
def test_inserts_begin_above_those_of_all_earlier_trials(trials: int) -> None:
    options = WORKLOAD.validated({"records": "50", "mix": "d"})
    first = [50 + trial * TRIAL_NUMBERS for trial in range(trials)]
    table: Any = Table({*range(50), *(number + 3 for number in first), *(number + 4000 for number in first)})
    plan = WORKLOAD.jobs(table, options, Load())
    assert plan is not None and plan["first_insert"] == 50 + trials * TRIAL_NUMBERS
    assert table.asked <= 15


def test_a_database_without_sql_of_this_workload_is_refused() -> None:
    from ironbench.model.system import System

    with pytest.raises(InputError, match="has no SQL for odbc-sqlserver") as refused:
        WORKLOAD.accepts(System("odbc-sqlserver", "x"), Load(), choice())
    assert "postgres" in refused.value.hint
