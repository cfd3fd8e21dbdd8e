"""File systems and devices of the directories that a database would use."""

from __future__ import annotations

from statistics import median

from ironbench import units
from ironbench.host.doctor import probe
from ironbench.host.host_view import DirectoryView, HostView
from ironbench.host.mounts import device_number, emulated, in_memory, is_network
from ironbench.host.tree import Tree
from ironbench.model.diagnosis import CheckResult, note, ok, severe, warning
from ironbench.model.machine import Mount

_NO_ROOM_BYTES, _LITTLE_ROOM_BYTES = 1 << 30, 5 << 30
_FULL_SHARE = 0.10
"""If a smaller fraction of a file system is free, the file system or its flash drive becomes slower."""
_DISK_SYNC_S = 1e-3
"""Time in seconds that is too short for any rotating disk to write a block durably."""
_SLOW_SYNC_S = 0.05


def _each_mount(host: HostView) -> list[DirectoryView]:
    """Returns the directories to examine, one per mount."""
    return list({place.mount.path: place for place in host.places if place.mount is not None}.values())


@probe("storage", "file system")
def file_system(host: HostView) -> list[CheckResult]:
    """The type of file system of each directory."""
    return [_file_system(place) for place in _each_mount(host)]


def _file_system(place: DirectoryView) -> CheckResult:
    mount = place.mount
    assert mount is not None
    seen = f"{mount.path}: {mount.kind} on {mount.source}"
    if in_memory(mount):
        return note(
            seen, "The directory is in memory, so no device is measured, and the data are lost when the machine stops."
        )
    if is_network(mount):
        return warning(
            seen,
            (
                "The directory is on a network file system, so results include the network and the load of another "
                "machine."
            ),
            "use a directory on a local disk: --data DIR",
        )
    if mount.kind == "overlay":
        return warning(
            seen,
            (
                "The directory is on the layered file system of a container, where the first change to a file copies "
                "the whole file."
            ),
            "use a directory on a volume: `docker run -v /srv/db:/db …`, then --data /db",
        )
    if mount.kind in ("btrfs", "zfs", "bcachefs"):
        return note(
            seen,
            "The directory is on a copy-on-write file system, which writes changes to a new location and may "
            "compress them. Results depend on the record size and on the age of the file system.",
        )
    if mount.kind.startswith("fuse"):
        return warning(
            seen,
            (
                "The directory is on a file system in user space, and the CPU time of that file system is measured "
                "as time of the device."
            ),
            "use a directory on a kernel file system: --data DIR",
        )
    return ok(seen)


@probe("storage", "mount options")
def mount_options(host: HostView) -> list[CheckResult]:
    """Mount options that make writes unsafe or slow."""
    return [reading for place in _each_mount(host) for reading in _options(place, host.tree)]


def _emulated(mount: Mount, tree: Tree) -> bool:
    number = device_number(mount, tree)
    return number is not None and emulated(number, tree) is not None


def _options(place: DirectoryView, tree: Tree) -> list[CheckResult]:
    mount = place.mount
    assert mount is not None
    options = set(mount.options)
    at = mount.path
    readings = []
    if options & {"nobarrier", "barrier=0"} and _emulated(mount, tree):
        readings.append(
            note(
                f"{at}: barriers are off",
                "The directory is on an emulated device in memory, which has nothing to flush.",
            )
        )
    elif options & {"nobarrier", "barrier=0"}:
        readings.append(
            severe(
                f"{at}: barriers are off",
                "Syncs do not reach the storage medium, so commits look fast but can be lost in a power failure.",
                f"sudo mount -o remount,barrier {at}",
            )
        )
    if options & {"sync", "dirsync"}:
        readings.append(
            severe(
                f"{at}: sync",
                (
                    "With this mount option, every write waits for the device, not only commits. Databases do not "
                    "run this way in production."
                ),
                f"sudo mount -o remount,async {at}",
            )
        )
    if "ro" in options:
        readings.append(
            severe(
                f"{at}: read-only",
                "The file system is read-only, so no database can be created on it.",
                f"sudo mount -o remount,rw {at}",
            )
        )
    if "strictatime" in options or not (options & {"relatime", "noatime"} or in_memory(mount)):
        readings.append(
            warning(
                f"{at}: every read updates the access time (strictatime)",
                "Reading a file also writes its access time.",
                f"sudo mount -o remount,noatime {at}",
            )
        )
    elif "relatime" in options and not in_memory(mount):
        readings.append(ok(f"{at}: relatime (noatime saves a few more writes)"))
    if "discard" in options:
        readings.append(
            note(
                f"{at}: discard",
                (
                    "Deleting files (WAL segments, dropped tables) sends TRIM commands immediately, and some drives "
                    "stall on these commands."
                ),
                f"sudo mount -o remount,nodiscard {at}; sudo systemctl enable --now fstrim.timer",
            )
        )
    if "data=journal" in options:
        readings.append(
            warning(
                f"{at}: data=journal",
                "All data are written twice, first to the journal.",
                f"remove data=journal for {at} from /etc/fstab and mount it again",
            )
        )
    return readings or [ok(f"{at}: no problematic options")]


