"""Changes that ironbench makes on a server's machine over SSH with the user's consent: CPU pinning, caches, restart."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType

from ironbench import engines
from ironbench.errors import InputError, IronbenchError, shortened, written
from ironbench.host import processes
from ironbench.host.fingerprint import virtualisation
from ironbench.host.remote import address, change, link, tree
from ironbench.host.remote.change import Pin, Rights
from ironbench.host.remote.tree import RemoteTree
from ironbench.model.commands import CONTROL, CommandRun
from ironbench.model.driven import Driven
from ironbench.model.record import Check
from ironbench.model.redact import redacted, redacted_sql
from ironbench.model.secrets import Secrets, hidden
from ironbench.model.session import RestartableSession, Session
from ironbench.model.system import Load, Setup, System
from ironbench.model.trial_notes import TrialNotes
from ironbench.words import clean

_ONLINE = "/sys/devices/system/cpu/online"


def validated(system: System) -> System:
    """Checks the options without contacting the machine. Raises InputError if a change is not allowed, or if no machine
    is given."""
    if system.restart and not system.control:
        cause = "needs permission to change the server's machine"
        raise InputError(written("system.restart"), cause, f"add {written('system.control', 'ssh')}")
    if system.control and system.server is None:
        cause = f"needs {written('system.server')}, which names the server's machine"
        raise InputError(written("system.control"), cause, f"add {written('system.server', 'ssh://user@host')}")
    if redacted_sql(hidden(system.restart)) != system.restart:
        cause = "contains a password, and records would show it"
        raise InputError(
            written("system.restart"), cause, "use a script on that machine that reads the password from a file"
        )
    return system


def require_use(setups: Sequence[Setup]) -> None:
    """Raises InputError if the user gave a restart command or permitted changes, but no trial uses this."""
    restarts = [setup.system.restart for setup in setups if setup.system.restart]
    if restarts and not any(setup.system.restart and setup.cell.load.cache == "cold" for setup in setups):
        cause = f"is used only with {written('load.cache', 'cold')}, but no trial uses this setting"
        raise InputError(
            written("system.restart"),
            cause,
            f"add {written('load.cache', 'cold')}, or remove {written('system.restart')}",
        )
    allowed = [setup for setup in setups if setup.system.control]
    if allowed and not any(planned(setup.system, setup.cell.load) for setup in allowed):
        ways = f"{written('limits.server_cpus')} or {written('load.cache', 'cold')}"
        raise InputError(
            written("system.control", "ssh"),
            "the lab changes nothing on the server's machine",
            f"add {ways}, or remove {written('system.control')}",
        )


def planned(system: System, load: Load) -> list[str]:
    """Lists the changes on the server's machine for each trial."""
    found = []
    if system.control and load.cache == "cold":
        found += [f"restart the server: {shortened(clean(system.restart))}", change.DROP]
    if system.control and system.server_cpus:
        found.append(f"{_pinning(system)}, and remove the pinning after the trial")
    return found


def _pinning(system: System) -> str:
    return f"pin the server to CPUs {_cpus(system)}"


def _cpus(system: System) -> str:
    return ",".join(map(str, system.server_cpus or ()))


def require(setups: Iterable[Setup], secrets: Mapping[str, Secrets]) -> None:
    """Checks that all required changes are possible on the server's machine. Changes nothing. Raises InputError and
    FailureError."""
    asked: set[object] = set()
    for setup in setups:
        system, cold = setup.system, setup.cell.load.cache == "cold"
        wanted = (system.dsn, system.server, system.server_cpus, cold and system.restart)
        if not (system.control and (system.server_cpus or cold)) or wanted in asked:
            continue
        asked.add(wanted)
        with engines.running(system, secrets.get(setup.origin, Secrets()), 1) as session:
            _of(session, system, cold)


def of_trial(session: Session, system: System, load: Load) -> ServerControl | None:
    """Prepares the changes for a trial. Returns None if there are none. Raises InputError and FailureError."""
    cold = load.cache == "cold"
    return _of(session, system, cold) if system.control and (system.server_cpus or cold) else None


