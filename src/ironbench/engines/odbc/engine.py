"""Any database with an ODBC driver. The driver reports which database it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from ironbench import engines
from ironbench.engines.base import Engine, Traits
from ironbench.engines.dialect import Dialect
from ironbench.engines.existing_server import validated_existing
from ironbench.engines.odbc import databases, dsn
from ironbench.engines.odbc.databases import KINDS, DatabaseKind
from ironbench.engines.odbc.process import OdbcLine
from ironbench.engines.odbc.session import OdbcSession
from ironbench.errors import InputError, written
from ironbench.model.secrets import Secrets
from ironbench.model.system import System

NAME = dsn.SCHEME
_SHARED = (
    "scripts",
    "transactions",
    "data",
    "queries",
    "parallel statements",
    "triggers",
    "whole numbers",
    "in client",
)
"""Abilities of a database that remain if it is accessed through ODBC."""


def _nobody() -> InputError:
    return InputError(written("system.engine", NAME), "requires a data source", f"add {written('system.dsn')} odbc:…")


class OdbcEngine(Engine):
    """The ODBC engine before the database of a DSN is known. `engine_for` identifies the database and returns its
    variant."""

    name = NAME
    traits = Traits(
        doc='any database with an ODBC driver; its address is `--dsn "odbc:Driver={…};Server=…"` or `--dsn odbc:NAME`',
        preference=-100,
        schemes=(dsn.SCHEME,),
        packages=("pyodbc",),
    )

    def __init__(self) -> None:
        self._answered: dict[str, str] = {}

    @cached_property
    def variants(self) -> Mapping[str, Engine]:
        variants = (OdbcVariant(kind) for kind in KINDS)
        return {engine.name: engine for engine in variants}

    def engine_for(self, dsn_: str | None) -> Engine:
        """Connects, and asks the driver which database it accesses. Returns the engine for this database."""
        if dsn_ is None:
            raise _nobody()
        if dsn_ not in self._answered:
            address, secrets = dsn.parse(dsn_)
            line = OdbcLine(address.whole(secrets))
            line.close()
            self._answered[dsn_] = line.driver_info["product"]
        kind = databases.of(self._answered[dsn_])
        return next(
            engine for engine in self.variants.values() if isinstance(engine, OdbcVariant) and engine.kind is kind
        )

    def validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        raise _nobody()

    def identity(self, system: System, secrets: Secrets) -> dict[str, str]:
        raise _nobody()

    def start(self, system: System, secrets: Secrets, clients: int) -> OdbcSession:
        raise _nobody()


class OdbcVariant(Engine):
    """A database accessed through ODBC. If ironbench has another engine for this database, that engine provides dialect
    and SQL files."""

    def __init__(self, kind: DatabaseKind) -> None:
        self.kind = kind
        self.name = f"{NAME}-{kind.title.replace(' ', '').lower()}" if kind is not databases.OTHER else f"{NAME}-other"
        native = _native(kind)
        abilities = ("scripts", "transactions", *(() if kind.dialect is None else ("data",)))
        traits = Traits(
            doc=f"{kind.title} through ODBC{'' if kind.tried else ' (not tested)'}",
            abilities=frozenset(abilities),
            preference=-100,
            # Scripts must be parsed by the database's own rules for strings and comments.
            protocols=("mysql_library" if kind.backslashes else "library",),
            dialect=kind.dialect or Dialect(),
            packages=("pyodbc",),
            texts=kind.texts,
        )
        if native is not None:
            known = native.traits
            traits = replace(
                traits,
                abilities=known.abilities & frozenset(_SHARED),
                costs=replace(known.costs, start_stop_s=1.0),
                dialect=known.dialect,
                texts=(native.name,),
                writers=known.writers,
            )
        self.traits = traits

    def engine_for(self, dsn: str | None) -> Engine:
        """Returns this engine. Raises InputError if the DSN leads to a different database, because this engine's SQL
        would be wrong for it."""
        if dsn is not None and (engine := ENGINE.engine_for(dsn)) is not self:
            raise InputError(
                written("system.engine", self.name), f"{written('system.dsn')} connects to {engine.name}", "remove it"
            )
        return self

    def validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        return validated_existing(system, dsn.parse)

    def identity(self, system: System, secrets: Secrets) -> dict[str, str]:
        session = self.start(system, secrets, 1)
        try:
            info = session.driver_info
            return {"version": session.version(), "driver": f"{info['driver']} {info['driver_version']}"}
        finally:
            session.stop()

    def start(self, system: System, secrets: Secrets, clients: int) -> OdbcSession:
        address, _ = dsn.parse(system.dsn or "")
        return OdbcSession(self.name, address, secrets)


def _native(kind: DatabaseKind) -> Engine | None:
    """Returns the engine that accesses this database without ODBC."""
    others = (engines.get(name) for name in engines.names() if name != NAME)
    return next((one for one in others if set(one.traits.products) & set(kind.products)), None)


ENGINE = OdbcEngine()
