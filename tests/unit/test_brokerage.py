"""Options, sizes and texts of the brokerage's tables, without an engine."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest

from ironbench import _core
from ironbench.errors import InputError
from ironbench.lab.run_plan import planned
from ironbench.plan import run_file
from ironbench.workloads.brokerage import checks, tables, transactions

ENGINES = ("postgres", "mariadb", "sqlite")
OPTIONS = {option.name: option.default for option in tables.OPTIONS}
SHARED = ("past_trades", "trades")
"""Functions that other functions call."""


@pytest.mark.parametrize("text", ["1500", "2999", "1001"])
def test_customers_come_in_thousands(text: str) -> None:
    with pytest.raises(InputError, match="not a multiple of 1000") as refused:
        tables.OPTIONS[0].validated(text)
    below = int(text) // 1000 * 1000
    assert refused.value.hint == f"use {below} or {below + 1000}"
    assert tables.OPTIONS[0].validated("3000") == "3000"


@pytest.mark.parametrize(("option", "text"), [(0, "0"), (0, "999"), (1, "0"), (1, "301"), (1, "1.5"), (2, "large")])
def test_what_is_out_of_range_is_refused(option: int, text: str) -> None:
    with pytest.raises(InputError):
        tables.OPTIONS[option].validated(text)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_has_all_tables_keys_and_references(engine: str) -> None:
    dataset = tables.dataset(engine, OPTIONS)
    made = [statement.split("(")[0].split()[2] for statement in dataset.schema]
    assert sorted(made) == sorted(dataset.tables) and len(made) == 33
    # A key that exists twice on PostgreSQL: see keys.postgres.sql.
    twice = sum("using hash" in statement for statement in dataset.keys)
    assert sum(statement.startswith("create index") for statement in dataset.keys) - twice == 12
    keys = [statement for statement in (*dataset.schema, *dataset.keys) if "primary key" in statement]
    assert len(keys) == 33
    routines = tables.routines(engine)
    assert len(routines) == (0 if engine == "sqlite" else len(transactions.ISOLATION) + len(SHARED))
    assert len(dataset.references) - len(routines) == (0 if engine == "sqlite" else 49)
    assert tables.dataset(engine, OPTIONS | {"references": "no"}).references == routines


@pytest.mark.parametrize(("engine", "references"), [("postgres", "yes"), ("mariadb", "yes"), ("sqlite", "no")])
def test_records_of_an_engine_without_foreign_keys_do_not_claim_them(
    engine: str, references: str, tmp_path: Path
) -> None:
    own = {"engine": engine, "data": str(tmp_path / "d")}
    assert planned(run_file.read("brokerage", **own))[0].choice.options["references"] == references
    assert (
        planned(run_file.read("brokerage", **own, options=("references=no",)))[0].choice.options["references"] == "no"
    )


def test_tables_have_the_same_columns_on_every_engine() -> None:
    def columns(engine: str) -> list[list[str]]:
        statements = tables.dataset(engine, OPTIONS).schema
        return [re.findall(r"^    (\w+) (?!key)", statement, re.MULTILINE) for statement in statements]

    assert columns("postgres") == columns("mariadb") == columns("sqlite")


def test_the_content_key_tells_apart_whatever_gives_other_tables() -> None:
    wanted = ({}, {"customers": "2000"}, {"days": "9"}, {"lob": "full"}, {"references": "no"})
    assert len({tables.dataset("postgres", OPTIONS | options).key for options in wanted}) == len(wanted)


def test_the_size_grows_with_customers_days_and_texts() -> None:
    def size(**options: str) -> int:
        return tables.dataset("postgres", OPTIONS | options).bytes

    assert size(customers="3000") == 3 * size()
    assert size(days="300") > 20 * size() and size(lob="full") - size(lob="none") == 100_000_000


@pytest.mark.parametrize("engine", ENGINES)
def test_every_transaction_has_a_script_that_begins_with_its_isolation(engine: str) -> None:
    names = [(name, "0") for name in transactions.VARIABLES]
    for name, isolation in transactions.ISOLATION.items():
        source = transactions.script(name, engine)
        _core.compile_scripts([(name, source.text, 1)], names, "prepared")
        assert _core.script_cautions([(name, source.text, 1)], names, "prepared") == []
        if engine == "sqlite":
            assert re.search(r"^begin( immediate)?;$", source.text, re.MULTILINE), name
        else:
            assert f"isolation level {isolation}" in source.text, name
        assert source.text.count("commit;\n") == 1


@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
def test_every_transaction_is_one_call_of_a_function_where_the_logic_is_in_the_server(engine: str) -> None:
    names = [(name, "0") for name in transactions.VARIABLES]
    functions = "\n".join(tables.routines(engine))
    for name, isolation in transactions.ISOLATION.items():
        text = transactions.script(name, engine, logic="server").text
        _core.compile_scripts([(name, text, 1)], names, "prepared")
        assert f"isolation level {isolation}" in text
        assert text.count("select ") == text.count(f"select brokerage_{name}(") == 1
        assert f"function brokerage_{name}(" in functions


def test_a_time_of_business_is_counted_in_business_days() -> None:
    # Inverse of `moment` in crates/…/brokerage/market.rs.
    times = {
        "2005-01-03 09:00:00.000": 0,
        "2005-01-04 10:30:00.25": 8 * 3_600_000 + 5_400_250,
        "2005-01-10 16:59:59.999": 6 * 8 * 3_600_000 - 1,
    }
    found = {text: checks.business_ms(datetime.fromisoformat(text)) for text in times}
    assert found == times


def test_every_variable_is_used_by_a_script() -> None:
    texts = "".join(transactions.script(name, engine).text for name in transactions.ISOLATION for engine in ENGINES)
    assert [name for name in transactions.VARIABLES if f":{name}" not in texts] == []
