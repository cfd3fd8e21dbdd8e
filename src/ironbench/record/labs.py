"""A lab's directory: the plan as it was frozen, the stages as they were declared, and a store of records.

```
<directory>/lab.toml           the lab file as it was given
<directory>/plan.json          the frozen `Lab`, the machine and what every engine was when it began
<directory>/stage-N.json       written before the first trial of stage N
<directory>/peak.json          the baseline's peak, where rates are shares of it
<directory>/lock               held by the process that works here
<directory>/trials/ machines/ engines/      as in every store
```
There is no journal: what was done is what has a record.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import msgspec

from ironbench.errors import FailureError, InputError
from ironbench.model.lab import Lab, Stage
from ironbench.model.record import Record
from ironbench.model.system import Setup, Trial
from ironbench.plan import rates
from ironbench.record.durable import remove_abandoned, write_whole
from ironbench.record.store import Store

T = TypeVar("T")
SCHEMA = 1
PLAN = "plan.json"
SOURCE = "lab.toml"
PEAK = "peak.json"


@dataclass(frozen=True, slots=True)
class Frozen:
    """What was true when the lab began."""

    lab: Lab
    machine: str
    """Content key of the machine's fingerprint, in the store."""
    engines: Mapping[str, Mapping[str, str]]
    """Cell → what identifies its engine's program."""
    software: Mapping[str, str]
    """Of ironbench itself."""
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True)
class Declared:
    """A stage that has begun, with its trials in the order they will run."""

    stage: Stage
    trials: tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class Peak:
    """What the baseline does in a closed loop: rates given as shares are shares of this."""

    throughput: float
    """Transactions per second: the median of the trials."""
    trials: tuple[str, ...]
    """Ids of their records."""


class LabDirectory:
    """One lab on disk. Opening it creates nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = Store(path)

    def begun(self) -> bool:
        return (self.path / PLAN).is_file()

    def begin(self, frozen: Frozen) -> None:
        """Writes the plan, last of all: a directory without it is no lab yet. UnwrittenError."""
        if self.begun():
            raise InputError(str(self.path), "holds a lab already", "`ironbench lab resume` goes on with it")
        write_whole(self.path / SOURCE, frozen.lab.source.encode())
        write_whole(self.path / PLAN, _encoded(frozen))

    def frozen(self) -> Frozen:
        """The plan as it was when the lab began. InputError where there is none."""
        found = _read(self.path / PLAN, Frozen)
        if found is None:
            hint = "name a directory that `ironbench lab run` made"
            raise InputError(str(self.path), f"holds no lab (no {PLAN})", hint)
        if found.schema > SCHEMA:
            raise FailureError(
                str(self.path), f"has schema {found.schema}, newer than {SCHEMA}", "use a newer ironbench"
            )
        return found

    def source(self) -> str:
        """The lab file kept here, as it is now; empty when it is gone."""
        path = self.path / SOURCE
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    def lab(self) -> Lab:
        """The plan with the stages that have begun; one that was added replaces what was still planned."""
        lab, declared = self.frozen().lab, self.declared()
        last = len(lab.method.stages) if any(one.stage.added for one in declared) else len(declared)
        stages = [one.stage for one in declared] + [s for s in lab.method.stages if s.number > last]
        trials = [trial for one in declared for trial in one.trials]
        trials += [trial for trial in lab.trials if trial.stage > last]
        begun = sum(not one.stage.added for one in declared)
        dropped = tuple(stage.blocks for stage in lab.method.stages[begun:last])
        peak = self._throughput()
        return replace(
            lab,
            setups=_setups_at_peak(lab.setups, peak),
            rated=_setups_at_peak(lab.rated, peak),
            method=replace(lab.method, stages=tuple(stages), dropped=dropped),
            trials=_at_peak(trials, peak),
        )

    def peak(self) -> Peak | None:
        """None: it has not been measured, or no rate is a share of it."""
        return _read(self.path / PEAK, Peak)

    def keep_peak(self, peak: Peak) -> None:
        """From here on the rates of this lab are known. UnwrittenError."""
        write_whole(self.path / PEAK, _encoded(peak))

    def _throughput(self) -> float | None:
        peak = self.peak()
        return peak.throughput if peak else None

    def declared(self) -> tuple[Declared, ...]:
        """The stages that have begun, in order."""
        found: list[Declared] = []
        peak = self._throughput()
        while (stage := _read(self._stage(len(found) + 1), Declared)) is not None:
            found.append(replace(stage, trials=_at_peak(stage.trials, peak)))
        return tuple(found)

    def declare(self, stage: Stage, trials: tuple[Trial, ...]) -> None:
        """From here on these trials are to be measured. UnwrittenError."""
        write_whole(self._stage(stage.number), _encoded(Declared(stage, trials)))

    def records(self) -> list[Record]:
        """Of this lab, oldest first."""
        return self.store.all()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the directory; the kernel lets go when this process ends, however it ends. InputError: somebody has it.

        What a killed process left half-written is removed.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise InputError(f"lab {self.path}", error.strerror or str(error), "name another directory") from error
        try:
            self._hold(descriptor)
            remove_abandoned(self.path)
            yield
        finally:
            os.close(descriptor)

    def _hold(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            raise InputError(
                f"lab {self.path}", f"another ironbench works on it (process {holder})", "wait for it, or end it"
            ) from None
        with contextlib.suppress(OSError):  # on a full disk the lock holds, only its holder is not named
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)

    def _stage(self, number: int) -> Path:
        return self.path / f"stage-{number}.json"


def _at_peak(trials: Iterable[Trial], peak: float | None) -> tuple[Trial, ...]:
    return tuple(replace(trial, cell=rates.at_peak(trial.cell, peak)) for trial in trials)


def _setups_at_peak(setups: Iterable[Setup], peak: float | None) -> tuple[Setup, ...]:
    return tuple(replace(setup, cell=rates.at_peak(setup.cell, peak)) for setup in setups)


def _encoded(value: Frozen | Declared | Peak) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def _read(path: Path, kind: type[T]) -> T | None:
    """None: there is no such file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise FailureError(str(path), f"cannot be read: {error}", "begin the lab anew in another directory") from error
