"""Lists what resuming an imported lab would run, connect to and read. From this list, the user can decide whether to
trust the lab's author."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.errors import InputError
from ironbench.model.lab import Lab
from ironbench.records.labs import LabDirectory


def require_trust(directory: LabDirectory, lab: Lab) -> None:
    """Raises InputError for an imported lab. The error names the actions that resuming would take on this machine."""
    if directory.imported():
        cause = "was imported; resuming it would " + "; ".join(would_do(lab) or ["run trials on this machine"])
        hint = "if you trust the author of the lab, run `ironbench lab resume " + str(directory.path) + " --trust`"
        raise InputError(f"lab {directory.path}", cause, hint)


def would_do(lab: Lab) -> list[str]:
    """Lists what the lab would do outside of ironbench, as phrases that start with a verb and without duplicates."""
    return list(dict.fromkeys(_actions(lab)))


def _actions(lab: Lab) -> Iterator[str]:
    for command in (text for pair in lab.every_command for text in pair.both):
        yield f"run the command {command!r}"
    for setup in lab.all_setups:
        system, choice = setup.system, setup.choice
        if program := system.settings.get("bin"):
            yield f"run the server programs in {program}"
        if system.dsn:
            yield f"connect to {system.dsn}"
        if system.server:
            changes = " and change that machine" if system.control else ""
            yield f"log in to {system.server}{changes}"
        if system.restart:
            yield f"restart the server with {system.restart!r}"
        if setup.cell.load.cluster:
            yield f"start workers on the Ray cluster {setup.cell.load.cluster}"
        if choice.data is not None:
            yield from (f"load {path} into a database" for path in choice.data.files)
            if choice.data.template:
                yield f"copy the database {choice.data.template}"
            if choice.data.check:
                yield f"run the query {choice.data.check!r}"
        yield from (f"run the script {path}" for path in choice.scripts)
        places = {system.layout.data, system.layout.temp, system.layout.log} - system.layout.emulated - {None}
        yield from (f"write to {place}" for place in sorted(filter(None, places)))
