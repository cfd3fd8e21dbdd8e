"""Converts declared configurations to setups that this machine can run, or explains why it cannot run them."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ironbench import engines, units, workloads
from ironbench.devices import arrange, capability
from ironbench.devices.arrange import DeviceRequest, requested_devices
from ironbench.engines.ideal import require as require_memory
from ironbench.errors import InputError, each, nearest, together, written
from ironbench.fields.sections import CommandsSection, Sections
from ironbench.host import data_dirs, processes, space, trust
from ironbench.lab import server_control, server_watch, size
from ironbench.model.commands import Commands
from ironbench.model.redact import redacted_sql
from ironbench.model.secrets import Secrets, hidden
from ironbench.model.system import Cell, Choice, Load, Setup, System, connections
from ironbench.plan import commands, resolve, sweep
from ironbench.study import optimum
from ironbench.trial.cluster import parts, worker_pool
from ironbench.trial.drive import caches
from ironbench.trial.drive.power import WAYS
from ironbench.trial.load import own
from ironbench.workloads import Workload
from ironbench.workloads.capture import is_capture


@dataclass(slots=True)
class Builder:
    """Builds setups from sections, for both lab files and the command line. Systems that are equal are validated only
    once."""

    seed: int
    crash: str
    """See `Plan.crash`."""
    file: str = ""
    """Name of the lab file. Empty for the command line."""
    machines_needed: bool = True
    """Whether it is an error if a cluster has too few machines for its workers. If this is false, `warnings` lists the
    missing machines."""
    warnings: list[str] = field(default_factory=list)
    secrets: dict[str, Secrets] = field(default_factory=dict)
    """Credentials of each configuration. The key is the configuration's name."""
    hints: dict[str, str] = field(default_factory=dict)
    """Hints for configurations that this machine cannot measure. The key is the configuration's name."""
    _machines: dict[str, int] = field(default_factory=dict)
    """Number of machines of each Ray cluster. The key is the cluster's address."""
    _asked: dict[str, tuple[System, Secrets] | InputError] = field(default_factory=dict)

    def setup(
        self,
        name: str,
        sections: Sections,
        levels: Mapping[str, str] = {},
        added: Sequence[tuple[str, CommandsSection]] = (),
    ) -> Setup:
        """Builds the setup of a configuration. `levels`, `added`: see `DeclaredCell`. Raises InputError if the
        declaration is invalid.

        A valid declaration may be impossible on this machine or with this engine. For a lab file, the setup is then
        returned with the reason in `skipped`. For the command line, InputError is raised.
        """
        try:
            setup, devices = self._wanted(name, sections, levels, added)
        except InputError as error:
            place = f"{self.file}, configuration {name}, " if self.file else ""
            found = [InputError(f"{place}{one.subject}", one.cause, one.hint) for one in each(error)]
            raise together(found) from None
        try:
            return self._possible(setup, devices)
        except InputError as error:
            if not self.file:
                raise
            self.hints[name] = error.hint
            return replace(setup, skipped=f"{error.subject}: {error.cause}")

    def _wanted(
        self, name: str, sections: Sections, levels: Mapping[str, str], added: Sequence[tuple[str, CommandsSection]]
    ) -> tuple[Setup, tuple[DeviceRequest, ...]]:
        """Returns the setup as declared, and the devices that the declaration requests."""
        folder = Path(self.file).absolute().parent if self.file else None
        workload, options = _chosen(sections, folder)
        named, dsn = sections.system.engine, sections.system.dsn
        engine = (engines.get(named) if named else engines.default(workload.needs, dsn)).engine_for(dsn)
        available = os.sched_getaffinity(0)
        label = sections.system.label or (workload.name if engine.can("bare machine") else engine.name)
        system = resolve.system(sections, label, folder, available)
        # Commands for every trial come first, and those of the configuration's factor values follow.
        scopes = [("trial" if self.file else "run", sections.commands), *added]
        in_order = tuple(one for of, section in scopes if (one := without_password(commands.read(section, of))))
        system = server_watch.validated(replace(system, engine=engine.name, commands=in_order))
        system = server_control.validated(system)
        devices = requested_devices(sections.devices, sections.layout, folder or Path())
        choice = resolve.choice(sections, options, folder)
        usual = (
            workload.usual_duration_s(choice.options),
            workload.usual_warmup_s,
            workload.usual_max_tries,
            workload.default_protocol(engine.name),
        )
        at_highest, search = sweep.searched(sections.load)
        load = workload.suited(resolve.load(at_highest, self.seed, *usual, folder), choice.options)
        worker_pool.require(load)
        system, load = resolve.with_ideal_parts(system, load, available)
        if choice.scripts and workload.name != "script":
            if is_capture(choice.scripts[0]):
                hint = f"write `ironbench run capture {written('workload.with', f'file={choice.scripts[0]}')}`"
                raise InputError(choice.scripts[0], "is a capture, not a script", hint)
            raise InputError(
                choice.scripts[0],
                f"workload {workload.name} runs built-in scripts and accepts no others",
                f"to run your own scripts, use `ironbench run script {' '.join(choice.scripts)}`",
            )
        choice = workload.identified(choice, engine.name)
        if (data := resolve.own_data(sections.data, folder)) is not None:
            choice = replace(choice, data=own.identified(data, system, workload))
        if not engine.missing(workload.needs):
            workload.accepts(system, load, choice)
            if load.duration_s is None and load.transactions is None and (load.rate or load.rate_share):
                cause = f"has no effect, because workload {workload.name} runs until its work is done"
                raise InputError(written("load.rate"), cause, f"remove it, or add {written('load.duration')}")
            scripts = workload.compile(engine.name, choice, engine.protocol(load.protocol))
            if choice.data is not None and choice.data.imported and system.dsn is not None:
                # These scripts run in a copy of the database. They must not affect the server's other databases.
                for script, sql in scripts.items():
                    engine.data_import.examined_script(script, sql)
            if choice.defines and not workload.scripts(engine.name, choice):
                defined = written("workload.define", next(iter(choice.defines)))
                cause = f"workload {workload.name} has no scripts that could use a variable"
                raise InputError(defined, cause, f"remove {defined}")
            _require_tables(workload, engine.name, choice)
        if search and "throughput" not in workload.scores:
            cause = f"workload {workload.name} has no throughput, but a search needs one"
            raise InputError(written(f"load.{search.of}"), cause, "use a fixed number of clients")
        if search:
            search = replace(search, expected=optimum.expected_trials(search))
        return Setup(Cell(name, load, dict(levels)), system, choice, search=search), devices

    def _possible(self, setup: Setup, devices: Sequence[DeviceRequest]) -> Setup:
        """Completes the setup with the engine's defaults and with emulated devices. Raises InputError if this machine
        or this engine cannot run the setup."""
        system, choice, load = setup.system, setup.choice, setup.cell.load
        workload, crash = workloads.get(choice.workload), self.crash
        if missing := engines.get(system.engine).missing(workload.needs):
            raise InputError(
                written("system.engine", system.engine),
                f"cannot run workload {workload.name}: the engine lacks {', '.join(missing)}",
                f"{workload.name} runs on: {', '.join(workload.engines)}",
            )
        _require_checkpoints(system, load)
        _require_transport(system, load)
        _require_latency(system, choice, load)
        self._require_workers(system, choice, load)
        _require_new_connections(system, choice, load)
        _require_files(system, choice, load)
        if system.dsn is None and engines.get(system.engine).can("data"):
            processes.this_process()
        estimate_bytes = size.data_bytes(setup)
        roles = ", ".join(written(f"layout.{role}") for role in arrange.ROLES)
        mounted = arrange.arranged(devices, estimate_bytes, roles, cuttable=bool(crash))
        system = replace(system, layout=arrange.with_devices(system.layout, mounted))
        if system.dsn is None:  # settings of an existing server are not changed
            system = replace(system, settings=workload.preset(system, choice.options) | system.settings)
        system = _with_zero_latency_devices(system, cuttable=bool(crash))
        asked, of_clients = system, connections(system, load, workload.connections(load.clients, choice.options))
        system, self.secrets[setup.cell.name] = self._validated(asked, of_clients)
        if choice.data and choice.data.imported and asked.layout.data is None and system.layout.data is not None:
            # The default directory is used for data that workloads generate, so the user's data get a separate one.
            asked = replace(asked, layout=asked.layout.at({"data": f"{system.layout.data}-own"}))
            system, self.secrets[setup.cell.name] = self._validated(asked, of_clients)
        caches.require(system, load)
        workload.fits(system, choice)
        _require_room(system, estimate_bytes)
        if "data" in system.ideal:
            require_memory("data", estimate_bytes)
        if crash:
            require_cut(crash, system, workload, choice)
        return replace(setup, system=system)

    def _require_workers(self, system: System, choice: Choice, load: Load) -> None:
        """Raises InputError if this workload cannot be divided among several workers, or if the cluster has too few
        machines."""
        if not load.workers:
            return
        engine, workload = engines.get(system.engine), workloads.get(choice.workload)
        field = written("load.workers")
        if engine.traits.in_process or not (engine.can("scripts") or engine.can("directory")):
            raise InputError(
                field, f"{engine.name} is an embedded engine and has no server for several workers", f"remove {field}"
            )
        dataset = workload.dataset(engine.name, choice.options)
        if workload.in_parts(engine.name, choice.options):
            parts.require(load)
        elif dataset is None or not dataset.large:
            cause = f"workload {workload.name} has neither scripts nor large data to divide among workers"
            raise InputError(field, cause, f"remove {field}")
        if not load.cluster:
            return
        if engine.can("data") and system.dsn is None:
            cause = "other machines cannot connect to a server that ironbench starts"
            raise InputError(written("load.cluster"), cause, f"use an existing server with {written('system.dsn')}")
        if trust.is_reading_only():
            warning = (
                f"{written('load.cluster')}: {load.cluster} was not contacted, because a dry run opens no connections"
            )
            self.warnings += [warning] if warning not in self.warnings else []
            return
        try:
            if load.cluster not in self._machines:
                self._machines[load.cluster] = worker_pool.machines(load.cluster)
            worker_pool.require_machines(load, self._machines[load.cluster])
        except InputError as error:
            if self.machines_needed:
                raise
            self._machines.setdefault(load.cluster, sys.maxsize)  # missing machines are reported only once
            warning = f"{error.subject}: {error.cause}; add the machines before you start the lab"
            self.warnings += [warning] if warning not in self.warnings else []

    def _validated(self, system: System, clients: int) -> tuple[System, Secrets]:
        """Validates a system with the engine. Raises InputError. The result or error is cached."""
        key = repr((replace(system, label="", commands=()), clients))
        if key not in self._asked:
            try:
                self._asked[key] = engines.get(system.engine).validated(system, clients)
            except InputError as error:
                self._asked[key] = error
        answer = self._asked[key]
        if isinstance(answer, InputError):
            raise answer
        found, secrets = answer
        return replace(found, label=system.label, commands=system.commands), secrets


