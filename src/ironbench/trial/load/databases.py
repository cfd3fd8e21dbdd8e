"""The user's own data on a running server. The data are loaded once into a database, and each trial gets a copy of this
database.

The user's template database is copied as it is. ironbench drops only databases that it created.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field

from ironbench import engines, units
from ironbench.engines.data_import import DatabaseCopies
from ironbench.errors import InputError, IronbenchError, written
from ironbench.host import space
from ironbench.model.own_data import OwnData
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import Setup, System
from ironbench.printer import Printer
from ironbench.trial.load import own
from ironbench.trial.load.loaded import Loaded
from ironbench.trial.load.source import DataSource
from ironbench.trial.load.space import SLACK
from ironbench.words import counted


def database_ready(setup: Setup, data: OwnData, secrets: Secrets, printer: Printer) -> DataSource:
    """Returns the database that trials copy, newly loaded or existing. If it raises InputError or FailureError, no new
    database remains."""
    with closing(engines.get(setup.system.engine).data_import.copies(setup.system, secrets)) as copies:
        _say_what_was_left(copies.abandoned(), printer)
        state = copies.state(data.template) if data.template else ""
        if data.template and not data.setup:
            loaded = Loaded(data_bytes=copies.size(data.template), key=data.key)
            return DataSource("database", data.key, loaded=loaded, secrets=secrets,
                              database=data.template, state=state)  # fmt: skip
        key = f"{data.key} {state}".strip()
        if (kept := copies.kept(key)) is not None:
            printer.say(f"data: {data.words}, reused from database {kept.name}")
            loaded = Loaded(data_bytes=kept.bytes, key=data.key, reused=True)
            return DataSource("database", data.key, None, kept.bytes, loaded, secrets, kept.name)
        made = copies.new(key, data.template)
        try:
            with engines.running(copies.with_database(setup.system, made.name), secrets, 1) as session:
                _require_room(session, data)
                loaded = own.fill(session, data, printer)
            copies.reconnect()  # the connection was idle during the load and may be lost
            made = copies.complete(made, key)
        except BaseException:
            with suppress(IronbenchError):
                copies.reconnect()
                copies.drop(made.name)
            raise
        return DataSource("database", data.key, None, made.bytes, loaded, secrets, made.name)


def _say_what_was_left(abandoned: Mapping[str, int], printer: Printer) -> None:
    if abandoned:
        what = (
            f"{counted(len(abandoned), 'database')} ({', '.join(abandoned)}; {units.stored(sum(abandoned.values()))})"
        )
        removes = "`ironbench cleanup` with --dsn removes what ironbench created there"
        printer.say(f"left on the server by an earlier ironbench process: {what}; {removes}")


def _require_room(session: Session, data: OwnData) -> None:
    """Raises InputError if the server's file system has not enough space for the data and a copy. This is not checked
    if the server's directory is not visible from this machine."""
    if (directory := session.directories().get("data")) is None:
        return
    needed, free = int(2 * SLACK * data.data_bytes), space.free_bytes(directory)
    if free < needed:
        cause = (
            f"the data and a copy for trials need about {units.stored(needed)}, but only {units.stored(free)} are free"
        )
        raise InputError(directory, cause, "free some space, or use a server with more space")


@dataclass(slots=True)
class TrialDatabases:
    """The copies in which trials run, at most one at a time on each server."""

    _servers: dict[str, DatabaseCopies] = field(default_factory=dict)
    """For each database address in the configurations, an object that copies and drops databases on the server."""
    _current: dict[str, str] = field(default_factory=dict)
    """For each database address: the name of the current copy."""

    def restored(self, setup: Setup, source: DataSource) -> dict[str, str]:
        """Replaces the previous copy by a new copy. Returns conditions of the trial. Raises InputError or
        FailureError."""
        place = _place(setup)
        if place not in self._servers:
            self._servers[place] = engines.get(setup.system.engine).data_import.copies(setup.system, source.secrets)
        copies, began = self._servers[place], time.perf_counter()
        self._drop(place)
        if source.state and copies.state(source.database) != source.state:
            cause = "was changed after these trials started, so they would not start from the same data"
            hint = "do not use the template during the trials; you can copy it and use the copy as the template"
            raise InputError(written("data.template", source.database), cause, hint)
        copy = copies.new(source.key, source.database)
        self._current[place] = copy.name
        took = units.span(time.perf_counter() - began)
        return {"data": f"copy of database {source.database} ({source.key})", "restored": f"{copy.how}, {took}"}

    def system(self, setup: Setup) -> System:
        """Returns the system with the copy as its database, if there is a copy."""
        if setup.system.dsn is None or (place := _place(setup)) not in self._current:
            return setup.system
        return self._servers[place].with_database(setup.system, self._current[place])

    def close(self) -> None:
        """Drops the copies. Raises FailureError if a copy is in use."""
        failure: IronbenchError | None = None
        for place, copies in self._servers.items():
            try:
                self._drop(place)
            except IronbenchError as error:
                failure = error
            finally:
                copies.close()
        self._servers.clear()
        if failure is not None:
            raise failure

    def _drop(self, place: str) -> None:
        if place in self._current:
            self._servers[place].reconnect()  # a restart may have ended it (system.control)
            self._servers[place].drop(self._current[place])
            del self._current[place]


def _place(setup: Setup) -> str:
    """Returns the database address without session settings. Configurations that differ only in session settings run
    one after another, so there is only one copy for all of them."""
    assert setup.system.dsn is not None
    return engines.get(setup.system.engine).without_session_settings(setup.system.dsn)
