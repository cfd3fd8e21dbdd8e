"""Names of sizing ratios, and words for the notes about them."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench import units as written
from ironbench.model.note import Note
from ironbench.report.waits import device_role
from ironbench.report.wording.registry import text, wording
from ironbench.words import counted, listed


@wording("balance-data-to-cache")
def data_to_cache() -> str:
    """Example: `data size / database cache`."""
    return "data size / database cache"


@wording("balance-data-to-memory")
def data_to_memory() -> str:
    """Example: `data size / RAM`."""
    return "data size / RAM"


@wording("balance-size-unknown")
def size_unknown(of: str) -> str:
    """Example with of='the data': `the size of the data was not recorded`."""
    lacking = {"data": "the data", "cache": "the database cache", "memory": "RAM"}.get(of, of)
    return f"the size of {lacking} was not recorded"


@wording("balance-clients")
def clients() -> str:
    """Example: `clients per core`."""
    return "clients per core"


@wording("balance-streams")
def streams() -> str:
    """Example: `streams per core`."""
    return "streams per core"


@wording("balance-of-streams")
def of_streams(streams: str, cores: Note) -> str:
    """Example with streams='2 streams and a refresh stream', cores=note('balance-cores', cores=4): `2 streams and a
    refresh stream; 4 cores`."""
    return f"{streams}; {text(cores)}"


@wording("balance-cores")
def cores(cores: int, held_by: str = "", shared: bool = False) -> str:
    """Example with cores=4, shared=True: `4 cores, shared with the clients`."""
    if held_by:
        return f"{counted(cores, 'core')} for the {held_by}"
    return f"{counted(cores, 'core')}{', shared with the clients' if shared else ''}"


@wording("balance-cores-unknown")
def cores_unknown() -> str:
    """Example: `the number of cores is unknown`."""
    return "the number of cores is unknown"


@wording("balance-throughput")
def throughput(units: str = "") -> str:
    """Example with units='queries': `queries per second and core over the whole trial`."""
    return f"{units} per second and core over the whole trial" if units else "throughput per core"


@wording("balance-checkpoint-interval")
def checkpoint_interval() -> str:
    """Example: `checkpoint interval`."""
    return "checkpoint interval"


@wording("balance-checkpoints")
def checkpoints(checkpoints: float, elapsed_s: float) -> str:
    """Example with checkpoints=1, elapsed_s=30: `1 checkpoint in 30 s`."""
    seen = counted(checkpoints, "checkpoint") if checkpoints else "no checkpoint"
    return f"{seen} in {written.span(elapsed_s)}"


@wording("balance-log")
def log() -> str:
    """Example: `WAL per transaction`."""
    return "WAL per transaction"


@wording("balance-log-of-other-work")
def log_of_other_work(units: str) -> str:
    """Example with units='transactions': `the WAL volume also includes WAL from work other than transactions`."""
    return f"the WAL volume also includes WAL from work other than {units}"


@wording("balance-file-system-used")
def file_system_used() -> str:
    """Example: `used space of the data file system`."""
    return "used space of the data file system"


@wording("balance-bandwidth")
def bandwidth(device: str = "", roles: Sequence[str] = ()) -> str:
    """Example with device='vda, 256 GiB': `vda, 256 GiB: bandwidth used per core`."""
    return _of_device(device, roles, "bandwidth used per core") or "device bandwidth per core"


@wording("balance-operations")
def operations(device: str = "", roles: Sequence[str] = ()) -> str:
    """Example with roles=('data', 'log'): `data and WAL device: IOPS used per core`."""
    return _of_device(device, roles, "IOPS used per core") or "device IOPS per core"


def _of_device(device: str, roles: Sequence[str], what: str) -> str:
    name = device or (f"{listed([*map(device_role, roles)])} device" if roles else "")
    return f"{name}: {what}" if name else ""


@wording("balance-roles")
def roles(roles: Sequence[str]) -> str:
    """Example with roles=('data', 'log'): `data and WAL`."""
    return listed([*map(device_role, roles)])


@wording("balance-no-device")
def no_device() -> str:
    """Example: `ironbench could not identify the device`."""
    return "ironbench could not identify the device"
