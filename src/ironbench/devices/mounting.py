"""Our end of the processes of emulated devices: starts them, sets their timing, and ends them with us."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ironbench import units
from ironbench.devices import arrange, expression
from ironbench.devices.inside import IMAGES, STOPPED_PATIENCE_S, DeviceOrder
from ironbench.devices.models import for_core, models
from ironbench.devices.recorded import TraceWindow, finish, on_its_clock, raw
from ironbench.errors import FailureError, InputError
from ironbench.host import loop_mounts, place, processes, register, space
from ironbench.host.child import Child
from ironbench.model.driven import Computed
from ironbench.model.system import Device

ORDER = "order.json"
_PREFIX = "device-"
_LOG = "log"
_WATCH_S = 0.2
TOO_FAST = 4.0
"""A model that does so many times what gets through here is refused."""


class Mounted:
    """One mounted device."""

    def __init__(
        self,
        device: Device,
        seed: int = 0,
        *,
        by_hand: bool = False,
        detached: bool = False,
        cuttable: bool = False,
        trace: Path | None = None,
    ) -> None:
        """Starts its process and waits until everything is mounted. InputError, FailureError.

        `by_hand`: see `Order`. `detached`: it stays when we end. `cuttable`: a power cut must be possible.
        `trace`: of what the model is asked.
        """
        _refuse_used(device)
        arrange.require_memory(f"device {device.model}", [device], 0)  # there may be less than when it was planned
        self.device = device
        self._trace = trace
        self._trials: list[TraceWindow] = []
        self._folder, self._entry = _registered(device)
        spec = _spec(device, seed, self._entry) | {"cuttable": cuttable, "trace": str(raw(trace)) if trace else None}
        points = {one.role: one.directory for one in device.partitions}
        entry, folder = str(register.path_of(self._entry)), str(self._folder)
        order = DeviceOrder(entry, folder, spec, device.file_system, points, detached, by_hand)
        (self._folder / ORDER).write_text(json.dumps(asdict(order)))
        subject = f"emulated device {device.model}"
        self._child = Child("ironbench.devices.inside", subject, log=self._folder / _LOG)
        self._stopped = False
        try:
            answer = self._ask(asdict(order))
        except FailureError:
            self._end()
            self._forget_trace()
            raise
        self.calibration: dict[str, Any] = answer["ready"]["calibration"]
        try:
            self._refuse_too_fast(self.calibration["reads_per_s"])
        except InputError:
            self._forget_trace()
            self.stop()
            raise
        self.blocks: dict[str, str] = answer["ready"]["blocks"]
        self._counters = Path(answer["ready"]["counters"])

    def set_model_timing(self, on: bool) -> None:
        """Answers requests when its model says (`on`), or at once. FailureError when its process is gone."""
        self._ask("model" if on else "free")

    def measured(self, started_unix_s: float, elapsed_s: float, computed: Computed | None) -> None:
        """A trial was measured then: its trace tells which I/Os were that trial's, and what its work computed."""
        if self._trace is not None:
            with contextlib.suppress(OSError, ValueError):  # it died, and there will be no trace
                self._trials.append(on_its_clock(self._counters, started_unix_s, elapsed_s, computed))

    def counters(self) -> str:
        """What its process counts, as JSON (`Told` in crates/ironbench-device/src/live/exchange.rs)."""
        try:
            return self._counters.read_text()
        except OSError as error:
            raise FailureError(f"emulated device {self.device.model}", self.death() or str(error)) from error

    @property
    def way(self) -> str:
        """How requests come to its bytes: through its process, or through the kernel alone."""
        return "the kernel alone" if self.calibration["passes"] else "/dev/fuse"

    @property
    def status(self) -> int | None:
        """Exit status of its process once that has ended."""
        return self._child.process.poll()

    def cut(self, how: str, seed: int) -> int:
        """The power goes: `lose`, `subset` or `torn` (`crates/ironbench-device/src/live/undo.rs`).

        From then on every request fails. Returns how many writes no flush had followed. FailureError.
        """
        return int(self._ask(f"cut {how} {seed}")["cut"])

    def restore_power(self) -> None:
        """After a cut, once nothing uses the file systems any more: mounts them again. FailureError."""
        self.blocks = self._ask("power")["blocks"]

    def death(self) -> str:
        """How its process ended, in words; "" while it runs."""
        how, _ = self._child.how_it_ended()
        return f"the process of the emulated device {self.device.model} {how}" if how and not self._stopped else ""

    @property
    def pid(self) -> int:
        return self._child.pid

    def release(self) -> None:
        """Leaves a detached device to itself."""
        self._stopped = True
        self._child.close()

    def stop(self) -> None:
        """Unmounts and ends it; whatever its process did not get to, we do. FailureError names what is left."""
        if self._stopped:
            return
        answer = self._child.ask("stop") or self._last_words()
        left = answer.get("stopped")
        self._end()
        if self._trace is not None and raw(self._trace).exists():
            self._keep_trace(self._trace, answer.get("untraced"))
        if left:
            raise FailureError(
                f"emulated device {self.device.model}",
                "; ".join(left),
                "end the programs that use it, then `ironbench cleanup` removes the rest",
            )

    def _last_words(self) -> dict[str, Any]:
        """What its process said unasked: another command, or somebody else's signal, had it end. Empty: it died."""
        frame = self._child.receive()
        words: dict[str, Any] = {} if frame is None else frame[0]
        return words

    def _forget_trace(self) -> None:
        """Nothing was asked of it yet but what mounts it: the same file can be named again."""
        if self._trace is not None:
            raw(self._trace).unlink(missing_ok=True)

    def _keep_trace(self, trace: Path, untraced: str | None) -> None:
        """None that lacks I/Os: a replay would take a part of the work for all of it. FailureError."""
        if untraced == "":
            finish(trace, self.device, self._trials)
            return
        raw(trace).unlink()
        if untraced is not None:  # else its process died, which is said elsewhere
            raise FailureError(
                f"trace {trace}",
                f"is cut short: {untraced}",
                "it is not kept; write it to a disk that has room and is fast enough",
            )

    def _refuse_too_fast(self, reads_per_s: float) -> None:
        """InputError for a model far beyond what gets through here: its results would be this machine's."""
        size = sum(one.bytes for one in self.device.partitions)
        if expression.as_good_as_free(self.device.model, size):
            return
        modelled = expression.read_rate(self.device.model, size, expression.DEEP)
        if modelled > reads_per_s * TOO_FAST:
            raise InputError(
                f"device {self.device.model}",
                f"it does {modelled:.0f} reads a second, and {reads_per_s:.0f} get through here",
                "replay it (`ironbench device trace replay`), or mount it while nothing else runs; "
                "`free` is the fastest that can be emulated",
            )

    def _ask(self, word: Any) -> dict[str, Any]:
        """Its answer. FailureError, with the last that it wrote when its process has ended."""
        answer = self._child.ask(word)
        if not answer:
            raise self._child.died(kind=FailureError)
        return answer

    def _end(self) -> None:
        self._stopped = True
        self._child.close()
        self._child.process.wait()
        if self._folder.exists() and not loop_mounts.take_apart(self._folder, STOPPED_PATIENCE_S):
            for path in self._entry.remove:
                shutil.rmtree(path, ignore_errors=True)
            register.forget(self._entry)
        for partition in self.device.partitions:
            _remove_empty(Path(partition.directory))


