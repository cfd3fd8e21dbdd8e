"""Words for the peak of a curve, for the outcome of a target rate, and for the trials behind these results."""

from __future__ import annotations

from ironbench import units as written
from ironbench.model.judging_limits import FAILED_LIMITS
from ironbench.model.note import Note
from ironbench.report.wording.registry import text, wording
from ironbench.words import counted, in_percent


def tally(trials: int, confirmed: bool) -> str:
    """Examples: `3 trials`, `3 confirmation trials`."""
    return counted(trials, "confirmation trial" if confirmed else "trial")


@wording("peak-basis")
def peak_basis(
    trials: int, confirmed: bool, swept: bool, suspect: int = 0, failed: float = 0.0, units: str = "transactions"
) -> str:
    """Example with trials=3, confirmed=True, swept=False, suspect=1, failed=0.002: `3 confirmation trials; 1 trial
    flagged; 0.2% of transactions failed`."""
    parts = [f"{counted(trials, 'sweep trial')}, not confirmed" if swept else tally(trials, confirmed)]
    parts += [f"{counted(suspect, 'trial')} flagged"] if suspect else []
    parts += [f"{in_percent(failed, limits=FAILED_LIMITS)} of {units} failed"] if failed else []
    return "; ".join(parts)


@wording("at-peak")
def at_peak(clients: int, alone: bool, basis: Note) -> str:
    """Example with clients=8, alone=False, basis=note('peak-basis', trials=3, confirmed=True, swept=False): `at the
    peak, 8 clients (3 confirmation trials)`."""
    return f"{'with' if alone else 'at the peak,'} {counted(clients, 'client')} ({text(basis)})"


@wording("rate-basis")
def rate_basis(rate: float, trials: int, confirmed: bool) -> str:
    """Example with rate=500, trials=3, confirmed=True: `500/s, 3 confirmation trials`."""
    return f"{written.rate(rate)}, {tally(trials, confirmed)}"


@wording("rate-outcome")
def rate_outcome(kept: int, trials: int, confirmed: bool) -> str:
    """Example with kept=2, trials=3, confirmed=False: `sustained in 2 of 3 trials`."""
    if kept == trials:
        return "sustained"
    if kept:
        return f"sustained in {kept} of {tally(trials, confirmed)}"
    return f"not sustained in {tally(trials, confirmed)}" if confirmed else "not sustained"


@wording("side-basis")
def side_basis(load: Note, basis: Note) -> str:
    """Example with load=note('load-of-clients', clients=8), basis=note('peak-basis', trials=3, confirmed=True,
    swept=False): `8 clients, 3 confirmation trials`."""
    return f"{text(load)}, {text(basis)}"


@wording("no-usable-trial")
def no_usable_trial() -> str:
    """Example: `no usable trial`."""
    return "no usable trial"


@wording("load-of-clients")
def load_of_clients(clients: int) -> str:
    """Example with clients=8: `8 clients`."""
    return counted(clients, "client")


@wording("load-of-streams")
def load_of_streams(streams: str) -> str:
    """Example with streams='2 streams and a refresh stream': `2 streams and a refresh stream`."""
    return streams


@wording("load-of-peak")
def load_of_peak() -> str:
    """Example: `peak`."""
    return "peak"


@wording("load-of-all-trials")
def load_of_all_trials() -> str:
    """Example: `all trials`."""
    return "all trials"


@wording("rate-requested")
def rate_requested() -> str:
    """Example: `the target rate is an input, not a result`."""
    return "the target rate is an input, not a result"


@wording("paced-by-records")
def paced_by_records() -> str:
    """Example: `the recorded times of the capture determine throughput`."""
    return "the recorded times of the capture determine throughput"


@wording("loads-unlike")
def loads_unlike() -> str:
    """Example: `the loads differ, or a target rate was not sustained, so only values per transaction can be
    compared`."""
    return "the loads differ, or a target rate was not sustained, so only values per transaction can be compared"


@wording("totals-of-unlike-work")
def totals_of_unlike_work() -> str:
    """Example: `the two sides did different work, so only values per transaction can be compared, not totals`."""
    return "the two sides did different work, so only values per transaction can be compared, not totals"


@wording("littles-law")
def littles_law(clients: int, expected: float, holds: bool) -> str:
    """Example with clients=8, expected=7.9, holds=True: `Little's law is satisfied: throughput multiplied by the mean
    response time is 7.9, and 8 clients ran`."""
    product = f"throughput multiplied by the mean response time is {expected:.1f}"
    if holds:
        return f"Little's law is satisfied: {product}, and {counted(clients, 'client')} ran"
    return (
        f"Little's law is not satisfied: {product}, but {counted(clients, 'client')} ran. The clients spent "
        "the rest of the time outside of transactions, for example in the client program itself."
    )


@wording("measured-at")
def measured_at(at: str, clients: int | None = None, or_rate: bool = False) -> str:
    """Example with at='peak', or_rate=True: `at the peak, or at the target rate`."""
    with_clients = "with each number of clients" if clients is None else f"with {counted(clients, 'client')}"
    rate = "at the target rate"
    place = {"trial": "over the whole trial", "peak": "at the peak", "clients": with_clients}.get(at, rate)
    return f"{place}, or {rate}" if or_rate else place
