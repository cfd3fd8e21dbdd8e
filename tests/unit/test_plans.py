"""Plans of three engines as steps, and queries against the trend with their plans."""

import json
from dataclasses import replace

from factories import DISK, MEMORY, Shelf, record

from ironbench.model.note import note
from ironbench.report import finding_tables
from ironbench.study.queries import against, difference, plans, queries


def postgres(*nodes: dict, query: str = "q13") -> str:
    (top, *below) = nodes
    return f"-- {query}: Something.\n{json.dumps([{'Plan': {**top, 'Plans': list(below)}}], indent=2)}\n"


SCAN = {"Node Type": "Seq Scan", "Relation Name": "orders", "Parallel Aware": True}
INDEX = {"Node Type": "Index Scan", "Relation Name": "orders"}
HASH, LOOP = {"Node Type": "Hash Join", "Join Type": "Right"}, {"Node Type": "Nested Loop"}
DUCKDB = """-- q01: Something.
physical_plan ╭─ Hash Join ─────┴────────────╮
│ Join Type: INNER           │
╰─────────────────┬──────────╯
                  ├─────────────────────────────╮
╭─ Seq Scan ──────┴──────────╮  ╭─ Seq Scan ────┴──────────╮
│ Table: memory.main.orders  │  │ Table: memory.main.part  │
╰────────────────────────────╯  ╰──────────────────────────╯

-- q02: Another.
nonsense
"""
SQLITE = "-- q01: A.\n7 0 206 SCAN lineitem\n9 0 0 SEARCH orders USING INDEX orders_customer (o_custkey=?)\n"


def test_steps_are_read_from_the_plans_of_every_engine() -> None:
    assert dict(plans(postgres(HASH, SCAN), "postgres")["q13"]) == {
        "Hash Join (Right)": 1,
        "parallel Seq Scan on orders": 1,
    }
    assert plans(DUCKDB, "duckdb") == {"q01": {"Hash Join": 1, "Seq Scan on orders": 1, "Seq Scan on part": 1}}
    assert dict(plans(SQLITE, "sqlite")["q01"]) == {"scan on lineitem": 1, "search by orders_customer on orders": 1}
    assert plans("", "postgres") == {} and plans("-- q01: cut off.\n[ {", "postgres") == {}
    assert plans(SQLITE, "of another version") == {}


def test_two_plans_are_told_apart_by_what_only_one_of_them_does() -> None:
    one, other = plans(postgres(LOOP, INDEX), "postgres")["q13"], plans(postgres(HASH, SCAN), "postgres")["q13"]
    more = (("Index Scan on orders", 1), ("Nested Loop", 1))
    less = (("parallel Seq Scan on orders", 1), ("Hash Join (Right)", 1))
    assert difference(one, other) == note("plans-differ", more=more, less=less)
    assert difference(one, one) == note("plans-differ", more=(), less=())
    assert difference(one, None) == note("plans-unknown")


def test_a_query_that_is_surely_slower_where_the_others_gain_is_named_with_its_plan() -> None:
    def timed(system, id: str, block: int, **times: float):
        metrics = {f"query_time_s{{query={query}}}": seconds for query, seconds in times.items()}
        return replace(record(system, 1, 1.0, block=block, metrics=metrics), id=id)

    disk = [timed(DISK, f"disk{block}", block, q01=4.0, q06=4.0, q13=1.0) for block in range(3)]
    memory = [timed(MEMORY, f"memory{block}", block, q01=1.0, q06=1.0, q13=1.2 + block / 100) for block in range(3)]
    groups = [("disk", disk), ("memory", memory)]
    shelf = Shelf([], texts={"disk0": postgres(HASH, SCAN), "memory0": postgres(LOOP, SCAN)})
    found = against(queries(groups), groups, shelf)
    assert [(one.subject, one.ratio.query, one.slower) for one in found] == [("memory", "q13", True)]
    assert found[0].plan == note("plans-differ", more=(("Nested Loop", 1),), less=(("Hash Join (Right)", 1),))
    (said,) = finding_tables.against_trend_sentences(found)
    assert said.startswith("Against the overall trend, memory is slower than disk in these queries: q13 (21% longer")
    ((_, table),) = finding_tables.against_trend_tables(found)
    assert table.texts[0][0] == "q13, memory vs. disk"
    level = [("disk", disk), ("again", disk)]
    assert against(queries(level), level, shelf) == ()
