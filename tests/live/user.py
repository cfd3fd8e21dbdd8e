"""ironbench as its users meet it: a command, what it prints, how it exits, what it leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[2] / "src"
COMMAND = [sys.executable, "-c", "from ironbench.cli import main; main()"]
SHORT = ("--duration", "0.5s", "--warmup", "0s", "--no-observe")


@dataclass(frozen=True)
class Told:
    """How a command ended and what it said."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.stdout)


class User:
    """Somebody with a home of their own: a results directory, a register of what runs."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.results = home / "results"
        runtime = home / "runtime"
        runtime.mkdir(mode=0o700, parents=True)
        self.register = runtime / "ironbench"
        self.environment = os.environ | {
            "PYTHONPATH": str(SOURCE),
            "XDG_RUNTIME_DIR": str(runtime),
            "IRONBENCH_DATA": str(home / "data"),
            "IRONBENCH_RESULTS": str(self.results),
            "COLUMNS": "120",
        }

    def __call__(self, *words: str, **environment: str) -> Told:
        done = subprocess.run(
            [*COMMAND, *words],
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
            stdin=subprocess.DEVNULL,
            env=self.environment | environment,
            cwd=self.home,
        )
        return Told(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def begun(self, *words: str) -> Iterator[Begun]:
        """A command that is still running; whatever the test finds out, it does not stay."""
        with (self.home / "stderr").open("w") as said:
            process = subprocess.Popen(
                [*COMMAND, *words],
                stdout=subprocess.PIPE,
                stderr=said,
                stdin=subprocess.DEVNULL,
                text=True,
                env=self.environment,
                cwd=self.home,
                # A shell that runs tests in the background has SIGINT ignored, and children inherit that.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )
        try:
            yield Begun(process, self.home / "stderr")
        finally:
            process.kill()
            process.communicate()

    def records(self) -> list[dict[str, Any]]:
        """Every record in the results, oldest first; a half-written one fails the test."""
        found = [json.loads(path.read_text()) for path in sorted(self.results.glob("trials/*/record.json"))]
        assert len(found) == len(list(self.results.glob("trials/*")))
        return sorted(found, key=lambda record: (record["started_at"], record["id"]))

    def untouched(self) -> bool:
        """Nothing was written for this user and nothing runs."""
        return not self.results.exists() and not (self.home / "data").exists() and self.nothing_runs()

    def nothing_runs(self) -> bool:
        return not list(self.register.glob("*.json"))


@dataclass(frozen=True)
class Begun:
    process: subprocess.Popen[str]
    stderr: Path

    def wait_for(self, words: str) -> None:
        """Until it has said these words on stderr."""
        assert eventually(lambda: words in self.stderr.read_text() or self.process.poll() is not None, 60.0)
        assert words in self.stderr.read_text(), self.stderr.read_text()

    def end(self, number: int | None = None, within_s: float = 60.0) -> tuple[Told, float]:
        """Sends a signal, if one is given, and waits for the end: what it told, and how many seconds that took."""
        began = time.monotonic()
        if number is not None:
            self.process.send_signal(number)
        stdout, _ = self.process.communicate(timeout=within_s)
        return Told(self.process.returncode, stdout, self.stderr.read_text()), time.monotonic() - began


def eventually(holds: Callable[[], bool], within_s: float = 30.0) -> bool:
    """Whether something becomes true in time; returns as soon as it is."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
