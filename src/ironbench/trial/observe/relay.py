"""Statistics of the relay that adds latency: the round-trip time that it really added, and the CPU time that it
used."""

from __future__ import annotations

import json

from ironbench.host.tree import Tree
from ironbench.model.observation import Observation, Series, Source
from ironbench.model.observer import Samples
from ironbench.model.points import CounterGrowth, Values, growth, points, rate_of, rate_series, steps
from ironbench.model.session import DelayedSession, Session

_COUNTERS = "relay.counters"
_THREAD = "thread"
ADDED = "added_latency_s"


class RelayObserver:
    name = "relay"
    doc = "The relay of `--latency`: added round-trip time, CPU time, and load of the busiest thread"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        path = session.relay_counters if isinstance(session, DelayedSession) else ""
        # The relay runs on the client's machine. If another machine is observed, the file does not exist there.
        return (Source(_COUNTERS, "file", path),) if path and machine.read(path) else ()

    def parse(self, samples: Samples, window_s: float) -> Observation:
        readings = points(samples.get(_COUNTERS), parse_counters)
        grown = growth(readings, window_s)
        if grown is None:
            return Observation()
        threads = [grown.rate(name) for name in grown.by if name.startswith(_THREAD)]
        metrics = {"relay_cpu_cores": sum(threads), "relay_busiest_thread_share": max(threads)}
        series: list[Series] = [rate_series("relay_cpu_cores", steps(readings), rate_of("cpu"))]
        if (late_s := _late_s(grown)) is not None:
            last = readings[-1].values
            metrics[ADDED] = last["round_trip_s"] + last["passing_s"] + late_s
        return Observation(metrics, tuple(series))


def _late_s(grown: CounterGrowth) -> float | None:
    """Returns the total delay with which a request and its answer leave the relay after their scheduled times. Returns
    None if there was no traffic."""
    mean_s = grown.ratio("late_s", "pieces")
    return None if mean_s is None else 2 * mean_s


def parse_counters(text: str) -> Values:
    """Parses the relay's counters. Raises ValueError if they were read while the relay was writing them."""
    counters = json.loads(text)
    threads = {f"{_THREAD} {number}": cpu_ns / 1e9 for number, cpu_ns in enumerate(counters["cpu_ns"])}
    return {
        "round_trip_s": counters["round_trip_s"],
        "passing_s": counters["passing_s"],
        "pieces": counters["pieces"],
        "late_s": counters["late_ns"] / 1e9,
        "cpu": sum(threads.values()),
        **threads,
    }


OBSERVER = RelayObserver()
