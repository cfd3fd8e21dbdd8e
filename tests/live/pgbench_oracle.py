"""Runs pgbench on a server that logs each statement: the oracle for the meaning of scripts."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from raw_server import RawServer, binary

SEED = 20260


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a script in pgbench."""

    debug: list[str]
    errors: list[str]
    failed: bool


class Pgbench:
    def __init__(self, server: RawServer, directory: Path) -> None:
        self.server = server
        self.script = directory / "script.sql"
        self.log = server.directory / "data" / "log"
        self.session = server.connect(options=[("application_name", "marker")])
        self.markers = itertools.count()

    def run(
        self, text: str, variables: Sequence[tuple[str, str]] = (), seed: int = SEED, protocol: str = "simple"
    ) -> Outcome:
        """Runs one transaction of one client."""
        self.script.write_text(text)
        return self._outcome("-c1", "-t1", f"-M{protocol}", seed=seed, variables=variables)

    def each(self, texts: Sequence[str], variables: Sequence[tuple[str, str]] = ()) -> list[str]:
        """Returns the errors of texts, all of which must fail at run time. Runs pgbench once, with a client for each
        text.

        A failing client prints the reason and then its number (pgbench.c, commandFailed). One thread runs all clients,
        so their messages do not mix. Only client 0 draws the random numbers that a single client draws.
        """
        branches = [f"\\elif :client_id = {n}\n\\set client_id 0\n{text}" for n, text in enumerate(texts)]
        self.script.write_text("\\if false\n" + "".join(branches) + "\\endif\n")
        errors = self._outcome(f"-c{len(texts)}", "-j1", "-t1", variables=variables).errors
        aborted = {
            int(found[1]): n for n, line in enumerate(errors) if (found := re.search(r"client (\d+) abort", line))
        }
        assert sorted(aborted) == list(range(len(texts))), [text for n, text in enumerate(texts) if n not in aborted]
        return [errors[aborted[n] - 1] for n in range(len(texts))]

    def mixed(self, files: Sequence[Path], seed: int) -> Outcome:
        """Runs ten transactions of one client, each with one of several scripts."""
        return self._outcome("-c1", "-t10", seed=seed, files=files)

    def _outcome(
        self,
        *options: str,
        seed: int = SEED,
        variables: Sequence[tuple[str, str]] = (),
        files: Sequence[Path] | None = None,
    ) -> Outcome:
        command = [binary("pgbench"), "-n", f"--random-seed={seed}", *options]
        command += [f"-D{name}={value}" for name, value in variables]
        command += [word for file in files or [self.script] for word in ("-f", str(file))]
        command += ["-h", self.server.host, "-p", str(self.server.port), "-U", "postgres", "postgres"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        lines = done.stderr.splitlines()
        return Outcome(
            debug=[line for line in lines if line.startswith("debug(")],
            errors=[line for line in lines if "error:" in line],
            failed=done.returncode != 0,
        )

    def sent(self, text: str, variables: Sequence[tuple[str, str]], protocol: str) -> list[str]:
        """Returns the statements that the server received from a valid script."""
        self._wait_for_log()
        before = len(self._messages("pgbench"))
        outcome = self.run(text, variables, protocol=protocol)
        assert not outcome.failed, outcome.errors
        self._wait_for_log()
        statements = [
            line for line in self._messages("pgbench")[before:] if line.startswith(("statement: ", "execute "))
        ]
        return [statement.partition(": ")[2].strip() for statement in statements]

    def _wait_for_log(self) -> None:
        """Waits until the server's log contains everything so far. A separate process writes it."""
        marker = f"SELECT 'marker {next(self.markers)}'"
        self.session.query(marker)
        deadline = time.monotonic() + 20
        while not any(marker in message for message in self._messages("marker")):
            assert time.monotonic() < deadline, "the server's log does not come"
            time.sleep(0.05)

    def _messages(self, application: str) -> list[str]:
        lines = "".join(path.read_text() for path in sorted(self.log.glob("*.json"))).splitlines(keepends=True)
        entries = [json.loads(line) for line in lines if line.endswith("\n")]
        return [entry["message"] for entry in entries if entry.get("application_name") == application]
