"""stdout and stderr as we find them: in any encoding, closed, or a full device."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import TextIO, cast

from ironbench.errors import FailureError

_PLAIN = dict(zip(map(ord, "\u202f\u00a0\u2212–─│█×µ•·²³"), "  ---|#xu*.23", strict=True)) | {
    ord(char): text for char, text in (("…", "..."), ("≤", "<="), ("≥", ">="), ("→", "->"))
}
"""What our own words and tables use, in the characters that every terminal has."""


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_PLAIN)
    return text.encode("ascii", "replace").decode(), error.end


class _Closed(io.TextIOBase):
    """In place of a stdout that whoever started us has closed: the parser would drop its pages of help there."""

    def write(self, _: str) -> int:
        raise unwritten(OSError("it is closed"))


def unwritten(error: Exception) -> FailureError:
    """What stdout did not take."""
    cause = f"the result cannot be written: {getattr(error, 'strerror', None) or error}"
    return FailureError("stdout", cause, "write it to another file")


def prepare() -> None:
    """No character stops a message: what the encoding of a stream lacks is written in plainer ones."""
    if sys.stdout is None:
        sys.stdout = cast(TextIO, _Closed())
    codecs.register_error("ironbench-plainly", _plainly)
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="ironbench-plainly")


def ended() -> bool:
    """Whether everything was written. What was not is dropped: Python would report it once more at its own end."""
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
