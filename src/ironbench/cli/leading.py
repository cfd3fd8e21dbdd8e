"""Where `lead` writes what it found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ironbench.analyse.lead import Leads
from ironbench.errors import FailureError, InputError, nearest
from ironbench.report import lead as report

_FORMATS: dict[str, Callable[[Leads], bytes]] = {
    ".html": report.page,
    ".png": report.png,
    ".json": lambda found: report.document(found).encode(),
}


def written(output: str, found: Leads) -> None:
    """InputError: no such format or directory; FailureError: it cannot be written."""
    path = Path(output)
    render = _FORMATS.get(path.suffix.lower())
    if render is None:
        raise InputError(f"-o {output}", "ends in no format known here", nearest(path.suffix, list(_FORMATS)))
    if not path.absolute().parent.is_dir():
        raise InputError(f"-o {output}", "is in no directory that exists", "make it first, or name another place")
    try:
        path.write_bytes(render(found))
    except OSError as error:
        raise FailureError(output, error.strerror or str(error), "name another place") from error
