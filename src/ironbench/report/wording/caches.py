"""Words for the state of data and caches before a trial."""

from __future__ import annotations

from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import Number, Strings, count, names, size


@wording("data-as-found")
def data_as_found() -> str:
    """data not restored between trials: it existed before this run, so each trial starts with what the last one left"""
    return (
        "data not restored between trials: it existed before this run, so each trial starts with what the last one left"
    )


@wording("cache-not-cold")
def cache_not_cold() -> str:
    """declared cold, but no data was read from a device: the files were cached in memory, or no data was needed"""
    return "declared cold, but no data was read from a device: the files were cached in memory, or no data was needed"


@wording("cache-not-warm")
def cache_not_warm(declared: Strings, read_bytes: Number) -> str:
    """declared warm, but 1.5 GB was read from devices"""
    return f"declared {names(declared) or 'warm'}, but {size(read_bytes)} was read from devices"


@wording("cache-not-steady")
def cache_not_steady(rehearsals: Number) -> str:
    """declared hot, but the cache hit rate was not steady after 15 warm-up passes"""
    passes = count(rehearsals, "warm-up pass", "warm-up passes")
    return f"declared hot, but the cache hit rate was not steady after {passes}"
