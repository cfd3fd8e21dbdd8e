"""A lab's directory: its frozen plan, its declared stages, and a store of records.

```
<directory>/lab.toml           the lab file as given
<directory>/plan.json          the frozen `Lab`, with the machine and the engine versions when the lab started
<directory>/stage-N.json       written before the first trial of stage N
<directory>/peak.json          the baseline's peak, if rates are percentages of it
<directory>/best.json          the load of each configuration whose load is searched for
<directory>/confirmation.json  the round that confirms a finished screen
<directory>/imported.json      only in a lab from `record import`: the imported file and the version that wrote it
<directory>/lock               locked by the process that works here
<directory>/trials/ machines/ engines/      as in every store
```
There is no journal: a trial is done if it has a record.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from glob import escape
from pathlib import Path
from typing import TypeVar

import msgspec

from ironbench.catalogue.typed import text_of
from ironbench.errors import FailureError, InputError
from ironbench.host.durable import file_lock, remove_abandoned, write_whole
from ironbench.model.constraints import BlockNumber, Count, Key, Positive
from ironbench.model.lab import Confirmation, Lab, Stage, confirmed
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.model.search import ChosenLoad
from ironbench.model.system import Setup, Trial
from ironbench.plan import rates, sweep
from ironbench.records import running_labs
from ironbench.records.store import Store

T = TypeVar("T")
SCHEMA = 1
PLAN = "plan.json"
SOURCE = "lab.toml"
PEAK = "peak.json"
BEST = "best.json"
CONFIRMATION = "confirmation.json"
IMPORTED = "imported.json"
LAB_FILES = (SOURCE, PLAN, PEAK, BEST, CONFIRMATION)
"""Files of a lab, in addition to the files of its stages."""


@dataclass(frozen=True, slots=True)
class FrozenPlan:
    """The plan of a lab and its environment when it started."""

    lab: Lab
    machine: Key
    """Content key of the machine's fingerprint in the store."""
    engines: Mapping[str, Mapping[str, str]]
    """For each configuration, the identification of the engine's program."""
    software: Mapping[str, str]
    """Version of ironbench and its dependencies."""
    servers: Mapping[str, str] = field(default_factory=dict)
    """Maps the address of each observed server (`system.server`) to the content key of its machine's fingerprint in the
    store. Empty in labs of earlier versions."""
    gate: bool = False
    """Whether the lab was started as a gate (`lab run --gate`)."""
    schema: Count = SCHEMA


@dataclass(frozen=True, slots=True)
class DeclaredStage:
    """A stage that has started, with its trials in the order in which they run."""

    stage: Stage
    trials: tuple[Trial, ...]
    replaced: tuple[BlockNumber, ...] = ()
    """Blocks of this stage that were replaced: all their trials are measured again, in a block with a new number.
    `trials` contains only the trials of the new blocks."""


@dataclass(frozen=True, slots=True)
class BaselinePeak:
    """Throughput of the baseline in a closed loop, from which rates given as percentages are computed."""

    throughput: Positive
    """Transactions per second: the median of the trials."""
    trials: tuple[str, ...]
    """Ids of the trials' records."""


def results() -> Path:
    """Returns the default directory of labs and noise floors."""
    return Path(os.environ.get("IRONBENCH_RESULTS", "ironbench-results"))


def home() -> Path:
    """Returns the default parent directory of lab directories."""
    return results() / "labs"


_STAMP = re.compile(r"-(\d{8}T\d{6})-")


def begun_in(place: Path) -> list[str]:
    """Returns the names of the lab directories in the results directory `place`, in the order in which the labs
    started.

    If ironbench chose the name, the name contains the start time. Otherwise, the modification time of the plan file is
    used. For an imported lab, this is the time of the import.
    """
    return [name for _, name in sorted(_labs_by_start(place / "labs"))]


_OF_STORES = frozenset({"trials", "machines", "engines", "scripts", "queue", "notes"})
"""Names of directories of stores and queues. These directories contain no labs."""
_DEEPEST = 4
"""Maximum depth below the results directory at which labs are searched for."""
_SEPARATOR = ":"


