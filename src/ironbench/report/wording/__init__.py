"""Puts notes into words. Each code has a function, and the modules group these functions by subject."""

from __future__ import annotations

from collections.abc import Iterable

from ironbench.model.note import Note
from ironbench.model.record import Record
from ironbench.report.wording import (
    balance,
    bottleneck,
    capture,
    causes,
    comparison,
    cost,
    curve,
    findings,
    footnotes,
    history,
    load,
    machine,
    scalability,
    search,
    server_counters,
    slices,
    storage,
    study,
    target,
    terms,
    verdicts,
    work,
)
from ironbench.report.wording.registry import WORDING, text

__all__ = [
    "WORDING",
    "balance",
    "bottleneck",
    "capture",
    "cause",
    "causes",
    "comparison",
    "conditions",
    "cost",
    "curve",
    "findings",
    "footnotes",
    "history",
    "load",
    "machine",
    "scalability",
    "search",
    "sentences",
    "server_counters",
    "slices",
    "storage",
    "study",
    "target",
    "terms",
    "text",
    "texts",
    "verdicts",
    "work",
]


def texts(notes: Iterable[Note]) -> list[str]:
    """Returns the words of each note. Omits duplicates."""
    return list(dict.fromkeys(map(text, notes)))


def sentences(notes: Iterable[Note]) -> list[str]:
    """Returns the words of each note as a sentence that starts with a capital letter and ends with a period. Omits
    duplicates."""
    return [f"{words[:1].upper()}{words[1:].rstrip('.')}." for words in texts(notes)]


def cause(record: Record) -> str:
    """States why a trial is flagged or not usable."""
    return "; ".join(texts(record.causes or record.flags))


_COUNTED = {True: "transactions per second", False: "clients"}


def conditions(record: Record) -> dict[str, str]:
    """Returns facts about the trial that were known before it started, such as the limits of a search, as a mapping
    from names to values."""
    limits = ", ".join(f"{limit.metric} at most {limit.most:.15g}" for limit in record.limits)
    span = record.search_range
    result = record.search_result
    found = {
        "side by side since": record.turns_since,
        "seed": "chosen by --seed" if record.seed_given else "",
        "crash": record.crash,
        "range searched": f"{span[0]} to {span[1]} {_COUNTED[record.cell.load.rate is not None]}" if span else "",
        "limits": limits,
        "search": text(result) if result else "",
        "answers": text(record.answers) if record.answers else "",
    }
    return {**{name: words for name, words in found.items() if words}, **record.conditions}
