"""Foreign records on the command line: recognises their names, and reports how many of them a command ignores."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ironbench.errors import InputError
from ironbench.printer import Printer
from ironbench.words import counted


def any_named(words: Iterable[str], results: str) -> bool:
    """Returns whether one of the words names a foreign record. A word that also names trials does not count."""
    if not _there(results):
        return False
    from ironbench.records import foreign
    from ironbench.records.selection import named

    for word in words:
        if foreign.named(word, Path(results)):
            try:
                named(word, results)
            except InputError:
                return True
    return False


def print_left_out(results: str) -> None:
    """Prints how many foreign records the command ignores. Prints nothing if there are none."""
    if not _there(results):
        return
    from ironbench.records import foreign

    if count := len(foreign.every(Path(results))):
        Printer().say(
            f"left out: {counted(count, 'foreign record')}, because foreign records are never ranked or judged "
            "(`ironbench list foreign` shows them)"
        )


def _there(results: str) -> bool:
    """Returns whether the results directory contains foreign records. Needs no import, so commands start faster if
    there are none."""
    return (Path(results) / "foreign").is_dir()
