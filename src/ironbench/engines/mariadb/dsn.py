"""Addresses of running servers: mysql://user:password@host:port/database?socket=…&tls=… (mariadb:// too)."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from ironbench.errors import InputError, nearest, written
from ironbench.model.secrets import Secrets

SCHEMES = ("mysql", "mariadb")
DEFAULT_PORT = 3306
_WORDS = ("socket", "tls", "tls_ca")
_TLS = ("disable", "prefer", "require", "verify-ca", "verify-full")
_ESCAPES = "in a user name or password write / as %2F, ? as %3F, @ as %40, : as %3A"
_INIT = "set session sql_mode = concat(@@sql_mode, ',ANSI_QUOTES,PIPES_AS_CONCAT')"
"""For statements of ironbench's own, which quote names and join texts as standard SQL does."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens and who we are there; without the password."""

    user: str
    database: str
    host: str = "localhost"
    port: int = DEFAULT_PORT
    socket: str | None = None
    """Path of its Unix socket, in place of host and port."""
    tls: str = "prefer"
    tls_ca: str | None = None

    def connection(self, secrets: Secrets, *, own: bool = False) -> dict[str, Any]:
        """The `connection` of a drive plan; `own`: for statements that are ironbench's."""
        return {
            "socket": self.socket,
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": secrets.password,
            "database": self.database,
            "tls": self.tls,
            "tls_ca": self.tls_ca,
            "init": [_INIT] if own else [],
        }

    def text(self) -> str:
        """The whole address as a URI; reads back as the same address whatever the environment."""
        parameters = {"socket": self.socket, "tls": self.tls, "tls_ca": self.tls_ca}
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items() if value)
        host = f"[{self.host}]" if ":" in self.host else quote(self.host, safe="")
        return f"mysql://{quote(self.user, safe='')}@{host}:{self.port}/{quote(self.database, safe='')}?{query}"


def parse(text: str, environ: Mapping[str, str] = os.environ) -> tuple[Address, Secrets]:
    """Reads a DSN. A password that it leaves out is that of MYSQL_PWD. InputError."""
    scheme, _, rest = text.partition("://")
    if scheme not in SCHEMES:
        raise _wrong(f"it does not begin with {SCHEMES[0]}://", "write mysql://user@host:3306/database")
    rest, _, query = rest.partition("?")
    authority, _, database = rest.partition("/")
    who, at, place = authority.rpartition("@")
    user, colon, password = who.partition(":")
    if "/" in database:
        raise _wrong("its database has a /", _ESCAPES)
    given = _parameters(query)
    host, port = _host_and_port(place)
    if not database:
        raise _wrong("it names no database", "write mysql://user@host:3306/database")
    secret = _decoded(password) if colon else environ.get("MYSQL_PWD")
    address = Address(
        _decoded(user) if at else _own_name(),
        _decoded(database),
        _decoded(host) or "localhost",
        _port(port),
        _socket(given.get("socket")),
        _tls(given.get("tls", "prefer")),
        _certificate(given.get("tls_ca")),
    )
    return address, Secrets(password=secret)


def _parameters(query: str) -> dict[str, str]:
    given: dict[str, str] = {}
    for pair in filter(None, query.split("&")):
        name, equals, value = pair.partition("=")
        if not equals:
            raise _wrong(f"its parameter {name} has no value", "write ?name=value")
        if name not in _WORDS:
            raise _wrong(f"its parameter {name} is unknown", nearest(name, list(_WORDS)))
        given[name] = _decoded(value)
    return given


def _host_and_port(place: str) -> tuple[str, str]:
    if place.startswith("["):
        host, bracket, rest = place[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise _wrong("its host is no IPv6 address in brackets", f"write [::1]:{DEFAULT_PORT}")
        return host, rest[1:]
    if "," in place:
        raise _wrong("it names several hosts", "name the one to be measured")
    host, _, port = place.partition(":")
    return host, port


def _port(text: str) -> int:
    if not text:
        return DEFAULT_PORT
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65536:
        raise _wrong("its port is not a number from 1 to 65535", _ESCAPES)
    return int(text)


def _socket(path: str | None) -> str | None:
    if path is not None and not path.startswith("/"):
        raise _wrong("its socket is no whole path", "write ?socket=/run/mysqld/mysqld.sock")
    return path


def _tls(word: str) -> str:
    if word not in _TLS:
        raise _wrong(f"its tls={word} is unknown", nearest(word, list(_TLS)))
    return word


def _certificate(path: str | None) -> str | None:
    if path is not None and not Path(path).is_file():
        raise _wrong("its tls_ca names no file", "name the file with its whole path")
    return None if path is None else str(Path(path).absolute())


def _decoded(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise _wrong("a %-escape in it is not UTF-8", "escape the bytes of UTF-8, for example %C3%A9") from None


def _own_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise _wrong("it names no user, and this process's user has no name", "write mysql://user@…") from None


def _wrong(cause: str, hint: str = "") -> InputError:
    return InputError(written("system.dsn"), cause, hint)
