"""pyodbc in a child process: connections, information about the driver, values and errors."""

from __future__ import annotations

import re
from typing import Any

from ironbench.errors import FailureError, InputError, written
from ironbench.host.child_connection import CANCELLED

SUBJECT = "ODBC"
_WORDS = {
    "product": "SQL_DBMS_NAME",
    "version": "SQL_DBMS_VER",
    "driver": "SQL_DRIVER_NAME",
    "driver_version": "SQL_DRIVER_VER",
    "driver_odbc": "SQL_DRIVER_ODBC_VER",
    "manager": "SQL_DM_VER",
}
"""For each key in the result of `identification`, the name of the SQLGetInfo constant that requests the value."""
_LOGIN = ("28000", "28P01", "08004")
"""SQLSTATEs of a rejected login."""
_LOGIN_WORDS = re.compile(r"password|authenticat|access denied|log[io]n (failed|denied)", re.IGNORECASE)
"""Words in messages about a rejected login. Some drivers report it with other SQLSTATEs, for example PostgreSQL's
driver."""
_GONE = ("08003", "08007", "08S01", "57P01", "57P02", "57P03")
"""SQLSTATEs after which the connection is unusable."""
_CANCELLED = ("HY008", CANCELLED, "70100")
_PREFIX = re.compile(r"^(?:\[[^\]]*\]\s*)+")
_CALLS = re.compile(r"\s*\((-?\d+)\)\s*\(SQL\w+\)")


def package() -> Any:
    """Imports pyodbc. Raises InputError if the system's ODBC library is missing."""
    try:
        import pyodbc
    except ImportError as error:
        cause = f"cannot import pyodbc: {error}"
        raise InputError(
            written("system.engine", "odbc"), cause, "install unixODBC (apt install unixodbc) and the driver"
        ) from error
    pyodbc.pooling = False  # otherwise, a closed connection would keep its session and be used again
    return pyodbc


def connect(connection: str, patience_s: int) -> Any:
    """Connects to a database. Raises InputError if the driver is missing or the login is rejected, and FailureError for
    other errors."""
    pyodbc = package()
    try:
        return pyodbc.connect(connection, autocommit=True, timeout=patience_s)
    except pyodbc.Error as error:
        raise _refusal(pyodbc, failure(error)) from None


def identification(connection: Any) -> dict[str, str]:
    """Returns what the driver reports about itself and the database."""
    pyodbc, found = package(), {"pyodbc": package().version}
    for word, name in _WORDS.items():
        try:
            found[word] = str(connection.getinfo(getattr(pyodbc, name)))
        except pyodbc.Error:
            found[word] = ""
    return found


def failure(error: Any) -> FailureError:
    """Converts a pyodbc error to an error of ironbench."""
    sqlstate, text = (*map(str, error.args), "", "")[:2]
    calls = _CALLS.findall(text)
    cause = " ".join(_PREFIX.sub("", _CALLS.sub("", text).removesuffix(f"({calls[-1]})" if calls else "")).split())
    made = FailureError(SUBJECT, cause or sqlstate or type(error).__name__)
    made.sqlstate = CANCELLED if sqlstate in _CANCELLED else sqlstate
    made.number = int(calls[-1]) if calls else 0
    return made


def is_lasting(error: FailureError) -> bool:
    return error.sqlstate in _GONE or error.sqlstate.startswith("08")


def text(value: Any) -> str | None:
    """Converts a value to text. Decimals and dates keep their format."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return bytes(value).decode(errors="replace") if isinstance(value, (bytes, bytearray)) else str(value)


def _refusal(pyodbc: Any, error: FailureError) -> FailureError | InputError:
    subject = written("system.dsn")
    if "Can't open lib" in error.cause or error.sqlstate in ("IM002", "IM003"):
        drivers = ", ".join(pyodbc.drivers()) or "none"
        sources = ", ".join(sorted(pyodbc.dataSources())) or "none"
        return InputError(subject, error.cause, f"drivers installed: {drivers}; data sources: {sources}")
    if error.sqlstate in _LOGIN or _LOGIN_WORDS.search(error.cause):
        return InputError(subject, error.cause, "check UID and PWD, here or in the data source")
    error.subject = subject
    return error
