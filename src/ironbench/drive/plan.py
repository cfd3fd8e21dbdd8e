"""Writes the frozen plan that the core's drive loop gets (read by crates/ironbench-core/src/drive/plan.rs)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ironbench.model.observation import Source
from ironbench.model.system import Load

if TYPE_CHECKING:
    from ironbench.workloads.base import ScriptSource


def compiled_plan(
    target: Mapping[str, Any],
    scripts: Sequence[ScriptSource],
    variables: Mapping[str, str],
    load: Load,
    sources: Iterable[Source],
    client_cpus: Sequence[int] = (),
    work: Mapping[str, Any] | None = None,
) -> bytes:
    """The plan as JSON. `target` holds the password, if any: the result must not be stored.

    `work`: what is done in place of scripts. A load without an end of its own leaves that to the work.
    """
    schedule: dict[str, Any]
    if load.rate is None:
        schedule = {"kind": "closed", "think_time_s": load.think_time_s}
    else:
        schedule = {"kind": "open", "rate": load.rate, "arrivals": load.arrivals}
    stop: dict[str, Any] = {"transactions": load.transactions or 1}
    if load.transactions is None and load.duration_s is not None:
        stop = {"duration_s": load.duration_s}
    return msgspec.json.encode(
        {
            "engine": target,
            "scripts": [{"name": s.name, "text": s.text, "weight": s.weight} for s in scripts],
            "work": work,
            "variables": list(variables.items()),
            "clients": load.clients,
            "threads": load.threads,
            "client_cpus": list(client_cpus),
            "seed": load.seed,
            "schedule": schedule,
            "stop": stop,
            "warmup_s": load.warmup_s,
            "max_tries": load.max_tries,
            "on_error": load.on_error,
            "statements": load.report_per_statement,
            "observers": [
                {"name": s.name, "kind": s.kind, "target": s.target, "period_s": s.period_s} for s in sources
            ],
        }
    )
