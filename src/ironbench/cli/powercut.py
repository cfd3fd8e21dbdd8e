"""Whether `ironbench run --crash` can mean anything for a system and a workload."""

from __future__ import annotations

from ironbench import engines
from ironbench.drive.power import WAYS
from ironbench.errors import InputError, nearest
from ironbench.model.system import Choice, System
from ironbench.workloads import Workload


def require(how: str, system: System, workload: Workload, choice: Choice) -> None:
    """InputError where a power cut is unknown, cannot be made, or would take nothing."""
    subject = f"--crash {how}"
    if how not in WAYS:
        raise InputError(subject, "there is no such power cut", nearest(how, list(WAYS)))
    able = engines.able(("power cut", "scripts"))
    if system.engine not in able:
        raise InputError(subject, f"{system.engine} is not among the engines it is for", f"these: {', '.join(able)}")
    if workload.drives or not workload.writes(choice.options):
        cause = f"workload {workload.name} has no transactions that write, so nothing could be lost"
        raise InputError(subject, cause, "choose one that commits, e.g. tpcb-like")
    emulated = system.layout.emulated
    places = {"data": system.layout.data, "log": system.layout.log}
    kept = [role for role, place in places.items() if place not in emulated and (place or role == "data")]
    if kept:
        cause = f"the power of emulated devices is cut, and {' and '.join(kept)} would not be on one"
        raise InputError(subject, cause, f"name a device, e.g. --{kept[0]} hdd-7200")
