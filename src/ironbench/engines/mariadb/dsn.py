"""Parses DSNs of existing servers: mysql://user:password@host:port/database?socket=…&tls=… (or mariadb://)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ironbench.engines import url
from ironbench.engines.url import ESCAPES, decoded, host_and_port, own_name, parameters, port_of, secret, wrong
from ironbench.model.secrets import Secrets

SCHEMES = ("mysql", "mariadb")
DEFAULT_PORT = 3306
_WORDS = ("socket", "tls", "tls_ca")
_INIT = "set session autocommit = 1, sql_mode = concat(@@sql_mode, ',ANSI_QUOTES,PIPES_AS_CONCAT')"
"""First statement on connections for ironbench's own statements. The statement enables the quotes and the concatenation
operator of standard SQL. Each statement outside of BEGIN and COMMIT commits by itself."""


@dataclass(frozen=True, slots=True)
class MysqlAddress:
    """Address, user and database of a server, without the password."""

    user: str
    database: str
    host: str = "localhost"
    port: int = DEFAULT_PORT
    socket: str | None = None
    """Path of the server's Unix socket, used instead of host and port."""
    tls: str = "prefer"
    tls_ca: str | None = None

    def connection(self, secrets: Secrets, *, own: bool = False) -> dict[str, Any]:
        """Returns the `connection` section of a drive plan. `own`: whether the connection is for ironbench's own
        statements."""
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
        """Returns the complete DSN as a URI. The meaning of the URI does not depend on environment variables."""
        parameters = {"socket": self.socket, "tls": self.tls, "tls_ca": self.tls_ca}
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items() if value)
        host = f"[{self.host}]" if ":" in self.host else quote(self.host, safe="")
        return f"mysql://{quote(self.user, safe='')}@{host}:{self.port}/{quote(self.database, safe='')}?{query}"


def parse(text: str, environ: Mapping[str, str] = os.environ) -> tuple[MysqlAddress, Secrets]:
    """Parses a DSN. If the DSN has no password, MYSQL_PWD is used. Raises InputError."""
    scheme, _, rest = text.partition("://")
    if scheme not in SCHEMES:
        raise wrong(f"does not start with {SCHEMES[0]}://", "write mysql://user@host:3306/database")
    rest, _, query = rest.partition("?")
    authority, _, database = rest.partition("/")
    who, at, place = authority.rpartition("@")
    user, colon, password = who.partition(":")
    given_secret = secret(password) if colon else environ.get("MYSQL_PWD")
    if "/" in database:
        raise wrong("the database name contains a /", ESCAPES)
    given = parameters(query, _WORDS)
    host, port = host_and_port(place, DEFAULT_PORT)
    if not database:
        raise wrong("no database name", "write mysql://user@host:3306/database")
    address = MysqlAddress(
        decoded(user) if at else own_name("write mysql://user@…"),
        decoded(database),
        decoded(host) or "localhost",
        port_of(port, DEFAULT_PORT, ESCAPES),
        _socket(given.get("socket")),
        url.one_of(url.TLS, "tls", given.get("tls", "prefer")),
        url.certificate("tls_ca", given.get("tls_ca")),
    )
    return address, Secrets(password=given_secret)


def _socket(path: str | None) -> str | None:
    if path is not None and not path.startswith("/"):
        raise wrong("the socket is not an absolute path", "write ?socket=/run/mysqld/mysqld.sock")
    return path
