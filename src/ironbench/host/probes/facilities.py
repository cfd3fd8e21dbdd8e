"""Kernel features that this machine or container allows; the doctor tries each."""

from __future__ import annotations

from ironbench.host.cgroup_limits import own_group_at, own_groups
from ironbench.host.doctor import probe
from ironbench.host.host_view import HostView
from ironbench.host.mounts import all_mounts
from ironbench.host.profiling import OWN_ONLY
from ironbench.model.diagnosis import CheckResult, note, ok
from ironbench.model.profile import CPU, WAIT

_EMULATION = "Emulated devices (disks and flash drives simulated in software) cannot be used; everything else works."


@probe("facilities", "io_uring")
def io_uring(host: HostView) -> CheckResult:
    """The kernel's fastest interface for sending and receiving."""
    why = host.attempts.io_uring()
    if why is None:
        return ok("works")
    disabled = host.tree.integer("/proc/sys/kernel/io_uring_disabled")
    remedy = "sudo sysctl kernel.io_uring_disabled=0"
    if not disabled:
        remedy = "in a container: `docker run --security-opt seccomp=unconfined`"
    return note(
        why,
        "The client uses epoll instead of io_uring, so the client's CPU time per transaction rises by about 15%.",
        remedy,
    )


@probe("facilities", "FUSE")
def fuse(host: HostView) -> CheckResult:
    """File systems in user space, needed for emulated devices."""
    why = host.attempts.fuse()
    remedy = "sudo modprobe fuse (in a container: `docker run --device /dev/fuse --cap-add SYS_ADMIN`)"
    return ok("works") if why is None else note(why, _EMULATION, remedy)


@probe("facilities", "loop devices")
def loop_devices(host: HostView) -> CheckResult:
    """Block devices backed by files, needed for emulated devices."""
    why = host.attempts.loop_device()
    remedy = "run as root: sudo modprobe loop (in a container: `docker run --privileged`)"
    return ok("works") if why is None else note(why, _EMULATION, remedy)


@probe("facilities", "control groups")
def control_groups(host: HostView) -> list[CheckResult]:
    """Limits on memory and CPU for the engine only."""
    readings = []
    meaning = "The engine's memory cannot be limited together with its page cache (--memory-total)."
    for version, controller, directory in _groups(host):
        why = host.attempts.cgroup(host.tree.path(directory))
        what = f"{version}, {controller}: " if controller else f"{version}: "
        if why is None:
            readings.append(ok(f"{what}groups can be created in {directory}"))
        else:
            readings.append(
                note(
                    f"{what}{directory}: {why}", meaning, "run as root, or `systemd-run --user --scope -p Delegate=yes`"
                )
            )
    return readings


def _groups(host: HostView) -> list[tuple[str, str, str]]:
    """Returns the control groups of this process in the hierarchies that can limit memory or CPU. Groups of engines are
    created below them. Each group is returned as version, controllers and directory."""
    hierarchies = []
    own = own_groups(host.tree)
    for mount in all_mounts(host.tree):
        if mount.kind == "cgroup2":
            group = own_group_at(host.tree, mount.path, own.get("", "/"))
            controllers = host.tree.read(f"{group}/cgroup.controllers") or "no controllers"
            hierarchies.append(("v2", controllers, group))
        elif mount.kind == "cgroup" and (controlled := sorted({"memory", "cpu"} & set(mount.options))):
            group = own_group_at(host.tree, mount.path, own.get(controlled[-1], "/"))
            hierarchies.append(("v1", "+".join(controlled), group))
    return hierarchies


@probe("facilities", "profiles")
def profiles(host: HostView) -> list[CheckResult]:
    """Samples of stacks on a CPU and while waiting (--profile)."""
    readings = []
    for kind in (CPU, WAIT):
        found = host.attempts.profiles(kind)
        if not found:
            readings.append(ok(f"--profile {kind}: works"))
        for one in found:
            meaning = f"`--profile {kind}` cannot be used; everything else works."
            if one.code == OWN_ONLY:
                meaning = f"`--profile {kind}` works only for servers that ironbench or this user starts."
            readings.append(note(f"--profile {kind}: {one.cause}", meaning, one.fix))
    return readings


@probe("facilities", "user namespaces")
def user_namespaces(host: HostView) -> CheckResult:
    """Lets root start servers that refuse to run as root, without changing file owners."""
    why = host.attempts.user_namespace()
    if why is None:
        return ok("work")
    return note(
        why,
        (
            "Some database servers refuse to run as root. If ironbench runs as root, these servers need an "
            "unprivileged user."
        ),
        "sudo sysctl user.max_user_namespaces=10000 kernel.unprivileged_userns_clone=1, or run as an ordinary user",
    )