def _chosen(sections: Sections, folder: Path | None) -> tuple[Workload, dict[str, str]]:
    """Returns the workload and its normalised options, with paths relative to `folder`. Raises InputError."""
    if not sections.workload.name:
        raise InputError("workload.name", "is missing", "see `ironbench list workloads`")
    workload = workloads.get(sections.workload.name)
    paths = {option.name: option.path for option in workload.options if option.path}
    return workload, workload.validated(resolve.options(sections, paths, folder))


def without_password(found: Commands) -> Commands:
    """Returns the commands, which appear in records and reports. Raises InputError if a command contains a password."""
    for name, text in (("prepare", found.prepare), ("cleanup", found.cleanup)):
        if redacted_sql(hidden(text)) != text:
            hint = "read the password from a file or an environment variable"
            raise InputError(written(f"commands.{name}"), "contains a password, and records would show it", hint)
    return found


def _with_zero_latency_devices(system: System, *, cuttable: bool) -> System:
    """Moves zero-latency parts of a system with limited memory from files in memory to emulated zero-latency devices.
    Files in memory would count towards the limit. Returns the system unchanged if its memory is not limited, or if this
    machine cannot emulate devices. Raises InputError."""
    # Memory is not limited if the data are a zero-latency part.
    limited = system.memory_total_bytes is not None and "data" not in system.ideal
    needed = engines.get(system.engine).ideal_bytes(system) if limited else {}
    if not needed or capability.lacking():
        return system
    return arrange.zero_latency(system, needed, cuttable=cuttable)


