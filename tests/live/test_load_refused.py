"""Loading refuses to overwrite names used by others, changed tables, and data of another key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from factories import rarely_mariadb
from workload_trial import Filed, Served, Target, loaded, without_references

from ironbench import engines
from ironbench.errors import InputError

pytestmark = pytest.mark.live


@pytest.mark.parametrize("kind", ["view", "sequence", "materialized view", "index"])
def test_what_has_a_table_s_name_but_is_no_table_is_refused_and_left_alone(served: Served, kind: str) -> None:
    what = {"sequence": "", "index": "on mine (n)"}.get(kind, "as select 42 as n")
    served.query("create table mine (n integer)")
    served.query(f"create {kind} igen_order {what}")
    with pytest.raises(InputError, match=f"{kind} igen_order: exists, but ironbench needs that name"):
        loaded(served, "igen-oltp")
    assert served.query("select count(*) from pg_class where relname = 'igen_order'") == [("1",)]
    assert served.query("select to_regclass('igen_customer') is null") == [("t",)]


def test_a_routine_of_others_is_refused_by_name_and_left_alone(served: Served) -> None:
    served.query("create procedure batch_age() language plpgsql as 'begin raise notice ''mine''; end'")
    with pytest.raises(InputError, match=r"routine batch_age\(\): exists without a mark of ironbench"):
        loaded(served, "igen-batch")
    assert "mine" in str(served.query("select prosrc from pg_proc where proname = 'batch_age'"))
    assert served.query("select to_regclass('batch_job') is null") == [("t",)]


def test_routines_of_ironbench_are_made_anew(served: Served) -> None:
    loaded(served, "igen-batch")
    served.query("update ironbench_load set loaded_at = null")
    assert not loaded(served, "igen-batch").reused


def test_routines_from_before_they_had_marks_are_made_anew_on_a_server_of_ours(served: Served) -> None:
    loaded(served, "igen-batch")
    served.query("comment on routine batch_age is null")
    served.query("update ironbench_load set loaded_at = null")
    with pytest.raises(InputError, match="exists without a mark of ironbench") as told:
        loaded(served, "igen-batch", own_server=False)
    assert "drop routine batch_age()" in told.value.hint
    assert not loaded(served, "igen-batch").reused


def test_a_view_in_a_file_is_refused_too(place: Path) -> None:
    filed = Filed(place)
    try:
        filed.query("create view igen_order as select 42 as n")
        with pytest.raises(InputError, match="view igen_order: exists"):
            loaded(filed, "igen-oltp")
    finally:
        filed.close()


@rarely_mariadb("postgres", "sqlite", argument="target", indirect=True)
@pytest.mark.parametrize(
    "change",
    [
        "delete from igen_customer where customer_id = 7",
        "delete from igen_product where product_id = (select max(product_id) from igen_product)",
        "update igen_product set price_cents = price_cents + 1 where product_id = 500",
        "delete from igen_stock",
    ],
)
def test_tables_that_changed_behind_a_complete_note_are_neither_used_nor_dropped(target: Target, change: str) -> None:
    loaded(target, "igen-oltp")
    without_references(target)
    target.query(change)
    left = target.query("select count(*) from igen_customer")
    with pytest.raises(InputError, match="no longer contains what ironbench loaded") as told:
        loaded(target, "igen-oltp")
    assert "use another database" in told.value.hint and "drop igen_" not in told.value.hint
    assert target.query("select count(*) from igen_customer") == left


@pytest.mark.parametrize("name", ["igen-oltp", "tpcb-like"])
def test_loaded_data_of_another_key_are_not_dropped_on_somebody_s_server(target: Target, name: str) -> None:
    first = loaded(target, name, own_server=False)
    table = "igen_customer" if name == "igen-oltp" else "pgbench_accounts"
    before = target.query(f"select count(*) from {table}")
    with pytest.raises(InputError, match=f"contains {re.escape(first.key)}, not .*scale=2") as caught:
        loaded(target, name, own_server=False, scale="2")
    marks = engines.get(target.engine).administration.marks
    assert ("ironbench cleanup --dsn" in caught.value.hint) is marks, "it finds tables by their marks"
    assert target.query(f"select count(*) from {table}") == before
    assert loaded(target, name, own_server=False).reused
