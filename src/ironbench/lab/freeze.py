"""Records the conditions under which a lab starts, and checks them when it is resumed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from ironbench import engines, workloads
from ironbench.engines.administration import CHECKPOINT, DATABASES
from ironbench.errors import InputError
from ironbench.host import register
from ironbench.host.fingerprint import fingerprint
from ironbench.lab import declare, profiling, server_control, server_watch
from ironbench.lab.slices import slice_plan
from ironbench.model.lab import Lab
from ironbench.model.note import note
from ironbench.model.purpose import Purpose
from ironbench.model.redact import redacted, redacted_toml
from ironbench.model.secrets import Secrets
from ironbench.model.system import Setup
from ironbench.model.trial_notes import NO_NOTES, TrialNotes
from ironbench.records import Store
from ironbench.records.labs import FrozenPlan, LabDirectory
from ironbench.records.make import software
from ironbench.study.differences import flattened


def freeze(lab: Lab, secrets: Mapping[str, Secrets], store: Store) -> FrozenPlan:
    """Returns the lab together with the conditions at its start: the machine, the programs and the version of
    ironbench.

    Raises InputError if a privilege is missing, or if another server is running in a directory of the lab.
    """
    declare.refuse_in_use(slice_plan.placed(lab))
    server_watch.require(setup.system for setup in lab.measurable)
    require_rights(lab.measurable, secrets)
    server_control.require(lab.measurable, secrets)
    profiling.require_servers(lab.method.profile, lab.measurable, secrets)
    trials = tuple(replace(trial, purpose=Purpose.LAB) for trial in lab.trials)
    tags = {name: redacted(text, name) for name, text in lab.tags.items()}
    machine = store.keep_shared("machines", msgspec.to_builtins(fingerprint()))
    servers = {address: store.keep_shared("machines", facts) for address, facts in server_watch.machines(lab).items()}
    return FrozenPlan(
        replace(lab, trials=trials, source=redacted_toml(lab.source), tags=tags),
        machine,
        _engines(lab, secrets),
        software(),
        servers,
    )


def secrets_of(lab: Lab) -> dict[str, Secrets]:
    """Reads the credentials of a lab that has already started. The lab does not store them, so they are read from
    environment and password files. Raises InputError."""
    return {
        setup.cell.name: engines.get(setup.system.engine).validated(setup.system, setup.cell.load.clients)[1]
        for setup in lab.measurable
        if setup.system.dsn is not None
    }


def secrets_again(lab: Lab, path: Path, source: str) -> Mapping[str, Secrets]:
    """Reads the credentials from the lab file if it is unchanged, and otherwise from environment and password files."""
    if not any(setup.system.dsn for setup in lab.setups):
        return {}
    if path.is_file() and redacted_toml(source) == lab.source:
        return declare.lab(path)[1]
    return secrets_of(lab)


def require_rights(setups: Iterable[Setup], secrets: Mapping[str, Secrets]) -> None:
    """Raises InputError if the server at a --dsn lacks something that a configuration needs, for example a privilege of
    the database role."""
    asked: set[tuple[object, ...]] = set()
    for setup in setups:
        if setup.system.dsn is None:
            continue
        wanted, choice = rights_of(setup), setup.choice
        requirement = workloads.get(choice.workload).requirement(choice.options)
        key = (setup.system.dsn, wanted, choice.workload, tuple(choice.options.items()) if requirement else ())
        if not (wanted or requirement) or key in asked:
            continue
        asked.add(key)
        with engines.running(setup.system, secrets.get(setup.cell.name, Secrets()), 1) as session:
            engines.get(session.engine).administration.require_rights(session, wanted)
            if requirement:
                requirement.check(session)


def rights_of(setup: Setup) -> tuple[tuple[str, str], ...]:
    """Lists the privileges that a configuration needs on an existing server. Each item names the option or workload
    that needs a privilege, and the privilege."""
    if setup.system.dsn is None:
        return ()
    workload = workloads.get(setup.choice.workload)
    checkpoint = (
        (("--checkpoint (load.checkpoint in a lab)", CHECKPOINT),) if setup.cell.load.checkpoint_s is not None else ()
    )
    data = setup.choice.data
    copies = (("--dump, --template or --setup ([data] in a lab)", DATABASES),) if data and data.imported else ()
    return (*copies, *checkpoint, *((f"workload {workload.name}", right) for right in workload.rights))


def require_scripts(lab: Lab) -> None:
    """Raises InputError if a script has changed, because trials would not be comparable. `--changed` does not override
    this."""
    for setup in lab.measurable:
        if setup.choice.digests:
            workloads.get(setup.choice.workload).scripts(setup.system.engine, setup.choice)


def end_orphans(lab: Lab) -> None:
    """Stops the servers and emulated devices that a killed ironbench process left in this lab's directories, and waits
    until they have ended."""
    places = {directory for setup in slice_plan.placed(lab) for directory in slice_plan.directories(setup)}
    for entry in register.entries():
        if entry.data in places and register.orphaned(entry):
            register.end(entry)


def changes(frozen: FrozenPlan, secrets: Mapping[str, Secrets], directory: LabDirectory, source: str) -> list[str]:
    """Lists what has changed since the lab started. `source`: current text of the lab file."""
    found = [] if redacted_toml(source) == frozen.lab.source else ["the text of the lab file"]
    found += _differences("machine", directory.store.machine(frozen.machine), msgspec.to_builtins(fingerprint()))
    now_there = server_watch.machines(frozen.lab) if frozen.servers else {}
    for address, key in frozen.servers.items():
        found += _differences(f"machine of {address}", directory.store.machine(key), now_there.get(address, {}))
    found += _differences("software", dict(frozen.software), software())
    now = _engines(frozen.lab, secrets)
    for cell, known in frozen.engines.items():
        found += _differences(f"engine of {cell}", dict(known), now.get(cell, {}))
    return list(dict.fromkeys(found))


def refuse_changed(changed: list[str], directory: LabDirectory) -> None:
    """Raises InputError that names what has changed since the lab started."""
    if changed:
        raise InputError(
            f"lab {directory.path}",
            "changed since the lab started: " + "; ".join(changed),
            "undo the change, start a new lab, or add --changed to continue anyway",
        )


def changed_since_start(differences: Sequence[str]) -> TrialNotes:
    """Returns a warning that lists what has changed since the lab's start. All trials from now on get the warning."""
    if not differences:
        return NO_NOTES
    return TrialNotes(warnings=(note("lab-changed", changes=tuple(differences)),))