def _require_tables(workload: Workload, engine: str, choice: Choice) -> None:
    """Raises InputError if the workload's tables are not written in the engine's dialect."""
    dataset = workload.dataset(engine, choice.options)
    if dataset is not None and not dataset.schema:
        cause = f"workload {workload.name} has no tables in the SQL dialect of this engine"
        raise InputError(
            written("system.engine", engine), cause, f"{workload.name} runs on: {', '.join(workload.engines)}"
        )


def _require_checkpoints(system: System, load: Load) -> None:
    """Raises InputError if a checkpoint interval has no effect or is set twice."""
    engine, field = engines.get(system.engine), written("load.checkpoint")
    if load.checkpoint_s is None:
        return
    if not engine.can("checkpoints"):
        raise InputError(field, f"{engine.name} has no setting for the checkpoint interval", f"remove {field}")
    if system.dsn is not None and not engine.administration.paces_existing_server:
        cause = f"ironbench cannot trigger checkpoints on an existing {engine.name} server ({written('system.dsn')})"
        raise InputError(field, cause, f"remove {field}")
    setting = engine.administration.checkpoint_setting
    if setting in system.settings:
        raise InputError(field, f"cannot be combined with {written('system.set', setting)}", "remove one of the two")


def _require_transport(system: System, load: Load) -> None:
    """Raises InputError if the engine does not support the declared protocol. Also raises it if `load.io` is set but
    the engine is not accessed over a network. Otherwise, configurations that differ only in these fields would do the
    same.
    """
    engine, usual = engines.get(system.engine), Load()
    known = engine.traits.protocols
    if load.protocol != usual.protocol and load.protocol not in known:
        hint = f"use one of: {', '.join(known)}" if len(known) > 1 else f"remove {written('load.protocol')}"
        raise InputError(written("load.protocol", load.protocol), f"{engine.name} has no such protocol", hint)
    if load.io != usual.io and (known[0] == "" or engine.traits.in_process):
        raise InputError(
            written("load.io", load.io), f"{engine.name} is not accessed over a network", f"remove {written('load.io')}"
        )


