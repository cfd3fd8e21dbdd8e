"""Turns device expressions into devices with partitions. Determines which roles share a device, the sizes of the
partitions, and their mount points."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ironbench import units
from ironbench.devices import capability, expression, file_systems
from ironbench.engines import ideal
from ironbench.errors import InputError, written
from ironbench.fields.sections import CAPACITY, DeviceSection, LayoutSection
from ironbench.host import data_dirs, space
from ironbench.model.system import ZERO_LATENCY, Device, Layout, Partition, System
from ironbench.paths import expanded

ROLES = ("data", "temp", "log")
RAM = "ram"
PAGE = 4096
LOG_BYTES = 2 << 30
"""Size of the partition for the WAL (role `log`). PostgreSQL keeps up to 1 GB of WAL between checkpoints by default
(max_wal_size), and may exceed it."""
TEMP_BYTES = 1 << 30
SPARE_BYTES = 1 << 30
GROWTH = 2.0
"""Size of the data partition as a multiple of the loaded data. Tables grow. While data are restored, there may be two
copies for a short time."""
UNDONE = 2
"""Memory for undoing writes, as a multiple of the data. A device keeps the old and the new contents of each write until
the next flush, so that a power cut can undo the write (`crates/ironbench-device/src/live/undo.rs`). Loading may write
all of the data between two flushes."""
LEAST_BYTES = 64 << 20
ZERO_LATENCY_ROOM = 1.5
"""Size of a zero-latency device as a multiple of the maximum size of its files. The factor leaves a reserve, because
the maximum of PostgreSQL's WAL is only a soft limit. A full device would end the trial."""
FILE_SYSTEM_SHARE = 0.1
"""Approximate share of a small partition that file system metadata takes."""


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A device as the user declared it."""

    model: str
    roles: tuple[str, ...]
    capacity_bytes: int | None = None
    file_system: str = file_systems.DEFAULT
    backing: str = RAM
    name: str = ""
    """Name chosen by the user. Two devices of the same model have different names."""


def is_expression(text: str) -> bool:
    """Returns whether `text` is a device expression. A text that contains `/` or starts with `.` is a directory
    instead."""
    return bool(text) and "/" not in text and not text.startswith(".")


def requested_devices(
    devices: Mapping[str, str | DeviceSection], layout: LayoutSection, folder: Path
) -> tuple[DeviceRequest, ...]:
    """Returns the devices that are named in `[devices]` or written as expressions in `[layout]`. The devices are in the
    order of the roles. Roles that name the same device share it. `folder`: base of relative paths. Raises
    InputError."""
    named: dict[str, list[str]] = {}
    for role in ROLES:
        declared = getattr(layout, role)
        if is_expression(declared):
            key = declared if declared in devices else expression.normalized(written(f"layout.{role}"), declared)
            named.setdefault(key, []).append(role)
    return tuple(_request(name, tuple(roles), devices.get(name), folder) for name, roles in named.items())


def _request(name: str, roles: tuple[str, ...], declared: str | DeviceSection | None, folder: Path) -> DeviceRequest:
    if declared is None:
        return DeviceRequest(name, roles)
    section, subject = DeviceSection(model=declared) if isinstance(declared, str) else declared, f"devices.{name}"
    if not section.model:
        raise InputError(f"{subject}.model", "is missing", "choose a model from `ironbench list devices`")
    size = section.capacity
    capacity_bytes = int(CAPACITY.read(written(f"{subject}.capacity"), size)) if size != "" else None
    backing = expanded(section.backing or RAM)
    return DeviceRequest(
        expression.normalized(written(f"{subject}.model"), section.model),
        roles,
        capacity_bytes,
        section.fs or file_systems.DEFAULT,
        RAM if section.backing in ("", RAM) else str((folder / backing).absolute()),
        name,
    )


def arranged(
    requests: Sequence[DeviceRequest], estimate_bytes: int, subject: str = "layout", *, cuttable: bool = False
) -> tuple[Device, ...]:
    """Returns the devices with their partitions. Raises InputError if this machine cannot emulate devices or lacks the
    memory, or if a device is too small. `cuttable`: whether a power cut will be emulated. This needs memory for undoing
    writes."""
    if not requests:
        return ()
    capability.require(subject)
    placed = {role for one in requests for role in one.roles}
    devices = tuple(_arranged(one, number, placed, estimate_bytes) for number, one in enumerate(requests))
    require_memory(subject, devices, UNDONE * estimate_bytes if cuttable else 0)
    return devices


def with_devices(layout: Layout, devices: tuple[Device, ...]) -> Layout:
    """Returns the layout with its roles placed on the devices."""
    return replace(layout.at(directories(devices)), devices=devices)


def zero_latency(system: System, needed: Mapping[str, int], *, cuttable: bool = False) -> System:
    """Returns the system with its ideal parts (`--ideal`) on zero-latency devices. The configured devices of these
    parts are not used. Raises InputError as `arranged` does.

    `needed`: part → maximum size of its files in bytes.
    """
    sizes = {part: int(size * ZERO_LATENCY_ROOM) for part, size in needed.items()}
    requests = [DeviceRequest(ZERO_LATENCY, (part,), size) for part, size in sizes.items()]
    subject = ", ".join(written("system.ideal", part) for part in needed)
    layout = system.layout.without(needed)
    devices = (*layout.devices, *arranged(requests, 0, subject, cuttable=cuttable))
    require_memory(subject, devices, 0)
    return replace(system, layout=with_devices(layout, devices))


def directories(devices: Sequence[Device]) -> dict[str, str]:
    """Returns, for each role on a device, the mount point of its partition."""
    return {partition.role: partition.directory for device in devices for partition in device.partitions}


def partition_bytes(devices: Sequence[Device], role: str) -> int | None:
    """Returns the size in bytes of the partition for a role. Returns None if the role is on no device."""
    for device in devices:
        for partition in device.partitions:
            if partition.role == role:
                return partition.bytes
    return None


def require_room(device_bytes: int, estimate_bytes: int) -> None:
    """Raises InputError if the data would not fit on their partition."""
    if estimate_bytes * (1 + space.RESERVE) > device_bytes * (1 - FILE_SYSTEM_SHARE):
        raise InputError(
            written("layout.data"),
            f"the workload's data take about {units.stored(estimate_bytes)}, but the device's data partition has only "
            f"{units.stored(device_bytes)}",
            "give the device more capacity, or choose a smaller scale",
        )


def _arranged(request: DeviceRequest, number: int, placed: set[str], estimate_bytes: int) -> Device:
    subject = f"device {request.model}"
    file_systems.validated(written("devices.NAME.fs"), request.file_system)
    backing = request.backing if request.backing == RAM else data_dirs.check(request.backing, "backing")
    needs = {role: _needed(role, placed, estimate_bytes) for role in request.roles}
    if request.capacity_bytes is not None:
        scale = request.capacity_bytes / sum(needs.values())
        needs = {role: int(need * scale) for role, need in needs.items()}
    sizes = {role: _whole_pages(need) for role, need in needs.items()}
    least = max(LEAST_BYTES, file_systems.smallest_bytes(request.file_system))
    for role, size in sizes.items():
        if size < least:
            raise InputError(
                subject,
                f"the partition for {role} would have {units.stored(size)}, but {request.file_system} needs at least "
                f"{units.stored(least)}",
                "give the device more capacity, or choose another file system",
            )
    key = hashlib.sha256(repr((request, number, sorted(sizes.items()))).encode()).hexdigest()[:12]
    folder = data_dirs.base() / "devices" / key
    partitions = tuple(Partition(role, size, str(folder / role)) for role, size in sizes.items())
    depth = expression.depth(request.model, sum(sizes.values()))
    rotates = expression.rotates(request.model)
    return Device(request.model, partitions, request.file_system, backing, depth, rotates)


def usual_bytes(role: str, placed: Collection[str], estimate_bytes: int) -> int:
    """Returns the size of the partition for a role when the user sets no capacity. `placed`: the roles that are on
    emulated devices."""
    return _whole_pages(_needed(role, placed, estimate_bytes))


def _whole_pages(size: int) -> int:
    return max(PAGE, size // PAGE * PAGE)


def _needed(role: str, placed: Collection[str], estimate_bytes: int) -> int:
    if role == "log":
        return LOG_BYTES
    if role == "temp":
        return TEMP_BYTES + estimate_bytes
    beside = (0 if "log" in placed else LOG_BYTES) + (0 if "temp" in placed else TEMP_BYTES)
    return int(GROWTH * estimate_bytes) + SPARE_BYTES + beside


def require_memory(subject: str, devices: Sequence[Device], undone: int) -> None:
    """Raises InputError if the devices need more memory than is available. The kernel would otherwise kill processes.
    Also raises InputError if the backing directory of a device does not exist. `undone`: bytes for undoing writes."""
    needed = sum(one.bytes for device in devices if device.backing == RAM for one in device.partitions) + undone
    may = int(ideal.available_bytes() * ideal.MOST_OF_MEMORY)
    if needed > may:
        beside = f", including {units.stored(undone)} to undo writes after a power cut" if undone else ""
        raise InputError(
            subject,
            f"the devices need {units.stored(needed)} of memory{beside}, but only {units.stored(may)} may be used",
            f"make the devices smaller with {written('devices.NAME.capacity')}, "
            f"or store their contents in a directory with {written('devices.NAME.backing')} DIR",
        )
    for device in devices:
        if device.backing != RAM and not space.existing(Path(device.backing)).is_dir():
            subject = written("devices.NAME.backing", device.backing)
            raise InputError(subject, "is not a directory", "give the path of a directory")
