"""Facts about a directory: version, settings, durability, and counters. The sources are cn=config and cn=Monitor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ironbench.errors import FailureError, IronbenchError
from ironbench.model.session import Row

Query = Callable[[str], list[Row]]
_SERVER = (
    *("olcThreads", "olcToolThreads", "olcListenerThreads", "olcSizeLimit", "olcTimeLimit", "olcIdleTimeout"),
    *("olcConnMaxPending", "olcConnMaxPendingAuth", "olcConcurrency", "olcSecurity", "olcRequires", "olcDisallows"),
)
_DATABASE = (
    *("olcDbDirectory", "olcDbMaxSize", "olcDbIndex", "olcDbCheckpoint", "olcDbNoSync", "olcDbEnvFlags"),
    *("olcDbMaxReaders", "olcDbIDLexp", "olcDbRtxnSize", "olcLastMod", "olcReadOnly"),
)
_INCIDENTAL = ("olcDbDirectory",)
KINDS = ("bind", "unbind", "search", "compare", "modify", "modrdn", "add", "delete", "abandon", "extended")
OPERATIONS = "search cn=Operations,cn=Monitor?monitorOpCompleted?one"


def read(query: Query) -> dict[str, Any]:
    """Returns version, settings and durability. The result is JSON-compatible and contains no secrets. Values that the
    server does not show are missing."""
    settings = {name: value for name, value in _configuration(query).items() if name not in _INCIDENTAL}
    version = _version(query)
    nosync = settings.get("olcDbNoSync", "") == "TRUE" or "nosync" in settings.get("olcDbEnvFlags", "")
    return {
        "engine": "slapd",
        "version": version.rpartition("slapd ")[2].partition(" (")[0] or version,
        "version_text": version,
        "settings": settings,
        "durability": {"commits": "flushed later" if nosync else "flushed before they are answered"}
        if settings
        else {},
    }


def _version(query: Query) -> str:
    for search, column in (("search cn=Monitor?monitoredInfo?base", 1), ("search ?vendorVersion", 1)):
        try:
            rows = query(search)
        except IronbenchError:
            continue
        if rows and rows[0][column]:
            return " ".join(str(rows[0][column]).replace("@(#)", "").replace("$", "").split())
    return ""


def _configuration(query: Query) -> dict[str, str]:
    searches = (
        (f"search cn=config?{','.join(_SERVER)}?base", _SERVER),
        (f"search cn=config?{','.join(_DATABASE)}?sub?(olcDbDirectory=*)", _DATABASE),
    )
    found: dict[str, str] = {}
    for search, names in searches:
        try:
            rows = query(search)
        except IronbenchError:
            continue
        if rows:
            found |= {name: value for name, value in zip(names, rows[0][1:], strict=True) if value is not None}
    return found


def counters(query: Query) -> dict[str, int]:
    """Returns the number of completed operations of each kind. Returns an empty mapping if the server does not show
    them. Raises FailureError if the server does not answer."""
    try:
        rows = query(OPERATIONS)
    except FailureError as error:
        if not getattr(error, "number", 0):
            raise
        return {}
    known = {f"cn={name},": name for name in KINDS}
    return {
        known[start]: int(completed)
        for dn, completed in rows
        if completed is not None and (start := f"{str(dn).partition(',')[0].lower()},") in known
    }
