"""Parses DSNs of existing servers in both formats of libpq. Uses libpq's environment variables and password file.
https://www.postgresql.org/docs/18/libpq-connect.html#LIBPQ-CONNSTRING"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ironbench.engines.postgres import dsn_parameters as words
from ironbench.engines.postgres import user_files
from ironbench.engines.url import (
    ESCAPES,
    TLS,
    certificate,
    decoded,
    harmless,
    host_and_port,
    own_name,
    port_of,
    wrong,
)
from ironbench.errors import FailureError, IronbenchError, nearest, shortened
from ironbench.model.secrets import Secrets
from ironbench.model.session import WorkConnection

_SOCKET_DIRECTORIES = ("/var/run/postgresql", "/run/postgresql", "/tmp")
SCHEMES = ("postgresql", "postgres")


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Address, user and database of a server, without the password."""

    host: str
    """Host name, IP address, or socket directory. A socket directory starts with `/`, or with `@` for an abstract
    socket."""
    port: int
    user: str
    database: str
    sslmode: str = "prefer"
    sslrootcert: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    """Run-time parameters that are sent when the connection starts."""
    more: tuple[tuple[str, int], ...] = ()
    """Further hosts and ports, tried in this order."""
    target_session_attrs: str = "any"
    """Required state of the server. Hosts in a different state are skipped."""
    hostaddr: str | None = None
    """IP address to connect to. If it is set, `host` is not resolved but only compared with the certificate."""
    sslcert: str | None = None
    sslkey: str | None = None
    sslnegotiation: str = "postgres"
    sslsni: bool = True
    channel_binding: str = "prefer"
    require_auth: str = ""
    connect_timeout_s: int | None = None
    """Time limit in seconds for connecting to one host. If None, the core's time limit of 10 s applies."""

    def connection(self, secrets: Secrets) -> dict[str, Any]:
        """Returns the `connection` section of a drive plan."""
        limit = {} if self.connect_timeout_s is None else {"connect_timeout_s": float(self.connect_timeout_s)}
        return limit | {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "database": self.database,
            "password": secrets.password,
            "sslmode": self.sslmode,
            "sslrootcert": self.sslrootcert,
            "options": list(self.options.items()),
            **{name: value for name, value in self._less_usual().items() if name != "target_session_attrs"},
        }

    @property
    def on_socket(self) -> bool:
        """Whether the server is reached through a Unix socket."""
        return self.host.startswith(("/", "@")) and self.hostaddr is None

    def _less_usual(self) -> dict[str, Any]:
        """Returns libpq parameters whose values differ from the defaults."""
        found = {
            "hostaddr": self.hostaddr,
            "sslcert": self.sslcert,
            "sslkey": self.sslkey,
            "sslnegotiation": self.sslnegotiation if self.sslnegotiation != "postgres" else None,
            "channel_binding": self.channel_binding if self.channel_binding != "prefer" else None,
            "require_auth": self.require_auth or None,
            "target_session_attrs": self.target_session_attrs if self.target_session_attrs != "any" else None,
        }
        return {name: value for name, value in found.items() if value is not None} | (
            {} if self.sslsni else {"sslsni": False}
        )

    def text(self) -> str:
        """Returns the complete DSN as a URI. The meaning of the URI does not depend on environment variables."""
        parameters = {"sslmode": self.sslmode, "sslrootcert": self.sslrootcert, **self.options, **self._less_usual()}
        if self.connect_timeout_s is not None:
            parameters["connect_timeout"] = str(self.connect_timeout_s)
        query = "&".join(
            f"{name}={quote('0' if value is False else value, safe='')}"
            for name, value in parameters.items()
            if value != "" and value is not None
        )
        hosts = ",".join(f"{_host_text(host)}:{port}" for host, port in ((self.host, self.port), *self.more))
        return f"postgresql://{quote(self.user, safe='')}@{hosts}/{quote(self.database, safe='')}?{query}"

    def places(self) -> list[PostgresAddress]:
        """Returns an address for each host."""
        alone = replace(self, more=())
        return [alone, *(replace(alone, host=host, port=port) for host, port in self.more)]


