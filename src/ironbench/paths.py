"""Resolves paths as users write them."""

import contextlib
import errno
from pathlib import Path

from ironbench.errors import InputError


def expanded(text: str) -> Path:
    """Expands a leading `~`. Raises InputError if the user has no home directory, or if the path is too long for any
    file."""
    try:
        path = Path(text).expanduser()
    except RuntimeError:
        raise InputError(text, "the home directory for `~` is unknown", "use an absolute path") from None
    with contextlib.suppress(ValueError):  # the path contains a null character, so no file has this name
        _require_short(path, text)
    return path


def _require_short(path: Path, text: str) -> None:
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            cause = "the path is too long"
            raise InputError(f"{text[:100]}…", cause, "use a shorter path") from None
