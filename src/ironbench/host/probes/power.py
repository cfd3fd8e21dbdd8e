"""Power saving of links and drives, and links that run below their maximum speed."""

from __future__ import annotations

import re
from pathlib import Path

from ironbench.host.doctor import probe
from ironbench.host.host_view import HostView
from ironbench.model.diagnosis import CheckResult, note, ok, severe, warning
from ironbench.words import in_percent

_HALF = 0.5


@probe("power", "battery")
def battery(host: HostView) -> CheckResult | None:
    """Whether the machine runs on battery."""
    tree = host.tree
    mains = [name for name in tree.names("/sys/class/power_supply") if _is_mains(host, name)]
    if not mains:
        return None
    if any(tree.integer(f"/sys/class/power_supply/{name}/online") for name in mains):
        return ok("on mains")
    return severe(
        "on battery", "Processor, links and drives are slowed down to save power.", "connect the power supply"
    )


def _is_mains(host: HostView, name: str) -> bool:
    return host.tree.read(f"/sys/class/power_supply/{name}/type") == "Mains"


@probe("power", "PCIe link")
def pcie_link(host: HostView) -> list[CheckResult]:
    """Whether the PCIe link of each drive or controller runs at its maximum speed and width."""
    readings = []
    for block in host.blocks:
        at = _pcie_device(host, block.name)
        if at is None:
            continue
        speeds = [_number(at / f"{which}_link_speed") for which in ("current", "max")]
        widths = [_number(at / f"{which}_link_width") for which in ("current", "max")]
        if None in (*speeds, *widths):
            continue
        (speed, best_speed), (width, best_width) = speeds, widths
        assert speed and best_speed and width and best_width
        seen = f"{block.name} ({at.name}): {speed:g} GT/s × {width:g} lanes of {best_speed:g} GT/s × {best_width:g}"
        part = speed * width / (best_speed * best_width)
        meaning = f"The link limits the bandwidth to {in_percent(part)} of what the device supports."
        remedy = (
            f"move the device to a slot with more lanes, or check the slot's BIOS settings; sudo lspci -vv -s {at.name}"
        )
        if part <= _HALF:
            readings.append(severe(seen, meaning, remedy))
        elif part < 1:
            readings.append(warning(seen, meaning, remedy))
        else:
            readings.append(ok(seen))
    return readings


def _pcie_device(host: HostView, block: str) -> Path | None:
    """Returns the nearest device above a block device that has a PCIe link."""
    try:
        at = host.tree.path(f"/sys/block/{block}").resolve(strict=True)
    except OSError:
        return None
    for folder in (at, *at.parents):
        if (folder / "current_link_speed").is_file():
            return folder
        if folder == host.tree.root:
            break
    return None


def _number(path: Path) -> float | None:
    """Returns the first number in a file with contents such as `8.0 GT/s PCIe`. Returns None if there is no number.
    Also returns None for 0, which is the value of virtual devices."""
    try:
        match = re.search(r"\d+(?:\.\d+)?", path.read_text())
    except OSError:
        return None
    return float(match[0]) or None if match else None


@probe("power", "PCIe power saving")
def aspm(host: HostView) -> CheckResult | None:
    """Whether PCIe links enter power-saving states between requests (ASPM)."""
    path = "/sys/module/pcie_aspm/parameters/policy"
    policy = host.tree.chosen(path)
    if policy is None:
        return None
    if policy in ("performance", "default"):
        return ok(policy if policy == "performance" else "default: as set by the firmware")
    return warning(
        policy,
        "A sleeping PCIe link takes microseconds to wake up, so the first request after a pause is slow.",
        f"echo performance | sudo tee {path}",
    )


@probe("power", "SATA link power saving")
def sata_links(host: HostView) -> list[CheckResult]:
    """Whether SATA links enter power-saving states between requests."""
    by_policy: dict[str, list[str]] = {}
    for path in host.tree.glob("/sys/class/scsi_host/host*/link_power_management_policy"):
        if policy := host.tree.read(path):
            by_policy.setdefault(policy, []).append(path.split("/")[4])
    return [_sata(policy, hosts) for policy, hosts in sorted(by_policy.items())]


def _sata(policy: str, hosts: list[str]) -> CheckResult:
    seen = f"{policy} ({', '.join(hosts)})"
    if policy in ("max_performance", "keep_firmware_settings"):
        return ok(seen)
    return warning(
        seen,
        "A sleeping SATA link takes up to 10 ms to wake up, so reads are slow under light load.",
        "echo max_performance | sudo tee /sys/class/scsi_host/host*/link_power_management_policy",
    )


@probe("power", "NVMe power states")
def nvme_states(host: HostView) -> list[CheckResult]:
    """Whether NVMe drives may enter power-saving states between requests (APST)."""
    readings = []
    for path in host.tree.glob("/sys/class/nvme/nvme*/power/pm_qos_latency_tolerance_us"):
        drive, value = path.split("/")[4], host.tree.read(path)
        if value in ("0", None):
            readings.append(ok(f"{drive}: the drive stays awake"))
            continue
        readings.append(
            note(
                f"{drive}: may sleep in states with a wake-up latency of at most {value} µs",
                "The first request after an idle period waits for the drive to wake up, so light loads look slower.",
                f"echo 0 | sudo tee {path}",
            )
        )
    return readings


@probe("power", "device power saving")
def runtime_power(host: HostView) -> list[CheckResult]:
    """Whether the kernel suspends idle storage devices."""
    readings = []
    for block in host.blocks:
        path = f"/sys/block/{block.name}/device/power/control"
        state = host.tree.read(path)
        supported = host.tree.read(f"/sys/block/{block.name}/device/power/runtime_status")
        if state is None or supported == "unsupported":
            continue
        if state == "auto":
            readings.append(
                note(
                    f"{block.name}: auto",
                    "An idle drive may be suspended; the first request wakes it.",
                    f"echo on | sudo tee {path}",
                )
            )
        else:
            readings.append(ok(f"{block.name}: {state}"))
    return readings
