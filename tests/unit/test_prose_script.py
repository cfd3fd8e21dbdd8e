"""`make lint` finds old wording in pages and messages; its list of known hits can only shrink."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from scripts import prose


def found(read: Callable[[str], Iterator[tuple[bool, str]]], text: str) -> list[tuple[str, str]]:
    return [(name, sentence) for first, sentence in read(text) for name in prose.patterns_of(first, sentence)]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("opener", "Of a ramp it names the knee."),
        ("opener", "What the device does"),
        ("pronoun", "it is not a directory"),
        ("nobody", "the server restarts, and nobody says how"),
        ("of ours", "start a server of your own, or a server of yours"),
        ("that of", "its figure is that of the median pass"),
        ("verb", "the answers are held against the others"),
        ("verb", "resume goes on with it"),
        ("again", "remove the directory to start anew"),
        ("trailing", "a line for replication, too"),
        ("verdict", "these two cannot be told apart"),
        ("verdict", "1.2 (99% interval, six blocks)"),
        ("doubt", "there are doubts about two trials"),
        ("private word", "the run queue is full"),
        ("cell", "every cell has four trials"),
        ("times", "it would be 1.26 × faster with more memory"),
        ("number", "more than 12 % of the time"),
    ],
)
def test_a_pattern_finds(pattern: str, text: str) -> None:
    assert pattern in [name for name, _ in found(prose.in_markdown, text)]


@pytest.mark.parametrize(
    "text",
    [
        "WAL is the bottleneck: 68% of the transaction time.",
        "The server keeps its own data. It is a directory.",
        "What is a block? A block is one pass over all configurations.",
        "Run `ironbench cleanup` for `nobody`, which is a name in code.",
        "```\nOf the one that is held against nobody anew, too.\n```",
        "Throughput was 26% higher (95% CI 18% to 35%), 2,350 per second.",
    ],
)
def test_plain_text_passes(text: str) -> None:
    assert found(prose.in_markdown, text) == []


def test_literals_are_read_without_docstrings_and_sql() -> None:
    source = '''
def f(name):
    """It is a docstring, told anew."""
    raise Error(name, f"it is {name}, and nobody" " knows it", "SELECT nobody FROM cells")
'''
    assert found(prose.in_python, source) == [
        ("pronoun", "it is {}, and nobody knows it"),
        ("nobody", "it is {}, and nobody knows it"),
    ]


def test_rows_and_items_are_texts() -> None:
    page = "| a | b |\n|--:|---|\n| Its size in bytes | a text |\n\n- One item of a list.\n- Its next item is here.\n"
    assert [sentence for _, sentence in found(prose.in_markdown, page)] == [
        "Its size in bytes",
        "Its next item is here.",
    ]


def test_the_list_of_known_hits_can_only_shrink() -> None:
    one, two = ("a.md", "again", "started anew and again"), ("b.py", "doubt", "a text of doubts")
    assert prose.compared([one], [one]) == []
    assert prose.compared([one, two], [one]) == ["b.py: doubt: a text of doubts"]
    assert prose.compared([], [one]) == [
        "no longer found, remove it from prose.allowed: a.md | again | started anew and again"
    ]
