"""Runs one case through both programs and compares the results."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from raw_server import RawServer

from pgbench_cases import options
from pgbench_cases.cases import Case, Preparation
from pgbench_cases.differences import DIFFERENCES, REASONS

PATIENCE_S = 120
_ENDINGS = {
    "pgbench": {0: "done", 1: "refused", 2: "failed"},
    "ironbench": {0: "done", 3: "done", 2: "refused", 1: "failed"},
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """A program's result for a case."""

    ending: str
    """`done`, `refused` (nothing was run) or `failed` (during the run)."""
    text: str
    """Combined stdout and stderr."""
    debug: list[str] = field(default_factory=list)
    processed: int | None = None
    retried: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of a comparison. `difference`: the documented difference whose result ironbench has. Disagreements are
    listed separately."""

    case: Case
    expected: bool
    """Whether pgbench did what its authors expect; otherwise the case does not test ironbench."""
    disagreements: list[str]
    difference: str = ""

    @property
    def word(self) -> str:
        if not self.expected:
            return "pgbench itself fails"
        if self.disagreements:
            return "disagree"
        return "documented difference" if self.difference else "agree"


class Both:
    """Two equal servers, one for each program."""

    def __init__(self, pgbench: str, directory: Path, theirs: RawServer, ours: RawServer) -> None:
        self.pgbench = pgbench
        self.directory = directory
        self.theirs = theirs
        self.ours = ours

    def prepare(self, step: Preparation) -> None:
        for server in (self.theirs, self.ours):
            session = server.connect()
            if step.sql:
                for path in re.findall(r"LOCATION '([^']+)'", step.sql):
                    (server.directory / "place").mkdir(exist_ok=True)
                    session.query(step.sql.replace(path, str(server.directory / "place")))
                    break
                else:
                    session.query(step.sql)
            for line in filter(None, step.settings.splitlines()):
                name, _, value = line.partition("=")
                session.query(f"ALTER SYSTEM SET {name.strip()} = '{value.strip()}'")
            session.query("SELECT pg_reload_conf()")
            session.close()

    def run(self, case: Case) -> Verdict:
        case = self._written(case)
        theirs = self._pgbench(case, self.theirs)
        expected = self._as_expected(case, theirs)
        wanted = options.translated(case)
        if wanted.difference:
            if wanted.difference == "tables" and theirs.ending == "done":
                self._pgbench(case, self.ours)
            return Verdict(case, expected, [], wanted.difference)
        ours = self._ironbench(case, wanted)
        difference, ending = DIFFERENCES.get(case.name, ("", theirs.ending))
        if difference and theirs.ending != ending == ours.ending:
            return Verdict(case, expected, _reasons(case, ours) if ending != "done" else [], difference)
        return Verdict(case, expected, disagreements(case, theirs, ours))

    def _written(self, case: Case) -> Case:
        """Writes the scripts of the case to the directory of these tests, under their names. Returns the case with the
        new paths."""
        moved = {}
        for path, text in case.scripts.items():
            moved[path] = self.directory / Path(path).name
            moved[path].write_text(text)

        def place(word: str) -> str:
            path, at, weight = word.rpartition("@")
            return f"{moved[path]}{at}{weight}" if path in moved else str(moved.get(word, word))

        arguments = [place(word) for word in case.arguments]
        arguments = [word for word in arguments if not word.startswith("--log-prefix=/")]
        return Case(case.name, arguments, case.status, case.stdout, case.stderr, case.scripts, case.pgoptions)

    def _pgbench(self, case: Case, server: RawServer) -> Outcome:
        environment = {
            **os.environ,
            "PGHOST": server.host,
            "PGPORT": str(server.port),
            "PGUSER": "postgres",
            "PGDATABASE": "postgres",
            "PGOPTIONS": case.pgoptions,
            "LC_ALL": "C",
        }
        done = _run([self.pgbench, *case.arguments], environment, self.directory)
        processed = re.search(r"actually processed: (\d+)", done.stdout)
        retried = re.search(r"number of transactions retried: (\d+)", done.stdout)
        return Outcome(
            _ENDINGS["pgbench"].get(done.returncode, f"exit {done.returncode}"),
            f"{done.stdout}\n{done.stderr}",
            _debug(done.stderr),
            int(processed[1]) if processed else None,
            int(retried[1]) if retried else None,
        )

    def _ironbench(self, case: Case, wanted: options.Translated) -> Outcome:
        words = [str(Path(sys.executable).with_name("ironbench")), *wanted.words]
        if wanted.runs:
            place = f"host={self.ours.host} port={self.ours.port} user=postgres"
            words += ["--dsn", f"{place} dbname={wanted.database or 'postgres'}", "--json"]
            words += ["--results", str(self.directory / "results")]
        done = _run(words, {**os.environ, "PGOPTIONS": case.pgoptions, "NO_COLOR": "1"}, self.directory)
        text = f"{done.stdout}\n{done.stderr}"
        metrics = {}
        if wanted.runs and done.returncode != 2:
            try:
                trials = json.loads(done.stdout)["trials"]
                metrics = trials[0]["metrics"] if trials else {}
            except (ValueError, LookupError):
                return Outcome("a traceback", text)
        processed = metrics.get("transactions")
        return Outcome(
            _ENDINGS["ironbench"].get(done.returncode, f"exit {done.returncode}"),
            text,
            _debug(done.stderr),
            int(processed) if processed is not None else None,
            int(metrics.get("retries", 0)),
        )

    def _as_expected(self, case: Case, outcome: Outcome) -> bool:
        ending = _ENDINGS["pgbench"].get(case.status)
        return outcome.ending == ending and all(
            re.search(one, outcome.text, re.M) for one in case.stderr if one != "(?:^$)"
        )


def _run(command: Sequence[str], environment: dict[str, str], directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
        timeout=PATIENCE_S,
        cwd=directory,
        stdin=subprocess.DEVNULL,
    )


def _debug(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("debug(")]


def disagreements(case: Case, theirs: Outcome, ours: Outcome) -> list[str]:
    found = []
    if theirs.ending != ours.ending:
        found.append(f"pgbench: {theirs.ending}, ironbench: {ours.ending}")
    if theirs.debug != ours.debug:
        pairs = [(a, b) for a, b in zip(theirs.debug, ours.debug, strict=False) if a != b]
        found.append(f"debug lines: {len(theirs.debug)} and {len(ours.debug)}; first unlike: {pairs[:1]}")
    if theirs.ending == ours.ending == "done":
        if theirs.processed is not None and theirs.processed != ours.processed:
            found.append(f"transactions: {theirs.processed} and {ours.processed}")
        if theirs.retried is not None and theirs.retried != ours.retried:
            found.append(f"retried: {theirs.retried} and {ours.retried}")
    if theirs.ending != "done" and ours.ending != "done":
        found += _reasons(case, ours)
    return found


def _reasons(case: Case, ours: Outcome) -> list[str]:
    """Returns disagreements about the cause. Both programs must name the same cause, in pgbench's words or in the words
    that `REASONS` contains for this case."""
    in_our_words = REASONS.get(case.name)
    if in_our_words is not None:
        return [] if in_our_words in ours.text else [f"no {in_our_words!r} in: {_short(ours.text)}"]
    # pgbench adds severities and the server's context lines when it shows a server's message.
    shown = [re.sub("(ERROR|FATAL):  ", "", one) for one in case.stderr if not re.search(r"CONTEXT:|\(\?!", one)]
    wanted = [one for one in shown if not re.search(one, ours.text, re.M)]
    return [f"reason {wanted[0]} is not in: {_short(ours.text)}"] if wanted else []


def _short(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if "error" in line or "voided" in line or '"cause"' in line]
    return " | ".join(lines or text.splitlines()[-6:])[:400]
