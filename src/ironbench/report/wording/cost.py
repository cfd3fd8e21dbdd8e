"""Words for bills, and for records of systems that are bought or ranked."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench import units
from ironbench.model.note import Note
from ironbench.report.wording.registry import text, wording
from ironbench.words import counted, listed


@wording("licences-for-cores")
def licences_for_cores(servers: int, cores: int, factor: float, least: int, packs: int, pack: int) -> str:
    """2 × 8 cores, × core factor 0.5, at least 4 for each server, 4 packs of 2"""
    steps = [f"{servers} × {counted(cores, 'core')}" if servers > 1 else counted(cores, "core")]
    steps += [f"× core factor {factor:g}"] if factor != 1 else []
    steps += [f"at least {least} for each server"] if least else []
    steps += [f"{counted(packs, 'pack')} of {pack}"] if packs else []
    return ", ".join(steps)


@wording("power-drawn")
def power_drawn(servers: int, watts: float) -> str:
    """2 × 400 W, day and night"""
    return f"{servers} × {watts:g} W, day and night"


@wording("every-hour")
def every_hour() -> str:
    """day and night"""
    return "day and night"


@wording("in-packs")
def in_packs(pack: int) -> str:
    """packs of 2"""
    return f"packs of {pack}"


@wording("exchange-rate")
def exchange_rate(currency: str, rate: float, into: str, date: str, source: str) -> str:
    """1 EUR = 1.25 USD on 2026-01-02, a bank"""
    return f"1 {currency} = {rate:.6g} {into} on {date}, {source}"


@wording("edition-limit")
def edition_limit(price: str, edition: str, most: float, there: float, of: str) -> str:
    """sql-server-2014-standard: edition Standard uses at most 16 of 36 cores of a server"""
    what = "GB of memory" if of == "memory_gb" else of
    return f"{price}: edition {edition or 'bought'} uses at most {most:g} of {there:g} {what} of a server"


@wording("sockets-unknown")
def sockets_unknown(licence: str) -> str:
    """oracle: its cost depends on how many sockets did the work, which is not recorded"""
    return f"{licence}: its cost depends on how many sockets did the work, which is not recorded"


@wording("systems-file-differs")
def systems_file_differs(of: str, declared: float, measured: float, pinned: bool = False) -> str:
    """the systems file declares 16 cores, but its records were measured with 8 cores: they do not show what would …"""
    ours, theirs = (_hardware(of, value) for value in (declared, measured))
    limit = " that it was limited to" if pinned else ""
    return (
        f"the systems file declares {ours}, but its records were measured with {theirs}{limit}: they do not show what "
        "would be bought"
    )


def _hardware(of: str, value: float) -> str:
    if of == "memory_gb":
        return f"{value:g} GB of memory"
    return counted(value, {"cores": "core", "sockets": "socket"}.get(of, of))


@wording("records-not-used")
def records_not_used(labels: Sequence[str]) -> str:
    """the records of old and new are not used: the systems file itself gives scores"""
    return f"the records of {listed(labels)} are not used: the systems file itself gives scores"


@wording("scores-of-different-work")
def scores_of_different_work(labels: Sequence[str], works: Sequence[str]) -> str:
    """no scores: the records of old and new did different work (tpch sf=1; tpch sf=10). Name those of one work: …"""
    names = "; ".join(dict.fromkeys(works))
    return (
        f"no scores: the records of {listed(labels)} did different work ({names}). Name those of one work: ironbench "
        "cost SERIES … --systems FILE"
    )


@wording("system-without-score")
def no_score(system: str, why: Note) -> str:
    """no score of old: driven in an open loop at 500/s, which was requested, not reached"""
    return f"no score of {system}: {text(why)}"


@wording("several-systems")
def several_systems(systems: Sequence[str]) -> str:
    """records of 2 systems have its label: old (m1); old (m2). Name those that count, by series or id: …"""
    named = f"records of {counted(len(systems), 'system')} have its label: {'; '.join(systems)}"
    return f"{named}. Name those that count, by series or id: ironbench cost SERIES …"


@wording("driven-open-loop")
def driven_open_loop(low: float, high: float) -> str:
    """driven in an open loop at 500/s, which was requested, not reached"""
    rates = units.rate(low) if low == high else f"{units.rate(low)} to {units.rate(high)}"
    return f"driven in an open loop at {rates}, which was requested, not reached"


@wording("driven-along-curve")
def driven_along_curve() -> str:
    """driven along a curve of clients: its throughput is the mean over the whole curve"""
    return "driven along a curve of clients: its throughput is the mean over the whole curve"


@wording("no-comparable-trial")
def no_comparable_trial(statuses: Sequence[str]) -> str:
    """no trial that may be compared (voided, failed)"""
    return f"no trial that may be compared ({', '.join(statuses)})"
