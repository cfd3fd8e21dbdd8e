"""The process of one emulated device: it answers for the device, and takes everything apart when it ends.

A child process (`ironbench.host.child`). The first message is a `DeviceOrder`, answered by `ready` or an error. Words
follow, each with an answer: `model` and `free` say who decides when the device answers, `stop` ends it.
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
from ironbench.host.child import Channel, refusal
from ironbench.host.mounts import COUNTERS
from ironbench.host.programs import output

FILES = "files"
"""Where in its folder a device shows its files."""
IMAGES = "images"
CALIBRATED_BYTES = 32 << 20
"""So much of a partition is overwritten to measure the way to it."""
STOPPED_PATIENCE_S = 10.0
"""How long a mount may be in use still, when we are told to stop: its engine was stopped before …"""
ORPHAN_PATIENCE_S = 45.0
"""… and when our owner is gone: the engine's guard ends the engine meanwhile, which writes its last to this device."""


@dataclass(frozen=True, slots=True)
class DeviceOrder:
    """What the process is to make."""

    entry: str
    """Path of the register's entry."""
    folder: str
    """Of this device alone; removed at the end."""
    spec: dict[str, Any]
    """See `crates/ironbench-device/src/live/spec.rs`."""
    file_system: str
    points: dict[str, str]
    """Partition → where its file system is mounted."""
    detached: bool
    """Whether it outlives whoever started it."""
    by_hand: bool
    """Whether somebody mounted it with `device mount`; otherwise it is under an engine that is measured."""


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
        device.drop_rows()
    parent.tell({"stopped": left, "untraced": device.untraced})


class MountedDevice:
    """The device and what hangs on it."""

    def __init__(self, order: DeviceOrder) -> None:
        self._order = order
        self._folder = Path(order.folder)
        self._live: Any = None
        self._blocks: dict[str, str] = {}
        self._modelled = False
        self._made: list[Path] = []
        self.untraced = ""
        """Why the trace lacks I/Os, in words; "" when it is whole, or none was wanted."""

    def make(self) -> dict[str, Any]:
        """Files, loop devices, file systems, mounts; what was measured on the way. FailureError, InputError."""
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
            # What the kernel itself keeps in memory is done when it is written (docs/adr/0014).
            self._furnish(block, Path(self._order.points[name]), not measured["passes"])
        return {"calibration": measured, "blocks": blocks, "counters": str(files / COUNTERS)}

    def say(self, word: str) -> dict[str, Any]:
        """Does what one word asks for."""
        if word == "model":
            for point in self._order.points.values():
                _flush(Path(point))
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
        """Everything in reverse, fast; what could not be undone, a line each. Removes the register's entry."""
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
            return left  # the entry stays: `ironbench cleanup` tries again
        entry = register.read(Path(self._order.entry))
        for path in entry.remove if entry else (self._order.folder,):
            shutil.rmtree(path, ignore_errors=True)
        if entry is not None:
            register.forget(entry)
        return left

    def drop_rows(self) -> None:
        """Those of the trace that our owner would have made: it is gone, and nobody can read them."""
        if rows := self._order.spec.get("trace"):
            with contextlib.suppress(OSError):
                Path(rows).unlink(missing_ok=True)

    def _end_trace(self) -> str:
        """Why it lacks I/Os."""
        try:
            self._live.end_trace()
        except IronbenchError as error:
            return error.cause
        dropped = json.loads(self._live.counters())["untraced"]
        return f"{dropped} I/Os came faster than they could be written" if dropped else ""

    def _powered(self) -> dict[str, str]:
        """After a power cut: block devices and mounts anew, for the kernel's caches went with the power."""
        files = self._folder / FILES
        if left := [
            *self._unmounted(),
            *(f"{loop.device} is in use still" for loop in loop_mounts.loops(self._folder)),
        ]:
            raise FailureError("power", "; ".join(left), "end the programs that use the device first")
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
            raise FailureError("emulated device", f"its entry {self._order.entry} is gone")
        register.with_server(register.owned(entry, own) if self._order.detached else entry, own, None)

    def _furnish(self, block: str, point: Path, flushes: bool) -> None:
        if not point.exists():
            missing = [path for path in (point, *point.parents) if not path.exists()]
            point.mkdir(parents=True)
            self._made += reversed(missing)
        file_systems.make(self._order.file_system, block)
        file_systems.mount(self._order.file_system, block, point, flushes=flushes)


def _serve(parent: Channel, device: MountedDevice, woken: int, detached: bool) -> float:
    """Until there is a reason to end; how long what hangs on the device may be in use then."""
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
                answer = device.say(frame[0])
            except IronbenchError as error:
                answer = refusal(error)
            parent.tell(answer)


def _flush(point: Path) -> None:
    """Writes what the file system holds back (syncfs(2), by sync(1))."""
    output(["sync", "--file-system", str(point)], timeout_s=None)
