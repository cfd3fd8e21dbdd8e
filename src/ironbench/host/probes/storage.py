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
"""Used fraction of a file system above which file systems and flash drives become slower."""
_DISK_SYNC_S = 1e-3
"""Time in seconds within which no rotating disk can write a block durably."""
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
        return note(seen, "In memory: no device is measured, and the data are lost when the machine stops.")
    if is_network(mount):
        return warning(
            seen,
            "A network file system: the network and another machine's load are also measured.",
            "use a directory on a local disk: --data DIR",
        )
    if mount.kind == "overlay":
        return warning(
            seen,
            "A container's layered file system: the first change of a file copies the whole file.",
            "use a directory on a volume: `docker run -v /srv/db:/db …`, then --data /db",
        )
    if mount.kind in ("btrfs", "zfs", "bcachefs"):
        return note(
            seen,
            "A copy-on-write file system: changes go to a new location, and may be compressed; figures depend on the "
            "record size and the file system's age.",
        )
    if mount.kind.startswith("fuse"):
        return warning(
            seen,
            "A file system in user space: its CPU time is measured as time of the device.",
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
        readings.append(note(f"{at}: barriers are off", "An emulated device in memory, which has nothing to flush."))
    elif options & {"nobarrier", "barrier=0"}:
        readings.append(
            severe(
                f"{at}: barriers are off",
                "Syncs do not reach the medium: commits look fast and can be lost in a power failure.",
                f"sudo mount -o remount,barrier {at}",
            )
        )
    if options & {"sync", "dirsync"}:
        readings.append(
            severe(
                f"{at}: sync",
                "Every write waits for the device, not only commits: databases do not run this way in production.",
                f"sudo mount -o remount,async {at}",
            )
        )
    if "ro" in options:
        readings.append(
            severe(f"{at}: read-only", "No database can be created here.", f"sudo mount -o remount,rw {at}")
        )
    if "strictatime" in options or not (options & {"relatime", "noatime"} or in_memory(mount)):
        readings.append(
            warning(
                f"{at}: every read updates the access time (strictatime)",
                "Reading causes writes.",
                f"sudo mount -o remount,noatime {at}",
            )
        )
    elif "relatime" in options and not in_memory(mount):
        readings.append(ok(f"{at}: relatime (noatime saves a few more writes)"))
    if "discard" in options:
        readings.append(
            note(
                f"{at}: discard",
                "Deleting files (WAL segments, dropped tables) sends trims immediately; some drives stall on them.",
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
                    "A load would fill the disk and fail.",
                    "free some space, or use another directory: --data DIR",
                )
            )
        elif free < _LITTLE_ROOM_BYTES or free < size * _FULL_SHARE:
            readings.append(
                warning(
                    seen,
                    "Nearly full flash drives and file systems write slower, and only small scales fit.",
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
                    "This scheduler divides the device fairly between programs, at a high cost and with pauses.",
                    f"echo {'mq-deadline' if block.rotational else 'none'} | sudo tee {path}",
                )
            )
        elif block.name.startswith("nvme") and block.scheduler != "none":
            readings.append(
                note(
                    seen,
                    "An NVMe drive orders requests itself: a scheduler only costs CPU.",
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
                    "The virtual disk has no flush: whether a commit survives a power failure depends on the host.",
                    "ask the host's administrator for the disk's cache mode",
                )
            )
        else:
            readings.append(
                note(
                    seen,
                    "The drive reports no volatile cache. This is correct for drives with power-loss protection. "
                    "On other drives, commits are fast only because they may be lost.",
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
                    "The write took less than a rotation of the disk, so a cache answered. Without a battery, the "
                    "cache loses commits.",
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
        ok(f"{block.name}: {block.model or 'model unknown'}, firmware {block.firmware}; is it the latest version?")
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
                        "Encrypting each block takes CPU time: fast drives are slower, and CPU usage is not "
                        "only the database's.",
                        f"sudo cryptsetup refresh --perf-no_read_workqueue --perf-no_write_workqueue {block.model}",
                    )
                )
    return readings or [ok("none seen")]
