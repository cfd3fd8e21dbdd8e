"""Counters read only at both ends of the window: their differences, and what invalidates them."""

from __future__ import annotations

import pytest

from ironbench.engines.postgres.observers import relations, statements
from ironbench.model.observation import Sample

WINDOW_S = 10.0


def snapshot(t_s: float, *rows: tuple[object, ...]) -> Sample:
    lines = ("\t".join(r"\N" if value is None else str(value) for value in row) for row in rows)
    return Sample(t_s, "".join(f"{line}\n" for line in lines).encode())


def info(evicted: int = 0, reset: float = 1.0, started: float = 0.5) -> tuple[object, ...]:
    return (statements.INFO, evicted, reset, started, *[None] * 7)


def row(id: str, calls: int, time_ms: float) -> tuple[object, ...]:
    return (id, calls, time_ms, calls, 0, 0, 0, 0, 100, 0, 8192)


def counted(first: Sample, last: Sample) -> statements.PgStatementCounters:
    found = statements.counted({statements.SOURCE: [snapshot(-4.0, info(), row("1", 1, 1.0)), first, last]}, WINDOW_S)
    assert found is not None
    return found


def test_a_statement_counts_by_what_it_grew_inside_the_window() -> None:
    found = counted(
        snapshot(0.01, info(), row("1", 100, 50.0), row("2", 7, 7.0)),
        snapshot(10.02, info(), row("1", 160, 80.0), row("2", 7, 7.0), row("3", 5, 5.0)),
    )
    assert {id: (one["calls"], one["time_ms"]) for id, one in found.by_id.items()} == {"1": (60, 30.0), "3": (5, 5.0)}
    assert found.notes == ()


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (info(reset=2.0), "statements-since-reset"),
        (info(evicted=3), "statements-evicted"),
        (info(started=9.0), "statements-since-restart"),
    ],
)
def test_what_spoils_the_difference_is_noted(end: tuple[object, ...], code: str) -> None:
    found = counted(snapshot(0.0, info(), row("1", 100, 50.0)), snapshot(10.0, end, row("1", 160, 80.0)))
    assert [one.code for one in found.notes] == [code]


def test_before_version_14_a_reset_is_seen_by_counters_that_went_back() -> None:
    nothing = (statements.INFO, None, None, 0.5, *[None] * 7)
    found = counted(snapshot(0.0, nothing, row("1", 100, 50.0)), snapshot(10.0, nothing, row("1", 20, 8.0)))
    assert [one.code for one in found.notes] == ["statements-since-reset"] and found.by_id["1"]["calls"] == 20


def test_after_a_reset_statements_count_from_then_on() -> None:
    first = snapshot(0.0, info(), row("1", 1000, 50.0), row("2", 10, 5.0))
    found = counted(first, snapshot(10.0, info(reset=2.0), row("1", 60, 8.0), row("2", 30, 9.0)))
    assert {id: one["calls"] for id, one in found.by_id.items()} == {"1": 60, "2": 30}
    assert [one.code for one in found.notes] == ["statements-since-reset"]


def test_after_a_reset_tables_count_from_then_on_and_keep_their_size() -> None:
    before = [0, 0, 900, 10, 0, 0, 0, 40, 9e6, 1e6, 0, 0, 16384]
    now = [0, 0, 300, 15, 0, 0, 0, 90, 8e6, 0, 0, 0, 24576]
    taken = [snapshot(0.0, ("t", *before)), snapshot(10.0, ("t", *now))]
    (table,) = relations.tables({"pg_relations.tables": taken}, WINDOW_S)
    assert (table.index_scans, table.inserted, table.hit_bytes, table.read_bytes) == (300, 15, 8e6, 0)
    assert (table.dead_before, table.dead_rows, table.bytes_before, table.bytes) == (40, 90, 16384, 24576)


def test_a_table_that_was_not_read_at_the_first_end_has_not_grown_from_nothing() -> None:
    then = ("u", *[0] * 13)
    now = (
        ("u", *[1, 10, 0, 5, 0, 0, 0, 0, 8192, 0, 0, 0, 8192]),
        ("t", *[3, 9, 0, 0, 0, 0, 0, 0, 8192, 0, 0, 0, 827392]),
    )
    found = relations.tables({"pg_relations.tables": [snapshot(0.0, then), snapshot(10.0, *now)]}, WINDOW_S)
    assert {one.name: (one.bytes_before, one.bytes) for one in found} == {"u": (0, 8192), "t": (None, 827392)}


def test_without_a_reading_at_both_ends_nothing_is_counted() -> None:
    only = snapshot(0.0, info(), row("1", 100, 50.0))
    assert statements.counted({statements.SOURCE: [only]}, WINDOW_S) is None
    assert statements.counted({}, WINDOW_S) is None


def test_names_with_tabs_and_quotes_are_read_as_they_are() -> None:
    zero, more = [0] * 13, [5, 5, 0, 0, 3, 0, 0, 0, 8192, 0, 1, 0, 16384]
    name = '"a\\tb""c"'  # the core's format of a tab
    taken = [snapshot(0.0, (name, *zero)), snapshot(10.0, (name, *more))]
    (table,) = relations.tables({"pg_relations.tables": taken}, WINDOW_S)
    assert table.name == '"a\tb""c"'
    assert (table.scans, table.updated, table.vacuums, table.bytes) == (5, 3, 1, 16384)
    metrics = relations.OBSERVER.parse({"pg_relations.tables": taken}, WINDOW_S).metrics
    assert metrics == {"vacuums": 1, "analyzes": 0, "hot_update_share": 0}


def test_a_vacuum_has_the_share_of_the_looks_that_saw_it() -> None:
    seen = [snapshot(t, ("big", "scanning heap" if t < 3 else "vacuuming indexes")) for t in (1.0, 2.0, 3.0)]
    looks = [*seen, *(snapshot(float(t)) for t in range(4, 10))]
    (vacuum,) = relations.vacuums({"pg_relations.vacuum": looks}, WINDOW_S)
    assert vacuum.table == "big" and vacuum.share == pytest.approx(3 / 9)
    assert vacuum.phases == ("scanning heap", "vacuuming indexes")