def _of(session: Session, system: System, cold: bool) -> ServerControl:
    there = link.connection_to(address.parse(system.server or ""))
    machine = tree.fetched(there)
    found = ServerControl(session, system, machine)
    if system.server_cpus:
        found.pins = change.require_pin(
            there, found.server(), (machine.read(_ONLINE) or "").strip(), system.server_cpus
        )
    if cold:
        if not isinstance(session, RestartableSession):
            cause = f"{session.engine} cannot reconnect after a restart of its server"
            raise InputError(
                written("load.cache", "cold"), cause, f"use `warm` or `hot`, or remove {written('load.cache')}"
            )
        found.drops, found.restart = change.require_cold(there, system.restart)
    return found


@dataclass(slots=True)
class ServerControl:
    """Changes on the server's machine for one trial. The context manager pins the server to CPUs on entry and unpins it
    on exit."""

    session: Session
    system: System
    machine: RemoteTree
    pins: Rights | None = None
    drops: Rights | None = None
    restart: str = ""
    """Command that restarts the server."""
    _pin: Pin | None = None
    _broken: str = ""
    """How the server lost its pinning during the trial. Empty if it stayed pinned."""
    _runs: list[CommandRun] = field(default_factory=list)

    def __enter__(self) -> ServerControl:
        if self.drops is None:  # a trial with a cold cache restarts the server, so it is pinned after that
            self._hold()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with processes.interrupt_held():
            self._release()

    def drop_caches(self) -> Mapping[str, str]:
        """Restarts the server and drops the page cache of its machine. Returns what was done. Raises FailureError."""
        assert self.drops is not None and isinstance(self.session, RestartableSession)
        session, drops, there = self.session, self.drops, self._there
        restart = shortened(clean(redacted(self.restart)))
        self._do("prepare", restart, lambda: session.restarted(lambda: change.restart(there, self.restart)))
        self._do("prepare", change.DROP, lambda: change.drop_caches(there, drops))
        self._hold()
        virtual = virtualisation(self.machine) != "none"
        state = "guest-cold (the host of the virtual machine may still cache the files)" if virtual else "cold"
        return {"cache": f"{state}: the server was restarted, and the page cache of the server's machine was dropped"}

    def server(self) -> int:
        """Returns the process id of the server's first process. Raises InputError if the process is not visible."""
        place = engines.get(self.session.engine).administration.locate(self.session, self.machine)
        if not place.processes:
            cause = f"ironbench cannot see the server's processes on that machine: {place.unseen}"
            raise InputError(
                written("limits.server_cpus"),
                cause,
                (
                    f"remove {written('limits.server_cpus')}, or set {written('system.server')} to the machine of the "
                    "server's processes"
                ),
            )
        return place.processes[0]

    def noted(self, notes: TrialNotes) -> TrialNotes:
        """Returns the notes with the changes on the server's machine added."""
        conditions = {}
        if self.pins is not None:
            conditions["server CPUs"] = f"{_cpus(self.system)}, set with taskset over SSH"
        found = notes.merge(conditions)
        return replace(found, commands=(*found.commands, *self._runs))

    def judged(self, driven: Driven) -> Driven:
        """Returns the trial with a check that the server stayed pinned."""
        if self.pins is None or driven.failure:
            return driven
        check = Check(
            "server CPUs",
            not self._broken,
            f"pinned to {_cpus(self.system)} during the whole trial",
            self._broken or "pinned during the whole trial",
        )
        return replace(driven, checks=(*driven.checks, check))

    @property
    def _there(self) -> link.Link:
        assert self.machine.link is not None
        return self.machine.link

    def _hold(self) -> None:
        if self.pins is None:
            return
        pin = Pin(self._there, self.pins, self.server(), _cpus(self.system))
        self._do("prepare", _pinning(self.system), pin.begin)
        self._pin = pin

    def _release(self) -> None:
        pin, self._pin = self._pin, None
        if pin is None:
            return
        began = time.monotonic()
        self._broken = pin.end()
        self._ran(
            "cleanup", f"remove the server's CPU pinning, so that it can use CPUs {pin.before}", began, self._broken
        )

    def _do(self, when: str, what: str, work: Callable[[], None]) -> None:
        began = time.monotonic()
        try:
            work()
        except IronbenchError as error:
            self._ran(when, what, began, error.cause)
            raise
        self._ran(when, what, began, "")

    def _ran(self, when: str, what: str, began: float, cause: str) -> None:
        took_s = round(time.monotonic() - began, 3)
        self._runs.append(CommandRun(when, CONTROL, what, 1 if cause else 0, took_s, shortened(cause)))
