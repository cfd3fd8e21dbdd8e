"""Puts notes into words: one function for each code, grouped by subject."""

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
    """Returns the words of each note, without duplicates."""
    return list(dict.fromkeys(map(text, notes)))


def sentences(notes: Iterable[Note]) -> list[str]:
    """Returns each note as a whole sentence, with a capital letter and a period."""
    return [f"{words[:1].upper()}{words[1:].rstrip('.')}." for words in texts(notes)]


def cause(record: Record) -> str:
    """Explains why a trial is not `ok`."""
    return "; ".join(texts(record.causes or record.flags))


_COUNTED = {True: "transactions per second", False: "clients"}


def conditions(record: Record) -> dict[str, str]:
    """Returns the conditions that were requested, created and verified before a trial, by name."""
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