def begun_below(place: Path) -> list[str]:
    """Returns the names of all labs below the results directory `place`, in the order in which the labs started. See
    `place_of` for the form of the names."""
    found = {name: (when, name) for when, name in _labs_by_start(place / "labs")}
    for parts in _searched(place):
        for when, last in _labs_by_start(place.joinpath(*parts)):
            name = _SEPARATOR.join((*parts, last) if parts else ("", last))
            if _SEPARATOR not in last:
                found.setdefault(name, (when, name))
    return [name for _, name in sorted(found.values())]


def place_of(results: Path, name: str) -> Path:
    """Returns the directory of a lab. `name`: name of the lab, as `begun_below` returns it.

    If the lab is in `labs`, its name is the name of its directory. Otherwise, the name is the path below the results
    directory, with colons instead of slashes: `demo:first` is `demo/first`. A name for a path with only one component
    starts with a colon: `:first` is the directory `first` beside `labs`.
    """
    usual = results / "labs" / name
    if _SEPARATOR not in name or (usual / PLAN).is_file():
        return usual
    parts = name.removeprefix(_SEPARATOR).split(_SEPARATOR)
    if any(part in ("", "..") or part.startswith(".") or "/" in part for part in parts):
        return usual
    return results.joinpath(*parts)


def _labs_by_start(folder: Path) -> Iterator[tuple[str, str]]:
    """Yields start time and name of each lab directory in a folder."""
    with suppress(OSError):
        for one in os.scandir(folder):
            with suppress(OSError):
                written = datetime.fromtimestamp(Path(one.path, PLAN).stat().st_mtime)
                stamp = _STAMP.search(one.name)
                if not one.name.startswith("."):
                    yield stamp[1] if stamp else f"{written:%Y%m%dT%H%M%S}", one.name


