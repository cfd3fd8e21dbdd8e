"""Decides which programs may run while a lab file is only being read.

A lab file, and the programs that it names (`bin`), may come from an untrusted source. `ironbench lab plan` and the lab
editor of `ironbench serve` only describe what a lab would do. Neither may run programs from an untrusted source. Inside
`reading_only`, a program in a directory that the lab file names is therefore refused, unless the directory belongs to
the installed system.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from ironbench.errors import InputError

_INSTALLED = (Path("/usr"), Path("/opt"), Path("/nix/store"), Path("/gnu/store"))
"""Directories in which only an administrator installs programs (Filesystem Hierarchy Standard 3.0, sections 3.13 and
4)."""
_withheld: ContextVar[set[Path] | None] = ContextVar("withheld", default=None)
"""Directories whose programs have been refused. The value is None outside `reading_only`."""
_installed_run: ContextVar[bool] = ContextVar("installed_run", default=True)
"""Whether installed programs may run inside `reading_only`."""


@contextmanager
def reading_only(trusted: bool = False, *, installed_run: bool = True) -> Iterator[None]:
    """Inside the block, programs in directories that a lab file names do not run. With `trusted`, the block has no
    effect.

    If `installed_run` is false, even installed programs of engines do not run. Versions are then read from the program
    files, and settings are not checked.
    """
    token, other = _withheld.set(None if trusted else set()), _installed_run.set(trusted or installed_run)
    try:
        yield
    finally:
        _withheld.reset(token)
        _installed_run.reset(other)


def is_reading_only() -> bool:
    return _withheld.get() is not None


def may_run(directory: Path | None) -> bool:
    """Returns whether programs in a directory may run now. If they may not, stores the directory, so that `run_program`
    refuses its programs.

    `directory`: a directory that a lab file names, or None for programs that no lab file names.
    """
    withheld = _withheld.get()
    if withheld is None:
        return True
    if directory is None:
        return _installed_run.get()
    real = directory.resolve()
    if any(real.is_relative_to(place) for place in _INSTALLED):
        return _installed_run.get()
    withheld.update((directory, real))
    return False


def withheld_directories() -> list[Path]:
    """Returns the directories whose programs have been refused, each once."""
    return sorted({one.resolve() for one in _withheld.get() or ()})


def is_withheld(words: Sequence[str]) -> bool:
    """Returns whether a command runs a program in a refused directory, directly or through another program such as
    `unshare`."""
    withheld = _withheld.get()
    if not withheld:
        return False
    return any(Path(word).is_relative_to(one) for word in words if word.startswith("/") for one in withheld)


def unknown_version(subject: str) -> InputError:
    """Returns the error for a program that may not run and whose file does not contain a version."""
    cause = "the file does not contain a version, and without --trust a lab file runs no programs"
    return InputError(subject, cause, "if you trust the file, add --trust")


def found_in(program: Path, pattern: bytes) -> str:
    """Returns the first match in a program's file. Returns "" if there is none. Finds the program's version without
    running it."""
    try:
        with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            match = re.search(pattern, content)
            return match[0].decode("ascii", "replace") if match else ""
    except (OSError, ValueError):  # the file cannot be read, or is empty and cannot be mapped
        return ""
