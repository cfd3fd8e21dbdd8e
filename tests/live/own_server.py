"""Servers for tests of their life cycle, each in a separate directory."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

from ironbench import engines
from ironbench.engines.server_session import ServerSession
from ironbench.errors import InputError
from ironbench.host import processes, register
from ironbench.model.system import Layout, System

SOURCE = Path(__file__).parents[2] / "src"


FILES = {"postgres": "cluster", "mariadb": "files"}
"""Name of the server's directory below `--data`."""


def system(data: Path, engine: str = "postgres", **told: object) -> System:
    """Returns a system with its data in this directory; `told` are other fields of System."""
    layout = replace(told.pop("layout", Layout()), data=str(data))
    return System(engine, "test", layout=layout, **told)


def start(wanted: System, clients: int = 4) -> ServerSession:
    engine = engines.get(wanted.engine)
    checked, secrets = engine.validated(wanted, clients)
    return engine.start(checked, secrets, clients)


def refused(wanted: System, clients: int = 4) -> InputError:
    """Returns the error of a system that is refused before anything is created or started."""
    try:
        engines.get(wanted.engine).validated(wanted, clients)
    except InputError as error:
        assert register.entries() == []
        return error
    raise AssertionError(f"{wanted} is not refused")


def pid_of(session: ServerSession) -> int:
    """Returns the pid of the server process."""
    return session.processes()[0]


def sockets(session: ServerSession) -> Path:
    connection = session.target()["connection"]
    return Path(connection["socket"]).parent if connection.get("socket") else Path(connection["host"])


class Parent:
    """Another ironbench process with a server, to be killed."""

    def __init__(
        self, data: Path, engine: str = "postgres", ideal: tuple[str, ...] = (), *, frozen: bool = False
    ) -> None:
        code = f"""
            import json, sys, time
            sys.path[:0] = [{str(SOURCE)!r}, {str(Path(__file__).parent)!r}]
            from pathlib import Path
            import own_server
            from ironbench.host import register
            session = own_server.start(own_server.system(Path({str(data)!r}), {engine!r}, ideal={ideal!r}))
            if {frozen!r}:
                session.freezer().freeze()
            print(json.dumps({{"server": session.processes()[0], "sockets": str(own_server.sockets(session)),
                               "guard": register.entries()[0].guard.pid}}), flush=True)
            time.sleep(600)
        """
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
        )
        told = json.loads(self.process.stdout.readline())
        self.server = processes.identify(told["server"])
        self.guard = processes.identify(told["guard"])
        self.sockets = Path(told["sockets"])

    def __enter__(self) -> "Parent":
        return self

    def __exit__(self, *exc: object) -> None:
        """Removes everything, whatever the test's result."""
        self.kill(signal.SIGKILL)
        processes.end(self.server, signal.SIGQUIT, 10.0)
        shutil.rmtree(self.sockets, ignore_errors=True)

    def kill(self, number: int) -> None:
        self.process.send_signal(number)
        self.process.wait(30)
        self.process.stdout.close()
