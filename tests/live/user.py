"""ironbench as its users see it: a command, its output, its exit code and what it leaves."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import launch
from patience import eventually

from ironbench.records.decoded import decoded
from ironbench.report import wording

PAUSED = ("--think-time", "5ms")
"""Options that leave CPU time to other tests, for tests that do not depend on the amount of work."""
FULL_SPEED = ("--duration", "0.5s", "--warmup", "0s", "--no-observe")
SHORT = (*PAUSED, *FULL_SPEED)


@dataclass(frozen=True)
class Told:
    """The exit code and output of a command."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.stdout)


class User:
    """A user with a private results directory and register."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.results = home / "results"
        runtime = home / "runtime"
        runtime.mkdir(mode=0o700, parents=True)
        self.register = runtime / "ironbench"
        self.environment = os.environ | {
            "PYTHONPATH": str(launch.SOURCE),
            "XDG_RUNTIME_DIR": str(runtime),
            "IRONBENCH_DATA": str(home / "data"),
            "IRONBENCH_RESULTS": str(self.results),
            "COLUMNS": "120",
        }

    def __call__(self, *words: str, **environment: str) -> Told:
        done = launch.run(words, env=self.environment | environment, cwd=self.home, timeout_s=90)
        return Told(done.returncode, done.stdout, done.stderr)

    def measured(self, *words: str, **environment: str) -> Told:
        """Runs a command that ends with a measurement, which may be flagged."""
        return _measured(self(*words, **environment))

    @contextmanager
    def begun(self, *words: str) -> Iterator[Begun]:
        """Yields a running command, which is ended whatever the test's result."""
        with (self.home / "stderr").open("w") as said:
            process = launch.Command(words, env=self.environment, cwd=self.home, stderr=said)
        try:
            yield Begun(process, self.home / "stderr")
        finally:
            process.kill()
            process.wait()
            process.close()

    def records(self) -> list[dict[str, Any]]:
        """Returns every record in the results, oldest first; a partial one fails the test."""
        written = sorted(self.results.glob("trials/*/record.json"), key=lambda path: path.stat().st_mtime_ns)
        assert len(written) == len(list(self.results.glob("trials/*")))
        return list(map(_record, written))

    def untouched(self) -> bool:
        """Returns whether nothing was written for this user and nothing is running."""
        return not self.results.exists() and not (self.home / "data").exists() and self.nothing_runs()

    def nothing_runs(self) -> bool:
        return not list(self.register.glob("*.json"))


@dataclass(frozen=True)
class Begun:
    process: launch.Command
    stderr: Path

    def wait_for(self, words: str) -> None:
        """Waits until the command has written these words to stderr."""
        assert eventually(lambda: words in self.stderr.read_text() or self.process.poll() is not None, 60.0)
        assert words in self.stderr.read_text(), self.stderr.read_text()

    def end(self, number: int | None = None, within_s: float = 60.0) -> tuple[Told, float]:
        """Sends a signal, if given, and waits for the end. Returns the output, and the seconds until the end."""
        began = time.monotonic()
        if number is not None:
            self.process.send_signal(number)
        stdout, _ = self.process.communicate(timeout=within_s)
        return Told(self.process.returncode, stdout, self.stderr.read_text()), time.monotonic() - began

    def measured(self, within_s: float = 60.0) -> Told:
        """Waits for the end of a command that ends with a measurement, which may be flagged."""
        told, _ = self.end(within_s=within_s)
        return _measured(told)


def visitor(place: Path, home: Path) -> User:
    """Returns a user in `place` with the ssh key and known hosts of `home`."""
    user = User(place)
    user.environment["HOME"] = str(home)
    user.environment.pop("SSH_AUTH_SOCK", None)
    return user


def records(results: Path) -> list[dict[str, Any]]:
    """Returns every record in a results directory, ordered by id."""
    return list(map(_record, sorted(results.glob("trials/*/record.json"))))


def _record(path: Path) -> dict[str, Any]:
    """Returns the document, with its causes worded."""
    document: dict[str, Any] = json.loads(path.read_text())
    return {**document, "cause": wording.cause(decoded(path.read_bytes()))}


def blocks(page: str, language: str) -> list[str]:
    """Returns the code blocks of a language on a page, named by its path below docs without `.md`."""
    text = (Path(__file__).parents[2] / "docs" / f"{page}.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def _measured(told: Told) -> Told:
    assert told.code in (0, 3), f"{told.code}: {told.stderr}"
    return told
