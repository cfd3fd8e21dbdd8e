"""The data that the trials of a lab start from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ironbench import engines, workloads
from ironbench.host import place
from ironbench.model.lab import Lab
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import Layout, Load, Setup, System
from ironbench.model.trial_notes import TrialNotes
from ironbench.printer import Printer
from ironbench.trial.cluster.crew import Crew
from ironbench.trial.load import own, restore, snapshot
from ironbench.trial.load.databases import TrialDatabases
from ironbench.trial.load.loaded import Loaded
from ironbench.trial.load.source import DataSource


@dataclass(frozen=True, slots=True)
class _Left:
    """The data in a directory, after a trial that ended in good order."""

    block: int
    source: DataSource
    layout: Layout
    read_only: bool
    """Nothing was written since they were restored."""
    lasting: bool
    """A trial since then changed them for good."""
    reused: bool = False
    """The trial that runs now started from what the one before it left."""
    identity: tuple[int, int] | None = None
    """Device and inode of the directory: a command of the user may have put another one in its place."""


class Data:
    """Loaded once for all cells that start from the same, and brought back as often as the lab wants it."""

    def __init__(self, lab: Lab, secrets: Mapping[str, Secrets], printer: Printer, crew: Crew) -> None:
        """Loads what no earlier lab has loaded. InputError: no room. FailureError."""
        self._method = lab.method
        self._sources: dict[str, DataSource] = {}
        self._left: dict[str, _Left] = {}
        self._begun: dict[str, _Left] = {}
        """What the trial that runs now found there."""
        self._databases = TrialDatabases()
        self._understood = {""}
        """Checks that the engine can answer."""
        known: dict[tuple[str, ...], DataSource] = {}
        for setup in lab.setups:
            if setup.skipped:
                continue
            key = content_of(setup)
            if key not in known:
                copiers = crew.copiers(_most_workers(lab))
                known[key] = snapshot.source_ready(setup, secrets.get(setup.cell.name, Secrets()), printer, copiers)
            self._sources[setup.cell.name] = known[key]

    def loaded(self, setup: Setup) -> Loaded:
        """What loading the data of a cell took, whenever that was."""
        return self._sources[setup.origin].loaded

    def restored(self, setup: Setup, block: int) -> TrialNotes:
        """The data of a cell as the lab wants them at the start of a trial. InputError: no room. FailureError."""
        source = self._sources[setup.origin]
        place, layout = place_of(setup), setup.system.layout
        left = self._left.pop(place, None)
        often = restore.often(setup, source, self._method.restore)
        same = left is not None and (left.source, left.layout, left.identity) == (source, layout, _identity(place))
        if left is not None and same and self._enough(often, left, block):
            conditions = {"data": "as the trial before left them", "restored": f"once for this {often}"}
            left = replace(left, reused=True)
        else:
            conditions = restore.brought_back(setup, source, self._databases)
            left = _Left(block, source, layout, read_only=True, lasting=False)
        self._begun[place] = left
        return TrialNotes(conditions, restore.warnings(setup, source))

    def system(self, setup: Setup) -> System:
        """The system of a cell with its restored data."""
        return self._databases.system(setup)

    def close(self) -> None:
        """Nothing that was made for trials alone stays. FailureError."""
        self._databases.close()

    def _enough(self, often: str, left: _Left, block: int) -> bool:
        if often == "lab":
            return left.read_only
        return often == "block" and left.block == block and (self._method.restore == "block" or not left.lasting)

    def settled(self, setup: Setup, session: Session, restored: TrialNotes) -> TrialNotes:
        """`restored`, and the garbage that the trial before left taken away, where its data were left, too."""
        hold(setup.system.layout)
        data = setup.choice.data
        if data is not None and data.check not in self._understood:
            own.require_check(session, data)
            self._understood.add(data.check)
        dataset = workloads.get(setup.choice.workload).dataset(session.engine, setup.choice.options)
        if dataset is None or not self._begun[place_of(setup)].reused:
            return restored
        return restored.merge(restore.without_garbage(session, dataset))

    def kept(self, setup: Setup, block: int) -> None:
        """A trial ended in good order: other cells may start from what it left, where that is enough."""
        begun = self._begun[place_of(setup)]
        writes = workloads.get(setup.choice.workload).writes(setup.choice.options)
        self._left[place_of(setup)] = replace(
            begun,
            block=block,
            read_only=begun.read_only and not writes,
            lasting=begun.lasting or restore.lasting(setup),
            identity=_identity(place_of(setup)),
        )


def _most_workers(lab: Lab) -> Load:
    """The data are no factor's: all workers that there will be load them."""
    return max((setup.cell.load for setup in lab.possible), key=lambda load: load.workers)


def place_of(setup: Setup) -> str:
    """Where its data are: a database of a running server, or a directory."""
    return _at_its_database(setup).system.dsn or setup.system.layout.data or ""


def _at_its_database(setup: Setup) -> Setup:
    """Without what its connections set for themselves: two cells that differ in that alone share their data."""
    if setup.system.dsn is None:
        return setup
    dsn = engines.get(setup.system.engine).without_session_settings(setup.system.dsn)
    return replace(setup, system=replace(setup.system, dsn=dsn))


def _identity(place: str) -> tuple[int, int] | None:
    """None: no directory of this machine."""
    try:
        found = Path(place).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def hold(layout: Layout) -> None:
    """Keeps `cleanup` from a directory whose server is stopped between trials, the next of which may go on with it."""
    if layout.data is not None and layout.data not in layout.emulated:
        place.use(Path(layout.data))


def content_of(setup: Setup) -> tuple[str, ...]:
    """Equal for cells that can start from the same copy; of a server that is not ours, nothing can be copied."""
    setup = _at_its_database(setup)
    engine = engines.get(setup.system.engine)
    data = setup.choice.data
    key = workloads.get(setup.choice.workload).content_key(engine.name, setup.choice.options)
    key = data.key if data is not None and data.imported else key
    return engine.name, engine.basis(setup.system), setup.system.dsn or "", key
