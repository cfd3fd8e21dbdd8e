"""Reads the value of `--profile` (`measure.profile` in a lab)."""

from __future__ import annotations

import re

from ironbench.errors import InputError, nearest, quoted, written
from ironbench.model.profile import CPU, WAIT
from ironbench.model.profile_request import ALL, DEFAULT_HZ, ProfileRequest
from ironbench.ranges import Range

FIELD = "measure.profile"
_HZ = Range(1, 999, whole=True, note="samples per second and CPU")
_KINDS = {CPU: (CPU,), WAIT: (WAIT,), ALL: (CPU, WAIT)}


def read(text: str) -> ProfileRequest | None:
    """Parses `cpu`, `wait` or `all`, optionally with a frequency, such as `cpu:499`. Returns None for an empty text.
    Raises InputError."""
    if not text:
        return None
    kind, colon, hz = text.partition(":")
    if kind not in _KINDS:
        raise InputError(written(FIELD), f"{quoted(kind)} is not a kind of profile", nearest(kind, list(_KINDS)))
    if not colon:
        return ProfileRequest(_KINDS[kind], DEFAULT_HZ)
    if not re.fullmatch("[0-9]{1,9}", hz):
        cause = f"{quoted(hz)} is not a whole number of samples per second"
        raise InputError(written(FIELD), cause, f"write for example {written(FIELD, f'{kind}:{DEFAULT_HZ}')}")
    _HZ.require(written(FIELD), int(hz))
    return ProfileRequest(_KINDS[kind], int(hz))
