"""Refresh sets are split into transactions that keep an order and its lines together."""

import sqlite3
from collections.abc import Sequence

import pytest

from ironbench.workloads.tpch import refresh, refresh_position
from ironbench.workloads.tpch.refresh_position import Position


def rows(keys: list[int], lines: int = 1) -> bytes:
    return b"".join(b"%d\tx\n" % key for key in keys for _ in range(lines))


def test_an_order_and_its_lines_are_in_the_same_transaction() -> None:
    keys = [9, 10, 11, 12, 13, 14, 15, 40, 41]
    found = refresh.pieces(1, rows(keys), rows(keys, 3), 4)
    assert [len(piece.orders.splitlines()) for piece in found] == [4, 4, 1]
    for piece in found:
        of_lines = {line.split(b"\t")[0] for line in piece.lines.splitlines()}
        assert of_lines == {line.split(b"\t")[0] for line in piece.orders.splitlines()}
    assert b"".join(piece.lines for piece in found) == rows(keys, 3)


def test_deleted_keys_are_those_of_the_load_for_the_first_thousand_sets() -> None:
    piece = refresh.pieces(1, rows([9, 15, 40]), rows([9, 15, 40]), 10)[0]
    assert (piece.first, piece.last) == (1, 32)
    later = refresh.pieces(1001, rows([17, 48]), rows([17, 48]), 10)[0]
    assert (later.first, later.last) == (1, 32)
    last_group = refresh.pieces(3001, rows([1, 32]), rows([1, 32]), 10)[0]
    assert (last_group.first, last_group.last) == (1, 32)


class KilledError(Exception):
    """Raised in place of a signal."""


class Data:
    """A session on a database in memory, which ends after a number of statements."""

    engine = "sqlite"

    def __init__(self) -> None:
        self.left = 99
        self._database = sqlite3.connect(":memory:", isolation_level=None)

    def query(self, sql: str) -> list[Sequence[str]]:
        if not self.left:
            raise KilledError
        self.left -= 1
        return [tuple(str(value) for value in row) for row in self._database.execute(sql)]


@pytest.mark.parametrize("statements", [0, 1, 2])
def test_a_kill_while_the_next_set_is_noted_never_makes_changed_data_fresh(statements: int) -> None:
    data = Data()
    assert refresh_position.read(data, "today") == Position("today")
    refresh_position.write(data, Position("today", 4, 4))
    data.left = statements
    begun = Position("today", 4, 7)
    if statements < 2:
        with pytest.raises(KilledError):
            refresh_position.write(data, begun)
    else:
        refresh_position.write(data, begun)
    data.left = 99
    assert refresh_position.read(data, "today") == (begun if statements else Position("today", 4, 4))
    refresh_position.write(data, Position("today", 7, 7))
    assert data.query(f"SELECT * FROM {refresh_position.TABLE}") == [("today", "7", "7")]
    assert refresh_position.read(data, "tomorrow").fresh
