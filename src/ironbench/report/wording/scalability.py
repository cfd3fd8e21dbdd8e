"""Words for the curve of the Universal Scalability Law that was fitted to a system's trials."""

from __future__ import annotations

from ironbench.report.wording.registry import wording
from ironbench.words import counted, grouped, in_percent


@wording("curve-falls")
def falls(throughput: float) -> str:
    """Example with throughput=500.0: `the fitted curve falls from the first client: 1 client has the highest
    throughput, 500/s`."""
    alone = f"1 client has the highest throughput, {_rate(throughput)}"
    return f"the fitted curve falls from the first client: {alone}"


@wording("curve-rises")
def rises(last: float, asymptote: float | None) -> str:
    """Example with last=64, asymptote=900: `the fitted curve still rises at 64 clients, towards an asymptote of
    900/s`."""
    towards = f", towards an asymptote of {_rate(asymptote)}" if asymptote else ""
    return f"the fitted curve still rises at {_clients(last)} clients{towards}"


@wording("curve-peak")
def peak(clients: float, throughput: float, last: float, beyond: bool) -> str:
    """Example with clients=31.0, throughput=7000.0, last=64.0, beyond=False: `the fitted curve peaks at 31 clients with
    7,000/s`."""
    found = f"the fitted curve peaks at {_clients(clients)} clients with {_rate(throughput)}"
    if beyond:
        return (
            f"{found}. This is an extrapolation, because at most {_clients(last)} clients were measured: measure with "
            f"{_clients(clients)} clients before you rely on the prediction"
        )
    return found


@wording("curve-superlinear")
def superlinear(contention: float) -> str:
    """Example with contention=-0.02: `superlinear scaling: the fitted contention is negative (−2%), so throughput grows
    faster than the number of clients, for example because of shared caches or group commit. The Universal Scalability
    Law does not model …`."""
    return (
        f"superlinear scaling: the fitted contention is negative ({in_percent(contention)}), so throughput grows "
        "faster than the number of clients, for example because of shared caches or group commit. The Universal "
        "Scalability Law does not model superlinear scaling, so do not rely on its predictions beyond the "
        "measured range"
    )


@wording("curve-knee")
def knee(clients: float, contention: float, measured: bool) -> str:
    """Example with clients=20.0, contention=0.05, measured=True: `the knee is at 20 clients: up to the knee, additional
    clients mostly work; beyond the knee, they mostly wait. Contention is 5% of the work`."""
    where = "" if measured else ", beyond the measured range"
    return (
        f"the knee is at {_clients(clients)} clients{where}: up to the knee, additional clients mostly work; "
        f"beyond the knee, they mostly wait. Contention is {in_percent(contention)} of the work"
    )


@wording("curve-without-measured-fall")
def without_measured_fall(first: float, last: float) -> str:
    """Example with first=24.0, last=40.0: `measured throughput does not fall between 24 clients and 40 clients, the
    highest number measured; only the fitted curve falls beyond its peak`."""
    flat = f"between {counted(first, 'client')} and {_clients(last)} clients, the highest number measured"
    return f"measured throughput does not fall {flat}; only the fitted curve falls beyond its peak"


@wording("curve-of-few-points")
def of_few_points(points: int, enough: int) -> str:
    """Example with points=4, enough=6: `the curve is fitted to only 4 different numbers of clients; measure 6 or
    more`."""
    return f"the curve is fitted to only {points} different numbers of clients; measure {enough} or more"


@wording("curve-misfit")
def misfit(clients: float, missed: float) -> str:
    """Example with clients=16.0, missed=0.12: `the Universal Scalability Law does not describe this system: the fitted
    curve deviates from the trials by more than the repeats vary, most of all at 16 clients (by 12%). Use the measured
    points instead of the curve`."""
    return (
        "the Universal Scalability Law does not describe this system: the fitted curve deviates from the trials "
        f"by more than the repeats vary, most of all at {_clients(clients)} clients (by {in_percent(missed)}). "
        "Use the measured points instead of the curve"
    )


@wording("curve-peak-beyond")
def peak_beyond(clients: float, last: float) -> str:
    """Example with clients=80, last=64: `the predicted peak at 80 clients is beyond the measured range, which ends at
    64 clients`."""
    measured = f"beyond the measured range, which ends at {_clients(last)} clients"
    return f"the predicted peak at {_clients(clients)} clients is {measured}"


def _rate(throughput: float) -> str:
    return f"{grouped(throughput)}/s"


def _clients(clients: float) -> str:
    return grouped(clients) if clients >= 9.95 or clients == round(clients) else f"{clients:.1f}"
