"""Databases we start or are given. An engine is a folder here; its `engine.py` has an `ENGINE`."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, cast

from ironbench.engines.durability import Loss, losses
from ironbench.errors import InputError, nearest

if TYPE_CHECKING:
    from ironbench.engines.base import Engine
    from ironbench.model.secrets import Secrets
    from ironbench.model.session import Session
    from ironbench.model.system import System


@cache
def names() -> tuple[str, ...]:
    """Names of all engines, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg))


def get(name: str) -> Engine:
    """The engine of that name; InputError with the nearest name when there is none."""
    known = names()
    folder = name.partition("-")[0]
    engine = _of_folder(folder) if folder in known else None
    if engine is not None and name in (by_name := {folder: engine, **engine.variants}):
        return by_name[name]
    raise InputError(f"engine {name}", "there is no such engine", nearest(name, list(known)))


def _of_folder(folder: str) -> Engine:
    return cast("Engine", importlib.import_module(f"{__name__}.{folder}.engine").ENGINE)


def find(name: str) -> Engine | None:
    """The engine of that name; None for one that this version does not know, as a record may name it."""
    try:
        return get(name)
    except InputError:
        return None


def losses_of(system: System) -> tuple[Loss, ...]:
    """Declared settings at which a crash can lose data; () for an engine that this version does not know."""
    engine = find(system.engine)
    return losses(engine.traits.hazards, system.settings) if engine else ()


def with_variants() -> list[Engine]:
    """All engines, each with its variants behind it."""
    return [one for engine in map(get, names()) for one in (engine, *engine.variants.values())]


def texts(name: str) -> tuple[str, ...]:
    """Suffixes of the SQL texts that are right for the engine of that name, the first there is counts."""
    engine = find(name)
    return (name,) if engine is None else (name, *engine.traits.texts)


def default(needs: Sequence[str], dsn: str | None = None) -> Engine:
    """The preferred one among those that have these abilities; of a running server the one that its DSN names."""
    if dsn and (engine := of_scheme(scheme(dsn))) is not None:
        return engine
    return max((get(name) for name in able(needs)), key=lambda engine: engine.traits.preference)


_SCHEME = re.compile(r"([A-Za-z][\w+.-]*):")
"""Of a URI (RFC 3986, 3.1); a DSN of another form has none."""


def scheme(dsn: str) -> str:
    """What a DSN begins with: `name`, of `name://…` or `name:…`, or nothing."""
    return match[1] if (match := _SCHEME.match(dsn)) else ""


def of_scheme(word: str) -> Engine | None:
    """The engine whose servers have DSNs of this scheme."""
    return next((engine for engine in map(get, names()) if word in engine.traits.schemes), None)


def able(needs: Sequence[str]) -> list[str]:
    """Names of the engines that have these abilities, the preferred ones first."""
    engines = [engine for engine in map(get, names()) if not engine.missing(needs)]
    return [engine.name for engine in sorted(engines, key=lambda engine: -engine.traits.preference)]


@contextmanager
def running(system: System, secrets: Secrets, clients: int) -> Iterator[Session]:
    """The system's engine, running for as long as the block lasts. InputError, FailureError."""
    from ironbench.engines.given import understood

    session = get(system.engine).start(system, secrets, clients)
    try:
        with understood(system.dsn is not None):
            yield session
    finally:
        session.stop()
