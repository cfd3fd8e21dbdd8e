"""Servers for the tests of their life: each test its own directory, made by copying one cluster."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ironbench import engines
from ironbench.engines.postgres.session import PostgresSession
from ironbench.model.system import Layout, System
from ironbench.process import processes

SOURCE = Path(__file__).parents[2] / "src"


def system(data: Path, **told: object) -> System:
    """A system with its data there; `told` are other fields of System."""
    layout = replace(told.pop("layout", Layout()), data=str(data))
    return System("postgres", "test", layout=layout, **told)


def start(wanted: System, clients: int = 4) -> PostgresSession:
    engine = engines.get("postgres")
    checked, secrets = engine.validated(wanted, clients)
    return engine.start(checked, secrets, clients)


def pid_of(session: PostgresSession) -> int:
    """The server's own process."""
    return session.processes()[0]


def sockets(session: PostgresSession) -> Path:
    return Path(session.target()["connection"]["host"])


class Parent:
    """Another ironbench, in a process of its own, with a server; to be killed."""

    def __init__(self, data: Path, ideal: tuple[str, ...] = ()) -> None:
        code = f"""
            import json, sys, time
            sys.path.insert(0, {str(SOURCE)!r})
            from ironbench import engines
            from ironbench.process import register
            from ironbench.model.system import Layout, System
            system = System("postgres", "test", layout=Layout(data={str(data)!r}), ideal={ideal!r})
            engine = engines.get("postgres")
            system, secrets = engine.validated(system, 4)
            session = engine.start(system, secrets, 4)
            print(json.dumps({{"server": session.processes()[0], "sockets": session.target()["connection"]["host"],
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
        """Whatever the test found out: nothing of it stays."""
        self.kill(signal.SIGKILL)
        processes.end(self.server, signal.SIGQUIT, 10.0)
        shutil.rmtree(self.sockets, ignore_errors=True)

    def kill(self, number: int) -> None:
        self.process.send_signal(number)
        self.process.wait(30)
        self.process.stdout.close()


def eventually(holds: Callable[[], bool], within_s: float = 30.0) -> bool:
    """Whether something becomes true in time; returns as soon as it is."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
