"""The process of one emulated device, which serves the device's I/O. When it ends, it unmounts and removes everything.

This is a child process (`ironbench.host.child`). The first message is a `DeviceOrder`. The process answers it with
`ready` or an error. Further messages are commands, and each of them is answered. `model` switches the modelled timing
on, and `free` switches it off. `stop` ends the process. `MountedDevice.execute` implements the other commands.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ironbench.devices import file_systems
from ironbench.errors import FailureError, IronbenchError
from ironbench.host import loop_mounts, processes, register
from ironbench.host.child import Channel, encode_error
from ironbench.host.mounts import COUNTERS
from ironbench.host.programs import output

FILES = "files"
"""Subdirectory of the device's folder where FUSE shows its files."""
IMAGES = "images"
CALIBRATED_BYTES = 32 << 20
"""Bytes of a partition that are overwritten to measure the I/O path overhead."""
STOPPED_PATIENCE_S = 10.0
"""How many seconds to wait for mounts that are still in use after a request to stop. Such a request comes only after
the engine has stopped."""
ORPHAN_PATIENCE_S = 45.0
"""How many seconds to wait for mounts that are still in use after the parent process has died. During this time, the
engine's guard stops the engine, which writes its last pages to this device."""


@dataclass(frozen=True, slots=True)
class DeviceOrder:
    """The device, file system and mounts that the process creates."""

    entry: str
    """Path of the entry in the register of running processes."""
    folder: str
    """Directory that only this device uses. The directory is removed at the end."""
    spec: dict[str, Any]
    """Specification of the device, as described in `crates/ironbench-device/src/live/spec.rs`."""
    file_system: str
    points: dict[str, str]
    """Name of a partition → mount point of its file system."""
    detached: bool
    """Whether the device outlives the process that started it."""
    by_hand: bool
    """Whether a user mounted the device with `device mount`. Otherwise, the device belongs to an engine under test."""


