"""Counts are written with correct plurals everywhere."""

import re
from pathlib import Path

import pytest

from ironbench import units
from ironbench.report.numbers import percent, quantity, range_text
from ironbench.words import counted, grouped, in_percent, some

SOURCE = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 clients"), (1, "1 client"), (2, "2 clients"), (1000, "1,000 clients"), (1.0, "1 client")],
)
def test_one_thing_is_not_said_as_many(count: float, said: str) -> None:
    assert counted(count, "client") == said


def test_counts_rates_and_shares_have_one_form_each() -> None:
    assert grouped(14799) == "14,799" and grouped(-1234) == "\u22121,234"
    assert [units.rate(rate) for rate in (300000, 825360, 0.5)] == ["300,000/s", "825,360/s", "0.5/s"]
    for share, said in ((0.083, "8.3"), (0.08, "8"), (0.553, "55"), (0.0012, "0.12"), (0.00001, "< 0.01"), (0, "0")):
        assert in_percent(share) == percent(share) == quantity(share, "share") == f"{said}%"
    assert range_text(0.0831, 0.12, "share") == "8.3 to 12%"


def test_no_module_groups_thousands_or_writes_shares_by_itself() -> None:
    own = {"words.py", "units.py"}
    for path in (SOURCE / "src" / "ironbench").rglob("*.py"):
        if path.name not in own:
            found = re.findall(r"\{[^{}]*:(?:,d?|,\.0f)\}|\{[^{}]*:g\}/s|\{[^{}]*:\.\d%\}", path.read_text())
            assert not found, (path, found)


def test_a_plural_without_s_can_be_given() -> None:
    assert (counted(1, "entry", "entries"), counted(2, "entry", "entries")) == ("1 entry", "2 entries")


@pytest.mark.parametrize("suffix", ["py", "rs", "toml"])
def test_no_message_leaves_the_plural_to_its_reader(suffix: str) -> None:
    """`thread(s)` in displayed text; `to_jsonb(s)` and `f(s)` are code."""
    nouns = r"\b(client|connection|thread|trial|checkpoint|core|row|file|cell|block|repeat|time|process|record)\(s\)"
    for folder in ("src", "crates"):
        for path in (SOURCE / folder).rglob(f"*.{suffix}"):
            assert not re.search(nouns, path.read_text()), path


@pytest.mark.parametrize(
    ("words", "of", "said"),
    [
        ("a", None, "a"),
        ("abc", None, "a, b, c"),
        ("abcd", None, "a, b, c and 1 more"),
        ("abc", 1203, "a, b, c and 1,200 more"),
    ],
)
def test_a_long_list_of_names_ends_in_how_many_more(words: str, of: int | None, said: str) -> None:
    assert some(list(words), of=of) == said