@probe("storage", "free space")
def free_space(host: HostView) -> list[CheckResult]:
    """Free space for data, WAL and temp files."""
    readings = []
    for place in _each_mount(host):
        space = host.attempts.free_bytes(place.directory)
        if space is None or not space[1]:
            continue
        free, size = space
        seen = f"{place.directory}: {units.stored(free)} of {units.stored(size)} free"
        if free < _NO_ROOM_BYTES:
            readings.append(
                severe(
                    seen,
                    "Loading the data would fill the disk and fail.",
                    "free some space, or use another directory: --data DIR",
                )
            )
        elif free < _LITTLE_ROOM_BYTES or free < size * _FULL_SHARE:
            readings.append(
                warning(
                    seen,
                    (
                        "Flash drives and file systems write more slowly when they are nearly full, and only small "
                        "scale factors fit."
                    ),
                    "free some space, then `sudo fstrim -av`",
                )
            )
        else:
            readings.append(ok(seen))
    return readings


@probe("storage", "I/O scheduler")
def scheduler(host: HostView) -> list[CheckResult]:
    """The I/O scheduler of each device."""
    readings = []
    for block in host.blocks:
        if block.scheduler is None:
            continue
        seen = f"{block.name}: {block.scheduler}"
        path = f"/sys/block/{block.name}/queue/scheduler"
        if block.scheduler in ("bfq", "cfq"):
            readings.append(
                warning(
                    seen,
                    (
                        "This I/O scheduler divides the device fairly among programs, but it uses much CPU time and "
                        "causes pauses."
                    ),
                    f"echo {'mq-deadline' if block.rotational else 'none'} | sudo tee {path}",
                )
            )
        elif block.name.startswith("nvme") and block.scheduler != "none":
            readings.append(
                note(
                    seen,
                    "An NVMe drive orders requests itself, so an I/O scheduler only costs CPU time.",
                    f"echo none | sudo tee {path}",
                )
            )
        elif block.scheduler == "none" and block.rotational and host.virtual == "none":
            readings.append(
                note(
                    seen,
                    "Without a scheduler, requests to a rotating disk are sorted only by the disk itself.",
                    f"echo mq-deadline | sudo tee {path}",
                )
            )
        else:
            readings.append(ok(seen))
    return readings


@probe("storage", "write cache")
def write_cache(host: HostView) -> list[CheckResult]:
    """Whether a device caches writes in volatile memory until it is flushed."""
    readings = []
    for block in host.blocks:
        if block.write_cache is None:
            continue
        seen = f"{block.name}: {block.write_cache}"
        if block.write_cache == "write back":
            readings.append(ok(f"{seen}: a commit waits for a flush, as required"))
        elif host.virtual != "none":
            readings.append(
                note(
                    seen,
                    (
                        "The virtual disk does not support flushes, so the host determines whether a commit survives "
                        "a power failure."
                    ),
                    "ask the host's administrator for the disk's cache mode",
                )
            )
        else:
            readings.append(
                note(
                    seen,
                    "The drive reports no volatile cache. This is correct for drives with power-loss protection. "
                    "On drives without this protection, commits are fast only because a power failure may lose "
                    "them.",
                    "sudo smartctl -g wcache /dev/" + block.name,
                )
            )
    return readings


@probe("storage", "sync time")
def sync_time(host: HostView) -> list[CheckResult]:
    """Duration of a 4 KiB write with a sync, which is the minimum cost of a commit (measured)."""
    readings = []
    for place in _each_mount(host):
        took = host.attempts.syncs(place.directory)
        if not took or place.mount is None or in_memory(place.mount):
            continue
        middle = median(took)
        seen = (
            f"{place.directory}: {units.span(middle)} (median of {len(took)} writes), {units.span(max(took))} at most"
        )
        rotating = place.block is not None and place.block.rotational
        if middle > _SLOW_SYNC_S:
            readings.append(
                warning(
                    seen,
                    "Every commit waits at least this long, unless commits are grouped.",
                    "check for other load on the device: `iostat -x 1`",
                )
            )
        elif rotating and middle < _DISK_SYNC_S and host.virtual == "none":
            readings.append(
                warning(
                    seen,
                    "The write took less time than a rotation of the disk, so a cache acknowledged the write. A "
                    "cache without a battery loses commits in a power failure.",
                    f"sudo hdparm -W /dev/{place.block.name if place.block else '…'}",
                )
            )
        elif rotating and middle < _DISK_SYNC_S:
            readings.append(
                note(
                    seen,
                    "This virtual disk reports that it rotates, but answers like flash or a cache on its host.",
                )
            )
        else:
            readings.append(ok(seen))
    return readings


@probe("storage", "firmware")
def firmware(host: HostView) -> list[CheckResult]:
    """Model and firmware of each drive; a firmware update may improve its speed."""
    return [
        ok(
            f"{block.name}: {block.model or 'model unknown'}, firmware {block.firmware} (check whether a newer version "
            "exists)"
        )
        for block in host.blocks
        if block.firmware
    ]


@probe("storage", "encryption")
def encryption(host: HostView) -> list[CheckResult]:
    """Whether blocks are encrypted before they reach the device."""
    readings = []
    for block in host.blocks:
        if block.name.startswith("dm-"):
            encrypted = (host.tree.read(f"/sys/block/{block.name}/dm/uuid") or "").startswith("CRYPT-")
            if encrypted:
                readings.append(
                    note(
                        f"{block.name} ({block.model}): encrypted",
                        "Encrypting each block takes CPU time, so fast drives become slower, and the measured "
                        "CPU usage includes encryption.",
                        f"sudo cryptsetup refresh --perf-no_read_workqueue --perf-no_write_workqueue {block.model}",
                    )
                )
    return readings or [ok("none seen")]
