"""Compares the 22 answers with the expected answers. This happens once after each load of the data, outside of the
measured window."""

from __future__ import annotations

import hashlib
import json
import lzma
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ironbench.catalogue.typed import text_of
from ironbench.errors import FailureError, InputError, written
from ironbench.host import data_dirs
from ironbench.model.note import Note
from ironbench.model.record import Check
from ironbench.model.session import WorkConnection
from ironbench.workloads.tpch import answers, texts
from ironbench.workloads.tpch.answers import QueryAnswer
from ironbench.workloads.tpch.parameters import QUERIES
from ironbench.workloads.tpch.streams import StreamStep

_STORED = Path(__file__).with_name("expected")
_LARGEST = 1 << 28
"""Maximum size of an answer file in bytes."""
_HINT = "give the path of a directory that was written with `answers=DIR`"
VERSION = 1
"""Version of query texts and stored answers. Data that were validated with a different version are validated again."""


@dataclass(frozen=True, slots=True)
class AnsweredQuery:
    """A step of a stream, which executes a query and stores the answer."""

    query: int
    sql: str
    line: WorkConnection
    limit_s: float
    answers: dict[int, QueryAnswer]

    @property
    def name(self) -> str:
        return texts.name(self.query)

    def run(self, after: StreamStep | None) -> tuple[int, float, float]:
        began_s = time.perf_counter()
        rows = self.line.query(self.sql)
        ended_s = time.perf_counter()
        self.answers[self.query] = answers.answer(self.line.columns(), rows)
        return len(rows), began_s, ended_s


def checks(actual: Mapping[int, QueryAnswer], expected: Mapping[int, QueryAnswer]) -> tuple[Check, ...]:
    """Returns one check for all correct answers and one for each wrong answer."""
    wrong = {
        query: difference
        for query, answer in actual.items()
        if (difference := answers.difference(query, expected[query], answer))
    }
    whole = Check("answers", not wrong, f"{len(actual)} right", f"{len(actual) - len(wrong)} right")
    return (*(Check(f"answer {texts.name(query)}", False, "right", text) for query, text in wrong.items()), whole)


@cache
def stored(scale: str) -> Mapping[int, QueryAnswer] | None:
    """Returns the stored answers for the validation parameters at a scale factor. Returns None if there are none."""
    file = _STORED / f"sf{scale}.json.xz"
    if not file.exists():
        return None
    by_name = json.loads(lzma.decompress(file.read_bytes()))
    return {query: answers.from_csv(by_name[texts.name(query)]) for query in QUERIES}


def packed(by_query: Mapping[int, QueryAnswer]) -> bytes:
    """Compresses answers for a file that `stored` can read."""
    by_name = {texts.name(query): answers.as_csv(answer) for query, answer in by_query.items()}
    return lzma.compress(json.dumps(by_name, indent=0).encode(), preset=9 | lzma.PRESET_EXTREME)


def from_folder(folder: Path) -> Mapping[int, QueryAnswer]:
    """Reads answers that another engine wrote. Raises InputError if an answer is missing."""
    by_query = {}
    for query in QUERIES:
        file = folder / f"{texts.name(query)}.csv"
        subject = f"{written('workload.with', f'expected={folder}')}, {file.name}"
        text = text_of(file, subject, _HINT, _LARGEST)
        try:
            raw = answers.from_csv(text)
        except ValueError as error:
            raise InputError(subject, f"is not a CSV table: {error}", _HINT) from error
        by_query[query] = answers.answer(raw.columns, raw.rows)
    return by_query


def into_folder(folder: Path, by_query: Mapping[int, QueryAnswer]) -> None:
    """Writes the answers to `q01.csv` … `q22.csv`. Raises FailureError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for query, answer in by_query.items():
            (folder / f"{texts.name(query)}.csv").write_text(answers.as_csv(answer))
    except OSError as error:
        raise FailureError(written("workload.with", f"answers={folder}"), error.strerror or str(error)) from error


class Ledger:
    """Stores which data have been validated. There is one file for each load. The file is outside of the data
    directory, so that copies of the data also count as validated."""

    def __init__(self, *identity: str) -> None:
        """Creates the ledger. `identity`: content key and time of the load, engine and version."""
        digest = hashlib.sha256("\n".join([str(VERSION), *identity]).encode()).hexdigest()[:16]
        self._file = data_dirs.base() / "validated" / f"{digest}.json"
        self._identity = identity

    def read(self, limit_s: float) -> Note | None:
        """Returns the result of the validation. Returns None if the data must be validated again, because no result is
        stored, or because queries exceeded a limit that was shorter than `limit_s`."""
        try:
            stored = json.loads(self._file.read_text())
            within_s, found = stored.get("within_s"), stored["found"]
            if within_s is not None and limit_s > float(within_s):
                return None
            return Note(found["code"], dict(found["values"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def write(self, found: Note, within_s: float | None) -> None:
        """Stores the result. `within_s`: the time limit of queries, if some queries gave no answer. Otherwise, it is
        None.

        If the file cannot be written, the next trial validates again.
        """
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            aside = self._file.with_suffix(".new")
            stored = {"found": {"code": found.code, "values": found.values}, "of": self._identity, "within_s": within_s}
            aside.write_text(json.dumps(stored) + "\n")
            aside.replace(self._file)
        except OSError:
            return