_NUMERIC = re.compile(r"[0-9A-Fa-f:.]+(?:%\w+)?")
"""Pattern of an IPv6 address, optionally with a zone (RFC 4007)."""


def _host_text(host: str) -> str:
    return f"[{host}]" if ":" in host and _NUMERIC.fullmatch(host) else quote(host, safe="")


def parse(text: str, environ: Mapping[str, str] = os.environ) -> tuple[PostgresAddress, Secrets]:
    """Parses a DSN. Missing values are taken from the DSN's service, the environment and libpq's defaults. Raises
    InputError."""
    scheme, colon, _ = text.partition("://")
    given = _from_uri(text) if colon and scheme in SCHEMES else _from_pairs(text)
    Secrets(given.get("password"))  # registers the value as a secret, so that no message shows it
    for name, value in given.items():
        _refuse_unknown(name, value)
    if named := given.get("service") or environ.get(words.VARIABLES["service"]):
        for name, value in user_files.service(named, given, environ).items():
            _refuse_unknown(name, value)
            given.setdefault(name, value)
    for name, variable in words.VARIABLES.items():
        if environ.get(variable) and name not in given:
            _refuse_unknown(name, environ[variable])
            given[name] = environ[variable]
    user = given.get("user") or own_name("add user=NAME")
    (host, port), *more = _hosts(given)
    shown, key = user_files.client_certificate(given, environ)
    address = PostgresAddress(
        host=host,
        port=port,
        user=user,
        database=given.get("dbname") or user,
        sslmode=_sslmode(given.get("sslmode") or "prefer"),
        sslrootcert=_root_certificate(given, environ),
        options={name: given[name] for name in ("application_name", "options") if given.get(name)},
        more=tuple(more),
        target_session_attrs=given.get("target_session_attrs") or "any",
        hostaddr=_numeric(given.get("hostaddr"), more),
        sslcert=shown,
        sslkey=key,
        sslnegotiation=given.get("sslnegotiation") or "postgres",
        sslsni=given.get("sslsni") != "0",
        channel_binding=given.get("channel_binding") or "prefer",
        require_auth=_methods(given.get("require_auth") or ""),
        connect_timeout_s=_connect_timeout_s(given.get("connect_timeout") or ""),
    )
    if address.sslnegotiation == "direct" and address.sslmode in ("disable", "allow", "prefer"):
        raise wrong("sslnegotiation=direct needs TLS", "write sslmode=require, or stronger")
    return address, Secrets(given.get("password") or _stored_password(address, given, environ))


def _hosts(given: Mapping[str, str]) -> list[tuple[str, int]]:
    """Returns hosts with their ports. A single port is used for all hosts (libpq, 32.1.1.3)."""
    hosts = (given.get("host") or "").split(",")
    ports = (given.get("port") or "").split(",")
    if len(ports) not in (1, len(hosts)):
        raise wrong(f"contains {len(hosts)} hosts but {len(ports)} ports", "write one port, or one for each host")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    return [(host or _default_host(), port_of(port, 5432, ESCAPES)) for host, port in zip(hosts, ports, strict=True)]


def _connect_timeout_s(text: str) -> int | None:
    """Returns the value of `connect_timeout`, but at least 2 s (libpq, 32.1.2). Returns None if the value is 0,
    negative or empty, because there is no limit then."""
    if not re.fullmatch(r"\s*(?:-?[0-9]{1,9}\s*)?", text):
        raise wrong("connect_timeout is not a whole number of seconds", "write for example connect_timeout=5")
    seconds = int(text) if text.strip() else 0
    return max(2, seconds) if seconds > 0 else None


def _numeric(hostaddr: str | None, more: Sequence[object]) -> str | None:
    if not hostaddr:
        return None
    if more or "," in hostaddr:
        raise wrong("several hosts cannot be combined with `hostaddr`", "remove `hostaddr`")
    try:
        return str(ipaddress.ip_address(hostaddr))
    except ValueError:
        raise wrong("`hostaddr` is not a numeric address", "use `host`, or write the IP address") from None