def traced(lab: Lab, directory: str) -> str:
    """Returns the absolute path of the directory for traces. Returns an empty text if the user requests no traces.
    Raises InputError if no trace would be written."""
    if not directory:
        return ""
    if not any(setup.system.layout.devices for setup in lab.measurable):
        cause = "no configuration of this lab uses an emulated device"
        raise InputError(f"--trace {directory}", cause, "declare devices in [devices] and [layout], or remove --trace")
    if lab.method.slice_s is not None:
        cause = 'traces need uninterrupted trials, but this lab uses method "slices"'
        raise InputError(f"--trace {directory}", cause, 'write method = "trials" in [measure], or remove --trace')
    place = Path(directory).absolute()
    if place.exists() and not place.is_dir():
        raise InputError(f"--trace {directory}", "is not a directory", "use an existing or new directory")
    return str(place)


def _engines(lab: Lab, secrets: Mapping[str, Secrets]) -> dict[str, dict[str, str]]:
    return {
        setup.cell.name: engines.get(setup.system.engine).identity(
            setup.system, secrets.get(setup.cell.name, Secrets())
        )
        for setup in lab.measurable
    }


def _differences(kind: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    old, new = flattened(kind, dict(before)), flattened(kind, dict(now))
    return [
        f"{name}: was {old.get(name, 'absent')}, is {new.get(name, 'absent')}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]
