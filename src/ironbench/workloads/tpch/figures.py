"""Computes a trial's metrics from the results of its streams."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ironbench.workloads.tpch import scores, streams, texts
from ironbench.workloads.tpch.streams import StepRun, Stream
from ironbench.workloads.tpch.trial_choices import TrialChoices

_REFRESHES = ("rf1", "rf2")


def metrics(course: TrialChoices, power: Stream | None, through: Sequence[Stream]) -> dict[str, float]:
    """Returns the metrics. The keys are names in the catalogue.

    `power`: stream of the power test, or the single stream. `through`: query streams, followed by the refresh stream.

    Composite metrics are computed only if all 22 queries were answered within their limit. The geometric mean is
    computed only if all selected queries were answered. Without its slowest query, a system would look faster.
    """
    scale, values = float(course.scale), dict[str, float]()
    if power is not None:
        values |= of_stream(power, len(course.queries))
        queries, refreshes = _queries(power.ran), _refreshes(power.ran)
        if course.has_power and course.whole and _complete(queries, 22) and _complete(refreshes, 2):
            values |= scores.of_power_test(scale, *([one.elapsed_s for one in steps] for steps in (queries, refreshes)))
    if through:
        if power is None:
            asked = course.streams * len(course.queries)
            values |= of_queries([one for stream in through for one in _queries(stream.ran)], asked)
        values |= {f"stream_time_s{{stream={stream.number}}}": span_s(stream.ran) for stream in through[:-1]}
        values |= {
            f"throughput_refresh_time_s{{function={name}}}": mean
            for name, mean in _means(_refreshes(through[-1].ran)).items()
        }
        every = [one for stream in through for one in stream.ran]
        expected = course.streams * (len(course.queries) + len(_REFRESHES))
        if _complete(every, expected):
            values["throughput_test_s"] = span_s(every)
            if course.whole:
                values |= scores.of_throughput_test(scale, course.streams, span_s(every))
    return values | scores.of_both(values) | lateness([stream for stream in (power, *through[:-1]) if stream])


def metrics_of_trial(course: TrialChoices, plans: str) -> dict[str, tuple[str, ...]]:
    """Returns the metrics of a trial in which all queries are answered. The key is the name of a metric. The value is
    its parts, or "" for the whole. `plans`: value of the option that selects which query plans are recorded.
    """
    whole, functions = ("",), tuple(f"function={name}" for name in _REFRESHES)
    queries = tuple(f"query={texts.name(query)}" for query in course.queries)
    first, last = course.test == "throughput", course.streams if course.has_throughput else 0
    parts = {"query_time_s": queries, "query_time_geomean_s": whole}
    parts["stream_time_s"] = tuple(f"stream={number}" for number in range(first, last + 1))
    if course.has_power:
        parts["refresh_time_s"] = functions
    if course.has_throughput:
        parts |= {"throughput_refresh_time_s": functions, "throughput_test_s": whole}
    if course.whole:
        merits = {"power": course.has_power, "stream_throughput": course.has_throughput}
        merits["composite"] = all(merits.values())
        parts |= {f"{name}{suffix}": whole for name in merits if merits[name] for suffix in ("", "_unrounded")}
    if plans != "no":
        parts["planning_time_s"] = queries
    return parts | ({"spill_bytes": queries} if plans == "measured" else {})


def of_stream(stream: Stream, asked: int) -> dict[str, float]:
    """Returns the metrics of the power test's stream or of a single stream. `asked`: number of queries that the stream
    should answer."""
    queries = _queries(stream.ran)
    figures = of_queries(queries, asked) | {
        f"refresh_time_s{{function={one.name}}}": one.elapsed_s for one in _good(stream.ran) if one.name in _REFRESHES
    }
    if queries:
        figures[f"stream_time_s{{stream={stream.number}}}"] = span_s(queries)
    return figures


def of_queries(queries: Sequence[StepRun], asked: int) -> dict[str, float]:
    """Returns the mean time of each answered query. If all `asked` queries were answered, also returns the geometric
    mean of these times."""
    means = _means(queries)
    figures = {f"query_time_s{{query={name}}}": means[name] for name in sorted(means)}
    if means and _complete(queries, asked):
        figures["query_time_geomean_s"] = scores.geometric_mean(list(means.values()))
    return figures


def lateness(query_streams: Iterable[Stream]) -> dict[str, float]:
    """Returns statistics of the time between the last byte of an answer and the submission of the next query in the
    same stream."""
    gaps = sorted(gap for stream in query_streams for gap in streams.gaps_s(_queries(stream.ran)))
    if not gaps:
        return {}
    return {
        "lateness_mean_s": math.fsum(gaps) / len(gaps),
        "lateness_p99_s": gaps[math.ceil(0.99 * len(gaps)) - 1],
        "lateness_max_s": gaps[-1],
    }


def span_s(steps: Sequence[StepRun]) -> float:
    """Returns the time from the first submission to the last completion (5.3.7.7)."""
    return max(one.answered_s for one in steps) - min(one.submitted_s for one in steps) if steps else 0.0


def _queries(steps: Iterable[StepRun]) -> list[StepRun]:
    return [one for one in steps if one.name not in _REFRESHES]


def _refreshes(steps: Iterable[StepRun]) -> list[StepRun]:
    return [one for one in steps if one.name in _REFRESHES]


def _good(steps: Iterable[StepRun]) -> list[StepRun]:
    return [one for one in steps if not one.error]


def _complete(steps: Sequence[StepRun], expected: int) -> bool:
    return len(_good(steps)) == expected


def _means(steps: Iterable[StepRun]) -> dict[str, float]:
    times: dict[str, list[float]] = {}
    for one in _good(steps):
        times.setdefault(one.name, []).append(one.elapsed_s)
    return {name: math.fsum(values) / len(values) for name, values in times.items()}