_METHODS = ("password", "md5", "gss", "sspi", "scram-sha-256", "oauth", "none")


def _methods(text: str) -> str:
    """Normalises `require_auth`. Raises InputError for an unknown method. Also raises InputError if the value contains
    both required and excluded methods."""
    methods = [word.strip() for word in text.split(",") if word.strip()]
    for word in methods:
        if word.removeprefix("!") not in _METHODS:
            raise wrong("require_auth contains an unknown method", f"known: {', '.join(_METHODS)}")
    if len({word.startswith("!") for word in methods}) > 1:
        raise wrong(
            "require_auth contains methods with and without !", "list either the allowed or the forbidden methods"
        )
    return ",".join(methods)


def reached(address: PostgresAddress, connects: Callable[[PostgresAddress], WorkConnection]) -> PostgresAddress:
    """Selects the first host that answers and matches `target_session_attrs`. Returns the address with only this host.
    As in libpq, a wrong password ends the search. Raises InputError. If no host is suitable, raises the FailureError of
    the last host."""
    places = address.places()
    wanted = address.target_session_attrs
    if len(places) == 1 and wanted == "any":
        return address
    rounds = ("standby", "any") if wanted == "prefer-standby" else (wanted,)
    last: IronbenchError = FailureError(address.text(), "no host responded")
    for attributes in rounds:
        for place in places:
            try:
                line = connects(place)
            except FailureError as error:
                last = error
                continue
            try:
                if _fits(line, attributes):
                    return replace(place, target_session_attrs="any")
            finally:
                line.close()
            last = FailureError(f"{place.host}:{place.port}", f"is not {attributes}", "change target_session_attrs")
    raise last


def _fits(line: WorkConnection, attributes: str) -> bool:
    (recovering, read_only), *_ = line.query("SELECT pg_is_in_recovery(), current_setting('transaction_read_only')")
    answers = {
        "any": True,
        "standby": recovering == "t",
        "primary": recovering != "t",
        "read-only": read_only == "on",
        "read-write": read_only != "on",
    }
    return answers[attributes]


def _refuse_unknown(name: str, value: str) -> None:
    if (known := words.TAKEN.get(name)) is not None:
        if known and value and value not in known:
            hint = f"supported: {', '.join(known)}" if len(known) > 1 else f"remove it, or write {name}={known[0]}"
            shown = f"={shortened(value, 40)}" if harmless(value) else ""
            raise wrong(f"ironbench does not support {name}{shown}", hint)
        return
    if name in words.VARIABLES:
        return
    if name in words.REFUSED:
        raise wrong(f"ironbench does not support {name}", "remove it")
    if owner := words.FOREIGN.get(name.lower()):
        raise wrong(f"{name} is a parameter of {owner}, not of PostgreSQL connection strings", "remove it")
    # An unknown word may be part of a password, so it is not quoted.
    cause = "contains an unknown parameter"
    raise wrong(cause, f"{nearest(name, sorted(words.VARIABLES))}; {ESCAPES}")


def _from_uri(text: str) -> dict[str, str]:
    rest = text.split("://", 1)[1]
    rest, _, query = rest.partition("?")
    authority, _, database = rest.partition("/")
    login, _, place = authority.rpartition("@")
    if "@" in database and ":" in authority and not login:
        raise wrong("an @ follows the first /", ESCAPES)
    user, _, password = login.partition(":")
    pairs = [host_and_port(one, 5432) for one in place.split(",")]
    hosts, ports = ",".join(host for host, _ in pairs), ",".join(port for _, port in pairs)
    parts = {"user": user, "password": password, "host": hosts, "port": ports, "dbname": database}
    given = {name: decoded(value) for name, value in parts.items() if value.strip(",")}
    for pair in filter(None, query.split("&")):
        name, equals, value = pair.partition("=")
        if not equals:
            raise wrong("a parameter after the ? has no value", ESCAPES)
        given["sslmode" if pair == "ssl=true" else decoded(name)] = "require" if pair == "ssl=true" else decoded(value)
    return given