LEAST_LATENCY_S = 0.000_05
"""Minimum round-trip time in seconds that can be added. The relay itself needs tens of microseconds to pass a message
on."""


def _require_latency(system: System, choice: Choice, load: Load) -> None:
    """Raises InputError if no relay can add latency between the clients and this server."""
    if system.latency_s is None:
        return
    engine, workload = engines.get(system.engine), workloads.get(choice.workload)
    field = written("limits.latency", units.span(system.latency_s))
    if system.latency_s < LEAST_LATENCY_S:
        cause = f"a relay cannot add less than {units.span(LEAST_LATENCY_S)} of latency per round trip"
        raise InputError(field, cause, f"use a longer time, or remove {written('limits.latency')}")
    if not engine.can("latency"):
        cause = f"{engine.name} does not use network connections that a relay could delay"
        able = ", ".join(engines.able((*workload.needs, "latency")))
        hint = f"use one of these engines: {able}" if able else f"remove {written('limits.latency')}"
        raise InputError(field, cause, hint)
    if "maintenance" in workload.needs:
        cause = (
            f"workload {workload.name} measures programs that connect to the server directly and not through the relay"
        )
        raise InputError(field, cause, f"remove {written('limits.latency')}, or use a workload with transactions")
    if "client" in system.ideal:
        cause = f"cannot be combined with {written('system.ideal', 'client')}, which removes the client's latency"
        raise InputError(field, cause, "remove one of the two")
    if load.cluster:
        cause = f"the machines of {written('load.cluster')} cannot reach the relay, which runs on this machine"
        raise InputError(field, cause, f"use {written('load.workers')} on this machine, or remove one of the two")


_OWN_FILES = 96
"""Number of files that ironbench opens in addition to the clients' connections: logs, observers, the record,
libraries."""


