"""Installed ODBC drivers."""

from __future__ import annotations

import importlib.util

import pytest


def _installed() -> set[str]:
    if importlib.util.find_spec("pyodbc") is None:
        return set()
    try:
        import pyodbc
    except ImportError:
        return set()
    return set(pyodbc.drivers())


DRIVERS = _installed()
MARIADB = "MariaDB Unicode"
needs = {
    name: pytest.mark.skipif(name not in DRIVERS, reason=f"there is no ODBC driver {name} (Debian's package {package})")
    for name, package in (
        ("SQLite3", "libsqliteodbc"),
        ("PostgreSQL Unicode", "odbc-postgresql"),
        (MARIADB, "odbc-mariadb"),
    )
}
