"""Finds the processes and directories of an existing server, and checks its free connections. Does not configure the
server."""

from __future__ import annotations

import json
import posixpath
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ironbench.engines.administration import ServerLocation
from ironbench.engines.mariadb.dsn import MysqlAddress
from ironbench.engines.server_session import LocalServer, free_connections
from ironbench.errors import InputError, IronbenchError, written
from ironbench.host import processes
from ironbench.host.tree import Tree
from ironbench.model.secrets import Secrets
from ironbench.model.session import Row, Session
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.engines.mariadb.session import MariadbSession

Query = Callable[[str], list[Row]]
_OBSERVERS = 1
_VERIFIED = ["--ssl", "--ssl-verify-server-cert"]
_TLS_OPTIONS = {"disable": ["--skip-ssl"], "require": ["--ssl"], "verify-ca": _VERIFIED, "verify-full": _VERIFIED}
"""Options of the client program by the word `tls` of an address. It cannot verify a certificate without the name, so
`verify-ca` also verifies the name."""
_SUFFIXES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_PROBE_S = 5.0
"""Maximum time in seconds without a reply when `requires_tls` queries a server."""


def find(address: MysqlAddress, query: Query) -> LocalServer:
    """Finds the server's processes on this machine. The server is recognised by its data directory. Returns an empty
    result if the server is elsewhere or cannot be seen."""
    if not is_local(address):
        return LocalServer()
    try:
        known = {
            str(name): value or ""
            for name, value in query(
                "show global variables where variable_name in "
                "('datadir', 'tmpdir', 'innodb_log_group_home_dir', 'hostname')"
            )
        }
    except IronbenchError:
        return LocalServer()
    data = Path(known.get("datadir", ""))
    working = processes.working_in(data) if data.is_absolute() and data.is_dir() else []
    if not working:
        return LocalServer()
    log = data / known.get("innodb_log_group_home_dir", "")
    roles = {"data": str(data), "log": str(log), "temp": known.get("tmpdir", "")}
    there = {role: str(Path(path)) for role, path in roles.items() if path and Path(path).is_dir()}
    return LocalServer(processes.identify(working[0]), there)


def set_command(address: MysqlAddress, name: str, value: str) -> str:
    """Returns a shell command that runs the client program `mariadb` and changes a global variable, with the TLS of the
    address. The program reads the password from the environment or an option file.

    `value`: a whole number, optionally with a suffix, which option files accept but the statement SET does not."""
    where = ["--socket", address.socket] if address.socket else ["--host", address.host, "--port", str(address.port)]
    if not address.socket:
        where += ["--protocol", "TCP"]
    where += _TLS_OPTIONS.get(address.tls, [])
    if address.tls_ca:
        where += ["--ssl-ca", address.tls_ca]
    scale = _SUFFIXES.get(value[-1:], 1)
    number = int(value) if scale == 1 else int(value[:-1]) * scale
    statement = f"SET GLOBAL {name} = {number}"
    return shlex.join(["mariadb", *where, "--user", address.user, "--execute", statement])


def is_local(address: MysqlAddress) -> bool:
    """Returns whether the address is on this machine."""
    return address.socket is not None or address.host in ("localhost", "127.0.0.1", "::1")


def requires_tls(address: MysqlAddress, secrets: Secrets) -> bool:
    """Returns whether the server accepts only connections with TLS over the network. Returns False if the user in the
    address cannot log in, because then the setting is unknown."""
    from ironbench import _core

    encrypted = replace(address, tls="prefer").connection(secrets)
    try:
        connection = _core.MysqlConnection(json.dumps(encrypted).encode(), _PROBE_S)
        try:
            rows = connection.query("show global variables like 'require_secure_transport'")
        finally:
            connection.close()
    except IronbenchError:
        return False
    return [value for _, value in rows] == ["ON"]


_CONNECTED = "show global status like 'Threads_connected'"


def require_room(session: MariadbSession, clients: int) -> None:
    """Raises InputError if the server has not enough free connections for `clients`."""
    if clients == 0:
        return
    needed = clients + _OBSERVERS
    most = int(session.query("select @@global.max_connections")[0][0] or 0)
    free = free_connections(lambda: most - int(session.query(_CONNECTED)[0][1] or 0), needed)
    if free < needed:
        raise InputError(
            written("load.clients", clients),
            f"the server at {written('system.dsn')} accepts {counted(most, 'connection')} (max_connections), "
            f"of which {max(0, free)} are free",
            f"use at most {counted(max(1, free - _OBSERVERS), 'client')}, or raise max_connections",
        )


_PROGRAMS = ("mariadbd", "mysqld")
_DIRECTORIES = """
    show global variables where variable_name in ('datadir', 'tmpdir', 'innodb_log_group_home_dir')
"""


def locate(session: Session, machine: Tree) -> ServerLocation:
    """Locates the server's process on a machine. This is the process with the data directory in its command line. If
    only one server process runs on the machine, it is that process."""
    known = {str(name): value or "" for name, value in session.query(_DIRECTORIES)}
    data = known.get("datadir", "").rstrip("/")
    roles = {
        "data": data,
        "log": posixpath.normpath(posixpath.join(data, known.get("innodb_log_group_home_dir", ""))),
        "temp": known.get("tmpdir", ""),
    }
    directories = {role: machine.resolved(path) for role, path in roles.items() if path}
    pids = [
        int(name.split("/")[2])
        for name in machine.glob("/proc/[0-9]*/comm")
        if machine.read(name) in _PROGRAMS and name.split("/")[2].isdigit()
    ]
    if len(pids) > 1:
        pids = [pid for pid in pids if data in (machine.read(f"/proc/{pid}/cmdline") or "")]
    if len(pids) != 1:
        return ServerLocation(
            (), directories, "no matching mariadbd or mysqld process" if not pids else "several matching processes"
        )
    return ServerLocation(tuple(pids), directories)
