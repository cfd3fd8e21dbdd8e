"""The emulated devices beneath a system that takes turns: their time stands still with it.

A device that answers at once asks its model nothing, and its model's time goes on where it stood when it follows the
model again (`Pace::set`, crates/ironbench-device/src/live/pace.rs): a frozen system's device neither rests nor
recovers, so no turn begins with a burst that its rest had earned.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ironbench.devices.mounting import Devices
from ironbench.host.tree import Tree
from ironbench.model.observation import Observation, Sample, Source
from ironbench.model.session import Session
from ironbench.trial import observe

_OBSERVER = "emulation"


@dataclass(slots=True)
class Beneath:
    """Of one system."""

    devices: Devices
    frozen_io_bytes: int = 0
    """Read and written on them while the system was frozen."""
    _sources: tuple[Source, ...] = ()
    _first: Mapping[str, bytes] = field(default_factory=dict)
    _at_rest: int | None = None
    _last: Mapping[str, bytes] | None = None

    @property
    def processes(self) -> Sequence[int]:
        return [one.pid for one in self.devices.mounted]

    def rest(self) -> None:
        """The system is frozen. FailureError: a device is gone."""
        self.devices.set_model_timing(on=False)
        self._at_rest = self._moved()

    def wake(self) -> None:
        """The system will be thawed. FailureError."""
        if self._at_rest is not None:
            self.frozen_io_bytes += self._moved() - self._at_rest
            self._at_rest = None
        self.devices.set_model_timing(on=True)

    def begin(self, session: Session) -> None:
        """Before the first slice."""
        if self.devices.mounted:
            self._sources = observe.get(_OBSERVER).sources(session, Tree())
        self._first = self._read()

    def end(self) -> None:
        """After the last slice: what is written and checked from now on is not of the turns."""
        self._last = self._read()

    def observed(self, turns_s: float) -> Observation:
        """What the devices did from `begin` to `end`, or to now, in turns of so many seconds together."""
        last = self._read() if self._last is None else self._last
        samples = {name: [Sample(0.0, raw), Sample(turns_s, last[name])] for name, raw in self._first.items()}
        if not samples or turns_s <= 0 or not all(last.values()):
            return Observation()
        return observe.get(_OBSERVER).parse(samples, turns_s)

    def _read(self) -> dict[str, bytes]:
        return {one.name: (Tree().read(one.target) or "").encode() for one in self._sources}

    def _moved(self) -> int:
        """Bytes since they were mounted."""
        each = (json.loads(one.counters())["partitions"].values() for one in self.devices.mounted)
        return sum(int(one[kind]["bytes"]) for partitions in each for one in partitions for kind in ("read", "write"))
