"""A directory server for the tests of one worker, which also listens on TCP with TLS."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ironbench import _core, engines, workloads
from ironbench.engines.slapd import dsn
from ironbench.engines.slapd.session import SlapdSession
from ironbench.model.system import Layout, Load, System
from ironbench.printer import Printer
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.trial.load.prepare import fill
from ironbench.workloads.base import ScriptSource
from tests.live.raw_server import free_port

CERTIFICATES = Path(__file__).parents[1] / "data" / "tls"
BASE = "dc=example,dc=com"
ENTRIES = 300


@dataclass(frozen=True, slots=True)
class DirectoryServer:
    session: SlapdSession
    port: int
    tls_port: int

    def dsn(self, who: str = "", words: str = "", scheme: str = "ldap") -> str:
        port = self.tls_port if scheme == "ldaps" else self.port
        at = f"{who}@" if who else ""
        return f"{scheme}://{at}localhost:{port}/{BASE}{'?' if words else ''}{words}"

    @property
    def root(self) -> str:
        """DSN of the server's root user."""
        secrets = self.session._secrets
        return self.dsn(f"cn=ironbench,{BASE}:{secrets.password}")


def system(place: Path, **settings: str) -> System:
    return System("slapd", "test", settings, Layout(str(place / "d")))


@contextmanager
def started(place: Path, **settings: str) -> Iterator[SlapdSession]:
    engine = engines.get("slapd")
    checked, secrets = engine.validated(system(place, **settings), 4)
    with engines.running(checked, secrets, 4) as session:
        assert isinstance(session, SlapdSession)
        yield session


@contextmanager
def serving(folder: Path, name: str) -> Iterator[DirectoryServer]:
    place = folder / name
    place.mkdir()
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    key = place / "server.key"
    shutil.copy(CERTIFICATES / "server.key", key)
    key.chmod(0o600)
    port, tls_port = free_port(), free_port()
    settings = {
        "TLSCertificateFile": str(CERTIFICATES / "server.crt"),
        "TLSCertificateKeyFile": str(key),
        "listen": f"ldap://127.0.0.1:{port}",
        "listen_tls": f"ldaps://127.0.0.1:{tls_port}",
    }
    with started(place, **settings) as session:
        load(session, ENTRIES)
        yield DirectoryServer(session, port, tls_port)


def load(session: SlapdSession, entries: int, own_server: bool = True, **options: str) -> None:
    workload = workloads.get("directory")
    dataset = workload.dataset("slapd", workload.validated({"entries": str(entries), **options}))
    assert dataset is not None
    fill(session, dataset, 1, Printer.silent(), own_server)


def searched(server: DirectoryServer, *words: str) -> str:
    """Returns what OpenLDAP's client finds."""
    command = ["ldapsearch", "-x", "-LLL", "-o", "ldif-wrap=no", "-H", f"ldap://127.0.0.1:{server.port}", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def connected(text: str) -> SlapdSession:
    return SlapdSession(*dsn.parse(text, {}))


def options(**given: str) -> dict[str, str]:
    return {"entries": str(ENTRIES), **given}


def driven(
    session: SlapdSession, script: str, transactions: int = 5, io: str = "auto", bind_back: bool = False
) -> dict[str, Any]:
    target = session.target(io=io)
    tasks = Tasks([ScriptSource("s", script, 1)], {}, bind_back=bind_back)
    load = Load(clients=2, duration_s=None, transactions=transactions, seed=5, on_error="continue")
    summary: dict[str, Any] = json.loads(_core.drive(compiled_plan(target, tasks, load, ())).summary)
    return summary
