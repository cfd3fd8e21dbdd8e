"""Loaded data are reused if complete, reloaded if interrupted, never used partially, and never overwrite other
tables."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path

import pytest
from factories import rarely_mariadb
from workload_trial import Filed, Served, Target, Trial, loaded, without_references

from ironbench import _core, workloads
from ironbench.errors import FailureError, InputError
from ironbench.trial.load import space

pytestmark = pytest.mark.live

KEYS = {
    "igen_customer": "customer_id",
    "igen_product": "product_id",
    "igen_stock": "product_id, region_id",
    "igen_order": "customer_id, order_no",
    "igen_order_line": "customer_id, order_no, line_no",
}


def test_complete_data_are_used_again(target: Target) -> None:
    first = loaded(target, "igen-oltp")
    again = loaded(target, "igen-oltp", weight="heavy")
    assert (first.reused, again.reused) == (False, True)
    assert (again.rows, again.bytes) == (first.rows, first.bytes)
    assert set(first.phases) == {"schema", "rows", "keys", "references", "analyze"}
    assert sum(first.phases.values()) <= first.elapsed_s


def test_data_of_another_key_are_replaced(target: Target) -> None:
    loaded(target, "igen-oltp")
    assert not loaded(target, "igen-oltp", skew="0").reused
    assert target.query("select count(*) from igen_customer where region_id = 6") == [("550",)]


@rarely_mariadb("postgres", "sqlite", argument="target", indirect=True)
def test_an_interrupted_load_is_redone(target: Target) -> None:
    loaded(target, "igen-oltp")
    without_references(target)
    # The state after a kill in the middle of a load: an unfinished marker, some tables, some rows.
    target.query("update ironbench_load set loaded_at = null")
    target.query("drop table igen_stock")
    target.query("delete from igen_customer where customer_id > 100")
    assert not loaded(target, "igen-oltp").reused
    assert target.query("select count(*) from igen_customer") == [("3300",)]
    assert Trial(target, "igen-oltp", transactions=10).failed() == set()


def test_a_stopped_load_is_not_taken_for_complete(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    real = _core.load_rows

    def stopped(plan: bytes, progress: _core.LoadProgress) -> bytes:
        threading.Timer(0.05, progress.stop).start()
        return real(plan, progress)

    monkeypatch.setattr(_core, "load_rows", stopped)
    with pytest.raises(FailureError, match="stopped"):
        loaded(served, "igen-oltp", scale="20")
    monkeypatch.undo()
    assert not loaded(served, "igen-oltp").reused


def test_tables_of_strangers_are_refused_and_left_alone(target: Target) -> None:
    target.query("create table igen_order (mine integer)")
    target.query("insert into igen_order values (42)")
    with pytest.raises(InputError, match="table igen_order: exists, but was not loaded by ironbench") as told:
        loaded(target, "igen-oltp")
    assert told.value.hint == "use another database: ironbench drops only what it created"
    assert target.query("select mine from igen_order") == [("42",)]


def test_data_of_another_workload_with_the_same_table_names_are_replaced(target: Target) -> None:
    """Both workloads have tables `orders` and `customer`."""
    loaded(target, "tpcc", warehouses="1")
    assert not loaded(target, "tpch", sf="0.01").reused
    assert target.query("select count(*) from orders") == [("15000",)]
    assert loaded(target, "tpch", sf="0.01").reused
    assert not loaded(target, "tpcc", warehouses="1").reused
    assert target.query("select count(*) from orders") == [("30000",)]


def test_on_an_existing_server_data_of_another_workload_are_refused_and_left_alone(served: Served) -> None:
    loaded(served, "tpcc", warehouses="1")
    with pytest.raises(InputError, match="table orders: belongs to tpcc"):
        loaded(served, "tpch", own_server=False, sf="0.01")
    assert served.query("select count(*) from orders") == [("30000",)]


def test_rows_do_not_depend_on_the_number_of_connections(served: Served) -> None:
    def digests() -> dict[str, object]:
        sql = "select md5(string_agg(t::text, ';' order by {keys})) from {table} t"
        return {table: served.query(sql.format(keys=keys, table=table)) for table, keys in KEYS.items()}

    loaded(served, "igen-oltp", connections=1)
    one = digests()
    served.query("update ironbench_load set loaded_at = null")
    assert loaded(served, "igen-oltp", connections=4).connections == 4
    assert digests() == one


def test_both_engines_hold_the_same_rows(served: Served, place: Path) -> None:
    filed = Filed(place)
    loaded(served, "igen-oltp")
    loaded(filed, "igen-oltp")
    for sql in (
        "select count(*), sum(total_cents), sum(line_count), min(placed_at), max(placed_at) from igen_order",
        "select count(*), sum(quantity), sum(price_cents), sum(product_id) from igen_order_line",
        "select count(*), min(name), max(email), min(since), sum(region_id) from igen_customer",
        "select count(*), sum(price_cents), max(category_id), min(description) from igen_product",
        "select count(*), sum(quantity), sum(region_id) from igen_stock",
    ):
        assert served.query(sql) == filed.query(sql)
    filed.close()


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("igen_customer", "customer_id, region_id, name, email, street, city, since, spent_cents"),
        ("igen_order", "total_cents, placed_at, customer_id, order_no, line_count, status"),
        ("igen_order_line", "customer_id, order_no, line_no, quantity, product_id, price_cents"),
    ],
)
def test_rows_in_a_file_are_those_in_the_table(served: Served, place: Path, table: str, columns: str) -> None:
    """The file contains text, and the table was loaded in PostgreSQL's binary format."""
    loaded(served, "igen-oltp")
    workload = workloads.get("igen-oltp")
    dataset = workload.dataset("postgres", workload.validated({}))
    assert dataset is not None
    path = place / "rows"
    count = _core.write_rows(json.dumps(dataset.generator).encode(), table, 2, str(path))
    found = served.query(f"select concat_ws(e'\t', {columns}) from {table} order by {KEYS[table]}")
    assert count == len(found)
    assert path.read_text().splitlines() == [row[0] for row in found]


