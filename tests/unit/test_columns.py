"""A table fits its terminal: names are complete, and columns that do not fit are left out and listed."""

import pytest

from ironbench.report.text_layout import Column, fitted

IDS = ("20261121T044050-1141-clients1-s0", "20261121T044050-1141-clients16-s0")
TABLE = (
    Column("name", IDS),
    Column("label", ("log on disk", "log in memory"), rank=2),
    Column("throughput", ("4 590/s", "16 200/s"), right=True, rank=1),
)


@pytest.mark.parametrize("width", [20, 40, 50, 60, 80, None])
def test_a_name_is_never_broken(width: int | None) -> None:
    text, _ = fitted(TABLE, width)
    for name in IDS:
        assert name in text
    assert len(text.splitlines()) == 3


def test_columns_go_by_rank_until_the_rest_fits() -> None:
    assert fitted(TABLE, None)[1] == fitted(TABLE, 80)[1] == ()
    assert fitted(TABLE, 50)[1] == ("label",)
    assert fitted(TABLE, 40)[1] == ("label", "throughput")
    for width in (40, 50, 80):
        assert all(len(line) <= width for line in fitted(TABLE, width)[0].splitlines())


def test_sentences_are_folded_beside_their_names() -> None:
    prose = Column("what", ("a sentence of some length that does not fit in its line",), prose=True)
    text, out = fitted((Column("name", ("igen-oltp",)), prose), 40)
    assert out == ()
    assert all(len(line) <= 40 for line in text.splitlines())
    assert " ".join(text.split()) == "name what igen-oltp a sentence of some length that does not fit in its line"


def test_control_characters_of_a_label_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in fitted((Column("label", ("\x1b[31mred",)),), None)[0]
