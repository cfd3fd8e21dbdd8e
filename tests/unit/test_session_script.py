"""The recorded terminal session shows what a terminal would show."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from scripts.session import COLUMNS, Frame, Screen, picture


def text(screen: Screen) -> list[str]:
    return ["".join(char for char, _ in line) for line in screen.copy()]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (["one\r\ntwo"], ["one", "two"]),
        (["first\rF"], ["First"]),
        (["10%\r\x1b[2K20%"], ["20%"]),
        (["a\r\nbar\r\n\x1b[1A\x1b[2Kdone\r\n"], ["a", "done"]),
        (["\x1b[?25lhidden cursor\x1b[?25h"], ["hidden cursor"]),
        (["cut in \x1b", "[1mtwo"], ["cut in two"]),
        (["x" * (COLUMNS + 1)], ["x" * COLUMNS, "x"]),
    ],
)
def test_a_screen_shows(written: list[str], shown: list[str]) -> None:
    screen = Screen()
    for piece in written:
        screen.write(piece)
    assert text(screen) == shown


def test_colours_end_where_they_end() -> None:
    screen = Screen()
    screen.write("\x1b[1;32mok\x1b[0m \x1b[38;5;2mno\x1b[0m")
    assert [style for _, style in screen.copy()[0]] == ["b c2", "b c2", "", "", ""]


def test_a_picture_is_an_svg_with_a_group_for_each_frame() -> None:
    screen = Screen()
    screen.write("a < b & c\r\n")
    tree = ElementTree.fromstring(picture([Frame(screen.copy(), 1.0), Frame(screen.copy(), 2.0)]))
    groups = [one for one in tree if one.tag.endswith("}g")]
    assert ["".join(one.itertext()) for one in groups] == ["a < b & c", "a < b & c"]
