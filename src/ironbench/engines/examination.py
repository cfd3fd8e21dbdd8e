"""Examines a database for hidden problems. A finding says what was found, what it means, how to fix it, and which SQL
shows it.

Each engine with an examination has a package of check functions, which are registered with the engine's `Examination`.
A check has one SQL statement, so that a user can repeat the check. The function receives the rows of the statement. The
function returns one finding or several, or None if there is nothing to report. The function's docstring says in one
sentence what is examined. The statements run in read-only transactions with a timeout.
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
from ironbench.model.diagnosis import CheckResult, Diagnosis, ok, severe, unseen, warning
from ironbench.model.session import Row, Session
from ironbench.model.system import System
from ironbench.units import memory
from ironbench.words import counted, in_percent

TIMEOUT_S = 10
"""Statement timeout in seconds, so that an examination cannot become a significant load."""


@dataclass(frozen=True, slots=True)
class ExaminedServer:
    """Data that a check may use besides the rows of its statement."""

    title: str
    version: str
    number: int
    """Version number in the engine's own encoding."""
    database: str
    role: str
    rights: frozenset[str] = frozenset()
    """Names of the `NeededPrivilege` entries that the role has."""
    extensions: Mapping[str, str] = field(default_factory=dict)
    """For each extension whose views can be read, the extension's schema, quoted."""
    memory_bytes: int | None = None
    """Memory of the server's machine, or None if the server is remote or its processes cannot be seen."""
    rotates: bool | None = None
    """Whether the server's data are on a rotating disk, or None if this is unknown."""


Readings = CheckResult | Iterable[CheckResult] | None
Inspection = Callable[[Sequence[Row], ExaminedServer], Readings]
Query = str | Callable[[ExaminedServer], str]
"""The statement of a check, or a function that returns the statement for a server. The statement is "" if the server's
version lacks the information."""


@dataclass(frozen=True, slots=True)
class NeededPrivilege:
    """A privilege without which a role cannot see the objects of other roles."""

    name: str
    grant: str
    """SQL statement that grants the privilege, with the placeholder `{role}`."""


@dataclass(frozen=True, slots=True)
class DatabaseProbe:
    area: str
    name: str
    about: str
    query: Query
    inspect: Inspection
    right: NeededPrivilege | None = None


class Examination:
    """The checks of one engine."""

    def __init__(
        self, package: str, areas: Sequence[str], server: Callable[[Session], ExaminedServer], wrapped: str = "{}"
    ) -> None:
        """Creates the examination. `package`: package whose modules contain the checks. `wrapped`: format that turns a
        statement into one that cannot make changes."""
        self._package, self._areas, self._server, self._wrapped = package, tuple(areas), server, wrapped
        self._probes: dict[str, DatabaseProbe] = {}

    def probe(
        self, area: str, name: str, query: Query, right: NeededPrivilege | None = None
    ) -> Callable[[Inspection], Inspection]:
        """Registers a check under a unique name. `right`: privilege without which the check's rows would be
        incomplete."""
        assert area in self._areas, area
        assert name not in self._probes, name

        def register(inspect: Inspection) -> Inspection:
            about = (inspect.__doc__ or "").strip().splitlines()[0]
            self._probes[name] = DatabaseProbe(area, name, about, query, inspect, right)
            return inspect

        return register

    def probes(self) -> tuple[DatabaseProbe, ...]:
        """Returns all checks, sorted by area, then by file."""
        for module in iter_modules(import_module(self._package).__path__):
            import_module(f"{self._package}.{module.name}")
        return tuple(sorted(self._probes.values(), key=lambda one: self._areas.index(one.area)))

    def examine(self, session: Session) -> ExaminationResult:
        """Runs all checks. Raises FailureError if the server cannot be reached. Errors in a check are reported as
        findings."""
        server = self._server(session)
        diagnoses = (diagnosis for one in self.probes() for diagnosis in self._diagnoses(one, session, server))
        return ExaminationResult(server, tuple(diagnoses))

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

    def _readings(
        self, one: DatabaseProbe, query: str, session: Session, server: ExaminedServer
    ) -> Sequence[CheckResult]:
        if not query:
            return [unseen(f"not available in {server.title} {server.version}")]
        if one.right is not None and one.right.name not in server.rights:
            return [_without(one.right, server)]
        try:
            answer = one.inspect(session.query(self._wrapped.format(query)), server)
        except IronbenchError as error:
            if error.sqlstate == DENIED:
                return [unseen(f"role {server.role} lacks the privilege: {error.cause}")]
            return [unseen(f"not visible: {error.cause}")]
        except Exception as error:  # unexpected output of a server must not end the examination
            return [unseen(f"not visible: {error}")]
        readings = [answer] if isinstance(answer, CheckResult) else list(answer or ())
        return readings or [ok("no problem found")]


@dataclass(frozen=True, slots=True)
class ExaminationResult:
    server: ExaminedServer
    diagnoses: tuple[Diagnosis, ...]

    @property
    def words(self) -> str:
        server = self.server
        where = f"on this machine ({memory(server.memory_bytes)})" if server.memory_bytes else "on another machine"
        return f"{server.title} {server.version}, {where}: database {server.database}, role {server.role}"


def _without(right: NeededPrivilege, server: ExaminedServer) -> CheckResult:
    return unseen(f"role {server.role} lacks {right.name}", right.grant.format(role=server.role))


def examine(dsn: str) -> ExaminationResult:
    """Examines the database of an existing server. Raises InputError if the database does not exist or its engine has
    no examination. Raises FailureError if the server cannot be reached."""
    word = engines.scheme(dsn)
    engine = engines.of_scheme(word)
    examination = engine.administration.examination if engine else None
    if engine is None or examination is None:
        able = [one for one in map(engines.get, engines.names()) if one.administration.examination]
        known = ", ".join(sorted(f"{scheme}://" for one in able for scheme in one.traits.schemes if scheme))
        cause = f"doctor has no checks for the engine `{engine.name}`" if engine else f"no engine supports {word}://"
        raise InputError("--dsn", cause, f"supported: {known}")
    system, secrets = engine.validated(System(engine.name, "doctor", dsn=dsn), 0)
    with engines.running(system, secrets, 0) as session:
        return examination.examine(session)


_FULL, _NEARLY = 0.95, 0.8
"""Fractions of the maximum number of connections. From `_NEARLY`, the finding is a warning. From `_FULL`, it is
severe."""


def connections_reading(used: int, most: int, remedy: str) -> CheckResult:
    """Returns a finding that compares the number of used connections with the maximum."""
    seen = f"{counted(used, 'connection')} of {most}"
    if used < _NEARLY * most:
        return ok(seen)
    reading = severe if used >= _FULL * most else warning
    meaning = "Few connections are free, so the server may reject some clients of a trial."
    return reading(f"{seen} ({in_percent(used / most)})", meaning, remedy)


def memory_bytes(session: Session) -> int | None:
    """Returns the memory of the server's machine. Returns None if the server runs on another machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if session.processes() else None
