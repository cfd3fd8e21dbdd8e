"""Details of the trials of a run or a lab, from observers and from the times of single queries and statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ironbench.model.lab import Configuration
from ironbench.model.record import Record
from ironbench.study.archive import Archive
from ironbench.study.device_io import ReadCost, RoleLatency, read_costs, role_latencies
from ironbench.study.inside import OtherPlan, ServerUse, other_plans, uses
from ironbench.study.profile import profile
from ironbench.study.profiled import Profile
from ironbench.study.queries import ContraryQuery, Queries, against, queries
from ironbench.study.statements import StatementTimings, times
from ironbench.study.workers import Workers, by_worker


@dataclass(frozen=True, slots=True)
class TrialDetails:
    """Details of the trials of each configuration or system. Fields are empty if they were not measured."""

    queries: Queries | None
    """Times of single queries, or None if the work does not consist of queries."""
    against: tuple[ContraryQuery, ...]
    """Queries whose time changed in the opposite direction to most queries, with notes on how their plans differ."""
    role_latencies: tuple[RoleLatency, ...]
    """I/O latency by role. Empty if no device was emulated."""
    read_costs: tuple[ReadCost, ...]
    """CPU time per read on real devices. This time can only be computed if one configuration reads data from its device
    that another configuration has cached."""
    timed: tuple[StatementTimings, ...]
    """Times of commands in scripts."""
    workers: tuple[Workers, ...]
    """Results of each worker. Empty if the trials had no separate workers."""
    inside: tuple[ServerUse, ...]
    """Server statistics. For labs that use slices, they are from the trials in `observed`."""
    observed: tuple[Record, ...]
    """For labs that use slices: one trial of each configuration, with observers and statement times. No finding uses
    these trials."""
    other_plans: tuple[OtherPlan, ...]
    """Commands whose plan differs from their plan in the first system."""
    profiles: tuple[Profile, ...]


_Trials = Sequence[tuple[Configuration, Sequence[Record]]]
"""Pairs of a configuration and its usable trials. For runs, the configuration contains only the name of a system."""


def details(
    trials: _Trials,
    archive: Archive,
    *,
    in_blocks: bool,
    observed: Mapping[str, Sequence[Record]] | None = None,
    all_trials: _Trials | None = None,
) -> TrialDetails:
    """Returns the details of `trials`.

    `in_blocks`: whether trials of one block are paired, as in a lab. `observed`: for each configuration of a lab with
    slices, its trials with observers. `all_trials`: the trials from which the times of queries are taken; None for
    `trials`.
    """
    observed = observed or {}
    used = [(one.name, records) for one, records in trials]
    seen = [(name, observed.get(name, records)) for name, records in used]
    # A lab with slices times statements either in every block, if the lab requests it, or only in the trials with
    # observers.
    timed = not observed or any(record.statements for _, records in used for record in records)
    queried = used if all_trials is None else [(one.name, records) for one, records in all_trials]
    by_query, statistics = queries(queried, in_blocks=in_blocks), uses(seen, archive)
    return TrialDetails(
        queries=by_query,
        against=against(by_query, queried, archive),
        role_latencies=role_latencies(used),
        read_costs=read_costs(used),
        timed=times(used if timed else seen, archive, in_blocks=in_blocks and timed),
        workers=by_worker(used, archive),
        inside=statistics,
        observed=tuple(record for records in observed.values() for record in records),
        other_plans=other_plans(statistics),
        profiles=tuple(one for of, records in trials if (one := profile(of, records, archive)) is not None),
    )
