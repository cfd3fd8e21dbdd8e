"""Observers of a trial. Every module in this package, or in an engine's folder `observers`, that defines `OBSERVER` is
an observer.

Before the measured window, `sources(session)` returns the sources that observers need. During the window, threads of
the core read these sources at fixed times and store the contents unparsed. After the window, `observed(driven)`
computes the results. No Python code runs during the window.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Protocol, runtime_checkable

from ironbench import engines
from ironbench.errors import InputError, nearest
from ironbench.host.tree import Tree
from ironbench.model.driven import Driven, client_cpu_s
from ironbench.model.observation import Counted, Observation, Sample, Series, Source
from ironbench.model.observer import Samples, Waits
from ironbench.model.record import Budget
from ironbench.model.session import Session
from ironbench.model.system import Load
from ironbench.trial.observe import late, parts, processes
from ironbench.trial.observe.cpu import CpuSeconds, budget

__all__ = ["CpuSeconds", "Observer", "Samples", "budget", "get", "names", "observed", "observers", "parse", "sources"]


class Observer(Protocol):
    """Declares what to sample, and later computes metrics and series from the samples. The methods have no side
    effects, but `sources` may send queries to the engine."""

    name: str
    doc: str
    """A sentence for `ironbench list observers`."""

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        """Returns sources named `observer.part`. Returns an empty tuple if this observer can observe nothing on this
        machine."""
        ...

    def parse(self, samples: Samples, window_s: float) -> Observation:
        """Returns metrics by catalogue name over the measured window [0, window_s], and series of all samples."""
        ...


@runtime_checkable
class WaitObserver(Observer, Protocol):
    """An observer that samples the wait events of backends."""

    def waits(self, samples: Samples, window_s: float) -> Waits:
        """Returns the wait events inside the measured window."""
        ...


@cache
def observers() -> tuple[Observer, ...]:
    """Returns every observer, of the machine and of all engines, sorted by name."""
    every = [*_of_machine(), *(one for engine in engines.names() for one in _of_engine(engine))]
    return tuple(sorted(every, key=lambda observer: observer.name))


@cache
def _of_machine() -> tuple[Observer, ...]:
    return tuple(_in(__name__))


@cache
def _of_engine(engine: str) -> tuple[Observer, ...]:
    """Returns the observers in the engine's folder `observers`, if it has one."""
    package = f"{engines.__name__}.{engine}.observers"
    return tuple(_in(package)) if engine in engines.names() and find_spec(package) else ()


def _in(package: str) -> Iterator[Observer]:
    modules = (import_module(f"{package}.{entry.name}") for entry in iter_modules(import_module(package).__path__))
    return (module.OBSERVER for module in modules if hasattr(module, "OBSERVER"))


def names() -> list[str]:
    return [observer.name for observer in observers()]


def get(name: str) -> Observer:
    """Returns the observer with this name. If there is none, raises an InputError that lists similar names."""
    for observer in observers():
        if observer.name == name:
            return observer
    raise InputError(f"observer {name!r}", "there is no such observer", nearest(name, names()))


def sources(
    session: Session, observe: bool = True, machine: Tree | None = None, clients: int = 0
) -> tuple[Source, ...]:
    """Returns the sources that the core must sample for this engine on this machine. Observers may query the engine,
    for example to find out which views it has.

    `clients`: expected number of backends. If it is large, sources with a cost per backend are read less often. Sources
    that do not exist are left out. Returns nothing if `observe` is false.
    """
    if not observe:
        return ()
    tree = machine or Tree()
    asked = (*_of_machine(), *_of_engine(session.engine))
    return tuple(paced(source, clients) for observer in asked for source in observer.sources(session, tree))


def paced(source: Source, backends: int) -> Source:
    """Returns the source with a longer period if necessary. Reading a source must not take more CPU time than the
    source's `most_cost`, a fraction of one core."""
    cost_s = source.cost_s + source.backend_cost_s * backends
    return replace(source, period_s=max(source.period_s, cost_s / source.most_cost))


def parse(samples: Samples, window_s: float) -> Observation:
    """Returns the results of all observers together. If a source has no samples, the results that depend on it are
    missing."""
    metrics: dict[str, float] = {}
    series: list[Series] = []
    counted: list[Counted] = []
    late_s: dict[str, float] = {}
    for observer in observers():
        observation = observer.parse(samples, window_s)
        metrics.update(observation.metrics)
        series.extend(observation.series)
        counted.extend(observation.counted)
        late_s.update(observation.late)
    if "dirty_left_bytes" in metrics:
        metrics["dirty_left_bytes"] += metrics.get("dirty_buffers_left_bytes", 0.0)
    return Observation(metrics, tuple(series), tuple(counted), late_s)


