"""Words for cost breakdowns, and for the records of systems whose costs are compared."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench import units
from ironbench.model.note import Note
from ironbench.report.wording import terms
from ironbench.report.wording.registry import text, wording
from ironbench.words import counted, listed


@wording("licences-for-cores")
def licences_for_cores(servers: int, cores: int, factor: float, least: int, packs: int, pack: int) -> str:
    """Example with servers=2, cores=8, factor=0.5, least=4, packs=4, pack=2: `2 servers with 8 cores each, core factor
    0.5, at least 4 core licences for each server, 4 packs of 2 core licences`."""
    steps = [f"{servers} servers with {counted(cores, 'core')} each" if servers > 1 else counted(cores, "core")]
    steps += [f"core factor {factor:g}"] if factor != 1 else []
    steps += [f"at least {counted(least, 'core licence')} for each server"] if least else []
    steps += [f"{counted(packs, 'pack')} of {pack} core licences"] if packs else []
    return ", ".join(steps)


@wording("power-drawn")
def power_drawn(servers: int, watts: float) -> str:
    """Example with servers=2, watts=400: `2 servers with 400 W each, 24 hours a day`."""
    return f"{f'{servers} servers with {watts:g} W each' if servers > 1 else f'{watts:g} W'}, 24 hours a day"


@wording("every-hour")
def every_hour() -> str:
    """Example: `24 hours a day`."""
    return "24 hours a day"


@wording("in-packs")
def in_packs(pack: int) -> str:
    """Example with pack=2: `sold in packs of 2`."""
    return f"sold in packs of {pack}"


@wording("exchange-rate")
def exchange_rate(currency: str, rate: float, into: str, date: str, source: str) -> str:
    """Example with currency='EUR', rate=1.25, into='USD', date='2026-01-02', source='a bank': `1 EUR = 1.25 USD on
    2026-01-02 (source: a bank)`."""
    return f"1 {currency} = {rate:.6g} {into} on {date} (source: {source})"


@wording("edition-limit")
def edition_limit(price: str, edition: str, most: float, there: float, of: str) -> str:
    """Example with price='sql-server-2014-standard', edition='Standard', most=16, there=36, of='cores':
    `sql-server-2014-standard: edition Standard can use at most 16 of the 36 cores of a server`."""
    what = "GB of memory" if of == "memory_gb" else of
    bought = f"edition {edition}" if edition else "this edition"
    return f"{price}: {bought} can use at most {most:g} of the {there:g} {what} of a server"


@wording("sockets-unknown")
def sockets_unknown(licence: str) -> str:
    """Example with licence='oracle': `oracle: the cost depends on the number of sockets in use, but the records do not
    contain this number`."""
    return f"{licence}: the cost depends on the number of sockets in use, but the records do not contain this number"


@wording("systems-file-differs")
def systems_file_differs(of: str, declared: float, measured: float, pinned: bool = False) -> str:
    """Example with of='cores', declared=16, measured=8: `the systems file declares 16 cores, but the records were
    measured with 8 cores, so the records are not used`."""
    ours, theirs = (_hardware(of, value) for value in (declared, measured))
    limit = " (because of CPU pinning)" if pinned else ""
    return (
        f"the systems file declares {ours}, but the records were measured with {theirs}{limit}, so the records "
        "are not used"
    )


def _hardware(of: str, value: float) -> str:
    if of == "memory_gb":
        return f"{value:g} GB of memory"
    return counted(value, {"cores": "core", "sockets": "socket"}.get(of, of))


@wording("records-not-used")
def records_not_used(labels: Sequence[str]) -> str:
    """Example with labels=('old', 'new'): `the records of old and new are not used, because the systems file declares
    scores`."""
    return f"the records of {listed(labels)} are not used, because the systems file declares scores"


@wording("scores-of-different-work")
def scores_of_different_work(labels: Sequence[str], works: Sequence[str]) -> str:
    """Example with labels=('old', 'new'), works=('tpch sf=1', 'tpch sf=10'): `no scores: the records of old and new
    come from different workloads (tpch sf=1; tpch sf=10). Name the series of one workload: `ironbench cost SERIES …
    --systems FILE``."""
    names = "; ".join(dict.fromkeys(works))
    return (
        f"no scores: the records of {listed(labels)} come from different workloads ({names}). Name the series of "
        "one workload: `ironbench cost SERIES … --systems FILE`"
    )


@wording("system-without-score")
def no_score(system: str, why: Note) -> str:
    """Example with system='old', why=note('driven-open-loop', low=500.0, high=500.0): `no score for old: the trials ran
    in an open loop at 500/s, which is a target rate and not a maximum`."""
    return f"no score for {system}: {text(why)}"


@wording("several-systems")
def several_systems(systems: Sequence[str]) -> str:
    """Example with systems=('old (m1)', 'old (m2)'): `records of 2 systems have this label: old (m1); old (m2). Choose
    the records by series or id: `ironbench cost SERIES …``."""
    named = f"records of {counted(len(systems), 'system')} have this label: {'; '.join(systems)}"
    return f"{named}. Choose the records by series or id: `ironbench cost SERIES …`"


@wording("driven-open-loop")
def driven_open_loop(low: float, high: float) -> str:
    """Example with low=500, high=500: `the trials ran in an open loop at 500/s, which is a target rate and not a
    maximum`."""
    rates = units.rate(low) if low == high else f"{units.rate(low)} to {units.rate(high)}"
    return f"the trials ran in an open loop at {rates}, which is a target rate and not a maximum"


@wording("driven-along-curve")
def driven_along_curve() -> str:
    """Example: `the number of clients followed a load curve, so throughput is a mean over the whole curve and not a
    maximum`."""
    return "the number of clients followed a load curve, so throughput is a mean over the whole curve and not a maximum"


@wording("no-comparable-trial")
def no_comparable_trial(statuses: Sequence[str]) -> str:
    """Example with statuses=('invalid', 'failed'): `no usable trial (statuses of the trials: invalid, failed)`."""
    return f"no usable trial (statuses of the trials: {', '.join(map(terms.status, statuses))})"
