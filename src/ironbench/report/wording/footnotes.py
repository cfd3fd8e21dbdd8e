"""Words for footnotes of the tables about runs: how response times are measured, and which percentiles are not
shown."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench import units
from ironbench.model.note import Note
from ironbench.report.wording.registry import text, wording
from ironbench.report.wording.values import Number, Strings, either, highest, low_to_high, number, percent
from ironbench.words import grouped


@wording("closed-loop")
def closed_loop(unit: Strings) -> str:
    """Example with unit='transaction': `closed loop: each client waits for the reply before it sends the next
    transaction, so response time equals service time. A slow server therefore receives fewer requests, and the response
    times do not include the waiting that real users would experience`."""
    return (
        f"closed loop: each client waits for the reply before it sends the next {either(unit, 'transaction')}, so "
        "response time equals service time. A slow server therefore receives fewer requests, and the response "
        "times do not include the waiting that real users would experience"
    )


@wording("open-loop")
def open_loop(unit: Strings, units: Strings) -> str:
    """Example with unit='transaction', units='transactions': `open loop: the response time of a transaction is measured
    from its scheduled start, and its service time from the moment when it was sent; transactions that never started are
    counted separately`."""
    return (
        f"open loop: the response time of a {either(unit, 'transaction')} is measured from its scheduled start, and "
        f"its service time from the moment when it was sent; {either(units, 'transactions')} that never started are "
        "counted separately"
    )


@wording("search-found")
def search_found(result: Note) -> str:
    """Example with result=note('search-none-sustained', of='rate', tried=(20, 40)): `search result: no rate was
    sustained (tried: 20, 40)`."""
    return f"search result: {text(result)}"


@wording("confirmed")
def confirmed(what: Strings) -> str:
    """Example with what='': `the peak was chosen from the sweep and measured again in confirmation trials, because the
    best of several measured values is too high on average`."""
    return (
        f"the {either(what, 'peak')} was chosen from the sweep and measured again in confirmation trials, because "
        "the best of several measured values is too high on average"
    )


@wording("emulation-cost")
def emulation_cost(cpu_share: Number) -> str:
    """Example with cpu_share=0.03: `emulated devices: the results apply to the device model, not to a real drive. The
    emulation used up to 3% of the CPU time`."""
    return (
        "emulated devices: the results apply to the device model, not to a real drive. The emulation used up to "
        f"{percent(cpu_share)} of the CPU time"
    )


@wording("latency-added")
def latency_added(declared_s: Number, added_s: Number, cores: Number) -> str:
    """Example with declared_s=0.0002, added_s=NoteRange(0.00021, 0.00022), cores=0.3: `a relay added 200 µs of network
    latency to each round trip (measured: 210 µs to 220 µs). The relay used up to 0.30 CPU cores, which are not included
    in the CPU time of client and server`."""
    declared, added = low_to_high(declared_s, units.span), low_to_high(added_s, units.span)
    return (
        f"a relay added {declared} of network latency to each round trip (measured: {added}). The relay used up "
        f"to {highest(cores):.2f} CPU cores, which are not included in the CPU time of client and server"
    )


@wording("percentiles-not-pooled")
def not_pooled(most: Number) -> str:
    """Example with most=20: `percentiles at the peak are computed from the transactions of all trials at the peak
    together. At other points, percentiles are medians of the trials, because there are more than 20 trials`."""
    return (
        "percentiles at the peak are computed from the transactions of all trials at the peak together. At other "
        f"points, percentiles are medians of the trials, because there are more than {number(most)} trials"
    )


@wording("percentiles-of-too-few")
def percentiles_of_too_few(units: Strings, needs: Sequence[Sequence[float]]) -> str:
    """Example with units='transactions', needs=[(0.99, 299)]: `some percentiles are not shown, because a trial had too
    few transactions: the 99th percentile needs at least 299`."""
    few = either(units, "transactions")
    return f"some percentiles are not shown, because a trial had too few {few}: {needed(needs)}"


def needed(needs: Sequence[Sequence[float]]) -> str:
    """Example with needs=[(0.99, 299)]: `the 99th percentile needs at least 299`."""
    return ", ".join(f"the {share * 100:g}th percentile needs at least {grouped(count)}" for share, count in needs)


@wording("percentiles-unresolved")
def percentiles_unresolved(units: Strings) -> str:
    """Example with units='transactions': `some response times are not shown, because too many transactions were still
    waiting at the end of a trial`."""
    waiting = either(units, "transactions")
    return f"some response times are not shown, because too many {waiting} were still waiting at the end of a trial"


@wording("confirmed-less")
def confirmed_less(
    clients: Number, lost: Number, taken_before: Number | None = None, taken: Number | None = None
) -> str:
    """Example with clients=8, lost=0.12: `confirmation trials with 8 clients reached 12% less throughput than the
    trials of the sweep with the same number of clients: the system or the machine changed between the sweep and the
    confirmation, so neither number is …`."""
    why = "the system or the machine changed between the sweep and the confirmation, so neither number is reliable"
    if taken_before is not None and taken is not None:
        why = (
            f"other programs and steal time used {percent(taken)} of the CPU time during the confirmation trials "
            f"and {percent(taken_before)} during the sweep"
        )
    which = f"confirmation trials with {number(clients)} {'client' if clients == 1 else 'clients'}"
    return (
        f"{which} reached {percent(lost)} less throughput than the trials of the sweep with the same number of "
        f"clients: {why}; repeat the run while no other programs use the machine"
    )
