"""Figures of data sheets as they are written: `7.5 ms`, `163 MB/s`, `256 GB`, `20 %`."""

from __future__ import annotations

import re

from ironbench.errors import InputError

_SIZES = {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12} | {
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
UNITS: dict[str, float] = (
    {"": 1, "%": 0.01, "rpm": 1, "s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
    | _SIZES
    | {f"{name}/s": factor for name, factor in _SIZES.items()}
    | {"Mbit/s": 1e6 / 8, "Gbit/s": 1e9 / 8}
)
"""Unit → factor to seconds, bytes, bytes per second, or 1. Sizes as makers of storage count: MB is 10⁶."""

_NUMBER = re.compile(r"\s*([0-9][0-9_]*\.?[0-9]*)\s*(\S*)\s*")


def quantity(subject: str, written: object) -> float | int | bool:
    """In base units. InputError where it is none."""
    if isinstance(written, bool | int | float):
        return written
    match = _NUMBER.fullmatch(str(written))
    if match is None or match[2] not in UNITS:
        known = ", ".join(name for name in UNITS if name)
        raise InputError(subject, f"{written!r} is no figure", f"write for example 7.5 ms or 163 MB/s; units: {known}")
    return float(match[1]) * UNITS[match[2]]