class Devices:
    """All devices of one system."""

    def __init__(self, mounted: Sequence[Mounted]) -> None:
        self.mounted = tuple(mounted)

    def set_model_timing(self, on: bool) -> None:
        """Has all devices follow their models (`on`), or answer at once. FailureError: one is gone."""
        for one in self.mounted:
            one.set_model_timing(on)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Has the devices answer at once meanwhile: nothing is measured. `death` reports one that is gone."""
        with contextlib.suppress(FailureError):
            self.set_model_timing(on=False)
        try:
            yield
        finally:
            with contextlib.suppress(FailureError):
                self.set_model_timing(on=True)

    def measured(self, started_unix_s: float, elapsed_s: float, computed: Computed | None) -> None:
        """A trial was measured then, for the traces."""
        for one in self.mounted:
            one.measured(started_unix_s, elapsed_s, computed)

    def cut(self, how: str, seed: int) -> int:
        """The power of all of them goes, see `Mounted.cut`; how many writes no flush had followed. FailureError."""
        return sum(one.cut(how, seed) for one in self.mounted)

    def restore_power(self) -> None:
        """See `Mounted.restore_power`. FailureError."""
        for one in self.mounted:
            one.restore_power()

    def death(self) -> str:
        """How one of them died, in words; "" while all live."""
        return next((cause for one in self.mounted if (cause := one.death())), "")

    def conditions(self) -> dict[str, str]:
        """What was mounted, in words, by the roles it holds."""
        return {_subject(one.device): _described(one) for one in self.mounted}


NO_DEVICES = Devices(())
"""Of a system on real ones."""


class _Watch(threading.Thread):
    """Ends our servers as soon as a device under them has died.

    PostgreSQL that cannot read its log while it recovers from the first error does not even follow a fast shutdown.
    """

    def __init__(self, devices: Devices, data: str | None) -> None:
        """`data`: of the server on them; None: all servers of this process may be."""
        super().__init__(name="device-watch", daemon=True)
        self._devices, self._data = devices, data
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(_WATCH_S):
            if self._devices.death():
                _end_servers(self._data)

    def end(self) -> None:
        self._over.set()
        self.join()


def _end_servers(data: str | None) -> None:
    """Those on `data`: others stand beside it, on devices of their own."""
    own = processes.identify(os.getpid())
    for entry in register.entries():
        ours = entry.kind != register.DEVICE and entry.owner == own
        if ours and (data is None or Path(entry.data).is_relative_to(data)) and entry.server is not None:
            entry.server.signal(signal.SIGQUIT)


@contextmanager
def mounted(
    devices: Sequence[Device],
    seed: int = 0,
    traces: Path | None = None,
    *,
    cuttable: bool = False,
    data: str | None = None,
) -> Iterator[Devices]:
    """The devices, for as long as the block lasts. They answer at once until `set_model_timing(on=True)`.

    `traces`: the beginning of the names of their traces; `cuttable`: see `Mounted`; `data`: see `_Watch`.
    """
    with ExitStack() as stack:
        running = []
        for device in devices:
            roles = "+".join(partition.role for partition in device.partitions)
            trace = traces.with_name(f"{traces.name}-{roles}.parquet") if traces else None
            one = Mounted(device, seed, cuttable=cuttable, trace=trace)
            stack.callback(one.stop)
            running.append(one)
        all_ = Devices(running)
        if running:
            watch = _Watch(all_, data)
            watch.start()
            stack.callback(watch.end)
        yield all_


def _subject(device: Device) -> str:
    return f"device of {' and '.join(partition.role for partition in device.partitions)}"


def _described(one: Mounted) -> str:
    device, measured = one.device, one.calibration
    size = units.stored(sum(partition.bytes for partition in device.partitions))
    way_us = measured["read_latency_ns"] / 1e3
    place = "memory" if device.backing == arrange.RAM else "a file"
    return (
        f"emulated {device.model}, {size}, {device.file_system}, in {place}; "
        f"here a read takes {way_us:.0f} us and {measured['reads_per_s']:.0f}/s get through at most, through {one.way}"
    )


def _refuse_used(device: Device) -> None:
    for partition in device.partitions:
        point = Path(partition.directory)
        if loop_mounts.is_mount_point(point):
            raise InputError(
                f"mount point {point}",
                "something is mounted there already",
                "another ironbench may use the same device: wait for it, or `ironbench device unmount` it",
            )
        if point.exists() and (not point.is_dir() or any(point.iterdir())):
            raise InputError(f"mount point {point}", "it is not an empty directory", "name another one")
        if not (above := space.existing(point)).is_dir():
            raise InputError(f"mount point {point}", f"{above} is not a directory", "name another one")


def _registered(device: Device) -> tuple[Path, register.RegisterEntry]:
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=register.directory()))
    remove = [str(folder)]
    if device.backing != arrange.RAM:
        place.claim(device.backing, "backing")
        remove.append(tempfile.mkdtemp(prefix=f"{IMAGES}-", dir=device.backing))
    return folder, register.new(register.DEVICE, device.partitions[0].directory, tuple(remove))


def _spec(device: Device, seed: int, entry: register.RegisterEntry) -> dict[str, Any]:
    return {
        "model": device.model,
        "models": json.loads(for_core(models())),
        "seed": seed,
        "partitions": [{"name": one.role, "bytes": one.bytes} for one in device.partitions],
        "backing": entry.remove[1] if device.backing != arrange.RAM else None,
    }


def _remove_empty(point: Path) -> None:
    """A mount point that we made, and its folder; others hold something or are not below ours."""
    base = place.base() / "devices"
    while point != base and point.is_relative_to(base):
        try:
            point.rmdir()
        except OSError:
            return
        point = point.parent
