"""The databases that ironbench starts or connects to. Each engine is a subpackage whose `engine.py` defines
`ENGINE`."""

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
    from ironbench.engines.base import CaptureTraits, Engine
    from ironbench.model.secrets import Secrets
    from ironbench.model.session import Session
    from ironbench.model.system import System


@cache
def names() -> tuple[str, ...]:
    """Returns the names of all engines, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg))


def get(name: str) -> Engine:
    """Returns the engine with this name. Raises InputError with the nearest name if there is none."""
    known = names()
    folder = name.partition("-")[0]
    engine = _of_folder(folder) if folder in known else None
    if engine is not None and name in (by_name := {folder: engine, **engine.variants}):
        return by_name[name]
    raise InputError(f"engine {name}", "there is no such engine", nearest(name, list(known)))


def _of_folder(folder: str) -> Engine:
    return cast("Engine", importlib.import_module(f"{__name__}.{folder}.engine").ENGINE)


def find(name: str) -> Engine | None:
    """Returns the engine with this name. Returns None if this version of ironbench has no such engine, for example
    because another version wrote the record that names it."""
    try:
        return get(name)
    except InputError:
        return None


def losses_of(system: System) -> tuple[Loss, ...]:
    """Returns the declared settings with which a crash can lose data. Returns () for an engine that this version does
    not know."""
    engine = find(system.engine)
    return losses(engine.traits.hazards, system.settings) if engine else ()


def with_variants() -> list[Engine]:
    """Returns all engines, each followed by its variants."""
    return [one for engine in map(get, names()) for one in (engine, *engine.variants.values())]


def texts(name: str) -> tuple[str, ...]:
    """Returns the suffixes of an engine's SQL files. The file with the first suffix for which a file exists is used."""
    engine = find(name)
    return (name,) if engine is None else (name, *engine.traits.texts)


def default(needs: Sequence[str], dsn: str | None = None) -> Engine:
    """Returns the preferred engine that has these abilities. If `dsn` has the scheme of an engine, returns that engine
    instead."""
    if dsn and (engine := of_scheme(scheme(dsn))) is not None:
        return engine
    return max((get(name) for name in able(needs)), key=lambda engine: engine.traits.preference)


_SCHEME = re.compile(r"([A-Za-z][\w+.-]*):")
"""Pattern of a URI's scheme (RFC 3986, section 3.1). DSNs in other formats have no scheme."""


def scheme(dsn: str) -> str:
    """Returns the scheme of a DSN: `name` for `name://…` or `name:…`. Returns "" if there is none."""
    return match[1] if (match := _SCHEME.match(dsn)) else ""


def of_scheme(word: str) -> Engine | None:
    """Returns the engine whose DSNs have this scheme. Returns None if there is no such engine."""
    return next((engine for engine in map(get, names()) if word in engine.traits.schemes), None)


def capturing(protocol: str) -> CaptureTraits:
    """Returns the description of captures with this protocol. Raises InputError if no engine has such captures."""
    for captures in (get(name).traits.captures for name in names()):
        if captures is not None and captures.protocol == protocol:
            return captures
    raise InputError("capture", f"contains statements of an unknown protocol: {protocol}", "update ironbench")


def able(needs: Sequence[str]) -> list[str]:
    """Returns the names of the engines that have these abilities, in order of preference."""
    engines = [engine for engine in map(get, names()) if not engine.missing(needs)]
    return [engine.name for engine in sorted(engines, key=lambda engine: -engine.traits.preference)]


@contextmanager
def running(system: System, secrets: Secrets, clients: int) -> Iterator[Session]:
    """Starts the system's engine and stops it at the end of the `with` block. Raises InputError and FailureError."""
    from ironbench.engines.existing_server import checked_answers

    session = get(system.engine).start(system, secrets, clients)
    try:
        with checked_answers(system.dsn is not None):
            yield session
    finally:
        session.stop()
