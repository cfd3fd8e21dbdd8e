"""Files that a verb writes for others."""

from __future__ import annotations

import os
from pathlib import Path

from ironbench.errors import FailureError, InputError


def target(output: str) -> Path:
    """Refuses a place that cannot be written before the work is done."""
    path = Path(output)
    if path.is_dir():
        raise InputError(output, "is a directory", f"name a file, for example {path / 'report.html'}")
    if not path.parent.is_dir():
        raise InputError(output, f"the directory {path.parent} does not exist", "make it first, or name another place")
    if not os.access(path.parent, os.W_OK):
        raise InputError(output, f"the directory {path.parent} is not writable", "name another place")
    return path


def write(path: Path, data: bytes) -> None:
    """Aside and renamed: whoever opens the file sees the old one or the new one, never half of one. FailureError."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_bytes(data)
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise FailureError(
            str(path), f"the report could not be written: {error.strerror}", "name another place"
        ) from error
