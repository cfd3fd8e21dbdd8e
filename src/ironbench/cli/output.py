"""Writes the output files of commands."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ironbench.errors import FailureError, InputError
from ironbench.printer import Printer

if TYPE_CHECKING:
    from ironbench.report.page import Page


def target(output: str) -> Path:
    """Checks an output path before any work is done. Raises InputError if the file cannot be written."""
    path = Path(output)
    if path.is_dir():
        raise InputError(output, "is a directory", f"use a file name, for example {path / 'report.html'}")
    if _is_stream(path):
        return path
    if not path.parent.is_dir():
        raise InputError(
            output, f"the directory {path.parent} does not exist", "create the directory, or use another one"
        )
    if not os.access(path.parent, os.W_OK):
        raise InputError(output, f"the directory {path.parent} is not writable", "use another directory")
    return path


def write(path: Path, data: bytes) -> None:
    """Writes a file atomically: writes to a temporary name, and then renames the file. Raises FailureError if the file
    cannot be written.

    If the path is a symbolic link, its target is replaced. A device or pipe, such as /dev/stdout, is written to
    directly.
    """
    try:
        if _is_stream(path):
            path.write_bytes(data)
        else:
            _replace(path.resolve(), data)
    except OSError as error:
        raise FailureError(str(path), f"could not be written: {error.strerror}", "use another file") from error


def _replace(file: Path, data: bytes) -> None:
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        aside.write_bytes(data)
        aside.replace(file)
    finally:
        aside.unlink(missing_ok=True)


def _is_stream(path: Path) -> bool:
    """Returns whether the path is an existing device, pipe or socket."""
    return path.exists() and not path.is_file()


def destination(output: str, format: str, json: bool = False) -> tuple[str, Path | None]:
    """Returns the output format and the output file. The file is None for stdout. The format is chosen by `--json`,
    `--format` or the suffix of the file. Raises InputError if the options cannot be combined, or if the file cannot be
    written."""
    from ironbench.report import formats

    if json and (output or format):
        other = f"--format {format}" if format else f"-o {output}"
        raise InputError("--json", f"cannot be combined with {other}", "remove --json, or use -o FILE.json")
    format = "json" if json else format
    suffix = Path(output).suffix.lower().removeprefix(".")
    chosen = format or (formats.of_suffix(suffix) if suffix else "text")
    if not chosen:
        ends = " or ".join(f".{formats.suffixes(name)[0]}" for name in formats.names())
        raise InputError(f"-o {output}", "the file name has no known suffix", f"use the suffix {ends}, or add --format")
    if formats.needs_file(chosen) and not output:
        raise InputError(f"--format {chosen}", "needs an output file", f"add -o report.{formats.suffixes(chosen)[0]}")
    return chosen, target(output) if output else None


def write_page(page: Page, format: str, path: Path | None) -> int:
    """Writes the page to the file `path`. If `path` is None, prints the page; text is fitted to the width of the
    terminal. Returns the exit code."""
    from ironbench.report import formats

    if format == "text" and path is None:
        from ironbench.report.formats import text

        printer = Printer()
        printer.data(text.page(page, printer.width()))
        return 0
    return delivered(formats.of_page(format)(page), path, "written:")


def delivered(data: bytes, path: Path | None, words: str) -> int:
    """Writes the document to the file `path`, and prints `words` and the file's name. If `path` is None, prints the
    document. Returns the exit code."""
    printer = Printer()
    if path is None:
        printer.data(data.decode().replace("\r\n", "\n"))  # CSV has CR LF, a terminal needs LF
        return 0
    write(path, data)
    printer.say(words)
    printer.data(str(path))
    return 0
