"""Computes the breakdown of the clients' time by wait class from samples.

The wait events of backends are sampled. CPU time and run-queue time of backends are known exactly, because the kernel
counts them (/proc/<pid>/schedstat, Linux: Documentation/scheduler/sched-stats.rst). The kernel's counts take precedence
over samples. Samples contain too many waits: a backend that was woken shows its old wait event until it gets a core,
and a backend that is about to wait shows its wait event while it still runs.

The times of the wait classes CPU and run queue are those that the kernel counted. The sum of these two times is
compared with the time that the backends spent without a wait event. If the backends spent more time without a wait
event, the difference is the class `other`. If they spent less, the difference is subtracted from all waits in
proportion to their time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, variance

from ironbench.model.observer import CLIENT, CPU, IDLE, OTHER, RUN_QUEUE, WAIT_CLASSES, OnCores, Waits
from ironbench.model.points import SamplePoint, Values

MOST_BATCHES = 30
"""Maximum number of batches. Fewer and longer batches keep correlated samples together (Law, Simulation Modeling and
Analysis, 5th ed., 9.5.3)."""
LEAST_BATCHES = 6
LEAST_IN_BATCH = 5


def shares(waits: Waits, busy: float | None) -> dict[str, float]:
    """Returns the metric `time_share{part=…}` for each wait class. For classes that were sampled, also returns
    `time_samples{part=…}`. Classes without time are left out.

    `busy`: mean number of clients with a transaction in progress. This number is passed if idle backends may wait for
    work that has not arrived, as in an open loop. A value of None means that every backend is busy.
    """
    instants, counted, wait_class = waits.instants, waits.on_cores, waits.wait_class
    if not instants:
        return {}
    mean = _mean_parts([point.values for point in instants], wait_class)
    backends = sum(mean.values())
    if busy is not None:
        at_work = sum(value for event, value in _mean(instants).items() if event != IDLE)
        mean[CLIENT] = mean.get(CLIENT, 0.0) - (backends - max(busy, at_work))
        backends = sum(mean.values())
    if backends <= 0:
        return {}
    divided = divided_up(mean, counted)
    numbers = {part: divided[part] / backends for part in WAIT_CLASSES if divided.get(part, 0.0) > 0}
    metrics = {f"time_share{{part={part}}}": share for part, share in numbers.items()}
    exact = {CPU, RUN_QUEUE} if counted else set()
    return metrics | {
        f"time_samples{{part={part}}}": float(round(effective(instants, part, wait_class)))
        for part in numbers
        if part not in exact
    }


def divided_up(sampled: Mapping[str, float], counted: OnCores | None) -> Values:
    """Returns the number of backends in each wait class. In `sampled`, the class `CPU` contains all backends without a
    wait event."""
    if counted is None:
        return dict(sampled)
    total = sum(sampled.values())
    cpu = min(counted.cpu, total)
    queue = min(counted.run_queue, total - cpu)
    without_wait = sampled.get(CPU, 0.0)
    waits = total - without_wait
    excess = max(0.0, cpu + queue - without_wait)
    kept = 1.0 - excess / waits if waits > 0 else 0.0
    parts = {part: value * kept for part, value in sampled.items() if part != CPU}
    parts[OTHER] = parts.get(OTHER, 0.0) + max(0.0, without_wait - cpu - queue)
    return parts | {CPU: cpu, RUN_QUEUE: queue}


def effective(instants: Sequence[SamplePoint], part: str, wait_class: Callable[[str], str]) -> float:
    """Returns how many independent observations would give the same precision as the samples of a wait class.

    Samples are not independent: backends often wait for the same flush or row at the same instant, and successive
    instants are similar. The variance of the fraction p of the class is therefore estimated from batch means (Conway,
    Management Science 10(1), 1963). The result is p(1−p) divided by this variance (design effect: Kish, Survey
    Sampling, 1965, 8.2). The result is at least 1, and at most the number of backends in all samples.
    """
    seen = [_of_part(point.values, part, wait_class) for point in instants]
    every = sum(sum(point.values.values()) for point in instants)
    size = max(LEAST_IN_BATCH, len(seen) // MOST_BATCHES)
    batches = [seen[first : first + size] for first in range(0, len(seen) - size + 1, size)]
    if len(batches) < LEAST_BATCHES:
        return max(1.0, min(every, float(len(seen))))
    p = fmean(share for share in seen)
    spread = variance(fmean(batch) for batch in batches) / len(batches)
    if spread <= 0 or not 0 < p < 1:
        return max(1.0, min(every, float(len(seen))))
    return max(1.0, min(every, p * (1 - p) / spread))


def _of_part(values: Values, part: str, wait_class: Callable[[str], str]) -> float:
    """Returns the fraction of backends in a wait class at one instant. Samples cannot distinguish the class `other`
    from CPU: both have no wait event. For `other`, all backends without a wait event are therefore counted."""
    total = sum(values.values())
    kinds = (part, CPU) if part == OTHER else (part,)
    return sum(n for event, n in values.items() if wait_class(event) in kinds) / total if total else 0.0


def _mean(instants: Sequence[SamplePoint]) -> Values:
    events = {event for point in instants for event in point.values}
    return {event: sum(point.values.get(event, 0.0) for point in instants) / len(instants) for event in events}


def _mean_parts(instants: Sequence[Values], wait_class: Callable[[str], str]) -> Values:
    parts: Values = {}
    for values in instants:
        for event, backends in values.items():
            part = wait_class(event)
            parts[part] = parts.get(part, 0.0) + backends / len(instants)
    return parts
