"""Examines a database: what silently spoils it, what that means, the remedy, and the statement that shows it.

The probes are functions in a package of the engine's folder, registered by its `Examination`. Each has one statement
that anybody can repeat, gets the rows of it, and returns a reading, several, or None when all is well without a word.
Its docstring says in one sentence what it is about. Nothing is changed: an engine sends its statements in transactions
that may only read, and that end soon.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules

from ironbench import engines
from ironbench.engines.administration import DENIED
from ironbench.errors import InputError, IronbenchError
from ironbench.model.diagnosis import Diagnosis, Reading, ok, severe, unseen, warning
from ironbench.model.session import Row, Session
from ironbench.model.system import System
from ironbench.units import memory
from ironbench.words import counted, in_percent

TIMEOUT_S = 10
"""A statement that takes longer is given up: an examination must not become the load."""


@dataclass(frozen=True, slots=True)
class ExaminedServer:
    """What every probe may know besides the rows of its statement."""

    title: str
    version: str
    number: int
    """The version as a number, as the engine counts them."""
    database: str
    role: str
    rights: frozenset[str] = frozenset()
    """Names of the rights of `Needed` that the role has."""
    extensions: Mapping[str, str] = field(default_factory=dict)
    """Those whose views can be read, each with the schema that they are in, quoted."""
    memory_bytes: int | None = None
    """Of the machine; None: the server runs elsewhere, or out of sight."""
    rotates: bool | None = None
    """Whether its data lie on a rotating disk; None: not known."""


Readings = Reading | Iterable[Reading] | None
Inspection = Callable[[Sequence[Row], ExaminedServer], Readings]
Query = str | Callable[[ExaminedServer], str]
"""A statement, or what makes it for a version; "": this version has nothing to ask."""


@dataclass(frozen=True, slots=True)
class Needed:
    """What a role needs to see something of others."""

    name: str
    grant: str
    """SQL; `{role}` is filled in."""


@dataclass(frozen=True, slots=True)
class DatabaseProbe:
    area: str
    name: str
    about: str
    query: Query
    inspect: Inspection
    right: Needed | None = None


class Examination:
    """The probes of one engine."""

    def __init__(
        self, package: str, areas: Sequence[str], server: Callable[[Session], ExaminedServer], wrapped: str = "{}"
    ) -> None:
        """`package`: the modules with the probes. `wrapped`: how a statement is sent so that it changes nothing."""
        self._package, self._areas, self._server, self._wrapped = package, tuple(areas), server, wrapped
        self._probes: dict[str, DatabaseProbe] = {}

    def probe(
        self, area: str, name: str, query: Query, right: Needed | None = None
    ) -> Callable[[Inspection], Inspection]:
        """Registers a function under a name of its own. Without `right` its rows would be incomplete."""
        assert area in self._areas, area
        assert name not in self._probes, name

        def register(inspect: Inspection) -> Inspection:
            about = (inspect.__doc__ or "").strip().splitlines()[0]
            self._probes[name] = DatabaseProbe(area, name, about, query, inspect, right)
            return inspect

        return register

    def probes(self) -> tuple[DatabaseProbe, ...]:
        """Every probe, by area, in the order of their files."""
        for module in iter_modules(import_module(self._package).__path__):
            import_module(f"{self._package}.{module.name}")
        return tuple(sorted(self._probes.values(), key=lambda one: self._areas.index(one.area)))

    def examine(self, session: Session) -> Examined:
        """FailureError: the server cannot be reached. What a probe stumbles over is reported, never raised."""
        server = self._server(session)
        diagnoses = (diagnosis for one in self.probes() for diagnosis in self._diagnoses(one, session, server))
        return Examined(server, tuple(diagnoses))

    def _diagnoses(self, one: DatabaseProbe, session: Session, server: ExaminedServer) -> list[Diagnosis]:
        query = " ".join((one.query if isinstance(one.query, str) else one.query(server)).split())
        return [
            Diagnosis(
                *(one.area, one.name, one.about, reading.severity, reading.seen, reading.meaning, reading.remedy),
                reading.visible,
                query,
            )
            for reading in self._readings(one, query, session, server)
        ]

    def _readings(self, one: DatabaseProbe, query: str, session: Session, server: ExaminedServer) -> Sequence[Reading]:
        if not query:
            return [unseen(f"{server.title} {server.version} does not show it")]
        if one.right is not None and one.right.name not in server.rights:
            return [_without(one.right, server)]
        try:
            answer = one.inspect(session.query(self._wrapped.format(query)), server)
        except IronbenchError as error:
            if error.sqlstate == DENIED:
                return [unseen(f"role {server.role} may not see it: {error.cause}")]
            return [unseen(f"not visible: {error.cause}")]
        except Exception as error:  # whatever a strange server shows must not end the examination
            return [unseen(f"not visible: {error}")]
        readings = [answer] if isinstance(answer, Reading) else list(answer or ())
        return readings or [ok("nothing")]


@dataclass(frozen=True, slots=True)
class Examined:
    server: ExaminedServer
    diagnoses: tuple[Diagnosis, ...]

    @property
    def words(self) -> str:
        server = self.server
        where = f"on this machine ({memory(server.memory_bytes)})" if server.memory_bytes else "elsewhere"
        return f"{server.title} {server.version}, {where}: database {server.database}, seen by role {server.role}"


def _without(right: Needed, server: ExaminedServer) -> Reading:
    return unseen(f"role {server.role} may not see it without {right.name}", right.grant.format(role=server.role))


def examine(dsn: str) -> Examined:
    """Examines the database of a running server. InputError: no such database, or nothing examines it. FailureError."""
    word = engines.scheme(dsn)
    engine = engines.of_scheme(word)
    examination = engine.administration.examination if engine else None
    if engine is None or examination is None:
        able = [one for one in map(engines.get, engines.names()) if one.administration.examination]
        known = ", ".join(sorted(f"{scheme}://" for one in able for scheme in one.traits.schemes if scheme))
        cause = f"engine {engine.name} has no doctor" if engine else f"there is no engine for {word}://"
        raise InputError("--dsn", cause, f"databases that are examined: {known}")
    system, secrets = engine.validated(System(engine.name, "doctor", dsn=dsn), 0)
    with engines.running(system, secrets, 0) as session:
        return examination.examine(session)


_FULL, _NEARLY = 0.95, 0.8
"""Of the connections that a server allows."""


def connections_reading(used: int, most: int, remedy: str) -> Reading:
    """How many connections there are of those that there may be."""
    seen = f"{counted(used, 'connection')} of {most}"
    if used < _NEARLY * most:
        return ok(seen)
    reading = severe if used >= _FULL * most else warning
    meaning = "Few connections are left: a trial with more clients may be refused."
    return reading(f"{seen} ({in_percent(used / most)})", meaning, remedy)


def memory_bytes(session: Session) -> int | None:
    """Of the machine that the server runs on; None where that is not this one."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if session.processes() else None
