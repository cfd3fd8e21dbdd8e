"""Counts are said as people say them, everywhere."""

import re
from pathlib import Path

import pytest

from ironbench.words import counted

SOURCE = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 clients"), (1, "1 client"), (2, "2 clients"), (1000, "1,000 clients"), (1.0, "1 client")],
)
def test_one_thing_is_not_said_as_many(count: float, said: str) -> None:
    assert counted(count, "client") == said


def test_a_plural_without_s_can_be_given() -> None:
    assert (counted(1, "entry", "entries"), counted(2, "entry", "entries")) == ("1 entry", "2 entries")


@pytest.mark.parametrize("suffix", ["py", "rs", "toml"])
def test_no_message_leaves_the_plural_to_its_reader(suffix: str) -> None:
    """`thread(s)` in what is shown; `to_jsonb(s)` and `f(s)` are code."""
    nouns = r"\b(client|connection|thread|trial|checkpoint|core|row|file|cell|block|repeat|time|process|record)\(s\)"
    for room in ("src", "crates"):
        for path in (SOURCE / room).rglob(f"*.{suffix}"):
            assert not re.search(nouns, path.read_text()), path
