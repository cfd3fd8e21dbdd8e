"""slapd's configuration: directives that ironbench sets and those that the user may set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ironbench.engines.slapd.installation import OpenldapInstallation
from ironbench.errors import InputError, nearest, written
from ironbench.model.system import System

BASE = "dc=example,dc=com"
"""Suffix of a directory that ironbench starts."""
ROOT = f"cn=ironbench,{BASE}"
"""DN of ironbench's own user. The user has a different password at each start."""
SOCKET = "ldapi"
_GIB = 1 << 30
DEFAULTS = {"maxsize": str(64 * _GIB), "threads": "16", "sizelimit": "unlimited"}
"""Directives with ironbench's default values. `maxsize` reserves address space and not disk space. slapd's default is
10 MiB (slapd-mdb(5))."""
SERVER = (
    *("threads", "tool-threads", "listener-threads", "sizelimit", "timelimit", "idletimeout", "writetimeout"),
    *("conn_max_pending", "conn_max_pending_auth", "concurrency", "sockbuf_max_incoming", "sockbuf_max_incoming_auth"),
    *("security", "require", "disallow", "allow", "localSSF", "loglevel", "password-hash"),
    *("TLSCertificateFile", "TLSCertificateKeyFile", "TLSCACertificateFile", "TLSProtocolMin", "TLSCipherSuite"),
)
"""Directives of slapd.conf(5) for the whole server."""
DATABASE = (
    *("maxsize", "checkpoint", "dbnosync", "envflags", "idlexp", "maxreaders", "rtxnsize", "searchstack", "multival"),
    *("lastmod", "readonly"),
)
"""Directives of slapd-mdb(5) for the server's database."""
SHAPING = ("idlexp", "multival")
"""Directives that affect what loading writes, in addition to indexes."""
INDEXES = {"objectClass": "eq", "uid": "eq", "cn": "eq,sub", "sn": "eq,sub", "mail": "eq,sub", "employeeNumber": "eq"}
INDEX = "index:"
"""Prefix of the name of an attribute to index, such as `index:description=eq`. The value `none` omits an index."""
OURS = {
    "directory": "the layout sets the data directory",
    "suffix": "ironbench chooses the base DN",
    "rootdn": "ironbench connects as its own user",
    "rootpw": "ironbench connects as its own user",
    "pidfile": "ironbench monitors the server itself",
    "access": "everyone can read, and only ironbench's own user can write",
}
LISTEN = ("listen", "listen_tls")
"""Names of the settings with additional listen addresses, such as ldap://127.0.0.1:3890. ironbench itself uses a
private socket."""
_PEOPLE = f"ou=directory,{BASE}"
"""User names of SASL binds are mapped to entries below this DN."""
_ADDRESS = re.compile(r"ldaps?://[\w.\[\]:-]+")
_KINDS = re.compile(r"(pres|eq|sub|approx|none)(,(pres|eq|sub|approx))*")


def validate(system: System) -> None:
    """Raises InputError for a setting that cannot be used."""
    for name, value in system.settings.items():
        subject = written("system.set", f"{name}={value}")
        if name in OURS:
            raise InputError(subject, f"reserved: {OURS[name]}", "remove it")
        if name in LISTEN and not _ADDRESS.fullmatch(value):
            raise InputError(subject, "is not a listen address", "write for example listen=ldap://127.0.0.1:3890")
        if name.startswith(INDEX) and not _KINDS.fullmatch(value):
            raise InputError(
                subject,
                "is not a list of indexes",
                "write for example `index:description=eq,sub`; `index:description=none` omits the index",
            )
        if name in ("bin", *LISTEN) or name.startswith(INDEX):
            continue
        if name not in (*SERVER, *DATABASE):
            known = [*SERVER, *DATABASE, "bin", *LISTEN, f"{INDEX}cn"]
            raise InputError(subject, f"unknown slapd setting {name}", nearest(name, known))
        if "\n" in value:
            raise InputError(subject, "contains a line break", "write one directive")


def shaping(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings on which the files depend."""
    return {name: value for name, value in settings.items() if name in SHAPING or name.startswith(INDEX)}


def effective(system: System) -> dict[str, str]:
    """Returns the directives in the configuration file, without those reserved for ironbench."""
    indexes = {f"{INDEX}{name}": kinds for name, kinds in INDEXES.items()}
    return DEFAULTS | indexes | dict(system.settings)


def as_file(settings: Mapping[str, str], installation: OpenldapInstallation, files: Path, password: str) -> str:
    """Returns the contents of slapd.conf(5): global directives, then the databases."""
    schemas = [
        f"include {_quoted(installation.schemas / f'{name}.schema')}" for name in ("core", "cosine", "inetorgperson")
    ]
    modules = []
    if installation.modules is not None:
        there = [name for name in ("back_mdb", "back_monitor") if list(installation.modules.glob(f"{name}*.so*"))]
        modules = [f"modulepath {_quoted(installation.modules)}", *(f"moduleload {name}" for name in there)]
    lines = [
        *schemas,
        *modules,
        *(f"{name} {settings[name]}" for name in SERVER if name in settings),
        "sasl-secprops none",
        f'authz-regexp "uid=([^,]+),cn=[^,]+,cn=auth" "uid=$1,{_PEOPLE}"',
        "database config",
        f'rootdn "{ROOT}"',
        "database monitor",
        f'rootdn "{ROOT}"',
        "database mdb",
        f'suffix "{BASE}"',
        f'rootdn "{ROOT}"',
        f"rootpw {password}",
        f"directory {_quoted(files)}",
        # As on typical servers, a bound user may not change anything, and sees no passwords.
        "access to attrs=userPassword by anonymous auth by * none",
        "access to * by * read",
        *(f"{name} {settings[name]}" for name in DATABASE if name in settings),
    ]
    for name, kinds in settings.items():
        if name.startswith(INDEX) and kinds != "none":
            lines.append(f"index {name.removeprefix(INDEX)} {kinds}")
    return "\n".join(lines) + "\n"


def _quoted(path: Path) -> str:
    """Quotes an argument of slapd.conf(5). A backslash escapes quotes and backslashes in the argument."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
