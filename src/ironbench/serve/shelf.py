"""The records and labs of one results directory as pages ask for them: in short, and again only where something came or
went.

A directory whose time of change is the same holds the same names, and nothing edits a record: so a page reads neither
index nor files again. What broke meanwhile is found out by whoever opens it.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ironbench.errors import InputError, IronbenchError
from ironbench.host import data_dirs
from ironbench.printer import Printer
from ironbench.records import Store
from ironbench.records.index import Listed
from ironbench.records.labs import PLAN, LabDirectory, begun_in

FIELDS = ("workload", "engine", "machine", "status")
"""Of the index, by which records are chosen."""
_SETTLED_S = 0.05
"""A directory that changed just now may change again within the resolution of its clock."""


class Stock:
    """The rows of one store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._rows: dict[str, Listed] = {}
        self._unreadable: set[str] = set()
        self._seen: tuple[int, int] | None = None
        self._lock = threading.Lock()

    def rows(self) -> dict[str, Listed]:
        """By id. What arrives later is in another dict."""
        with self._lock:
            seen = self._changed()
            if seen is None or seen != self._seen:
                self._refresh()
                self._seen = seen
            return self._rows

    def _refresh(self) -> None:
        there = self._names()
        if self._seen is None and not self._rows:
            self._rows = self.store.remembered(there)
            self._unreadable = there - self._rows.keys()
            return
        rows = {id: row for id, row in self._rows.items() if id in there}
        self._unreadable &= there
        for id in sorted(there - rows.keys() - self._unreadable):
            # One by one: what is renamed into place is whole, and a damaged one spoils no other.
            if (row := self.store.row(id)) is not None:
                rows[id] = row
            else:
                self._unreadable.add(id)
        self._rows = rows

    def unreadable(self) -> int:
        """How many there are that cannot be read."""
        self.rows()
        return len(self._unreadable)

    def _names(self) -> set[str]:
        try:
            with os.scandir(self.store.directory / "trials") as entries:
                return {entry.name for entry in entries if not entry.name.startswith(".")}
        except OSError:
            return set()

    def _changed(self) -> tuple[int, int] | None:
        """What tells this state of the directory from another; None: it is in change, or not there."""
        try:
            found = (self.store.directory / "trials").stat()
        except OSError:
            return (0, 0)
        return None if time.time() - found.st_mtime < _SETTLED_S else (found.st_ino, found.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class ShelfStore:
    """A store among those of a results directory."""

    lab: str
    """Name of the lab's directory; empty: runs."""
    stock: Stock


class Holdings:
    """All records in the orders that pages ask for. A hundred thousand rows are put in order once, not at each page."""

    def __init__(self, places: Iterable[tuple[str, dict[str, Listed]]]) -> None:
        found = [(lab, row) for lab, rows in places for row in rows.values()]
        found.sort(key=_newest, reverse=True)
        self.rows = found
        """Each with the name of its lab, or empty; newest first."""
        self.series: dict[str, list[Listed]] = {}
        """Of runs, each newest first."""
        for lab, row in found:
            if not lab:
                self.series.setdefault(row.series, []).append(row)

    @functools.cached_property
    def labels(self) -> dict[str, list[Listed]]:
        """Of runs, each newest first."""
        found: dict[str, list[Listed]] = {}
        for lab, row in self.rows:
            if not lab:
                found.setdefault(row.label, []).append(row)
        return found

    @functools.cached_property
    def choices(self) -> dict[str, list[str]]:
        """Field of the index → the values that occur."""
        return {name: sorted({*map(operator.attrgetter(name), self._listed())} - {""}) for name in FIELDS}

    def _listed(self) -> Iterator[Listed]:
        return (row for _, row in self.rows)

    @functools.cached_property
    def texts(self) -> list[str]:
        """Of each of `rows`, where a word is searched."""
        return [f"{row.label}\n{row.id}\n{row.cell}\n{lab}".lower() for lab, row in self.rows]


def _newest(one: tuple[str, Listed]) -> tuple[str, str]:
    return one[1].started_at, one[1].id


class Shelf:
    """Everything under one results directory."""

    def __init__(self, results: Path) -> None:
        # What a store has to say of damaged records is shown on pages; a terminal would hear it at every request.
        self._printer = Printer.silent()
        self.results = results
        self.runs = Stock(Store(results, self._printer))
        self._labs: dict[str, Stock] = {}
        self._holding = threading.Lock()
        self._held: tuple[list[tuple[str, dict[str, Listed]]], Holdings] = [], Holdings([])

    def places(self) -> list[ShelfStore]:
        """Runs, then labs in the order in which they began."""
        return [ShelfStore("", self.runs), *(ShelfStore(name, self._stock(name)) for name in self.labs())]

    def labs(self) -> list[str]:
        """Names of the directories of labs that have begun, oldest first."""
        return begun_in(self.results)

    def lab(self, name: str) -> LabDirectory:
        """InputError: there is none of that name."""
        if not is_name(name) or not self._begun(name):
            raise InputError(f"lab {name}", "is not among these results", "see the archive")
        directory = LabDirectory(self.results / "labs" / name)
        directory.store = self._stock(name).store
        return directory

    def store(self, lab: str = "") -> Store:
        """Of a lab, or of runs; quiet. InputError."""
        return self._stock(lab).store if lab and self.lab(lab) else self.runs.store

    def rows(self, lab: str = "") -> dict[str, Listed]:
        return self._stock(lab).rows() if lab and self.lab(lab) else self.runs.rows()

    def holdings(self) -> Holdings:
        """Of now; the same as before as long as nothing has come or gone."""
        with self._holding:
            now = [(one.lab, one.stock.rows()) for one in self.places()]
            before, holdings = self._held
            # What arrives is in another dict: the same dicts hold the same rows.
            same = len(now) == len(before) and all(
                a[1] is b[1] and a[0] == b[0] for a, b in zip(now, before, strict=True)
            )
            if not same:
                holdings = Holdings(now)
                self._held = now, holdings
            return holdings

    def _begun(self, name: str) -> bool:
        return (self.results / "labs" / name / PLAN).is_file()

    def _stock(self, name: str) -> Stock:
        if name not in self._labs:
            self._labs[name] = Stock(Store(self.results / "labs" / name, self._printer))
        return self._labs[name]


def is_name(text: str) -> bool:
    """Whether it can be the name of something in a directory of ours, and nothing else."""
    return bool(text) and len(text) <= 255 and not text.startswith(".") and "/" not in text and "\0" not in text


def error_text(error: IronbenchError, results: Path) -> str:
    """An error on a page: without where the results lie on this machine."""
    return without_place(str(error) + (f" ({error.hint})" if error.hint else ""), results)


def without_place(text: str, results: Path) -> str:
    """A text that names the results, and the directory of databases, by their last names alone."""
    places = [results]
    with contextlib.suppress(IronbenchError):  # without a home there is no such directory
        places.append(data_dirs.base())
    for path in places:
        for there in sorted({str(path.absolute()), str(path)} - {".", ""}, key=len, reverse=True):
            text = text.replace(there, path.name or "results")
    return text
