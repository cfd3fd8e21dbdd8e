"""Starts the processes of emulated devices and switches their timing. The processes end together with this process."""

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
from ironbench.devices import arrange, emulation_rate, expression
from ironbench.devices.device_process import IMAGES, STOPPED_PATIENCE_S, DeviceOrder
from ironbench.devices.models import for_core, models
from ironbench.devices.recording import TraceWindow, finish, raw, trace_window
from ironbench.errors import FailureError, InputError
from ironbench.host import data_dirs, loop_mounts, processes, register, space
from ironbench.host.child import Child
from ironbench.model.system import Device
from ironbench.words import grouped

ORDER = "order.json"
_PREFIX = "device-"
_LOG = "log"
_WATCH_S = 0.2


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
        """Starts the device's process and waits until everything is mounted. Raises InputError and FailureError.

        `by_hand`: see `DeviceOrder`. `detached`: whether the device outlives this process. `cuttable`: whether power
        cuts can be emulated. `trace`: file for a trace of all requests.
        """
        _refuse_used(device)
        self.device = device
        self.model = units.device(device.model)
        # Less memory may be free now than when the plan was made.
        arrange.require_memory(f"device {self.model}", [device], 0)
        self._trace = trace
        self._trials: list[TraceWindow] = []
        self._folder, self._entry = _registered(device)
        spec = _spec(device, seed, self._entry) | {"cuttable": cuttable, "trace": str(raw(trace)) if trace else None}
        points = {one.role: one.directory for one in device.partitions}
        entry, folder = str(register.path_of(self._entry)), str(self._folder)
        order = DeviceOrder(entry, folder, spec, device.file_system, points, detached, by_hand)
        (self._folder / ORDER).write_text(json.dumps(asdict(order)))
        subject = f"emulated device {self.model}"
        self._child = Child("ironbench.devices.device_process", subject, log=self._folder / _LOG)
        self._stopped = False
        try:
            answer = self._ask(asdict(order))
        except FailureError:
            self._end()
            self._forget_trace()
            raise
        self.calibration: dict[str, Any] = answer["ready"]["calibration"]
        self.rate = emulation_rate.store(self.calibration)
        try:
            self._refuse_too_fast(self.calibration["reads_per_s"])
        except InputError:
            self._forget_trace()
            self.stop()
            raise
        self.blocks: dict[str, str] = answer["ready"]["blocks"]
        self._counters = Path(answer["ready"]["counters"])

    def set_model_timing(self, on: bool) -> None:
        """Switches the modelled timing on or off. While it is off, the device answers requests without delay. Raises
        FailureError if the device's process has died."""
        self._ask("model" if on else "free")

    def measured(self, started_unix_s: float, elapsed_s: float) -> None:
        """Records the time window of a trial, so that the trace can assign I/Os to the trial."""
        if self._trace is not None:
            with contextlib.suppress(OSError, ValueError):  # The device has died, so there will be no trace.
                self._trials.append(trace_window(self._counters, started_unix_s, elapsed_s))

    def counters(self) -> str:
        """Returns the counters of the device's process as JSON (`CountersFile` in
        crates/ironbench-device/src/live/request_handler.rs)."""
        try:
            return self._counters.read_text()
        except OSError as error:
            raise FailureError(f"emulated device {self.model}", self.death() or str(error)) from error

    @property
    def io_path(self) -> str:
        """Name of the I/O path that requests take. The path goes either through the device's process or only through
        the kernel."""
        return "kernel only" if self.calibration["passes"] else "/dev/fuse"

    @property
    def status(self) -> int | None:
        """Exit status of the device's process, or None while the process runs."""
        return self._child.process.poll()

    def cut(self, how: str, seed: int) -> int:
        """Emulates a power cut, after which requests fail. Returns the number of writes since the last flush. Raises
        FailureError.

        `how`: `lose`, `subset` or `torn` (`crates/ironbench-device/src/live/undo.rs`).
        """
        return int(self._ask(f"cut {how} {seed}")["cut"])

    def restore_power(self) -> None:
        """Mounts the file systems again after a power cut. No process may use them any more. Raises FailureError."""
        self.blocks = self._ask("power")["blocks"]

    def death(self) -> str:
        """Describes how the device's process ended. Returns "" while the process runs."""
        how, _ = self._child.how_it_ended()
        return f"the process of the emulated device {self.model} {how}" if how and not self._stopped else ""

    @property
    def pid(self) -> int:
        return self._child.pid

    def release(self) -> None:
        """Leaves a detached device running and closes the connection to it."""
        self._stopped = True
        self._child.close()

    def stop(self) -> None:
        """Unmounts the device and ends its process. If the process could not unmount the device, this method does.
        Raises a FailureError that names what could not be removed."""
        if self._stopped:
            return
        answer = self._child.ask("stop") or self._last_words()
        left = answer.get("stopped")
        self._end()
        if self._trace is not None and raw(self._trace).exists():
            self._keep_trace(self._trace, answer.get("untraced"))
        if left:
            raise FailureError(
                f"emulated device {self.model}",
                "; ".join(left),
                "stop the programs that use the device, then run `ironbench cleanup`",
            )

    def _last_words(self) -> dict[str, Any]:
        """Returns the last message of the device's process, which it sent when another command or a signal ended it.
        Returns {} if the process died without a message."""
        frame = self._child.receive()
        words: dict[str, Any] = {} if frame is None else frame[0]
        return words

    def _forget_trace(self) -> None:
        """Deletes the trace of a device that could not be mounted, so that its file name can be used again. The trace
        contains no I/O of a trial yet."""
        if self._trace is not None:
            raw(self._trace).unlink(missing_ok=True)

    def _keep_trace(self, trace: Path, untraced: str | None) -> None:
        """Converts the trace. If I/Os are missing, deletes it instead and raises FailureError, because a replay would
        take the incomplete trace for the whole work."""
        if untraced == "":
            finish(trace, self.device, self._trials)
            return
        raw(trace).unlink()
        if untraced is not None:  # None means that the process died without an answer, which is reported elsewhere
            raise FailureError(
                f"trace {trace}",
                f"is incomplete: {untraced}",
                "the trace was deleted; write it to a faster disk with enough free space",
            )

    def _refuse_too_fast(self, reads_per_s: float) -> None:
        """Raises InputError for a model that is much faster than the I/O path of this machine. Results with it would
        measure the machine instead of the model."""
        size = sum(one.bytes for one in self.device.partitions)
        if expression.is_negligible(self.device.model, size):
            return
        modelled = expression.read_rate(self.device.model, size, expression.DEEP)
        if emulation_rate.is_too_fast(modelled, reads_per_s):
            raise InputError(
                f"device {self.model}",
                f"the model does {grouped(modelled)} reads/s, but this machine's I/O path allows only "
                f"{grouped(reads_per_s)}/s",
                "use a model that this machine can emulate (`ironbench device calibrate` lists them), mount the device "
                "on an idle machine, or replay a trace on the model (`ironbench device trace replay`)",
            )

    def _ask(self, word: Any) -> dict[str, Any]:
        """Sends a command and returns the answer. Raises FailureError. If the process has ended, the error includes its
        last output."""
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
    """The emulated devices of a system."""

    def __init__(self, mounted: Sequence[Mounted]) -> None:
        self.mounted = tuple(mounted)

    def set_model_timing(self, on: bool) -> None:
        """Switches the modelled timing of all devices on or off. Raises FailureError if one has died."""
        for one in self.mounted:
            one.set_model_timing(on)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Lets the devices answer without delay during the `with` block. The block must not contain a measurement.
        Raises no error if a device has died, because `death` reports this."""
        with contextlib.suppress(FailureError):
            self.set_model_timing(on=False)
        try:
            yield
        finally:
            with contextlib.suppress(FailureError):
                self.set_model_timing(on=True)

    def measured(self, started_unix_s: float, elapsed_s: float) -> None:
        """Records the time window of a trial for the traces."""
        for one in self.mounted:
            one.measured(started_unix_s, elapsed_s)

    def cut(self, how: str, seed: int) -> int:
        """Cuts the power of all devices as `Mounted.cut` does. Returns the number of writes since the last flush.
        Raises FailureError."""
        return sum(one.cut(how, seed) for one in self.mounted)

    def restore_power(self) -> None:
        """Mounts the file systems of all devices again after a power cut, as `Mounted.restore_power` does. Raises
        FailureError."""
        for one in self.mounted:
            one.restore_power()

    def death(self) -> str:
        """Describes how one of the devices died. Returns "" while all devices work."""
        return next((cause for one in self.mounted if (cause := one.death())), "")

    def conditions(self) -> dict[str, str]:
        """Returns a description of each mounted device for the conditions of the record. The keys name the device's
        roles."""
        return {_subject(one.device): _described(one) for one in self.mounted}


NO_DEVICES = Devices(())
"""The value of `Devices` for a system without emulated devices."""


class _Watch(threading.Thread):
    """Kills the servers of this process as soon as a device under them has died.

    A PostgreSQL server that cannot read its WAL during crash recovery ignores even a fast shutdown.
    """

    def __init__(self, devices: Devices, data: str | None) -> None:
        """Starts the watch. `data`: data directory of the server on the devices. With None, all servers of this process
        are killed."""
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
    """Sends SIGQUIT to the servers of this process. With `data`, sends it only to those whose data directory is inside
    `data`, because other systems of this process may be running on other devices."""
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
    """Mounts the devices for the duration of the `with` block. The devices answer without delay until
    `set_model_timing(on=True)`.

    `traces`: start of the paths of the traces, without roles and suffix. `cuttable`: as in `Mounted`. `data`: as in
    `_Watch`.
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
        f"emulated {units.device(device.model)}, {size}, {device.file_system}, in {place}; "
        f"I/O path overhead {way_us:.0f} us per read, at most {measured['reads_per_s']:.0f} reads/s ({one.io_path})"
    )


def _refuse_used(device: Device) -> None:
    for partition in device.partitions:
        point = Path(partition.directory)
        if loop_mounts.is_mount_point(point):
            raise InputError(
                f"mount point {point}",
                "another file system is already mounted there",
                (
                    "another ironbench process may use the same device: wait for that process, or run `ironbench "
                    "device unmount`"
                ),
            )
        if point.exists() and (not point.is_dir() or any(point.iterdir())):
            raise InputError(f"mount point {point}", "is not an empty directory", "use another directory")
        if not (above := space.existing(point)).is_dir():
            raise InputError(f"mount point {point}", f"{above} is not a directory", "use another directory")


def _registered(device: Device) -> tuple[Path, register.RegisterEntry]:
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=register.directory()))
    remove = [str(folder)]
    if device.backing != arrange.RAM:
        data_dirs.claim(device.backing, "backing")
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
    """Removes a mount point that ironbench made, and its empty parents. Keeps directories that are not empty or are
    outside ironbench's base directory."""
    base = data_dirs.base() / "devices"
    while point != base and point.is_relative_to(base):
        try:
            point.rmdir()
        except OSError:
            return
        point = point.parent
