"""Parses DSNs of directories: ldap://DN:password@host:port/base?tls=… (or ldaps://, ldapi://)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ironbench.engines.url import (
    TLS,
    certificate,
    decoded,
    host_and_port,
    one_of,
    parameters,
    port_of,
    secret,
    wrong,
)
from ironbench.model.secrets import Secrets

SCHEMES = ("ldap", "ldaps", "ldapi")
_PORTS = {"ldap": 389, "ldaps": 636, "ldapi": 389}
_WORDS = ("tls", "tls_ca", "mechanism")
MECHANISMS = ("simple", "EXTERNAL", "PLAIN", "SCRAM-SHA-256")
_EXAMPLE = "write ldap://cn=admin,dc=example,dc=com@host/dc=example,dc=com"
_ESCAPES = "in DNs and passwords, write / as %2F, ? as %3F, @ as %40, : as %3A"


@dataclass(frozen=True, slots=True)
class DirectoryAddress:
    """Address, bind DN and base of a directory, without the password."""

    user: str
    base: str
    """DN below which ironbench creates its entries."""
    host: str = "localhost"
    port: int = 389
    socket: str | None = None
    """Path of the server's Unix socket, used instead of host and port."""
    ldaps: bool = False
    tls: str = ""
    """Mode of TLS. With "", TLS is not used, and a password is sent only within this machine. With `disable`, TLS is
    not used, and a password is sent to any machine in clear text."""
    tls_ca: str | None = None
    mechanism: str = "simple"

    def connection(self, secrets: Secrets) -> dict[str, Any]:
        """Returns the `connection` section of a drive plan."""
        return {
            "socket": self.socket,
            "host": self.host,
            "port": self.port,
            "ldaps": self.ldaps,
            "tls": self.tls or "disable",
            "password_in_clear": self.tls == "disable",
            "tls_ca": self.tls_ca,
            "base": self.base,
            "mechanism": self.mechanism,
            "user": self.user,
            "password": secrets.password,
        }

    def text(self) -> str:
        """Returns the complete DSN as a URI. The meaning of the URI does not depend on environment variables."""
        scheme = "ldapi" if self.socket else "ldaps" if self.ldaps else "ldap"
        host = f"[{self.host}]" if ":" in self.host else quote(self.host, safe="")
        place = quote(self.socket, safe="") if self.socket else f"{host}:{self.port}"
        parameters = {"tls": self.tls, "tls_ca": self.tls_ca, "mechanism": self.mechanism}
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items() if value)
        return f"{scheme}://{quote(self.user, safe='=,')}@{place}/{quote(self.base, safe='=,')}?{query}"


def parse(text: str, environ: Mapping[str, str] = os.environ) -> tuple[DirectoryAddress, Secrets]:
    """Parses a DSN. If the DSN has no password, LDAP_PASSWORD is used. Raises InputError."""
    scheme, _, rest = text.partition("://")
    if scheme not in SCHEMES:
        raise wrong("does not start with ldap://, ldaps:// or ldapi://", _EXAMPLE)
    rest, _, query = rest.partition("?")
    authority, _, base = rest.partition("/")
    who, _, where = authority.rpartition("@")
    user, colon, password = who.partition(":")
    given_secret = secret(password) if colon else environ.get("LDAP_PASSWORD")
    if "/" in base:
        raise wrong("the base DN contains a /", _ESCAPES)
    if "=" not in decoded(base):
        raise wrong("no base DN", _EXAMPLE)
    given = parameters(query, _WORDS)
    default = "verify-full" if scheme == "ldaps" else ""
    tls = one_of(TLS, "tls", given["tls"]) if "tls" in given else default
    if scheme == "ldaps" and tls in ("disable", "prefer"):
        raise wrong(f"ldaps:// and tls={tls} contradict each other", "remove `tls`, or write `ldap://`")
    mechanism = one_of(MECHANISMS, "mechanism", given.get("mechanism", "simple"))
    authority_file = certificate("tls_ca", given.get("tls_ca"))
    socket = decoded(where) if scheme == "ldapi" else None
    if socket is not None and not socket.startswith("/"):
        raise wrong("the socket is not an absolute path", "write ldapi://%2Frun%2Fslapd%2Fldapi/dc=example,dc=com")
    host, port = ("localhost", "") if socket else host_and_port(where, _PORTS["ldap"])
    address = DirectoryAddress(
        user=decoded(user),
        base=decoded(base),
        host=decoded(host) or "localhost",
        port=port_of(port, _PORTS[scheme], _ESCAPES),
        socket=socket,
        ldaps=scheme == "ldaps",
        tls=tls,
        tls_ca=authority_file,
        mechanism=mechanism,
    )
    return address, Secrets(password=given_secret)