def observed(
    driven: Driven, load: Load | None = None, connections: int | None = None
) -> tuple[Observation, Budget | None]:
    """Returns the observations of a trial, and the breakdown of CPU time. The breakdown is None if the machine's CPU
    time was not sampled.

    `load`: the load of the trial. If it is None, a closed loop is assumed. `connections`: number of connections that do
    work, if it differs from the number of clients.
    """
    samples = {name: [Sample(t_s, raw) for t_s, raw in taken] for name, taken in driven.samples.items()}
    summary = driven.summary
    window_s = float(summary.get("elapsed_s") or 0.0)
    if window_s <= 0:
        return Observation(), None
    observation = late.published(parse(samples, window_s), summary, scripts=not driven.drives_itself)
    if (log := observation.metrics.get("wal_bytes_per_s")) is not None and summary.get("transactions"):
        observation.metrics["wal_bytes_per_transaction"] = log * window_s / summary["transactions"]
    busy = None
    if load is not None and _some_wait_for_work(load, connections):
        busy = _busy_clients(driven, window_s)
    elif load is not None and load.curve is not None and load.curve.of == "clients":
        # Only some of the clients work at a time. The others are connected but idle until the curve requires them.
        busy = load.curve.mean(0.0, window_s)
    for one in observers():
        if isinstance(one, WaitObserver):
            observation.metrics.update(parts.shares(one.waits(samples, window_s), busy))
    threads_cpu_s = client_cpu_s(summary)
    inside = driven.inside
    there = driven.elsewhere
    here = there is None or there.ours
    own = ({os.getpid()} if here else set()) | (there.own if there else set())
    programs = processes.programs_growth(samples, window_s, own)
    watching_s = 0.0
    if there and (watching := processes.own_growth(samples, window_s, there.own)) is not None:
        observation.metrics["watch_cpu_cores"] = watching.rate("own")
        watching_s = watching.rate("own") * window_s
    if programs is not None:
        observation.metrics["others_cpu_cores"] = programs.rate("programs")
    observers_s = summary.get("observer_cpu_s") or 0.0 if here else 0.0
    emulation_s = observation.metrics.get("emulation_cpu_cores", 0.0) * window_s
    relay_s = observation.metrics.get("relay_cpu_cores", 0.0) * window_s
    library_s = 0.0
    if inside:
        # A library engine works in a child process of this process: in the threads that call it, and in its own
        # threads.
        children = None if driven.drives_itself else processes.children_growth(samples, window_s, os.getpid())
        whole_s = children.rate("children") * window_s - observers_s - emulation_s if children else 0.0
        library_s = max(threads_cpu_s, whole_s)
    # Workers on other machines are not included.
    client_s = summary.get("client_cpu_here_s", threads_cpu_s)
    ours = CpuSeconds(
        client=0.0 if inside or not here else client_s,
        observers=observers_s + watching_s + (_sampler_s(driven, window_s) if here else 0.0),
        emulation=emulation_s,
        relay=relay_s if here else 0.0,
        library=library_s,
        programs=programs.rate("programs") * window_s if programs is not None else None,
    )
    return observation, budget(samples, window_s, ours, summary.get("observer_backend_pids") or ())


def _sampler_s(driven: Driven, window_s: float) -> float:
    """Returns the CPU seconds of this machine's sampler of stacks in the window. The sampler also runs during the
    warm-up. The sampler of a remote server is one of the processes `ServerMachine.own`."""
    if driven.profile is None:
        return 0.0
    return driven.profile.cpu_s * window_s / (window_s + float(driven.summary.get("warmup_s") or 0.0))


def _some_wait_for_work(load: Load, connections: int | None) -> bool:
    """Returns whether there are connections that wait for work between transactions. This is the case in an open loop.
    This is also the case if clients wait for the work of other clients, like the market in the brokerage workload.
    Clients in their think time do not wait for work."""
    return load.rate is not None or (connections is not None and connections > load.clients and not load.think_time_s)


def _busy_clients(driven: Driven, window_s: float) -> float | None:
    """Returns the mean number of clients with a transaction in progress: rate × service time (Little 1961)."""
    served = driven.histograms.get("service_time")
    if served is None or not served.count:
        return None
    at_edges_s = float(driven.summary.get("unfinished_s", 0.0)) - float(driven.summary.get("carried_s", 0.0))
    return max(0.0, served.count * served.mean_s + at_edges_s) / window_s
