"""A lab's directory: the plan as it was frozen, the stages as they were declared, and a store of records.

```
<directory>/lab.toml           the lab file as it was given
<directory>/plan.json          the frozen `Lab`, the machine and what every engine was when it began
<directory>/stage-N.json       written before the first trial of stage N
<directory>/peak.json          the baseline's peak, where rates are shares of it
<directory>/best.json          the load of each cell, where a search chooses it
<directory>/confirmation.json  what a screen goes on with, once it is over
<directory>/imported.json      only in a lab that came with `record import`: who wrote the file that it came in
<directory>/lock               held by the process that works here
<directory>/trials/ machines/ engines/      as in every store
```
There is no journal: what was done is what has a record.
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
from ironbench.model.constraints import BlockNumber, Count, Key, Positive
from ironbench.model.lab import Confirmation, Lab, Stage, confirmed
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.model.search import Best
from ironbench.model.system import Setup, Trial
from ironbench.plan import rates, sweep
from ironbench.records import running_labs
from ironbench.records.durable import held, remove_abandoned, write_whole
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
"""And those of its stages."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """What was true when the lab began."""

    lab: Lab
    machine: Key
    """Content key of the machine's fingerprint, in the store."""
    engines: Mapping[str, Mapping[str, str]]
    """Cell → what identifies its engine's program."""
    software: Mapping[str, str]
    """Of ironbench itself."""
    servers: Mapping[str, str] = field(default_factory=dict)
    """Address of each watched server (`system.server`) → content key of its machine's fingerprint, in the store. Empty
    in labs of earlier versions."""
    gate: bool = False
    """Whether it was run as a gate (`lab run --gate`)."""
    schema: Count = SCHEMA


@dataclass(frozen=True, slots=True)
class DeclaredStage:
    """A stage that has begun, with its trials in the order they will run."""

    stage: Stage
    trials: tuple[Trial, ...]
    replaced: tuple[BlockNumber, ...] = ()
    """Blocks of this stage that are measured again, whole, under another number: their trials are not in `trials`."""


@dataclass(frozen=True, slots=True)
class BaselinePeak:
    """What the baseline does in a closed loop: rates given as shares are shares of this."""

    throughput: Positive
    """Transactions per second: the median of the trials."""
    trials: tuple[str, ...]
    """Ids of their records."""


def results() -> Path:
    """Default directory of labs and noise floors."""
    return Path(os.environ.get("IRONBENCH_RESULTS", "ironbench-results"))


def home() -> Path:
    """Default parent of the directories of labs."""
    return results() / "labs"


_STAMP = re.compile(r"-(\d{8}T\d{6})-")


def begun_in(place: Path) -> list[str]:
    """Names of the directories of labs that have begun in the results `place`, in the order in which they did: by the
    time in the name that ironbench gave it; else by that of its plan, which an import writes anew."""
    begun: list[tuple[str, str]] = []
    with suppress(OSError):
        for one in os.scandir(place / "labs"):
            with suppress(OSError):
                written = datetime.fromtimestamp(Path(one.path, PLAN).stat().st_mtime)
                stamp = _STAMP.search(one.name)
                when = stamp[1] if stamp else f"{written:%Y%m%dT%H%M%S}"
                begun += [] if one.name.startswith(".") else [(when, one.name)]
    return [name for _, name in sorted(begun)]


def find(name: str) -> LabDirectory:
    """A lab by its directory, or the newest one of a lab file. InputError."""
    path = Path(name)
    if path.is_dir():
        return LabDirectory(path)
    begun = [LabDirectory(place.parent) for place in sorted(home().glob(f"{escape(path.stem)}-*/{PLAN}"))]
    own = [directory for directory in begun if directory.frozen().lab.name == path.stem]
    if not own:
        raise InputError(
            name,
            f"no lab of it has begun in {home()}",
            "name the directory of a lab (the one that its --results named), or begin with `ironbench lab run`",
        )
    return own[-1]


