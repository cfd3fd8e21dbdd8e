"""The tables of the TPC-C-derived workload on real engines: complete, consistent, and equal on all engines; resumed
after an interruption; refused if they are not what was asked for."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from factories import lacking
from test_tpch_load import Killing, running

from ironbench.errors import FailureError, InputError
from ironbench.model.session import Session
from ironbench.printer import Printer
from ironbench.trial.load import Loaded, pieces, prepare
from ironbench.workloads.tpcc import checks, tables

pytestmark = pytest.mark.live

ENGINES = ("postgres", "sqlite", "mariadb")
OPTIONS = {"warehouses": "1", "references": "no"}
COUNTS = {
    "item": 100_000,
    "warehouse": 1,
    "stock": 100_000,
    "district": 10,
    "customer": 30_000,
    "history": 30_000,
    "orders": 30_000,
    "new_order": 9_000,
}

ORDER = "o_w_id = 1 and o_d_id = 4"
UNDELIVERED = "ol_w_id = 1 and ol_d_id = 5 and ol_o_id = 2101"
FAULTS: dict[int, tuple[tuple[str, ...], dict[int, int]]] = {
    1: (("update warehouse set w_ytd = w_ytd + 1",), {1: 1, 8: 1}),
    2: (("update district set d_next_o_id = d_next_o_id + 1 where d_id = 3",), {2: 1}),
    3: (("delete from new_order where no_d_id = 2 and no_o_id = 2500",), {3: 1, 5: 1, 11: 1}),
    4: ((f"update orders set o_ol_cnt = o_ol_cnt + 1 where {ORDER} and o_id = 17",), {4: 1, 6: 1}),
    5: (("delete from new_order where no_d_id = 2 and no_o_id = 2101",), {5: 1, 11: 1}),
    6: (
        (
            f"update orders set o_ol_cnt = o_ol_cnt + 1 where {ORDER} and o_id = 17",
            f"update orders set o_ol_cnt = o_ol_cnt - 1 where {ORDER} and o_id = 18",
        ),
        {6: 2},
    ),
    7: (("update order_line set ol_delivery_d = null where ol_d_id = 9 and ol_o_id = 100 and ol_number = 2",), {7: 1}),
    8: (
        ("update warehouse set w_ytd = w_ytd + 5", "update district set d_ytd = d_ytd + 5 where d_id = 10"),
        {8: 1, 9: 1},
    ),
    9: (("update history set h_d_id = 2 where h_c_d_id = 1 and h_c_id = 77",), {9: 2}),
    10: (
        ("update customer set c_balance = c_balance - 1, c_ytd_payment = c_ytd_payment + 1 where c_id = 8",),
        {10: 10},
    ),
    # A complete delivery, which is allowed only after the load.
    11: (
        (
            "delete from new_order where no_d_id = 5 and no_o_id = 2101",
            "update orders set o_carrier_id = 7 where o_d_id = 5 and o_id = 2101",
            f"update order_line set ol_delivery_d = '2026-02-03 04:05:06' where {UNDELIVERED}",
            f"update customer set c_balance = c_balance + (select sum(ol_amount) from order_line where {UNDELIVERED}) "
            "where c_d_id = 5 and c_id = (select o_c_id from orders where o_d_id = 5 and o_id = 2101)",
        ),
        {11: 1},
    ),
    12: (("update customer set c_ytd_payment = c_ytd_payment + 1 where c_d_id = 6 and c_id = 3000",), {12: 1}),
}


def load(session: Session, printer: Printer | None = None, own_server: bool = True, **options: str) -> Loaded:
    dataset = tables.dataset(session.engine, OPTIONS | options)
    return prepare.fill(session, dataset, 2, printer or Printer(io.StringIO(), io.StringIO()), own_server)


def count(session: Session, table: str) -> int:
    return int(session.query(f"select count(*) from {table}")[0][0] or 0)


def violated(session: Session, warehouses: int = 1) -> dict[int, int]:
    found = checks.after_load(session, warehouses)
    assert len(found) == 12
    names = [f"condition {number}: {name}" for number, name in checks.CONDITIONS.items()]
    return {names.index(check.name) + 1: int(check.actual) for check in found if not check.passed}


@contextmanager
def rolled_back(session: Session, *statements: str) -> Iterator[None]:
    session.query("begin")
    try:
        for statement in statements:
            session.query(statement)
        yield
    finally:
        session.query("rollback")


@contextmanager
def by_another_tool(session: Session) -> Iterator[None]:
    """Makes the tables look as if another program had loaded them."""
    session.query("alter table ironbench_load rename to hidden")
    try:
        yield
    finally:
        session.query("alter table hidden rename to ironbench_load")


@pytest.fixture(
    scope="module",
    params=[pytest.param(engine, marks=pytest.mark.long if engine != "postgres" else ()) for engine in ENGINES],
)
def session(request: pytest.FixtureRequest, fast_directory: Path) -> Iterator[Session]:
    """A database with one warehouse, which all tests of an engine share."""
    with running(request.param, fast_directory / "tpcc") as session:
        load(session)
        yield session


# Only one worker loads the rows.
shared = pytest.mark.xdist_group("tpcc-tables")


@shared
def test_tables_are_complete_consistent_and_used_again(session: Session) -> None:
    assert {table: count(session, table) for table in COUNTS} == COUNTS
    assert 295_000 < count(session, "order_line") < 305_000
    dataset = tables.dataset(session.engine, OPTIONS)
    assert abs(dataset.rows / sum(count(session, table) for table in tables.TABLES) - 1) < 0.01
    assert violated(session) == {}
    again = load(session)
    assert again.reused
    assert 0.6 * dataset.bytes < again.data_bytes < dataset.bytes


@shared
@pytest.mark.parametrize("condition", FAULTS)
def test_each_condition_notices_its_own_fault(session: Session, condition: int) -> None:
    statements, expected = FAULTS[condition]
    assert condition in expected
    with rolled_back(session, *statements):
        assert violated(session) == expected
        kept = {check.name.partition(":")[0] for check in checks.at_any_time(session, 1) if not check.passed}
        assert kept == {f"condition {number}" for number in expected if number != 11}


@shared
def test_data_of_another_tool_are_used_if_they_are_complete_and_consistent(session: Session) -> None:
    with by_another_tool(session):
        assert load(session, own_server=False).reused
        # Another program may have run transactions on the tables.
        with rolled_back(session, *FAULTS[11][0]):
            assert load(session, own_server=False).reused
        with (
            rolled_back(session, *FAULTS[12][0]),
            pytest.raises(InputError, match=r"rows that violate 'condition 12: .*' \(1\)"),
        ):
            load(session, own_server=False)


@shared
@pytest.mark.parametrize(
    "lost",
    [
        "delete from stock where s_i_id > 99000",
        "delete from customer where c_d_id = 10 and c_id = 3000",
        "delete from history where h_c_d_id = 10",
        "delete from order_line where ol_d_id = 10 and ol_o_id = 3000",
        "delete from item where i_id = 5",
        "delete from orders where o_d_id = 1 and o_id = 2",
        "insert into warehouse (w_id) values (2)",
    ],
)
def test_half_loaded_data_of_another_tool_are_refused(session: Session, lost: str) -> None:
    with by_another_tool(session), rolled_back(session, lost), pytest.raises(InputError) as refused:
        load(session, own_server=False)
    assert "were not loaded by ironbench" in refused.value.cause
    if "order_line" not in lost:
        assert "do not match `go-tpc tpcc prepare` with warehouses=1" in refused.value.cause


@shared
def test_data_of_another_number_of_warehouses_are_refused(session: Session) -> None:
    with pytest.raises(
        InputError, match=r"contains tpcc version=1 warehouses=1 references=no, not tpcc .*warehouses=2"
    ):
        load(session, own_server=False, warehouses="2")
    with by_another_tool(session), pytest.raises(InputError, match=r"do not match .* with warehouses=2") as refused:
        load(session, own_server=False, warehouses="2")
    assert "--with warehouses=…" in refused.value.hint


@shared
def test_data_of_another_version_are_refused(session: Session) -> None:
    older = "update ironbench_load set content_key = replace(content_key, 'version=1', 'version=0')"
    with rolled_back(session, older), pytest.raises(InputError) as refused:
        load(session, own_server=False)
    assert "contains tpcc version=0 warehouses=1" in refused.value.cause
    assert "not tpcc version=1 warehouses=1" in refused.value.cause and refused.value.hint


@shared
@pytest.mark.parametrize(
    "changed",
    [
        "update item set i_price = i_price + 1 where i_id = 7",
        "update warehouse set w_tax = w_tax / 2",
        "delete from district where d_id = 4",
        "delete from stock",
        "delete from customer where c_d_id = 3",
        "delete from orders",
        "delete from order_line where ol_d_id = 2",
        "delete from history",
    ],
)
def test_loaded_data_that_another_tool_changed_are_not_used_again(session: Session, changed: str) -> None:
    with (
        rolled_back(session, changed),
        pytest.raises(InputError, match="no longer contains what ironbench loaded"),
    ):
        load(session)


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_an_interrupted_load_continues_where_it_stopped(engine: str, place: Path) -> None:
    with running(engine, place) as session:
        with pytest.raises(FailureError, match="SIGKILL"):
            load(session, Killing())
        assert pieces.LoadedPieces(session, "tpcc").rows()
        assert load(session).resumed
        assert {table: count(session, table) for table in COUNTS} == COUNTS
        assert violated(session) == {}


@pytest.mark.long
@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
def test_foreign_keys_can_be_declared_and_hold_for_the_loaded_rows(engine: str, place: Path) -> None:
    with running(engine, place) as session:
        load(session, references="yes", warehouses="2")
        assert violated(session, 2) == {}
        with pytest.raises(FailureError):
            session.query("insert into new_order values (3001, 1, 1)")
        if engine == "postgres":
            names = session.query("select conrelid::regclass, conname from pg_constraint where contype = 'f'")
            assert len(names) == 10
            for table, name in names:
                session.query(f"alter table {table} validate constraint {name}")


@pytest.mark.long
def test_every_engine_holds_the_same_rows(place: Path) -> None:
    sums = {}
    for engine in ENGINES:
        if lacking(engine):
            continue
        whole = engine == "sqlite"
        with running(engine, place) as session:
            load(session)
            queries = (
                f"select sum(ol_amount) * {1 if whole else 100}, sum(ol_i_id), max(ol_dist_info), count(ol_delivery_d) "
                "from order_line",
                f"select sum(c_discount) * {1 if whole else 10_000}, max(c_data), min(c_last), max(c_since) "
                "from customer",
                "select sum(s_quantity), min(s_dist_07), sum(length(s_data)) from stock",
                "select sum(o_c_id * o_id), sum(o_carrier_id), count(o_carrier_id) from orders",
                f"select sum(w_tax) * {1 if whole else 10_000}, max(w_zip) from warehouse",
                f"select sum(i_price) * {1 if whole else 100}, max(i_name) from item",
            )
            found = [value or "" for query in queries for value in session.query(query)[0]]
            sums[engine] = [value.rstrip("0").rstrip(".") if "." in value else value for value in found]
    assert len(sums) > 1
    first, *others = sums.values()
    assert all(other == first for other in others), sums
