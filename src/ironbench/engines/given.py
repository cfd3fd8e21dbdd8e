"""A server that was running already is taken as it is, whatever its make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from ironbench.errors import InputError, written
from ironbench.model.secrets import Secrets
from ironbench.model.system import Layout, System


class Address(Protocol):
    def text(self) -> str: ...


def taken(system: System, parse: Callable[[str], tuple[Address, Secrets]], way: str = "") -> tuple[System, Secrets]:
    """A running server is taken as it is: whatever would change it is refused. `parse`: reads a DSN. InputError."""
    refuse_configuring(system, way)
    address, secrets = parse(system.dsn or "")
    return replace(system, dsn=address.text()), secrets


def refuse_configuring(system: System, way: str = "") -> None:
    """InputError for whatever would change the server of a DSN. `way`: the engine's own to vary a setting there."""
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
            hint = f"leave out {option}, or leave out {dsn}: ironbench then starts a server of its own"
            if option == written("limits.server_cpus"):
                hint = f"let ironbench hold it to them over ssh: {_control(system)}; or {hint}"
            if option == settings:
                hint = f"{way}change it by a command, `prepare`, undone by `cleanup`; or {hint}"
            raise InputError(option, f"a running server ({dsn}) is not configured by ironbench", hint)


def _control(system: System) -> str:
    """What is lacking for it."""
    server = "" if system.server else f"{written('system.server', 'ssh://user@host')} and "
    return f"add {server}{written('system.control', 'ssh')}"