class LabDirectory:
    """One lab on disk. Opening it creates nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = Store(path)

    def imported(self) -> bool:
        """Whether files of the lab came from another machine: a stranger may have written its commands."""
        return (self.path / IMPORTED).exists()

    def begun(self) -> bool:
        return (self.path / PLAN).is_file()

    def begin(self, frozen: Frozen) -> None:
        """Writes the plan, last of all: a directory without it is no lab yet. A lab without any trial, whose data could
        not be loaded for instance, gives way: its frozen files would fail again.

        InputError, UnwrittenError; FailureError for a plan that cannot be read.
        """
        source, text = self.path / SOURCE, frozen.lab.source.encode()
        if self.begun():
            self.frozen()
            # Damaged ones are somebody's, too.
            if any(not trial.name.startswith(".") for trial in (self.path / "trials").glob("*")):
                hint = "`ironbench lab resume` goes on with it; another --results begins anew"
                raise InputError(str(self.path), "holds a lab already", hint)
            for name in (PLAN, PEAK, BEST, CONFIRMATION, *(stage.name for stage in self.path.glob("stage-*.json"))):
                (self.path / name).unlink(missing_ok=True)
        elif source.exists() and source.read_bytes() != text:
            cause = "is there already, and the lab file that is kept there would take its place"
            raise InputError(str(source), cause, "name another directory with --results")
        write_whole(source, text)
        write_whole(self.path / PLAN, _encoded(frozen))

    def frozen(self) -> Frozen:
        """The plan as it was when the lab began. InputError where there is none."""
        plan = _read(self.path / PLAN, Frozen)
        if plan is None:
            hint = "name a directory that `ironbench lab run` made"
            raise InputError(str(self.path), f"holds no lab (no {PLAN})", hint)
        if plan.schema > SCHEMA:
            raise FailureError(
                str(self.path), f"has schema {plan.schema}, newer than {SCHEMA}", "use a newer ironbench"
            )
        return plan

    def source(self) -> str:
        """The lab file kept here, as it is now; empty when it is gone. InputError: it is no text."""
        path = self.path / SOURCE
        return text_of(path, str(path), "put it back as it was") if path.is_file() else ""

    def lab(self) -> Lab:
        """The plan with the stages that have begun; one that was added replaces what was still planned.

        Cells whose best load is searched for have it once it is known, and are skipped where there is none.
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
        """None: it has not been measured, or no rate is a share of it."""
        return _read(self.path / PEAK, BaselinePeak)

    def keep_peak(self, peak: BaselinePeak) -> None:
        """From here on the rates of this lab are known. UnwrittenError."""
        write_whole(self.path / PEAK, _encoded(peak))

    def best(self) -> dict[str, Best]:
        """What the searches chose so far, by name of cell."""
        return _read(self.path / BEST, dict[str, Best]) or {}

    def keep_best(self, cell: str, best: Best) -> None:
        """From here on the load of this cell is known. UnwrittenError."""
        write_whole(self.path / BEST, _encoded({**self.best(), cell: best}))

    def forget_best(self, cells: Collection[str]) -> None:
        """The loads of these cells are to be searched for again. UnwrittenError."""
        best = self.best()
        if kept := {cell: found for cell, found in best.items() if cell not in cells}:
            write_whole(self.path / BEST, _encoded(kept))
        else:
            (self.path / BEST).unlink(missing_ok=True)

    def confirmation(self) -> Confirmation | None:
        """None: the screen is not over, found nothing that matters, or there is none."""
        return _read(self.path / CONFIRMATION, Confirmation)

    def keep_confirmation(self, found: Confirmation) -> None:
        """From here on this is what the screen goes on with. UnwrittenError."""
        write_whole(self.path / CONFIRMATION, _encoded(found))

    def _throughput(self) -> float | None:
        peak = self.peak()
        return peak.throughput if peak else None

    def declared(self) -> tuple[DeclaredStage, ...]:
        """The stages that have begun, in order."""
        stages: list[DeclaredStage] = []
        peak, setups, best = self._throughput(), self.frozen().lab.setups, self.best()
        while (stage := _read(self._stage(len(stages) + 1), DeclaredStage)) is not None:
            stages.append(replace(stage, trials=sweep.at_best(_at_peak(stage.trials, peak), setups, best)))
        return tuple(stages)

    def declare(self, stage: Stage, trials: tuple[Trial, ...]) -> None:
        """From here on these trials are to be measured. UnwrittenError."""
        write_whole(self._stage(stage.number), _encoded(DeclaredStage(stage, trials)))

    def repeat(self, block: int, in_order: Callable[[int, Sequence[Trial]], Sequence[Trial]]) -> None:
        """Plans a block of a declared stage once more under a new number and sets its records aside. UnwrittenError.

        `in_order`: (new number, trials of the block) → trials of the new block.
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
        """Of this lab, oldest first, without those that were set aside."""
        replaced = self._replaced()
        return [one for one in self.store.all() if one.purpose != Purpose.LAB or one.block not in replaced]

    def set_aside(self) -> list[Record]:
        """Records of blocks that were replaced by a whole new block. They enter no comparison."""
        replaced = self._replaced()
        return [one for one in self.store.all() if one.purpose == Purpose.LAB and one.block in replaced]

    def _replaced(self) -> set[int]:
        return {block for one in self.declared() for block in one.replaced} if self.begun() else set()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the directory; the kernel lets go when this process ends, however it ends. InputError: somebody has it.

        What a killed process left half-written is removed.
        """
        with held(self.path / "lock", f"lab {self.path}"):
            remove_abandoned(self.path)
            with running_labs.announced(self.path):
                yield

    def _stage(self, number: int) -> Path:
        return self.path / f"stage-{number}.json"


def _at_peak(trials: Iterable[Trial], peak: float | None) -> tuple[Trial, ...]:
    return tuple(replace(trial, cell=rates.at_peak(trial.cell, peak)) for trial in trials)


def _setups_at_peak(setups: Iterable[Setup], peak: float | None) -> tuple[Setup, ...]:
    return tuple(replace(setup, cell=rates.at_peak(setup.cell, peak)) for setup in setups)


def _encoded(value: Frozen | DeclaredStage | BaselinePeak | Confirmation | dict[str, Best]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def _read(path: Path, kind: type[T]) -> T | None:
    """None: there is no such file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise FailureError(str(path), f"cannot be read: {error}", "begin the lab anew in another directory") from error
