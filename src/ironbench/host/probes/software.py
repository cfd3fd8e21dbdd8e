"""The build of ironbench, and limits of this process."""

from __future__ import annotations

from ironbench.host.doctor import probe
from ironbench.host.host_view import HostView
from ironbench.model.diagnosis import CheckResult, note, ok, severe, warning

_FEW_FILES, _ENOUGH_FILES = 4096, 16384
_OPEN_FILES = "Max open files"


@probe("software", "core build")
def build(host: HostView) -> CheckResult | None:
    """Whether ironbench's core was built with optimizations."""
    profile = host.ourselves.build_profile
    if profile is None:
        return None
    if profile == "release":
        return ok("release")
    return severe(
        profile,
        "An unoptimized client uses several times as much CPU time, so you would measure the client instead of the "
        "database.",
        "make setup",
    )


@probe("software", "open files")
def open_files(host: HostView) -> CheckResult | None:
    """Maximum number of files and connections that one process may have open."""
    for line in (host.tree.read("/proc/self/limits") or "").splitlines():
        if line.startswith(_OPEN_FILES):
            words = line.removeprefix(_OPEN_FILES).split()
            hard = words[1]
            seen = f"{words[0]}, may be raised to {hard}"
            if hard == "unlimited" or int(hard) >= _ENOUGH_FILES:
                return ok(seen)
            if int(hard) >= _FEW_FILES:
                return note(
                    seen,
                    "The limit is enough for a few thousand clients; more clients need a higher limit.",
                    "ulimit -n 65536",
                )
            return warning(
                seen,
                (
                    "With this limit, runs with many clients fail to connect, and the server closes and reopens "
                    "files all the time."
                ),
                "as root: `ulimit -n 65536`, or LimitNOFILE= in the service, or /etc/security/limits.conf",
            )
    return None
