"""Refresh sets are cut into transactions that keep an order and its lines together."""

from ironbench.workloads.tpch import refresh


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
