"""Helpers for tests of emulated devices: whether they can run here, and what is left afterwards."""

import os
import shutil
from pathlib import Path

import pytest

from ironbench.devices import capability
from ironbench.host import loop_mounts

LACKING = capability.lacking()
needs_devices = pytest.mark.skipif(bool(LACKING), reason=f"emulated devices need {LACKING}")
HERE = [name for name in ("ext4", "xfs", "btrfs") if shutil.which(f"mkfs.{name}")]


def nothing_left(home: Path) -> bool:
    """Returns whether there is no loop device, no mount and no file system in `home`."""
    return not loop_mounts.loops(home) and not loop_mounts.mounted_within(home, "")


def device_pid(register: Path) -> int:
    """Returns the pid of the only device in a register."""
    import json

    entries = (json.loads(path.read_text()) for path in register.glob("*.json"))
    (entry,) = (entry for entry in entries if entry["kind"] == "device")
    return int(entry["server"]["pid"])


def kill(pid: int, number: int) -> None:
    os.kill(pid, number)
