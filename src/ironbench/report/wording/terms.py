"""Names that reports use for statuses of trials, configurations, factor values and comparisons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ironbench.errors import InputError
from ironbench.model.lab import BASELINE, Configuration, Factor
from ironbench.model.record import Status
from ironbench.plan import rates
from ironbench.words import counted, upper_first

if TYPE_CHECKING:
    from ironbench.model.finding import Finding


def status(value: str) -> str:
    """Returns the word for a trial's status: `valid`, `flagged`, `invalid`, `aborted` or `failed`."""
    try:
        return Status(value).word
    except ValueError:  # a newer version of ironbench wrote the record
        return value


def configuration(one: Configuration | str, joined: Callable[[Sequence[str]], str] = ", ".join) -> str:
    """Returns the name of a configuration, made of its factor values: `WAL in memory, 8 clients` for `log=in memory
    clients=8`.

    Settings are shown as administrators write them: `work_mem=64MB`. A text is returned unchanged. `joined`: the
    function that joins the values. Use `listed` if the sentence continues after the name.
    """
    if isinstance(one, str):
        return one
    mark = " (emulated)" if one.emulated else ""
    if one.name == BASELINE:
        return f"the {BASELINE}{mark}"
    return (joined([value(*known) for known in one.values]) or one.name) + mark


Configurations = Configuration | str | Sequence[Configuration | str]
"""A configuration or several. A system without a configuration is given by its name."""


def configurations(given: Configurations) -> list[str]:
    """Returns the names of one or several configurations. A note that was merged from several notes contains
    several."""
    every = [given] if isinstance(given, Configuration | str) else given
    return [configuration(one) for one in every if one]


def label(one: Configuration) -> str:
    """Returns the name of a configuration for a table or chart. The baseline is called `baseline` instead of `the
    baseline`."""
    return one.marked if one.name == BASELINE else configuration(one)


def opening(one: Configuration) -> str:
    """Returns the name of a configuration for the start of a sentence: `Data on ssd, 8 clients`. Settings and names
    from the lab file are not capitalised."""
    words = configuration(one)
    as_written = value(*one.values[0]) == _setting(*one.values[0]) if one.values else one.name != BASELINE
    return words if as_written else upper_first(words)


def comparison(finding: Finding) -> str:
    """Returns the name of a comparison: `WAL in memory vs. WAL on disk, with 8 clients`."""
    return compared(*finding.sides, finding.where)


def compared(cell: Configuration, baseline: Configuration, where: Configuration) -> str:
    """Returns the name of a comparison of `cell` with `baseline`. `where`: the factor values that both sides share."""
    words = f"{configuration(cell)} vs. {configuration(baseline)}"
    return f"{words}, with {configuration(where)}" if where.values else words


_FILES = {"log": "WAL", "data": "data", "temp": "temporary files"}
_COUNTED = {"load.clients": "client", "load.threads": "thread", "workload.with.streams": "stream"}
_IDEAL = {
    "none": "real devices",
    "log": "zero-latency WAL",
    "data": "all data cached",
    "temp": "zero-latency temporary files",
    "client": "an unconstrained client",
}
_KNOWN_PLACES = {"free": "on a zero-latency device", "memory": "in memory", "ram": "in RAM", "tmpfs": "in tmpfs"}
_PREPOSITIONS = ("at", "behind", "beside", "in", "inside", "on", "outside", "under", "with", "without")


def value(factor: Factor, level: str) -> str:
    """Returns words for a value of a factor: `WAL on ssd`, `8 clients`, `work_mem=64MB`. The meaning of the value
    depends on the fields that the factor sets. For example, a factor named `log` may select the location of the WAL, or
    a logging setting of the server. Workloads may define words for the values of their options, such as `stored
    procedures`."""
    known = factor.words_of(level) or _of_field(factor.field, level) or _of_files(factor, level)
    return known or _setting(factor, level)


def _setting(factor: Factor, level: str) -> str:
    return f"version {level}" if factor.name == "version" else f"{factor.name}={level}"


def _of_field(field: str, level: str) -> str:
    """Returns words for the value of a field. Returns an empty text if there are no words for this field, or if the
    value is a name from the lab file."""
    match field:
        case "load.clients" | "load.threads" | "workload.with.streams" if level.isdigit():
            return counted(int(level), _COUNTED[field])
        case "load.rate":
            return _rate(level)
        case "system.engine":
            return level
        case "system.ideal":
            return _IDEAL.get(level, "")
    return ""


def _of_files(factor: Factor, level: str) -> str:
    """Returns where files are, or whether they are cached: `WAL on ssd`, `data half cached`. Returns an empty text if
    the factor does not select this."""
    files, fields, place = _FILES.get(factor.name, ""), factor.fields_of(level), f"layout.{factor.name}"
    if not files or level == "none":
        return ""
    if place in fields or (not fields and {place, "system.ideal"} & {*factor.all_fields}):
        return f"{files} {_at(level)}"
    if {"system.ideal", "load.cache"}.isdisjoint(fields):
        return ""
    if level in _KNOWN_PLACES or level.partition(" ")[0] in _PREPOSITIONS:
        return f"{files} {_at(level)}"
    return f"{files} {level}" if factor.name == "data" else ""


def _at(level: str) -> str:
    """Returns the location of files with a preposition: `on ssd`, `in memory`."""
    if level.partition(" ")[0] in _PREPOSITIONS:
        return level
    return _KNOWN_PLACES.get(level, f"on {level}")


def _rate(level: str) -> str:
    """Returns words for a target rate: `500 per second` for `500`, and `50% of peak throughput` for `50%`. Returns an
    empty text if the value is a name from the lab file."""
    with suppress(ValueError):
        return f"{float(level):.15g} per second"
    with suppress(InputError):
        _, share = rates.read("rate", level)
        return f"{100 * share:g}% of peak throughput" if share else ""
    return ""
