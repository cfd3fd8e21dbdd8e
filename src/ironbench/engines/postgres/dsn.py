"""Addresses of running servers, in both forms of libpq, with its environment variables and its password file.

https://www.postgresql.org/docs/18/libpq-connect.html#LIBPQ-CONNSTRING
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ironbench.engines.url import ESCAPES, TLS, certificate, decoded, host_and_port, own_name, port_of, wrong
from ironbench.errors import InputError, nearest
from ironbench.model.secrets import Secrets

_VARIABLES = {
    "host": "PGHOST",
    "port": "PGPORT",
    "user": "PGUSER",
    "dbname": "PGDATABASE",
    "password": "PGPASSWORD",
    "passfile": "PGPASSFILE",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "application_name": "PGAPPNAME",
    "options": "PGOPTIONS",
}
"""What we use of a DSN, and the variable that gives its default."""
_WITHOUT_EFFECT = {
    "channel_binding",
    "client_encoding",
    "connect_timeout",
    "fallback_application_name",
    "gssencmode",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "tcp_user_timeout",
}
"""Words of libpq that change nothing that we measure; taken and not used."""
_REFUSED = {
    "hostaddr",
    "krbsrvname",
    "load_balance_hosts",
    "replication",
    "require_auth",
    "requirepeer",
    "service",
    "servicefile",
    "sslcert",
    "sslcrl",
    "sslcrldir",
    "sslkey",
    "sslpassword",
    "target_session_attrs",
}
"""Words of libpq that would mean something, and that we do not do."""
_SOCKET_DIRECTORIES = ("/var/run/postgresql", "/run/postgresql", "/tmp")
SCHEMES = ("postgresql", "postgres")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens and who we are there; without the password."""

    host: str
    """A name, an address, or a socket directory (starts with `/`)."""
    port: int
    user: str
    database: str
    sslmode: str = "prefer"
    sslrootcert: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    """Run-time parameters sent at start."""

    def connection(self, secrets: Secrets) -> dict[str, Any]:
        """The `connection` of a drive plan."""
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "database": self.database,
            "password": secrets.password,
            "sslmode": self.sslmode,
            "sslrootcert": self.sslrootcert,
            "options": list(self.options.items()),
        }

    def text(self) -> str:
        """The whole address as a URI; reads back as the same address whatever the environment."""
        parameters = {"sslmode": self.sslmode, "sslrootcert": self.sslrootcert, **self.options}
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items() if value)
        host = f"[{self.host}]" if ":" in self.host else quote(self.host, safe="")
        return f"postgresql://{quote(self.user, safe='')}@{host}:{self.port}/{quote(self.database, safe='')}?{query}"


def parse(text: str, environ: Mapping[str, str] = os.environ) -> tuple[Address, Secrets]:
    """Reads a DSN; what it leaves out comes from the environment and libpq's defaults. InputError."""
    scheme, colon, _ = text.partition("://")
    given = _from_uri(text) if colon and scheme in SCHEMES else _from_pairs(text)
    for name in given:
        _refuse_unknown(name)
    for name, variable in _VARIABLES.items():
        if environ.get(variable):
            given.setdefault(name, environ[variable])
    user = given.get("user") or own_name("add user=NAME")
    address = Address(
        host=given.get("host") or _default_host(),
        port=port_of(given.get("port") or "", 5432, ESCAPES),
        user=user,
        database=given.get("dbname") or user,
        sslmode=_sslmode(given.get("sslmode") or "prefer"),
        sslrootcert=_root_certificate(given, environ),
        options={name: given[name] for name in ("application_name", "options") if given.get(name)},
    )
    if "," in address.host:
        raise wrong("it names several hosts", "name the one to be measured")
    return address, Secrets(given.get("password") or _stored_password(address, given, environ))


def _refuse_unknown(name: str) -> None:
    if name in _VARIABLES or name in _WITHOUT_EFFECT:
        return
    if name in _REFUSED:
        raise wrong(f"ironbench does not do what {name} says", "leave it out")
    # What is no known word may be a piece of a password: it is not quoted.
    cause = "it holds a word that no connection string has"
    raise wrong(cause, f"{nearest(name, sorted(_VARIABLES))}; {ESCAPES}")


def _from_uri(text: str) -> dict[str, str]:
    rest = text.split("://", 1)[1]
    rest, _, query = rest.partition("?")
    if "@" in query or "@" in rest.partition("/")[2]:
        raise wrong("an @ follows the first / or ?", ESCAPES)
    authority, _, database = rest.partition("/")
    login, _, place = authority.rpartition("@")
    user, _, password = login.partition(":")
    host, port = host_and_port(place, 5432)
    parts = {"user": user, "password": password, "host": host, "port": port, "dbname": database}
    given = {name: decoded(value) for name, value in parts.items() if value}
    for pair in filter(None, query.split("&")):
        name, equals, value = pair.partition("=")
        if not equals:
            raise wrong("a parameter after the ? has no value", ESCAPES)
        given["sslmode" if pair == "ssl=true" else decoded(name)] = "require" if pair == "ssl=true" else decoded(value)
    return given


