"""Addresses of directories: ldap://DN:password@host:port/base?tls=… (ldaps://, ldapi:// too)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from ironbench.errors import InputError, nearest, written
from ironbench.model.secrets import Secrets

SCHEMES = ("ldap", "ldaps", "ldapi")
_PORTS = {"ldap": 389, "ldaps": 636, "ldapi": 389}
_WORDS = ("tls", "tls_ca", "mechanism")
_TLS = ("disable", "prefer", "require", "verify-ca", "verify-full")
MECHANISMS = ("simple", "EXTERNAL", "PLAIN", "SCRAM-SHA-256")
_EXAMPLE = "write ldap://cn=admin,dc=example,dc=com@host/dc=example,dc=com"
_ESCAPES = "in a DN or password write / as %2F, ? as %3F, @ as %40, : as %3A"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a directory is and who we are there; without the password."""

    user: str
    base: str
    """DN below which our entries are."""
    host: str = "localhost"
    port: int = 389
    socket: str | None = None
    """Path of its Unix socket, in place of host and port."""
    ldaps: bool = False
    tls: str = "disable"
    tls_ca: str | None = None
    mechanism: str = "simple"

    def connection(self, secrets: Secrets) -> dict[str, Any]:
        """The `connection` of a drive plan."""
        return {
            "socket": self.socket,
            "host": self.host,
            "port": self.port,
            "ldaps": self.ldaps,
            "tls": self.tls,
            "tls_ca": self.tls_ca,
            "base": self.base,
            "mechanism": self.mechanism,
            "user": self.user,
            "password": secrets.password,
        }

    def text(self) -> str:
        """The whole address as a URI; reads back as the same address whatever the environment."""
        scheme = "ldapi" if self.socket else "ldaps" if self.ldaps else "ldap"
        host = f"[{self.host}]" if ":" in self.host else quote(self.host, safe="")
        place = quote(self.socket, safe="") if self.socket else f"{host}:{self.port}"
        parameters = {"tls": self.tls, "tls_ca": self.tls_ca, "mechanism": self.mechanism}
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items() if value)
        return f"{scheme}://{quote(self.user, safe='=,')}@{place}/{quote(self.base, safe='=,')}?{query}"


def parse(text: str, environ: Mapping[str, str] = os.environ) -> tuple[Address, Secrets]:
    """Reads a DSN. A password that it leaves out is that of LDAP_PASSWORD. InputError."""
    scheme, _, rest = text.partition("://")
    if scheme not in SCHEMES:
        raise _wrong("it does not begin with ldap://, ldaps:// or ldapi://", _EXAMPLE)
    rest, _, query = rest.partition("?")
    authority, _, base = rest.partition("/")
    who, _, where = authority.rpartition("@")
    user, colon, password = who.partition(":")
    if "/" in base:
        raise _wrong("its base DN has a /", _ESCAPES)
    if "=" not in _decoded(base):
        raise _wrong("it names no base DN", _EXAMPLE)
    given = _parameters(query)
    tls = given.get("tls", "verify-full" if scheme == "ldaps" else "disable")
    if tls not in _TLS:
        raise _wrong(f"its tls={tls} is unknown", nearest(tls, list(_TLS)))
    if scheme == "ldaps" and tls in ("disable", "prefer"):
        raise _wrong(f"ldaps:// and tls={tls} contradict each other", "leave tls out, or write ldap://")
    mechanism = given.get("mechanism", "simple")
    if mechanism not in MECHANISMS:
        raise _wrong(f"its mechanism={mechanism} is unknown", nearest(mechanism, list(MECHANISMS)))
    authority_file = given.get("tls_ca")
    if authority_file is not None and not Path(authority_file).is_file():
        raise _wrong("its tls_ca names no file", "name the file with its whole path")
    socket = _decoded(where) if scheme == "ldapi" else None
    if socket is not None and not socket.startswith("/"):
        raise _wrong("its socket is no whole path", "write ldapi://%2Frun%2Fslapd%2Fldapi/dc=example,dc=com")
    host, port = ("localhost", "") if socket else _host_and_port(where)
    address = Address(
        user=_decoded(user),
        base=_decoded(base),
        host=_decoded(host) or "localhost",
        port=_port(port, _PORTS[scheme]),
        socket=socket,
        ldaps=scheme == "ldaps",
        tls=tls,
        tls_ca=None if authority_file is None else str(Path(authority_file).absolute()),
        mechanism=mechanism,
    )
    return address, Secrets(password=_decoded(password) if colon else environ.get("LDAP_PASSWORD"))


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
            raise _wrong("its host is no IPv6 address in brackets", "write [::1]:389")
        return host, rest[1:]
    host, _, port = place.partition(":")
    return host, port


def _port(text: str, usual: int) -> int:
    if not text:
        return usual
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65536:
        raise _wrong("its port is not a number from 1 to 65535", _ESCAPES)
    return int(text)


def _decoded(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise _wrong("a %-escape in it is not UTF-8", "escape the bytes of UTF-8, for example %C3%A9") from None


def _wrong(cause: str, hint: str = "") -> InputError:
    return InputError(written("system.dsn"), cause, hint)
