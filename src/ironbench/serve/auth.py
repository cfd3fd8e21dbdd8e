"""Access control: checks the token, the host name of each request, and the origin of forms.

The printed address contains the token. When a user opens the address, the server stores the token in a cookie. Pages of
other sites can neither read nor send this cookie.

There is another attack (DNS rebinding): the host name of another site may resolve to this machine, and a page of that
site may then make the browser connect to this server under that name. Each request must therefore name an address or a
host name of this machine. A request that changes something must also come from one of this server's pages.
"""

from __future__ import annotations

import contextlib
import functools
import hmac
import ipaddress
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from ironbench.catalogue import typed
from ironbench.errors import InputError

LEAST_TOKEN = 16
"""Minimum length of a token that a user chooses."""
PORT = 7373
_LOCAL_NAMES = frozenset({"localhost", "localhost.localdomain"})


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """The address of the server, and the credentials that a request must contain."""

    address: str
    port: int
    token: str
    certificate: str = ""
    key: str = ""
    """`certificate` and `key` are paths of PEM files for TLS. If they are empty, the server uses plain HTTP."""

    @property
    def local(self) -> bool:
        return _is_loopback(self.address)

    @property
    def scheme(self) -> str:
        return "https" if self.certificate else "http"

    @property
    def cookie(self) -> str:
        """Name of the cookie. The name contains the port, because browsers share cookies among all ports of a host."""
        return f"ironbench-{self.port}"

    def url(self) -> str:
        """Returns the URL that a user opens, with the token."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        if not self.local and ipaddress.ip_address(self.address).is_unspecified:
            host = socket.gethostname()
        return f"{self.scheme}://{host}:{self.port}/?token={self.token}"

    def names_this_host(self, host: str) -> bool:
        """Returns whether a `Host` header names this machine. Any IP address is accepted, because DNS rebinding
        requires a host name. A host name must be a known name of this machine."""
        name = _host_name(host)
        try:
            there = ipaddress.ip_address(name)
        except ValueError:
            known = _LOCAL_NAMES if self.local else _LOCAL_NAMES | _own_names()
            return name.lower() in known
        return there.is_loopback or not self.local

    def is_same_origin(self, origin: str, host: str) -> bool:
        """Returns whether a request comes from a page of this server."""
        try:
            parts = urlsplit(origin)
        except ValueError:  # e.g. an incomplete IPv6 address
            return False
        return parts.scheme == self.scheme and parts.netloc.lower() == host.lower()

    def token_matches(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(errors="replace"), self.token.encode())


def access_policy(listen: str, token_file: str, certificate: str, key: str, environ_token: str = "") -> AccessPolicy:
    """Reads the options for access. Raises InputError if other machines can reach the address and the user has set
    neither a token nor TLS."""
    address, port = _address(listen)
    chosen = _chosen(token_file, environ_token)
    if bool(certificate) != bool(key):
        raise InputError("--tls-certificate and --tls-key", "only one of the two is set", "set both or neither")
    for option, name in (("--tls-certificate", certificate), ("--tls-key", key)):
        if name and not Path(name).is_file():
            raise InputError(f"{option} {name}", "the file does not exist", "give the path of a PEM file")
    if not _is_loopback(address) and not (chosen or certificate):
        raise InputError(
            f"--listen {listen}",
            "other machines can reach this address, so the server needs your own token or TLS",
            "set a token with --token-file, or set --tls-certificate and --tls-key",
        )
    return AccessPolicy(address, port, chosen or secrets.token_urlsafe(24), certificate, key)


def _address(listen: str) -> tuple[str, int]:
    host, colon, number = listen.rpartition(":")
    if not colon or (host.count(":") and not host.startswith("[")):
        host, number = listen.strip("[]"), str(PORT)
    host = host.strip("[]") or "127.0.0.1"
    host = "127.0.0.1" if host == "localhost" else host
    hint = "write an address and a port, e.g. 127.0.0.1:7373"
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise InputError(f"--listen {listen}", f"{host!r} is not an IP address", hint) from None
    if not (number.isascii() and number.isdigit() and int(number) < 65536):
        raise InputError(f"--listen {listen}", f"{number!r} is not a port number", hint)
    return host, int(number)


def _chosen(token_file: str, environ_token: str) -> str:
    hint = f"use at least {LEAST_TOKEN} letters and digits, e.g. from `openssl rand -hex 24`"
    text, subject = environ_token, "IRONBENCH_TOKEN"
    if token_file:
        text, subject = (
            typed.text_of(Path(token_file), f"--token-file {token_file}", hint),
            f"--token-file {token_file}",
        )
    text = text.strip()
    if not text:
        if token_file:
            raise InputError(subject, "is empty", hint)
        return ""
    if len(text) < LEAST_TOKEN or not (text.isascii() and text.replace("-", "").replace("_", "").isalnum()):
        raise InputError(subject, f"is not a token of at least {LEAST_TOKEN} letters and digits", hint)
    return text


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback


def _host_name(host: str) -> str:
    """Returns the host of a `Host` header without the port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


# The names are looked up only once. Otherwise, every request would wait for a resolver that does not answer.
@functools.cache
def _own_names() -> frozenset[str]:
    return frozenset({socket.gethostname().lower(), socket.getfqdn().lower()})


def tokens_of(cookies: str, query: str, authorization: str, cookie: str) -> Iterator[tuple[str, str]]:
    """Yields each token in a request with the place where it was found: `header`, `cookie` or `address`."""
    if authorization.startswith("Bearer "):
        yield "header", authorization.removeprefix("Bearer ").strip()
    # `http.cookies` is not used, because it stops at the first invalid cookie. Another program on this host may have
    # set an invalid cookie.
    for one in cookies.split(";"):
        name, _, value = one.strip().partition("=")
        if name == cookie:
            yield "cookie", value
    with contextlib.suppress(ValueError):  # raised for a query with too many fields
        for value in parse_qs(query, max_num_fields=100).get("token", [])[:1]:
            yield "address", value
