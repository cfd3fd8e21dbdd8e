"""Emulated devices of an interleaved system. While the system is paused, the time of its device models stands still.
For this, model timing is switched off, so that the devices complete requests immediately. When it is switched on again,
the time of the models continues where it stopped (`Pace::set`, crates/ironbench-device/src/live/pace.rs). Devices
therefore accumulate no burst credit while their system is paused.
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
class SystemDevices:
    """Emulated devices of one system."""

    devices: Devices
    frozen_io_bytes: int = 0
    """Bytes that were read and written on the devices while the system was paused."""
    _sources: tuple[Source, ...] = ()
    _first: Mapping[str, bytes] = field(default_factory=dict)
    _at_rest: int | None = None
    _last: Mapping[str, bytes] | None = None

    @property
    def processes(self) -> Sequence[int]:
        return [one.pid for one in self.devices.mounted]

    def rest(self) -> None:
        """Stops model time. Must be called after the system was paused. Raises FailureError if a device has died."""
        self.devices.set_model_timing(on=False)
        self._at_rest = self._moved()

    def wake(self) -> None:
        """Resumes model time. Must be called before the system is resumed. Raises FailureError."""
        if self._at_rest is not None:
            self.frozen_io_bytes += self._moved() - self._at_rest
            self._at_rest = None
        self.devices.set_model_timing(on=True)

    def begin(self, session: Session) -> None:
        """Reads the devices' counters before the first slice."""
        if self.devices.mounted:
            self._sources = observe.get(_OBSERVER).sources(session, Tree())
        self._first = self._read()

    def end(self) -> None:
        """Reads the devices' counters after the last slice, so that later writes and checks are excluded."""
        self._last = self._read()

    def observed(self, turns_s: float) -> Observation:
        """Returns what the devices did from `begin` until `end`, or until now if `end` was not called. Rates are
        relative to `turns_s`, the time of the system's turns."""
        last = self._read() if self._last is None else self._last
        samples = {name: [Sample(0.0, raw), Sample(turns_s, last[name])] for name, raw in self._first.items()}
        if not samples or turns_s <= 0 or not all(last.values()):
            return Observation()
        return observe.get(_OBSERVER).parse(samples, turns_s)

    def _read(self) -> dict[str, bytes]:
        return {one.name: (Tree().read(one.target) or "").encode() for one in self._sources}

    def _moved(self) -> int:
        """Returns the bytes read and written since the devices were mounted."""
        each = (json.loads(one.counters())["partitions"].values() for one in self.devices.mounted)
        return sum(int(one[kind]["bytes"]) for partitions in each for one in partitions for kind in ("read", "write"))
