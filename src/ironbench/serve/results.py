"""The results directory that a server shows: its runs, its labs, and the index of their records."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

from ironbench.errors import InputError, IronbenchError
from ironbench.host import data_dirs
from ironbench.printer import Printer
from ironbench.records import Store
from ironbench.records.index import Index, Listed, text
from ironbench.records.labs import PLAN, LabDirectory, begun_below, place_of

FIELDS = ("workload", "engine", "machine", "status")
"""Columns of the index by which a search can filter."""
NEWEST = "order by started_at desc, id desc"
_OF_RUNS = "lab = ''"


class Results:
    """Everything under one results directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        # The printer is silent: pages already show the warnings about damaged records. On the terminal, they would be
        # repeated at every request.
        self.runs = Store(directory, Printer.silent())
        self._refreshed: set[str] = set()
        """Names of the labs that this process has already checked. The name "" means runs. Unreadable records of these
        labs are not read again until their directory changes."""
        self._lock = threading.Lock()

    def index(self) -> Index:
        """Returns the index, after updating it for directories that have changed."""
        index = self.runs.index
        with self._lock:
            states, unreadable = index.states(), index.unreadable()
            stores = {"": self.runs, **{text(name): self._store(name) for name in self.labs()}}
            for lab, store in stores.items():
                retry = lab in unreadable and lab not in self._refreshed
                if retry or not (state := store.state()) or states.get(lab, "missing") != state:
                    store.refresh(by_name=True, retry=retry)
                self._refreshed.add(lab)
            index.forget(states.keys() - stores.keys())
        return index

    def labs(self) -> list[str]:
        """Returns the names of all labs below the results directory that have started, oldest first."""
        return begun_below(self.directory)

    def place(self, name: str) -> Path:
        """Returns the directory of a lab, whether it exists or not."""
        return place_of(self.directory, name)

    def lab(self, name: str) -> LabDirectory:
        """Returns the directory of a lab. Raises InputError if there is no lab with that name."""
        if not is_name(name) or not (self.place(name) / PLAN).is_file():
            raise InputError(f"lab {name}", "does not exist in these results", "see the archive")
        directory = LabDirectory(self.place(name))
        directory.store = self._store(name)
        return directory

    def _store(self, lab: str) -> Store:
        return Store(self.place(lab), Printer.silent(), self.runs.index, lab)

    def store(self, lab: str = "") -> Store:
        """Returns the store of a lab, or of runs if `lab` is empty. Raises InputError if there is no such lab."""
        return self.lab(lab).store if lab else self.runs

    def has(self, id: str, lab: str = "") -> bool:
        """Returns whether a record with this id exists."""
        return bool(self.index().query("select 1 from record where lab = ? and id = ?", lab, id))

    def series(self, name: str) -> list[Listed]:
        """Returns the rows of a series of runs, newest first."""
        return [row for _, row in self.index().rows(f"{_OF_RUNS} and series = ? {NEWEST}", name)]

    def label(self, name: str) -> list[Listed]:
        """Returns the rows of runs with this label, newest first."""
        return [row for _, row in self.index().rows(f"{_OF_RUNS} and label = ? {NEWEST}", name)]

    def newest_series(self, most: int) -> list[tuple[Listed, int]]:
        """Returns the newest series of runs, as pairs of the newest row of a series and the number of its rows."""
        index, latest = self.index(), "group by series order by max(started_at) desc limit ?"
        found = index.query(f"select series, count(*) from record where {_OF_RUNS} {latest}", most)
        newest = f"{_OF_RUNS} and series = ? {NEWEST} limit 1"
        return [(row, count) for name, count in found for _, row in index.rows(newest, name)]


def is_name(text: str) -> bool:
    """Returns whether the text can be a file name in ironbench's directories. Paths are not names."""
    return bool(text) and len(text) <= 255 and not text.startswith(".") and "/" not in text and "\0" not in text


def error_text(error: IronbenchError, results: Path) -> str:
    """Returns the text of an error for a page, with the paths of this machine shortened."""
    return without_place(str(error) + (f" ({error.hint})" if error.hint else ""), results)


def without_place(text: str, results: Path) -> str:
    """Shortens the paths of the results directory and of the data directory in a text to their last component."""
    places = [results]
    with contextlib.suppress(IronbenchError):  # a user without a home directory has none
        places.append(data_dirs.base())
    for path in places:
        for there in sorted({str(path.absolute()), str(path)} - {".", ""}, key=len, reverse=True):
            text = text.replace(there, path.name or "results")
    return text
