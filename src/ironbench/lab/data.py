"""The data that a lab's trials start from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ironbench import engines, workloads
from ironbench.host import data_dirs
from ironbench.model.lab import Lab
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import Layout, Load, Setup, System
from ironbench.model.trial_notes import TrialNotes
from ironbench.printer import Printer
from ironbench.trial.cluster.worker_pool import WorkerPool
from ironbench.trial.load import own, restore, snapshot
from ironbench.trial.load.databases import TrialDatabases
from ironbench.trial.load.loaded import Loaded
from ironbench.trial.load.source import DataSource


@dataclass(frozen=True, slots=True)
class _DataState:
    """State of the data in a directory. Describes what a trial may have changed since the data were restored."""

    block: int
    source: DataSource
    layout: Layout
    read_only: bool
    """Whether no trial has written since the data were restored."""
    changed: bool
    """Whether a trial has permanently changed the data (`restore.lasting`) since they were restored."""
    reused: bool = False
    """Whether the current trial uses the data that the previous trial left behind."""
    identity: tuple[int, int] | None = None
    """Device and inode of the directory, which show whether a user's command has replaced the directory."""


class LabData:
    """The data of a lab. The data are loaded once for all configurations with the same data, and restored as often as
    the lab requires."""

    def __init__(self, lab: Lab, secrets: Mapping[str, Secrets], printer: Printer, pool: WorkerPool) -> None:
        """Loads the data, unless an earlier lab has loaded them. Raises InputError if there is not enough space, and
        FailureError."""
        self._method = lab.method
        self._sources: dict[str, DataSource] = {}
        self._states: dict[str, _DataState] = {}
        """State of the data after the last trial that ended normally."""
        self._current: dict[str, _DataState] = {}
        """State of the data at the start of the current trial."""
        self._databases = TrialDatabases()
        self._executed_checks = {""}
        """SQL checks of the user's data that the engine has executed without an error."""
        known: dict[tuple[str, ...], DataSource] = {}
        for setup in lab.setups:
            if setup.skipped:
                continue
            key = data_key(setup)
            if key not in known:
                copiers = pool.copiers(_most_workers(lab))
                known[key] = snapshot.source_ready(setup, secrets.get(setup.cell.name, Secrets()), printer, copiers)
            self._sources[setup.cell.name] = known[key]

    def loaded(self, setup: Setup) -> Loaded:
        """Returns the measurements of loading a configuration's data, which an earlier lab may have done."""
        return self._sources[setup.origin].loaded

    def restored(self, setup: Setup, block: int) -> TrialNotes:
        """Restores a configuration's data for the next trial, if the lab requires it. Raises InputError if there is not
        enough space, and FailureError."""
        source = self._sources[setup.origin]
        location, layout = data_location(setup), setup.system.layout
        state = self._states.pop(location, None)
        frequency = restore.restore_frequency(setup, source, self._method.restore)
        same = state is not None and (state.source, state.layout, state.identity) == (
            source,
            layout,
            _identity(location),
        )
        if state is not None and same and self._may_reuse(frequency, state, block):
            conditions = {"data": "as left by the previous trial", "restored": f"once for this {frequency}"}
            state = replace(state, reused=True)
        else:
            conditions = restore.restore_data(setup, source, self._databases)
            state = _DataState(block, source, layout, read_only=True, changed=False)
        self._current[location] = state
        return TrialNotes(conditions, restore.warnings(setup, source))

    def system(self, setup: Setup) -> System:
        """Returns the configuration's system with its restored data."""
        return self._databases.system(setup)

    def close(self) -> None:
        """Removes everything that was created only for trials. Raises FailureError."""
        self._databases.close()

    def _may_reuse(self, frequency: str, state: _DataState, block: int) -> bool:
        if frequency == "lab":
            return state.read_only
        return frequency == "block" and state.block == block and (self._method.restore == "block" or not state.changed)

    def settled(self, setup: Setup, session: Session, restored: TrialNotes) -> TrialNotes:
        """Removes dead tuples if the trial uses the previous trial's data. Returns `restored` with notes about this."""
        protect_directory(setup.system.layout)
        data = setup.choice.data
        if data is not None and data.check not in self._executed_checks:
            own.require_check(session, data)
            self._executed_checks.add(data.check)
        dataset = workloads.get(setup.choice.workload).dataset(session.engine, setup.choice.options)
        if dataset is None or not self._current[data_location(setup)].reused:
            return restored
        return restored.merge(restore.without_dead_tuples(session, dataset))

    def kept(self, setup: Setup, block: int) -> None:
        """Must be called after a trial that ended normally. If the lab allows it, the next trial may use this trial's
        data."""
        before = self._current[data_location(setup)]
        writes = workloads.get(setup.choice.workload).writes(setup.choice.options)
        self._states[data_location(setup)] = replace(
            before,
            block=block,
            read_only=before.read_only and not writes,
            changed=before.changed or restore.lasting(setup),
            identity=_identity(data_location(setup)),
        )


def _most_workers(lab: Lab) -> Load:
    """Returns the load with the most workers. Data are loaded with this number of workers, because the number does not
    change the data."""
    return max((setup.cell.load for setup in lab.measurable), key=lambda load: load.workers)


def data_location(setup: Setup) -> str:
    """Returns where the data are stored: the DSN of a database on an existing server, or a directory."""
    return _without_session_settings(setup).system.dsn or setup.system.layout.data or ""


def _without_session_settings(setup: Setup) -> Setup:
    """Returns the setup with a DSN that has no session settings. Configurations that differ only in session settings
    then have the same DSN, and share their data."""
    if setup.system.dsn is None:
        return setup
    dsn = engines.get(setup.system.engine).without_session_settings(setup.system.dsn)
    return replace(setup, system=replace(setup.system, dsn=dsn))


def _identity(location: str) -> tuple[int, int] | None:
    """Returns the device and inode numbers of a directory. Returns None if the location is not a
    directory of this machine."""
    try:
        found = Path(location).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def protect_directory(layout: Layout) -> None:
    """Protects a directory from `cleanup` while its server is stopped between trials."""
    if layout.data is not None and layout.data not in layout.emulated:
        data_dirs.use(Path(layout.data))


def data_key(setup: Setup) -> tuple[str, ...]:
    """Returns a key that identifies the initial data of a configuration. Configurations with the same key can use the
    same copy of the data. Data on a server that ironbench did not start cannot be copied.
    """
    setup = _without_session_settings(setup)
    engine = engines.get(setup.system.engine)
    data = setup.choice.data
    key = workloads.get(setup.choice.workload).content_key(engine.name, setup.choice.options)
    key = data.key if data is not None and data.imported else key
    return engine.name, engine.basis(setup.system), setup.system.dsn or "", key