def _searched(place: Path, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yields the directories below `place` that may contain labs, except `place/labs`. Each directory is a tuple with
    the components of its path below `place`."""
    yield above
    if len(above) >= _DEEPEST - 1:
        return
    with suppress(OSError):
        for one in os.scandir(place.joinpath(*above)):
            skipped = one.name in _OF_STORES or one.name.startswith(".") or _SEPARATOR in one.name
            if skipped or (one.name == "labs" and not above) or not one.is_dir(follow_symlinks=False):
                continue
            if not Path(one.path, PLAN).is_file():
                yield from _searched(place, (*above, one.name))


def find(name: str) -> LabDirectory:
    """Returns a lab by its directory, or the newest lab of a lab file. Raises InputError."""
    path = Path(name)
    if path.is_dir():
        return LabDirectory(path)
    begun = [LabDirectory(place.parent) for place in sorted(home().glob(f"{escape(path.stem)}-*/{PLAN}"))]
    own = [directory for directory in begun if directory.frozen().lab.name == path.stem]
    if not own:
        raise InputError(
            name,
            f"no lab has been started from this file in {home()}",
            "give the directory of a lab (its `--results`), or start the lab with `ironbench lab run`",
        )
    return own[-1]


class LabDirectory:
    """A lab on disk. Opening it creates nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = Store(path)

    def imported(self) -> bool:
        """Returns whether files of the lab come from another machine, so that the lab's commands are not trusted."""
        return (self.path / IMPORTED).exists()

    def begun(self) -> bool:
        return (self.path / PLAN).is_file()

    def begin(self, frozen: FrozenPlan) -> None:
        """Writes the lab file and then the plan. The plan is written last because it makes the directory a lab.

        An existing lab is replaced if it has no trials, for example because loading its data failed. Resuming it with
        the stored plan would fail again. Raises InputError if there is a lab with trials, FailureError if its plan is
        unreadable, and UnwrittenError if a file cannot be written.
        """
        source, text = self.path / SOURCE, frozen.lab.source.encode()
        if self.begun():
            self.frozen()
            # Damaged records are counted as well, because they may be important to the user.
            if any(not trial.name.startswith(".") for trial in (self.path / "trials").glob("*")):
                hint = (
                    "continue the existing lab with `ironbench lab resume`, or start a new lab in another "
                    "directory with --results"
                )
                raise InputError(str(self.path), "already contains a lab", hint)
            for name in (PLAN, PEAK, BEST, CONFIRMATION, *(stage.name for stage in self.path.glob("stage-*.json"))):
                (self.path / name).unlink(missing_ok=True)
        elif source.exists() and source.read_bytes() != text:
            cause = "already exists, and would be overwritten by the stored lab file"
            raise InputError(str(source), cause, "use another directory with --results")
        write_whole(source, text)
        write_whole(self.path / PLAN, _encoded(frozen))

    def frozen(self) -> FrozenPlan:
        """Returns the plan as it was when the lab started. Raises InputError if there is no plan."""
        plan = _read(self.path / PLAN, FrozenPlan)
        if plan is None:
            hint = "give a directory that `ironbench lab run` created"
            raise InputError(str(self.path), f"contains no lab (no {PLAN})", hint)
        if plan.schema > SCHEMA:
            raise FailureError(
                str(self.path), f"has schema {plan.schema}, newer than {SCHEMA}", "use a newer ironbench"
            )
        return plan

    def source(self) -> str:
        """Returns the current text of the lab file in this directory. Returns "" if it is missing. Raises InputError if
        it is not text."""
        path = self.path / SOURCE
        return text_of(path, str(path), "restore the original file") if path.is_file() else ""

    def lab(self) -> Lab:
        """Returns the plan, updated by the stages that have started. If a stage was added, the planned stages after it
        are dropped.

        If a search has chosen the load of a configuration, the configuration gets this load. If the search found no
        load, the configuration is skipped.
        """
        lab, declared = confirmed(self.frozen().lab, self.confirmation()), self.declared()
        replaced = any(one.stage.added and one.stage not in lab.method.stages for one in declared)
        last = len(lab.method.stages) if replaced else len(declared)
        stages = [one.stage for one in declared] + [s for s in lab.method.stages if s.number > last]
        trials = [trial for one in declared for trial in one.trials]
        trials += [trial for trial in lab.trials if trial.stage > last]
        begun = sum(one.stage in lab.method.stages for one in declared)
        dropped = tuple(stage.blocks for stage in lab.method.stages[begun:last] if replaced)
        peak = self._throughput()
        at_peak = replace(
            lab,
            setups=_setups_at_peak(lab.setups, peak),
            rated=_setups_at_peak(lab.rated, peak),
            method=replace(lab.method, stages=tuple(stages), dropped=dropped),
            trials=_at_peak(trials, peak),
        )
        return sweep.lab_at_best(at_peak, self.best())

    def peak(self) -> BaselinePeak | None:
        """Returns the throughput of the baseline's peak. Returns None if it has not been measured, or if no rate is a
        percentage of it."""
        return _read(self.path / PEAK, BaselinePeak)

    def keep_peak(self, peak: BaselinePeak) -> None:
        """Stores the peak, from which this lab's rates are computed. Raises UnwrittenError."""
        write_whole(self.path / PEAK, _encoded(peak))

    def best(self) -> dict[str, ChosenLoad]:
        """Returns the results of the searches so far, by the configuration's name."""
        return _read(self.path / BEST, dict[str, ChosenLoad]) or {}

    def keep_best(self, cell: str, best: ChosenLoad) -> None:
        """Stores the load that a search chose for a configuration. Raises UnwrittenError."""
        write_whole(self.path / BEST, _encoded({**self.best(), cell: best}))

    def forget_best(self, cells: Collection[str]) -> None:
        """Removes stored search results, so that the loads of these configurations are searched for again. Raises
        UnwrittenError."""
        best = self.best()
        if kept := {cell: found for cell, found in best.items() if cell not in cells}:
            write_whole(self.path / BEST, _encoded(kept))
        else:
            (self.path / BEST).unlink(missing_ok=True)

    def confirmation(self) -> Confirmation | None:
        """Returns the confirmation round of a screen. Returns None if the lab is not a screen, if the screen is not
        finished, or if it found nothing important."""
        return _read(self.path / CONFIRMATION, Confirmation)

    def keep_confirmation(self, found: Confirmation) -> None:
        """Stores the confirmation round of the screen. Raises UnwrittenError."""
        write_whole(self.path / CONFIRMATION, _encoded(found))

    def _throughput(self) -> float | None:
        peak = self.peak()
        return peak.throughput if peak else None

    def declared(self) -> tuple[DeclaredStage, ...]:
        """Returns the stages that have started, in order."""
        stages: list[DeclaredStage] = []
        peak, setups, best = self._throughput(), self.frozen().lab.setups, self.best()
        while (stage := _read(self._stage(len(stages) + 1), DeclaredStage)) is not None:
            stages.append(replace(stage, trials=sweep.at_best(_at_peak(stage.trials, peak), setups, best)))
        return tuple(stages)

    def declare(self, stage: Stage, trials: tuple[Trial, ...]) -> None:
        """Stores a stage before its trials are measured. Raises UnwrittenError."""
        write_whole(self._stage(stage.number), _encoded(DeclaredStage(stage, trials)))

    def repeat(self, block: int, in_order: Callable[[int, Sequence[Trial]], Sequence[Trial]]) -> None:
        """Replaces a block of a declared stage by a new block with the same trials. The records of the old block are
        excluded. Raises UnwrittenError.

        `in_order`: function that gets the number of the new block and the trials of the old block, and returns the
        trials of the new block.
        """
        lab = self.lab()
        number = 1 + max((trial.block for trial in lab.trials), default=block)
        for stage in range(1, len(self.declared()) + 1):
            declared = _read(self._stage(stage), DeclaredStage)
            if declared is None or not (old := [trial for trial in declared.trials if trial.block == block]):
                continue
            kept = [trial for trial in declared.trials if trial.block != block]
            trials = (*kept, *in_order(number, old))
            again = replace(declared, trials=trials, replaced=(*declared.replaced, block))
            write_whole(self._stage(stage), _encoded(again))

    def records(self) -> list[Record]:
        """Returns the records of this lab, oldest first, without the records of replaced blocks."""
        replaced = self._replaced()
        return [one for one in self.store.all() if one.purpose != Purpose.LAB or one.block not in replaced]

    def set_aside(self) -> list[Record]:
        """Returns the records of blocks that were replaced by a new block. Comparisons exclude these records."""
        replaced = self._replaced()
        return [one for one in self.store.all() if one.purpose == Purpose.LAB and one.block in replaced]

    def _replaced(self) -> set[int]:
        return {block for one in self.declared() for block in one.replaced} if self.begun() else set()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the directory. The kernel releases the lock in whatever way this process ends. Raises InputError if
        another process holds the lock.

        Removes unfinished files of killed processes.
        """
        with file_lock(self.path / "lock", f"lab {self.path}"):
            remove_abandoned(self.path)
            with running_labs.announced(self.path):
                yield

    def _stage(self, number: int) -> Path:
        return self.path / f"stage-{number}.json"


def _at_peak(trials: Iterable[Trial], peak: float | None) -> tuple[Trial, ...]:
    return tuple(replace(trial, cell=rates.at_peak(trial.cell, peak)) for trial in trials)


def _setups_at_peak(setups: Iterable[Setup], peak: float | None) -> tuple[Setup, ...]:
    return tuple(replace(setup, cell=rates.at_peak(setup.cell, peak)) for setup in setups)


def _encoded(value: FrozenPlan | DeclaredStage | BaselinePeak | Confirmation | dict[str, ChosenLoad]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def _read(path: Path, kind: type[T]) -> T | None:
    """Decodes a file. Returns None if it does not exist."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise FailureError(str(path), f"cannot be read: {error}", "start the lab again in another directory") from error
