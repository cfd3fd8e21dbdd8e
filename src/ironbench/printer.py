"""Prints results to stdout, and messages and progress to stderr."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from ironbench.errors import IronbenchError
from ironbench.streams import unwritten
from ironbench.words import clean_lines


class Printer:
    """Prints results and messages. Output is readable without colours, and stdout contains only the data that the user
    requested."""

    def __init__(self, stdout: TextIO | None = None, stderr: TextIO | None = None) -> None:
        self._stdout: TextIO = stdout or sys.stdout
        self._stderr: TextIO | None = stderr or sys.stderr
        self._bar: Any = None

    @staticmethod
    def silent() -> Printer:
        """Returns a printer that prints no messages."""
        printer = Printer()
        printer._stderr = None
        return printer

    def data(self, text: str) -> None:
        """Prints a result on stdout. Raises BrokenPipeError, or FailureError for other errors."""
        text = clean_lines(text)
        try:
            self._stdout.write(text if text.endswith("\n") else text + "\n")
            self._stdout.flush()
        except BrokenPipeError:
            raise
        except (OSError, ValueError) as error:
            raise unwritten(error) from None

    def say(self, text: str) -> None:
        """Prints one line on stderr."""
        text = clean_lines(text)
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
            return
        if self._stderr is None:
            return
        with suppress(OSError, ValueError):  # a closed stderr does not end ironbench
            self._stderr.write(text + "\n")
            self._stderr.flush()

    def error(self, error: IronbenchError) -> None:
        self.say(f"error: {error}")
        if error.hint:
            self.say(f"  hint: {error.hint}")

    def width(self) -> int | None:
        """Returns the number of columns of the terminal that shows stdout. Returns None if stdout is a file or a
        pipe."""
        try:
            return os.get_terminal_size(self._stdout.fileno()).columns or None
        except (OSError, ValueError):
            return None

    @contextmanager
    def bar(self, what: str) -> Iterator[Callable[[float, str], None]]:
        """Shows a progress bar on stderr. Call the yielded function with the fraction done and a note.

        If stderr is not a terminal, prints at most one line every 10 s, so that logs stay short.
        """
        if self._stderr is not None and self._stderr.isatty():
            with self._rich_bar(what) as advance:
                yield advance
            return
        last = time.monotonic()
        self.say(what)

        def line(fraction: float, note: str) -> None:
            nonlocal last
            if time.monotonic() - last >= 10:
                last = time.monotonic()
                self.say(f"  {fraction:4.0%} {note}")

        yield line

    @contextmanager
    def _rich_bar(self, what: str) -> Iterator[Callable[[float, str], None]]:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}", markup=False),
        )
        with Progress(*columns, console=Console(file=self._stderr), transient=True) as bar:
            task = bar.add_task(what, total=1.0, note="")
            self._bar = bar
            try:
                yield lambda fraction, note: bar.update(task, completed=fraction, note=clean_lines(note))
            finally:
                self._bar = None