def test_too_little_space_is_said_before_anything_is_written(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space.space, "free_bytes", lambda directory: 5_000_000)
    with pytest.raises(InputError, match=r"\(scale=100 skew=1\) need about .*, but only 5.00\u202fMB are free") as told:
        loaded(target, "igen-oltp", scale="100")
    assert "--with scale" in told.value.hint
    monkeypatch.undo()
    assert not loaded(target, "igen-oltp").reused


@rarely_mariadb("postgres", "sqlite", argument="target", indirect=True)
@pytest.mark.parametrize("name", ["igen-oltp", "select-only"])
def test_the_estimate_of_size_holds(target: Target, name: str) -> None:
    """The estimate is within a fifth; it decides whether a load is started at all."""
    workload = workloads.get(name)
    estimate = workload.estimate_bytes(target.engine, workload.validated({"scale": "2"}))
    assert loaded(target, name, scale="2").data_bytes == pytest.approx(estimate, rel=0.2)


def test_a_full_disk_ends_a_load_on_sqlite(place: Path) -> None:
    """SQLite's limit on pages gives the same error as a full disk."""
    small = Filed(place, "pragma max_page_count=300")
    with pytest.raises(FailureError, match="full") as told:
        loaded(small, "igen-oltp")
    assert "smaller scale" in told.value.hint
    small.close()
    roomy = Filed(place)
    assert not loaded(roomy, "igen-oltp").reused
    roomy.close()


def test_a_full_disk_ends_a_load_on_postgres(served: Served, place: Path) -> None:
    directory = place / "small"
    directory.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m,mode=777", "none", str(directory)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        served.query("set allow_in_place_tablespaces = off")
        served.query(f"create tablespace small location '{directory}'")
        name = served.target()["connection"]["database"]
        served.query(f"alter database {name} set default_tablespace = small")
        fresh = served.reopened()
        with pytest.raises(FailureError, match="No space left") as told:
            loaded(fresh, "igen-oltp")
        assert "smaller scale" in told.value.hint
        fresh.query(f"alter database {name} reset default_tablespace")
        fresh.close()
        fresh = served.reopened()
        assert not loaded(fresh, "igen-oltp").reused
        fresh.query("drop table ironbench_load")  # it is also in the small file system
        fresh.close()
        served.query("drop tablespace small")
    finally:
        subprocess.run(["umount", str(directory)], check=True)
