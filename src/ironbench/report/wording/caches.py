"""Words for the state of data and caches before a trial."""

from __future__ import annotations

from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import Number, Strings, count, names, size


@wording("data-as-found")
def data_as_found() -> str:
    """the data are those that the trial before left: they existed before this run, which does not restore them"""
    return "the data are those that the trial before left: they existed before this run, which does not restore them"


@wording("cache-not-cold")
def cache_not_cold() -> str:
    """declared cold, but nothing was read from a device: the files were in memory, or nothing was read at all"""
    return "declared cold, but nothing was read from a device: the files were in memory, or nothing was read at all"


@wording("cache-not-warm")
def cache_not_warm(declared: Strings, read_bytes: Number) -> str:
    """declared warm, but 1.5 GB were read from devices"""
    return f"declared {names(declared) or 'warm'}, but {size(read_bytes)} were read from devices"


@wording("cache-not-steady")
def cache_not_steady(rehearsals: Number) -> str:
    """declared hot, but the hit rate was not steady after 15 rehearsals"""
    return f"declared hot, but the hit rate was not steady after {count(rehearsals, 'rehearsal')}"
