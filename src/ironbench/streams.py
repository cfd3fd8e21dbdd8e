"""Prevents errors of stdout and stderr because of their encoding, closed streams or full devices."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import TextIO, cast

from ironbench.errors import FailureError

_PLAIN = dict(zip(map(ord, "\u202f\u00a0\u2212–─│█×µ•·²³"), "  ---|#xu*.23", strict=True)) | {
    ord(char): text for char, text in (("…", "..."), ("≤", "<="), ("≥", ">="), ("→", "->"), ("∞", "inf"))
}
"""ASCII replacements of the special characters in ironbench's texts and tables."""


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_PLAIN)
    return text.encode("ascii", "replace").decode(), error.end


class _Closed(io.TextIOBase):
    """Replacement for a closed stdout. Without it, the parser would print no help page and no error."""

    def write(self, _: str) -> int:
        raise unwritten(OSError("stdout is closed"))


def unwritten(error: Exception) -> FailureError:
    """Returns the error for a result that could not be written to stdout."""
    cause = f"the result cannot be written: {getattr(error, 'strerror', None) or error}"
    return FailureError("stdout", cause, "redirect the output to another file")


def prepare() -> None:
    """Prevents encoding errors. If the encoding of a stream lacks a character, a similar ASCII character is printed
    instead."""
    if sys.stdout is None:
        sys.stdout = cast(TextIO, _Closed())
    codecs.register_error("ironbench-plainly", _plainly)
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="ironbench-plainly")


def ended() -> bool:
    """Flushes both streams and returns whether everything was written. Discards text that could
    not be written, because Python would otherwise report an error at exit."""
    whole = True
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except (OSError, ValueError):
            whole = False
            try:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)
            except (OSError, ValueError):
                continue
    return whole