def _from_pairs(text: str) -> dict[str, str]:
    """Parses pairs such as `host=a port='5432'`. As in psql, a single word is the name of a database."""
    if "://" in text:
        scheme = text.partition("://")[0]
        named = scheme.removeprefix("jdbc:").partition("+")
        if named[0] in SCHEMES and scheme != named[0]:
            odd = "jdbc:" if scheme.startswith("jdbc:") else f"+{named[2]}"
            raise wrong(f"only other programs use {odd}", f"remove it: {named[0]}://…")
        raise wrong("does not start with postgresql://", "write postgresql://user@host:5432/database")
    if "=" not in text:
        if any(char in text for char in ":/@"):
            cause = "is neither a URI nor a list of key=value pairs nor a database name"
            raise wrong(cause, "write postgresql://user@host:5432/database")
        return {"dbname": text.strip()} if text.strip() else {}
    given: dict[str, str] = {}
    rest = text.strip()
    while rest:
        name, equals, rest = rest.partition("=")
        if not equals:
            raise wrong("a parameter has no value", "write name=value, with spaces between the pairs")
        value, rest = _value(rest.lstrip())
        given[name.strip()] = value
        rest = rest.lstrip()
    return given


def _value(text: str) -> tuple[str, str]:
    """Parses one value, which may be quoted and contain backslash escapes. Returns the value and the rest of the
    text."""
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
        raise wrong("unclosed quote", "close the quote, or write a quote inside a value as \\'")
    return "".join(value), text[position:]


def _sslmode(text: str) -> str:
    if text not in (*TLS, "allow"):
        raise wrong("unknown sslmode", nearest(text, [*TLS, "allow"]))
    return text


def _root_certificate(given: Mapping[str, str], environ: Mapping[str, str]) -> str | None:
    """Returns the file with the trusted certificates. This is the file that the DSN names. If it names none and the
    certificate is verified, this is libpq's default file, if it exists. Returns None if the certificates that the
    machine trusts are used."""
    named = given.get("sslrootcert")
    if named == "system":
        return None
    if named:
        return certificate("sslrootcert", named)
    usual = Path(environ.get("HOME", "/"), ".postgresql/root.crt")
    return str(usual) if given.get("sslmode", "").startswith("verify") and usual.is_file() else None


def for_programs(connection: Mapping[str, Any]) -> dict[str, str]:
    """Returns environment variables for PostgreSQL's programs. With these, the programs trust the same certificates as
    ironbench's connections. By default, the programs only look for a file in the user's home directory. `system` (since
    version 16) selects the machine's trusted certificates (libpq: sslrootcert)."""
    usual = "system" if connection["sslmode"] == "verify-full" else ""
    root = connection["sslrootcert"] or usual
    given = {variable: connection.get(name) for name, variable in words.VARIABLES.items() if name.startswith("ssl")}
    given |= {"PGSSLROOTCERT": root, "PGSSLSNI": "" if connection.get("sslsni", True) else "0"}
    given |= {words.VARIABLES[name]: connection.get(name) for name in ("hostaddr", "channel_binding", "require_auth")}
    return {variable: str(value) for variable, value in given.items() if value}


def _stored_password(address: PostgresAddress, given: Mapping[str, str], environ: Mapping[str, str]) -> str | None:
    """Returns the password from the password file. Raises InputError if the file has different passwords for several
    hosts."""
    file = Path(given.get("passfile") or Path(environ.get("HOME", "/"), ".pgpass"))
    found = set()
    for place in address.places():
        host = "localhost" if place.host in _SOCKET_DIRECTORIES else place.host
        found.add(user_files.stored_password(file, host, place.port, address.database, address.user))
    if len(found) > 1:
        raise wrong("the password file has different passwords for its hosts", "use only one host")
    return found.pop()


def _default_host() -> str:
    for directory in _SOCKET_DIRECTORIES:
        if any(Path(directory).glob(".s.PGSQL.*")):
            return directory
    return "localhost"
