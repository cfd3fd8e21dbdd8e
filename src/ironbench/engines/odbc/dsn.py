"""DSNs of the form `odbc:Driver={Name};Server=…;…`, or `odbc:NAME` for a data source of odbc.ini.

Syntax: ODBC Programmer's Reference, SQLDriverConnect, "Connection Strings". A value in braces may contain a semicolon.
A closing brace inside the value is doubled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ironbench.engines.url import is_file
from ironbench.errors import InputError, written
from ironbench.model.secrets import Secrets

SCHEME = "odbc"
_PREFIX = f"{SCHEME}:"
_PAIR = re.compile(r"([^=;{}]++)=\s*+(\{(?:[^}]++|\}\})*+\}|(?!\{)[^;]*+)\s*+(?:;|$)")
_SECRET = re.compile(
    r"pwd|pass|secret|token|credential|(api|access|account|shared)[ _]?key|^u(ser )?id$|^user(name)?$", re.IGNORECASE
)
"""Pattern of the keywords for users and passwords in the connection strings of any driver."""
_WITHIN = re.compile(r"(pwd|pass\w*|secret|token)\s*=|://[^\s/@:]*:[^\s@]*@", re.IGNORECASE)
"""Pattern of secrets in a value that is itself a connection string, such as `pqopt` of PostgreSQL's driver."""
_USER = re.compile(r"^u(ser )?id$|^user(name)?$", re.IGNORECASE)
_EXAMPLE = "write odbc:Driver={NAME};Server=…;Database=…, or odbc:NAME for a data source of odbc.ini"


@dataclass(frozen=True, slots=True)
class OdbcAddress:
    """A connection string without user and password."""

    pairs: tuple[tuple[str, str], ...]
    """Keywords and values as written by the user, including braces."""

    def text(self) -> str:
        return _PREFIX + _joined(self.pairs)

    def whole(self, secrets: Secrets) -> str:
        """Returns the complete connection string for the driver manager."""
        return ";".join(filter(None, (_joined(self.pairs), secrets.password)))

    def value(self, keyword: str) -> str:
        """Returns the value of a keyword without braces. Returns "" if the keyword is missing."""
        return next((_bare(value) for name, value in self.pairs if name.lower() == keyword), "")


def parse(text: str) -> tuple[OdbcAddress, Secrets]:
    """Splits a DSN into address and secrets. Raises InputError."""
    rest = text[len(_PREFIX) :] if text[: len(_PREFIX)].lower() == _PREFIX else text
    if not rest.strip():
        raise InputError(written("system.dsn"), "contains neither a driver nor a data source", _EXAMPLE)
    if "=" not in rest:
        rest = f"DSN={rest}"
    pairs = list(_pairs(rest))
    hidden = [(name, value) for name, value in pairs if _SECRET.search(name) or _WITHIN.search(value)]
    visible = [(name, _placed(name, value)) for name, value in pairs if (name, value) not in hidden]
    for name, value in hidden:
        if not _USER.search(name):
            for form in (value, _bare(value)):
                Secrets(form)  # registers the value as a secret, so that no message shows it
    address = OdbcAddress(tuple(visible))
    if not address.value("driver") and not address.value("dsn") and not address.value("filedsn"):
        raise InputError(written("system.dsn"), "contains neither a driver nor a data source", _EXAMPLE)
    return address, Secrets(_joined(hidden) or None)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    at, text = 0, text.rstrip(" ;")
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None or not pair[1].strip():
            # The text at this point may be part of a password, so the message does not show it.
            raise InputError(
                written("system.dsn"), "is not a list of KEYWORD=value;…", "put a value with ; or } in braces: {a;b}"
            )
        yield pair[1].strip(), pair[2].strip()
        at = pair.end()


def _placed(name: str, value: str) -> str:
    """Makes the path of a file absolute, because the child processes have other working directories."""
    path = Path(_bare(value))
    if name.lower() not in ("database", "dbq", "filedsn") or not value or path.is_absolute():
        return value
    return _braced(str(path.absolute())) if "/" in value or is_file(str(path)) else value


def _joined(pairs: tuple[tuple[str, str], ...] | list[tuple[str, str]]) -> str:
    return ";".join(f"{name}={value}" for name, value in pairs)


def _bare(value: str) -> str:
    return value[1:-1].replace("}}", "}") if value.startswith("{") else value


def _braced(value: str) -> str:
    return "{" + value.replace("}", "}}") + "}" if re.search(r"[;{}\s]", value) else value
