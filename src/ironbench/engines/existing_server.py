"""Checks of an existing server. All engines share these checks. ironbench does not configure such a server."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from ironbench.errors import FailureError, InputError, shortened, written
from ironbench.model.secrets import Secrets
from ironbench.model.system import Layout, System


@contextmanager
def checked_answers(is_given: bool) -> Iterator[None]:
    """Replaces errors in the `with` block by FailureError. The block parses the answers of an existing server, which
    are external input. If ironbench started the server (`is_given` is false), raises the original exception."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if not is_given:
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        found = f"{type(error).__name__}: {shortened(str(error))} ({Path(place.filename).name}:{place.lineno})"
        cause = f"unexpected response: {found}"
        hint = f"check that {written('system.dsn')} is the address of a server of this kind"
        raise FailureError("the server", cause, hint) from error


class ServerAddress(Protocol):
    def text(self) -> str: ...


def validated_existing(
    system: System, parse: Callable[[str], tuple[ServerAddress, Secrets]], way: str = ""
) -> tuple[System, Secrets]:
    """Validates a system with an existing server. Returns the system with a normalised DSN, and its secrets. Raises
    InputError for options that would change the server. `parse`: function that parses a DSN."""
    refuse_configuring(system, way)
    address, secrets = parse(system.dsn or "")
    return replace(system, dsn=address.text()), secrets


def refuse_configuring(system: System, way: str = "") -> None:
    """Raises InputError if the system has a DSN and an option that would configure the server. `way`: hint on how to
    vary a setting of an existing server with this engine."""
    settings = written("system.set")
    for option, is_set in (
        (settings, system.settings),
        (f"{written('layout.data')}, {written('layout.temp')}, {written('layout.log')}", system.layout != Layout()),
        (written("system.memory"), system.memory_bytes is not None),
        (written("limits.memory_total"), system.memory_total_bytes is not None),
        (written("system.parallelism"), system.parallelism is not None),
        (written("limits.server_cpus"), system.server_cpus is not None and not system.control),
        (written("system.ideal"), bool(set(system.ideal) - {"client"})),
    ):
        if is_set:
            dsn = written("system.dsn")
            hint = f"remove {option}, or remove {dsn} so that ironbench starts its own server"
            if option == written("limits.server_cpus"):
                hint = f"{_control(system)} to pin its CPUs over ssh; or {hint}"
            if option == settings:
                hint = f"{way}change it with a `prepare` command, and undo the change with `cleanup`; or {hint}"
            raise InputError(option, f"ironbench does not configure existing servers ({dsn})", hint)


def _control(system: System) -> str:
    """Returns a hint that names the options that the user must add to control the server over ssh."""
    server = "" if system.server else f"{written('system.server', 'ssh://user@host')} and "
    return f"add {server}{written('system.control', 'ssh')}"