def _from_pairs(text: str) -> dict[str, str]:
    """`host=a port='5432'`; a lone word is a database name, as for psql."""
    if "://" in text:
        raise wrong("it does not begin with postgresql://", "write postgresql://user@host:5432/database")
    if "=" not in text:
        if any(char in text for char in ":/@"):
            cause = "it is neither a URI, nor key=value pairs, nor the name of a database"
            raise wrong(cause, "write postgresql://user@host:5432/database")
        return {"dbname": text.strip()} if text.strip() else {}
    given: dict[str, str] = {}
    rest = text.strip()
    while rest:
        name, equals, rest = rest.partition("=")
        if not equals:
            raise wrong("a word in it has no value", "write name=value, with spaces between the pairs")
        value, rest = _value(rest.lstrip())
        given[name.strip()] = value
        rest = rest.lstrip()
    return given


def _value(text: str) -> tuple[str, str]:
    """One value, quoted or not, with backslash escapes; and what follows it."""
    quoted = text.startswith("'")
    value: list[str] = []
    position = 1 if quoted else 0
    while position < len(text):
        char = text[position]
        if char == "\\" and position + 1 < len(text):
            position += 1
            value.append(text[position])
        elif quoted and char == "'":
            return "".join(value), text[position + 1 :]
        elif not quoted and char.isspace():
            break
        else:
            value.append(char)
        position += 1
    if quoted:
        raise wrong("a quote in it is not closed", "close it, or write a quote in a value as \\'")
    return "".join(value), text[position:]


def _sslmode(text: str) -> str:
    if text not in TLS:
        raise wrong("its sslmode is unknown", nearest(text, list(TLS)))
    return text


def _root_certificate(given: Mapping[str, str], environ: Mapping[str, str]) -> str | None:
    """The file named, or libpq's own place for it; None: the certificates that the machine trusts."""
    named = given.get("sslrootcert")
    if named == "system":
        return None
    if named:
        return certificate("sslrootcert", named)
    usual = Path(environ.get("HOME", "/"), ".postgresql/root.crt")
    return str(usual) if given.get("sslmode", "").startswith("verify") and usual.is_file() else None


def for_programs(connection: Mapping[str, Any]) -> dict[str, str]:
    """Variables of PostgreSQL's own programs, by which they trust what our connections do.

    Without a file named they look for one in the user's home alone; `system` (since version 16) is what the machine
    trusts (libpq: sslrootcert).
    """
    usual = "system" if connection["sslmode"] == "verify-full" else ""
    root = connection["sslrootcert"] or usual
    return {"PGSSLMODE": connection["sslmode"]} | ({"PGSSLROOTCERT": root} if root else {})


def _stored_password(address: Address, given: Mapping[str, str], environ: Mapping[str, str]) -> str | None:
    place = Path(given.get("passfile") or Path(environ.get("HOME", "/"), ".pgpass"))
    host = "localhost" if address.host in _SOCKET_DIRECTORIES else address.host
    return stored_password(place, host, address.port, address.database, address.user)


def _default_host() -> str:
    for directory in _SOCKET_DIRECTORIES:
        if any(Path(directory).glob(".s.PGSQL.*")):
            return directory
    return "localhost"


def stored_password(path: Path, host: str, port: int, database: str, user: str) -> str | None:
    """The password of the first line that fits, or None. InputError when others may read a line that fits."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):  # a pipe might never be written to; libpq ignores what is no plain file, too
            return None
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return None
    keys = [host, str(port), database, user]
    for line in lines:
        fields = _passfile_fields(line)
        if len(fields) == 5 and all(field in ("*", want) for field, want in zip(fields, keys, strict=False)):
            if mode & 0o077:
                raise InputError(f"password file {path}", "others may read it", f"chmod 600 {path}")
            return fields[4]
    return None


def _passfile_fields(line: str) -> list[str]:
    """Colons part, a backslash takes the next character as it is, `#` begins a remark."""
    if line.startswith("#"):
        return []
    fields: list[str] = []
    current, characters = "", iter(line)
    for char in characters:
        if char == "\\":
            current += next(characters, "")
        elif char == ":" and len(fields) < 4:
            fields.append(current)
            current = ""
        else:
            current += char
    return [*fields, current]
