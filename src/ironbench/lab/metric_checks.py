"""Checks, before anything starts, whether the trials of a lab can have a metric at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ironbench import catalogue, engines, workloads
from ironbench.errors import InputError, nearest
from ironbench.model.lab import Claim
from ironbench.model.system import Setup
from ironbench.plan import rates

_OPEN_LOOP = ("due", "not_started")
_OF_THE_LOOP = (
    *("service_time_", "retries", "unfinished", "carried_", "longest_wait_", "censored", "cut_off", "loop_delay_"),
    *("replies_per_wait_", "receive_rearms"),
)
_ROLES = ("data", "temp", "log")


def refuse_impossible(claims: Sequence[Claim], metric: str, setups: Sequence[Setup], file: str) -> None:
    """Raises InputError for a metric that a configuration cannot have."""
    where = f"{file}, measure.metric"
    _with_direction(metric, where)
    _each(metric, [setup for setup in setups if not setup.of], where)
    for setup in setups:
        for limit in setup.search.limits if setup.search else ():
            _each(limit.metric, [setup], f"{file}, load.limit")
    for number, claim in enumerate(claims):
        concerned = [setup for setup in setups if setup.cell.name in claim.cells]
        _each(claim.metric, concerned, f"{file}, expect.claims[{number}]")


def _with_direction(metric: str, where: str) -> None:
    if catalogue.metric(metric).better == "neither":
        raise InputError(
            where,
            f"neither higher nor lower values of {metric} are better",
            "use another metric, for example throughput",
        )


def _each(metric: str, setups: Iterable[Setup], where: str) -> None:
    for setup in setups:
        reason, hint = _missing(metric, setup)
        if reason:
            raise InputError(where, f"{metric}: {reason}", hint)


def _missing(metric: str, setup: Setup) -> tuple[str, str]:
    """Returns the reason why trials of this configuration cannot have the metric, and a hint. Returns two empty texts
    if they can have it."""
    base, part = catalogue.base_name(metric), catalogue.part_of(metric)
    known = catalogue.metric(metric)
    source, only = known.source, known.workloads
    workload = workloads.get(setup.choice.workload)
    if source == "loader":
        return (
            "a lab loads data before its trials and does not measure the loading",
            "use `ironbench run`, which records loading",
        )
    if only and workload.name not in only:
        return (
            f"workload {workload.name} does not measure this metric",
            f"workloads that measure this metric: {', '.join(only)}",
        )
    if known.needs and not engines.get(setup.system.engine).can(known.needs):
        return f"{setup.system.engine} does not have this metric, which comes from {source}", _OTHERS
    if base.startswith("wal_") and not workload.writes(setup.choice.options):
        return f"workload {workload.name} writes nothing", _OTHERS
    if catalogue.PER_UNIT in base and not workload.counts_all(setup.choice.options):
        return f"workload {workload.name} also does work that is not part of its {workload.counts[1]}", _OTHERS
    if base in ("throughput", "scheduled_throughput") and rates.open_loop(setup.cell.load):
        return (
            "in an open loop, the target rate determines this metric",
            "use a response time, for example response_time_p99_s, or remove load.rate",
        )
    tests = workload.leading(setup.choice.options)
    if base == "throughput" and workload.drives and not workload.scores and len(tests) > 1:
        return (
            f"this metric would add up the {workload.counts[1]} of all tests",
            f"use the metric of one test, for example {tests[0]} or {tests[-1]}; reports show all tests",
        )
    if base == "throughput" and workload.is_paced(setup.choice.options):
        return (
            "the recorded times of the capture determine this metric",
            "use a response time, for example response_time_p99_s",
        )
    if base in _OPEN_LOOP and not rates.open_loop(setup.cell.load):
        return "only an open loop has this metric", "add load.rate, or use another metric"
    if workload.drives and base.startswith(_OF_THE_LOOP):
        return f"workload {workload.name} runs its own code, and only the load generator measures this metric", _OTHERS
    if only and (own := workload.measures(setup.choice.options)):
        return _of_its_own(base, part, own, workload.name)
    kind, _, value = part.partition("=")
    if kind == "script":
        return _of_script(base, value, setup)
    if kind == "role" and value not in _ROLES:
        return f"unknown role {value}", nearest(value, list(_ROLES))
    return "", ""


def _of_its_own(base: str, part: str, own: Mapping[str, Sequence[str]], workload: str) -> tuple[str, str]:
    if base not in own:
        return f"workload {workload} does not measure this metric with these options", _OTHERS
    if part not in own[base]:
        known = [f"{base}{{{one}}}" if one else base for one in own[base]]
        cause = (
            "is recorded only with certain values in braces"
            if len(known) > 1
            else "is not recorded with this value in braces"
        )
        return cause, nearest(f"{base}{{{part}}}", known)
    return "", ""


_OTHERS = "see `ironbench list metrics` for the source of each metric"


def _of_script(base: str, script: str, setup: Setup) -> tuple[str, str]:
    workload = workloads.get(setup.choice.workload)
    names = [one.name for one in workload.scripts(setup.system.engine, setup.choice)]
    if len(names) < 2:
        return (
            f"workload {setup.choice.workload} has one script, so its metrics are not divided by script",
            "remove {script=…}",
        )
    if script not in names:
        return f"workload {setup.choice.workload} has no script {script}", nearest(script, names)
    # The number of failures is recorded only for scripts that have failures.
    recorded = [figure for figure in workload.script_figures if figure != "failed"]
    if base not in recorded:
        return "is recorded for all scripts together", f"recorded per script: {', '.join(recorded)}"
    return "", ""