def main(parent: Channel) -> None:
    frame = parent.receive()
    if frame is None:
        return
    order = DeviceOrder(**frame[0])
    woken = processes.woken_by(signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    device = MountedDevice(order)
    try:
        ready = device.make()
    except IronbenchError as error:
        cause = "; ".join([error.cause, *device.unmake(STOPPED_PATIENCE_S)])
        raise FailureError(error.subject, cause, error.hint) from error
    except OSError as error:
        cause = "; ".join([str(error), *device.unmake(STOPPED_PATIENCE_S)])
        raise FailureError(f"emulated device {order.spec['model']}", cause) from error
    parent.tell({"ready": ready})
    patience_s = _serve(parent, device, woken, order.detached)
    left = device.unmake(patience_s)
    if patience_s == ORPHAN_PATIENCE_S:
        device.delete_raw_rows()
    parent.tell({"stopped": left, "untraced": device.untraced})


class MountedDevice:
    """The device with its loop devices, file systems and mounts."""

    def __init__(self, order: DeviceOrder) -> None:
        self._order = order
        self._folder = Path(order.folder)
        self._live: Any = None
        self._blocks: dict[str, str] = {}
        self._modelled = False
        self._made: list[Path] = []
        self.untraced = ""
        """Why I/Os are missing from the trace. The text is "" if the trace is complete or none was requested."""

    def make(self) -> dict[str, Any]:
        """Creates files, loop devices, file systems and mounts. Returns the calibration of the I/O path. Raises
        FailureError and InputError."""
        from ironbench import _core

        self._note()
        files = self._folder / FILES
        files.mkdir()
        self._live = _core.LiveDevice(json.dumps(self._order.spec).encode(), str(files))
        blocks = self._blocks = {name: loop_mounts.attach(files / name) for name in self._order.points}
        sizes = {one["name"]: one["bytes"] for one in self._order.spec["partitions"]}
        largest = max(blocks, key=lambda name: sizes[name])
        measured = json.loads(self._live.calibrate(blocks[largest], min(CALIBRATED_BYTES, sizes[largest])))
        for name, block in blocks.items():
            # If the kernel itself keeps the bytes in memory, a write is durable at once, and flushes are not needed
            # (docs/adr/0014).
            self._create_file_system(block, Path(self._order.points[name]), not measured["passes"])
        return {"calibration": measured, "blocks": blocks, "counters": str(files / COUNTERS)}

    def execute(self, word: str) -> dict[str, Any]:
        """Executes one command from the parent process, and returns the answer. Raises FailureError."""
        if word == "model":
            for point in self._order.points.values():
                # Dirty pages are written before the timing is modelled (syncfs(2))
                output(["sync", "--file-system", point], timeout_s=None)
            self._live.pace(list(self._blocks.values()))
            self._modelled = True
            return {"paced": word}
        if word == "free":
            self._modelled = False
            self._live.hurry()
            return {"paced": word}
        if word.startswith("cut "):
            _, how, seed = word.split()
            return {"cut": self._live.cut(how, int(seed))}
        if word == "power":
            return {"blocks": self._powered()}
        return {"unknown": word}

    def unmake(self, patience_s: float) -> list[str]:
        """Undoes `make` in reverse order, with modelled timing off. Returns a line for each step that could not be
        undone. If there is none, also removes the device's entry from the register."""
        if self._live is not None:
            self._live.hurry()
            self.untraced = self._end_trace()
        left = loop_mounts.take_apart(self._folder, patience_s)
        if self._live is not None and not left:
            with contextlib.suppress(IronbenchError):
                self._live.unmount()
        for point in reversed(self._made):
            with contextlib.suppress(OSError):
                point.rmdir()
        if left:
            return left  # the register keeps the entry, so that `ironbench cleanup` tries again
        entry = register.read(Path(self._order.entry))
        for path in entry.remove if entry else (self._order.folder,):
            shutil.rmtree(path, ignore_errors=True)
        if entry is not None:
            register.forget(entry)
        return left

    def delete_raw_rows(self) -> None:
        """Deletes the raw rows of the trace. Only the parent process converts raw rows, and it has died."""
        if rows := self._order.spec.get("trace"):
            with contextlib.suppress(OSError):
                Path(rows).unlink(missing_ok=True)

    def _end_trace(self) -> str:
        """Ends the trace. Returns why I/Os are missing from it. Returns "" if none are missing."""
        try:
            self._live.end_trace()
        except IronbenchError as error:
            return error.cause
        dropped = json.loads(self._live.counters())["untraced"]
        return f"{dropped} I/Os arrived faster than the trace could be written" if dropped else ""

    def _powered(self) -> dict[str, str]:
        """Restores all loop devices and mounts after a power cut. Detaching the loop devices discards the contents of
        the kernel's caches. Returns the new loop device of each partition. Raises FailureError if a device is still in
        use."""
        files = self._folder / FILES
        if left := [
            *self._unmounted(),
            *(f"{loop.device} is still in use" for loop in loop_mounts.loops(self._folder)),
        ]:
            raise FailureError("power", "; ".join(left), "stop the programs that use the device")
        self._live.revive()
        blocks = self._blocks = {name: loop_mounts.attach(files / name) for name in self._order.points}
        for name, block in blocks.items():
            file_systems.mount(self._order.file_system, block, Path(self._order.points[name]))
        if self._modelled:
            self._live.pace(list(blocks.values()))
        return blocks

    def _unmounted(self) -> list[str]:
        left = []
        for loop in loop_mounts.loops(self._folder):
            for point in loop_mounts.mount_points(loop.device):
                try:
                    loop_mounts.unmount(point, STOPPED_PATIENCE_S)
                except FailureError as error:
                    left.append(str(error))
            loop_mounts.detach(loop.device)
        loop_mounts.wait_gone(self._folder, STOPPED_PATIENCE_S)
        return left

    def _note(self) -> None:
        entry = register.read(Path(self._order.entry))
        own = processes.identify(os.getpid())
        if entry is None or own is None:
            raise FailureError(
                "emulated device", f"the file {self._order.entry}, in which ironbench registers the device, is missing"
            )
        register.with_server(register.owned(entry, own) if self._order.detached else entry, own, None)

    def _create_file_system(self, block: str, point: Path, flushes: bool) -> None:
        if not point.exists():
            missing = [path for path in (point, *point.parents) if not path.exists()]
            point.mkdir(parents=True)
            self._made += reversed(missing)
        file_systems.make(self._order.file_system, block)
        file_systems.mount(self._order.file_system, block, point, flushes=flushes)


def _serve(parent: Channel, device: MountedDevice, woken: int, detached: bool) -> float:
    """Serves commands until the process must end. Returns how many seconds to wait for mounts that are still in use."""
    poller = select.poll()
    poller.register(woken, select.POLLIN)
    poller.register(parent.socket, select.POLLIN | select.POLLHUP)
    while True:
        for fd, _ in poller.poll():
            if fd == woken:
                return STOPPED_PATIENCE_S
            frame = parent.receive()
            if frame is None and detached:
                poller.unregister(parent.socket)
                continue
            if frame is None:
                return ORPHAN_PATIENCE_S
            if frame[0] == "stop":
                return STOPPED_PATIENCE_S
            try:
                answer = device.execute(frame[0])
            except IronbenchError as error:
                answer = encode_error(error)
            parent.tell(answer)
