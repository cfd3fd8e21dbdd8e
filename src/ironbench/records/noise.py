"""Noise floors of machines, stored in the results directory so that later findings can use them.

`<results>/noise/<machine>-<work>.json`, one file per machine and work: a new measurement replaces the previous one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from ironbench.host.durable import write_whole
from ironbench.model.finding import Noise, floor_of
from ironbench.model.record import DUET, SLICES, TRIALS

FOLDER = "noise"


def keep(results: Path, floors: Sequence[Noise]) -> None:
    """Stores the noise floors of an A/A lab. There is one noise floor for each metric. Raises UnwrittenError."""
    for machine, work, method in dict.fromkeys((noise.machine, noise.work, noise.method) for noise in floors):
        own = [noise for noise in floors if (noise.machine, noise.work, noise.method) == (machine, work, method)]
        key = work if method == TRIALS else f"{work} by {method}"
        name = f"{machine}-{hashlib.sha256(key.encode()).hexdigest()[:8]}.json"
        write_whole(results / FOLDER / name, msgspec.json.format(msgspec.json.encode(own), indent=1) + b"\n")


def stored_floors(results: Path) -> tuple[Noise, ...]:
    """Returns every stored noise floor. Skips unreadable files.

    Earlier versions stored the upper bound of a confidence interval that shrank with the number of blocks. Floors are
    therefore computed again from the stored standard deviation.
    """
    floors: list[Noise] = []
    for path in sorted((results / FOLDER).glob("*.json")):
        try:
            stored = msgspec.json.decode(path.read_bytes(), type=list[Noise])
            floors += [replace(_with_method(one), floor=floor_of(one.spread)) for one in stored]
        except (OSError, msgspec.DecodeError):
            continue
    return tuple(floors)


def _with_method(noise: Noise) -> Noise:
    """Returns the noise with its method as a field. Earlier versions appended the method to the name of the work."""
    for method in (SLICES, DUET):
        if noise.work.endswith(suffix := f" by {method}"):
            return replace(noise, work=noise.work.removesuffix(suffix), method=method)
    return noise
