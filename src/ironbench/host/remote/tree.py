"""Files that describe a remote machine. These files are fetched together; files of the machine's processes are fetched
on demand."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ironbench.errors import FailureError
from ironbench.host.remote.link import Link, quoted
from ironbench.host.tree import Tree

_CPU = "/sys/devices/system/cpu"
_READ = (
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/vmstat", "/proc/uptime", "/proc/loadavg"),
    *("/proc/schedstat", "/proc/pressure/*", "/proc/diskstats", "/proc/sys/vm/[a-z]*"),
    *("/proc/sys/kernel/osrelease", "/proc/sys/kernel/numa_balancing", "/proc/sys/kernel/random/boot_id"),
    "/proc/sys/kernel/arch",
    *("/proc/self/mountinfo", "/proc/self/cgroup", "/proc/self/status", "/proc/self/limits"),
    *(f"{_CPU}/online", f"{_CPU}/cpu[0-9]*/online", f"{_CPU}/cpu[0-9]*/topology/*_id"),
    *(f"{_CPU}/cpu[0-9]*/cpufreq/scaling_governor", f"{_CPU}/cpu[0-9]*/cpufreq/energy_performance_preference"),
    *(f"{_CPU}/cpu0/cpufreq/cpuinfo_*_freq", f"{_CPU}/cpu0/cpuidle/state*/*", f"{_CPU}/cpu0/cache/index*/*"),
    *(f"{_CPU}/cpu[0-9]*/thermal_throttle/*_count", f"{_CPU}/vulnerabilities/*", f"{_CPU}/smt/active"),
    *(f"{_CPU}/intel_pstate/no_turbo", f"{_CPU}/cpufreq/boost"),
    *("/sys/devices/system/clocksource/clocksource0/*", "/sys/kernel/mm/transparent_hugepage/enabled"),
    *("/sys/block/*/dev", "/sys/block/*/*/dev", "/sys/block/*/size", "/sys/block/*/queue/rotational"),
    *("/sys/block/*/queue/scheduler", "/sys/block/*/queue/write_cache", "/sys/block/*/device/model"),
    *("/sys/block/*/device/firmware_rev", "/sys/block/*/device/rev", "/sys/block/*/device/power/*"),
    *("/sys/block/*/dm/*", "/sys/block/*/md/level", "/sys/block/*/loop/backing_file", "/sys/class/block/*/dev"),
    *("/sys/dev/block/*/stat", "/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name"),
    *("/sys/hypervisor/type", "/sys/module/pcie_aspm/parameters/policy"),
    *("/sys/class/scsi_host/host*/link_power_management_policy",),
    *("/sys/class/nvme/nvme*/power/pm_qos_latency_tolerance_us",),
    *("/sys/class/power_supply/*/type", "/sys/class/power_supply/*/online"),
    *("/etc/os-release", "/usr/lib/os-release", "/run/systemd/container"),
)
"""Files that the fingerprint, the doctor and the observers read."""
_LISTED = ("/sys/devices/system/node/node*", "/sys/block/*/slaves/*", "/.dockerenv", "/run/.containerenv")
"""Files for which only their existence matters."""
MOVING = ("/proc/stat", "/proc/vmstat", f"{_CPU}/cpu[0-9]*/thermal_throttle/*_count", "/proc/[0-9]*/stat")
"""Files that must be fetched again to measure activity."""
_OF_PROCESSES = re.compile(r"/proc/(\d+|\[0-9\]\*|\*)/")


@dataclass(frozen=True, slots=True)
class RemoteTree(Tree):
    """Copies of /proc, /sys and /etc of a remote machine. Only `refresh` updates the contents."""

    link: Link | None = None
    files: dict[str, str] = field(default_factory=dict)

    @property
    def real(self) -> bool:
        """Always false, because the paths do not exist on this machine."""
        return False

    def path(self, name: str) -> Path:
        return Path("/dev/null") / name.lstrip("/")

    def read(self, name: str) -> str | None:
        if name not in self.files and _OF_PROCESSES.match(name):
            self.refresh((name,))
        text = self.files.get(name)
        return None if text is None else text.strip().strip("\0")

    def exists(self, name: str) -> bool:
        return self.read(name) is not None or bool(self.names(name))

    def names(self, directory: str) -> list[str]:
        start = directory.rstrip("/") + "/"
        return sorted({name[len(start) :].split("/")[0] for name in self.files if name.startswith(start)})

    def glob(self, pattern: str) -> list[str]:
        if _OF_PROCESSES.match(pattern):
            self.refresh((pattern,))
        depth = pattern.count("/")
        wanted = matcher(pattern)
        paths = {"/".join(name.split("/")[: depth + 1]) for name in self.files}
        return sorted(name for name in paths if wanted.fullmatch(name))

    def resolved(self, path: str) -> str:
        """Resolves symbolic links. Returns the path unchanged if access is denied."""
        assert self.link is not None
        answer = self.link.run(f"readlink -f -- {quoted(path)}")
        return answer.output.decode("utf-8", "replace").strip() or path

    def refresh(self, patterns: tuple[str, ...]) -> None:
        """Fetches files again, and forgets those that no longer exist. Raises FailureError."""
        assert self.link is not None
        found, wanted = _fetched(self.link, patterns, ()), [matcher(one) for one in patterns]
        for name in [name for name in self.files if any(one.fullmatch(name) for one in wanted)]:
            del self.files[name]
        self.files.update(found)


def fetched(link: Link) -> RemoteTree:
    """Fetches all files of the machine that ironbench uses. Raises InputError or FailureError."""
    files = _fetched(link, _READ, _LISTED)
    if "/proc/stat" not in files:
        cause = "has no /proc/stat: ironbench can watch only Linux machines"
        raise FailureError(link.address.text(), cause, "remove --server (system.server in a lab)")
    return RemoteTree(Path("/dev/null"), link, files)


def _fetched(link: Link, read: tuple[str, ...], listed: tuple[str, ...]) -> dict[str, str]:
    """Fetches many files with one `grep` process, which prefixes each line with the file's name (POSIX)."""
    lines = [f"LC_ALL=C grep -as '' {' '.join(read)} /dev/null"]
    if listed:
        lines.append(f'for name in {" ".join(listed)}; do [ -e "$name" ] && echo "$name"; done')
    text = link.run("; ".join([*lines, ":"])).output.decode("utf-8", "replace")
    literal = {name for name in read if "*" not in name}
    matchers = [matcher(name) for name in read if "*" in name]
    files: dict[str, str] = {}
    for line in text.split("\n"):
        if not line:
            continue
        path, content = split(line, literal, matchers)
        files[path] = files.get(path, "") + (content + "\n" if content is not None else "")
    return files


def split(line: str, literal: set[str], matchers: list[re.Pattern[str]]) -> tuple[str, str | None]:
    """Splits a line of grep's output into path and content. The first colon is not always the separator, because names
    of devices may contain colons. The content is None if the file was only listed."""
    place = line.find(":")
    while place >= 0:
        path = line[:place]
        if path in literal or any(one.fullmatch(path) for one in matchers):
            return path, line[place + 1 :]
        place = line.find(":", place + 1)
    return line, None


@cache
def matcher(pattern: str) -> re.Pattern[str]:
    """Compiles a pattern in which `*` does not match `/`."""
    pieces = re.findall(r"\*|\[[^]]*\]|[^*\[]+", pattern)
    return re.compile("".join("[^/]*" if one == "*" else one if one[0] == "[" else re.escape(one) for one in pieces))
