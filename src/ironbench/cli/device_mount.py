"""Mounts and unmounts emulated devices for `ironbench device`."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from pathlib import Path
from types import FrameType
from typing import Any

from ironbench import units
from ironbench.devices import arrange, capability, expression, file_systems
from ironbench.devices.emulation_rate import EmulationRate
from ironbench.devices.mounting import ORDER, Mounted
from ironbench.errors import FailureError, InputError
from ironbench.fields.sections import CAPACITY
from ironbench.host import idle_machine, register
from ironbench.model.system import Device, Partition
from ironbench.printer import Printer

PARTITION = "data"
_CALIBRATED_BYTES = 200 << 20
_WATCH_S = 0.2
_QUICK_S, _UNMOUNT_S = 3.0, 60.0


def mounted(device: Device, seed: int, detach: bool, trace: str) -> int:
    """Mounts a device until Ctrl-C or `device unmount`. With `detach`, returns at once, and the device stays mounted.
    Raises InputError if the options cannot be used, and FailureError if the device cannot be mounted or fails."""
    printer = Printer()
    path = traced(trace) if trace else None
    if path and detach:
        raise InputError(
            "--trace",
            "cannot be combined with --detach",
            "remove --detach: the trace is written when the device is unmounted",
        )
    one = Mounted(device, seed, by_hand=True, detached=detach, trace=path)
    try:
        one.set_model_timing(on=True)
        point = device.partitions[0].directory
        for line in _lines(one):
            printer.say(line)
        printer.data(point)
        if detach:
            printer.say(f"to unmount: `ironbench device unmount {point}`")
            one.release()
            return 0
        printer.say("press Ctrl-C to unmount")
        _wait(one)
        if one.status:
            raise FailureError(f"device {device.model}", one.death())
    finally:
        one.stop()
    return 0


def calibrated() -> EmulationRate:
    """Mounts a device briefly to measure the I/O path of this machine. Raises InputError or FailureError if the device
    cannot be mounted."""
    printer = Printer()
    printer.say("measuring how fast this machine can emulate devices, which takes a few seconds …")
    if idle_machine.wait(0.0)[1]:
        printer.say("warning: other programs are using the machine, so the measured rate is too low")
    one = Mounted(wanted(arrange.RAM, "", str(_CALIBRATED_BYTES), file_systems.DEFAULT, arrange.RAM), by_hand=True)
    one.stop()
    assert one.rate is not None  # only the model `free` has no rate, because no process answers its requests
    return one.rate


def traced(name: str) -> Path:
    """Returns the path of a trace file. Raises InputError if the path cannot be used."""
    path = Path(name).absolute()
    if not path.parent.is_dir():
        raise InputError(
            f"--trace {name}", f"the directory {path.parent} does not exist", "create the directory, or use another one"
        )
    if path.exists():
        cause = "is a directory" if path.is_dir() else "already exists and would be overwritten"
        raise InputError(f"--trace {name}", cause, "use another file name")
    return path


def unmounted(name: str) -> int:
    """Unmounts a device. Raises InputError if no such device is mounted, and FailureError if it is in use."""
    entry = _mounted_device(name)
    if entry.server is not None and entry.server.signal(signal.SIGTERM) and not entry.server.wait(_QUICK_S):
        Printer().say(
            f"unmounting {entry.data} takes a while, because data is being written or a program has open files on "
            "the device"
        )
        entry.server.wait(_UNMOUNT_S)
    if register.path_of(entry).exists() and not register.end(entry, patience_s=1.0):
        raise FailureError(entry.data, "is in use", "stop the programs that use it and try again")
    Printer().say(f"unmounted: {entry.data}")
    return 0


def wanted(model: str, directory: str, capacity: str, fs: str, backing: str) -> Device:
    """Builds the device from the options. Raises InputError if an option is invalid, or if this machine cannot emulate
    devices."""
    name = expression.normalized("device", model)
    capability.require(f"device {name}")
    bytes_ = int(CAPACITY.read("--capacity", capacity))
    file_system = file_systems.validated("--fs", fs)
    alone = arrange.DeviceRequest(name, (PARTITION,), bytes_, file_system, backing)
    (device,) = arrange.arranged((alone,), 0, f"device {name}")
    if not directory:
        return device
    partition = Partition(PARTITION, device.partitions[0].bytes, str(Path(directory).absolute()))
    return Device(device.model, (partition,), device.file_system, device.backing)


def _lines(one: Mounted) -> list[str]:
    measured = one.calibration
    granted = [name.replace("_", " ") for name, has in measured["granted"].items() if not has]
    lines = [
        f"{units.device(one.device.model)}: the I/O path ({one.io_path}) adds {measured['read_latency_ns'] / 1e3:.0f} "
        f"us to each read and allows {measured['reads_per_s']:.0f} reads of 4 KiB per second"
    ]
    if granted:
        lines.append(f"the emulation is less accurate, because this machine does not permit: {', '.join(granted)}")
    return lines


def _wait(one: Mounted) -> None:
    """Waits until Ctrl-C, SIGTERM or the end of the device process. `device unmount` ends the device process."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    try:
        while one.status is None:
            time.sleep(_WATCH_S)
    except KeyboardInterrupt:
        return


def _mounted_device(name: str) -> register.RegisterEntry:
    """Finds a mounted device by its mount point or model. Raises InputError if no device matches, or if several
    match."""
    orders = [(entry, _order(entry)) for entry in register.entries() if entry.kind == register.DEVICE]
    mounted = [(entry, order["spec"]["model"]) for entry, order in orders if order.get("by_hand")]
    matching = [entry for entry, _ in mounted if Path(entry.data) == Path(name).absolute()]
    if not matching and arrange.is_expression(name):
        # If the model is from a user's file that is not loaded now, the name is compared as written.
        with contextlib.suppress(InputError):
            name = expression.normalized("device", name)
        matching = [entry for entry, model in mounted if model == name]
    if len(matching) > 1:
        places = ", ".join(entry.data for entry in matching)
        raise InputError(
            name, f"{len(matching)} devices of that model are mounted", f"use the mount point instead: {places}"
        )
    known = ", ".join(f"{entry.data} ({model})" for entry, model in mounted)
    if not matching:
        raise InputError(
            name,
            "no such mounted device: `device mount` mounted no device in this directory or with this model",
            f"mounted: {known}" if known else "",
        )
    return matching[0]


def _order(entry: register.RegisterEntry) -> dict[str, Any]:
    """Reads the parameters with which a device process was started, from its order file. Returns an empty dict if the
    process has ended."""
    try:
        order: dict[str, Any] = json.loads((Path(entry.remove[0]) / ORDER).read_text())
    except (OSError, ValueError, IndexError):
        return {}
    return order