def _require_files(system: System, choice: Choice, load: Load) -> None:
    """Raises InputError if the hard limit on open files (getrlimit(2)) is too low. A single process contains all
    clients."""
    clients = workloads.get(choice.workload).connections(load.clients, choice.options)
    if load.cluster or workloads.get(choice.workload).drives:
        return
    per_process = -(-clients // max(1, load.workers))
    per_client = engines.get(system.engine).traits.files_per_client
    needed = per_process * per_client + _OWN_FILES
    if system.latency_s is not None:
        # the relay has two connections for each client: one to the client and one to the server
        needed = max(needed, 2 * clients + _OWN_FILES)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and needed > most:
        cause = (
            f"{clients} clients need {needed} open files in one process, but the hard limit of the process is {most}"
        )
        hint = f"raise the limit (`ulimit -Hn {needed}` as root, or limits.conf), or use fewer clients"
        raise InputError(written("load.clients", load.clients), cause, hint)


def _require_new_connections(system: System, choice: Choice, load: Load) -> None:
    """Raises InputError if the clients of this engine or workload cannot reconnect in the declared way."""
    engine, workload = engines.get(system.engine), workloads.get(choice.workload)
    if not (load.reconnect or load.reconnect_on_loss):
        return
    field = written("load.reconnect" if load.reconnect else "load.reconnect_on_loss")
    if engine.can("directory") and load.reconnect:
        raise InputError(
            field,
            f"is a number of transactions, but {engine.name} has no transactions",
            "use a number of requests instead: --with reconnect=N",
        )
    if not (engine.can("new connections") or engine.can("directory")):
        cause = f"clients of {engine.name} cannot open new connections during a trial"
        raise InputError(
            field,
            cause,
            f"engines whose clients can open new connections: {', '.join(engines.able(('new connections',)))}",
        )
    if workload.core_work(engine.name, choice.options) is not None:
        raise InputError(field, f"workload {workload.name} does not run scripts", f"remove {field}")


def _require_room(system: System, estimate_bytes: int) -> None:
    """Raises InputError if there is not enough space for the data. Directories that ironbench created are not checked,
    because they may already contain the data. The space in these directories is checked when data are loaded."""
    data = system.layout.data
    device_bytes = arrange.partition_bytes(system.layout.devices, "data")
    if device_bytes is not None:
        arrange.require_room(device_bytes, estimate_bytes)
    elif data is not None and not data_dirs.ours(Path(data)):
        space.require(data, estimate_bytes, "the workload's data")


def require_cut(how: str, system: System, workload: Workload, choice: Choice) -> None:
    """Raises InputError if this kind of power cut is unknown, impossible here, or could not lose anything."""
    subject = written("measure.crash", how)
    if how not in WAYS:
        raise InputError(subject, "unknown kind of power cut", nearest(how, list(WAYS)))
    able = [name for kind in ("scripts", "directory") for name in engines.able(("power cut", kind))]
    if system.engine not in able:
        raise InputError(subject, f"{system.engine} does not support power cuts", f"use one of: {', '.join(able)}")
    if workload.drives or not workload.writes(choice.options):
        cause = f"workload {workload.name} has no transactions that write, so a power cut could not lose data"
        raise InputError(subject, cause, "use a workload that commits, e.g. tpcb-like")
    if not workload.counts_after_cut(choice.options) and not (workload.foreign and choice.data and choice.data.check):
        check = f"add a check of the data after the power cut: {written('data.check', 'SQL')}"
        others = "use a workload that counts its commits, for example `directory` with a mix of add operations only"
        cause = f"workload {workload.name} does not count its commits, so lost commits could not be detected"
        raise InputError(subject, cause, check if workload.foreign else others)
    emulated = system.layout.emulated
    places = {"data": system.layout.data, "log": system.layout.log}
    kept = [role for role, place in places.items() if place not in emulated and (place or role == "data")]
    if kept:
        cause = f"power cuts need emulated devices, but {' and '.join(kept)} would not be on an emulated device"
        raise InputError(subject, cause, f"add an emulated device, e.g. {written(f'layout.{kept[0]}', 'hdd-7200')}")
