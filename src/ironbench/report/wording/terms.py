"""Words for what programs know by a code: the status of a trial, the outcome of a comparison, the name of a
configuration."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ironbench.model.record import Status
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.study.factors import Contrast

_GATE = {"not slower": "PASS", "slower": "FAIL", "cannot tell": "INCONCLUSIVE"}


def status(value: str) -> str:
    """Names a status: `valid`, `flagged`, `invalid`, `aborted` or `failed`."""
    try:
        return Status(value).word
    except ValueError:  # a newer version wrote it
        return value


def gate(value: str) -> str:
    """Names the outcome of a gate: `PASS`, `FAIL` or `INCONCLUSIVE`."""
    return _GATE.get(value, value)


_EMULATED = " (emulated)"
_BASELINE = "baseline"
_FACTOR = re.compile(r"(?:^| )([A-Za-z_][\w.-]*)=")
_PLACES = {"log": "WAL", "data": "data", "temp": "temporary files"}
_IDEAL = {
    "none": "real devices",
    "log": "zero-latency WAL",
    "data": "all data cached",
    "temp": "zero-latency temporary files",
    "client": "an unconstrained client",
}
_IN_MEMORY = ("memory", "ram", "tmpfs")
_PREPOSITIONS = ("in ", "on ", "at ", "with ", "without ")
_RATE = re.compile(r"(\d[\d.,]*)(%|/s)?")
_CACHED = re.compile(r"(?:.* )?cached")
_PLACE = re.compile(
    r"/|\b(?:dis[ck]s?|drives?|devices?|volumes?|cards?|arrays?|[hs]dds?|ssds?|nvme|flash|sata|sas|pmem|optane|memory"
    r"|ram|tmpfs|raid\d*|mirror(?:ed)?|striped?|behind|pcie\d*|aws|azure|gcp|gp[23]|io[12]|ebs)(?:\b|(?=-))",
    re.IGNORECASE,
)
"""A value that names a device or directory. `log` may also be a factor of another kind, such as a server's logging."""


def configuration(name: str) -> str:
    """Names a configuration by its factor values: `log=in memory clients=8` becomes `WAL in memory, 8 clients`.

    Settings keep the form that administrators write, `work_mem=64MB`. A name given in the lab file is returned as it
    is.
    """
    if name.endswith(_EMULATED):
        return configuration(name.removesuffix(_EMULATED)) + _EMULATED
    if name == _BASELINE:
        return "the baseline"
    found = list(_FACTOR.finditer(name))
    if not found or found[0].start() > 0:
        return name
    ends = [one.start() for one in found[1:]] + [len(name)]
    return ", ".join(_value(one[1], name[one.end() : end]) for one, end in zip(found, ends, strict=True))


def label(name: str) -> str:
    """Names a configuration in a table or chart: `baseline` instead of `the baseline`."""
    return name if name == _BASELINE else configuration(name)


def opening(name: str) -> str:
    """Names a configuration at the start of a sentence: `Data on ssd, 8 clients`. Names given in the lab file and
    settings keep their first letter."""
    words = configuration(name)
    return words if words == name or "=" in words.partition(" ")[0] else f"{words[:1].upper()}{words[1:]}"


def comparison(contrast: Contrast) -> str:
    """Names a comparison: `WAL in memory vs. WAL on disk, with 8 clients`."""
    return compared(contrast.cell, contrast.baseline, contrast.where)


def compared(cell: str, baseline: str, where: str = "") -> str:
    """Names a comparison by its parts: `log=memory` and `log=disk` where `clients=8` become `WAL in memory vs. WAL on
    disk, with 8 clients`."""
    words = f"{configuration(cell)} vs. {configuration(baseline)}"
    return f"{words}, with {configuration(where)}" if where else words


def _value(factor: str, level: str) -> str:
    if factor in _PLACES and (where := _at(level)):
        return f"{_PLACES[factor]} {where}"
    if factor in ("clients", "threads", "streams") and level.isdigit():
        return counted(int(level), factor[:-1])
    if factor == "engine":
        return level
    if factor == "version":
        return f"version {level}"
    if factor == "ideal" and level in _IDEAL:
        return _IDEAL[level]
    if factor == "rate" and (rate := _RATE.fullmatch(level)):
        return f"{level} of peak throughput" if rate[2] == "%" else f"{rate[1]} per second"
    return f"{factor}={level}"


def _at(level: str) -> str:
    """Returns where files are: `on ssd`; empty if the value does not name a place."""
    if level.startswith(_PREPOSITIONS) or _CACHED.fullmatch(level):
        return level
    return f"{'in' if level in _IN_MEMORY else 'on'} {level}" if _PLACE.search(level) else ""
