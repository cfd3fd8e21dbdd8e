"""The device models there are: those shipped, and those of the user's own files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ironbench import _core
from ironbench.catalogue.devices import DeviceModel, device_models, read
from ironbench.catalogue.typed import text_of

VARIABLE = "IRONBENCH_DEVICES"
"""Environment variable that names TOML files with models, separated as in PATH."""


def models(more: Iterable[str] = ()) -> dict[str, DeviceModel]:
    """By name: shipped ones, those of the files that `IRONBENCH_DEVICES` names, those of `more`; a later one wins.

    InputError: a file cannot be read or a model in it is not whole.
    """
    by_name = dict(device_models())
    for name in [*filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)), *more]:
        text = text_of(Path(name), f"device models {name}", "name a TOML file; docs/guide/devices.md shows one")
        by_name |= read(text, name, by_name)
    return by_name


def for_core(known: dict[str, DeviceModel]) -> bytes:
    """As the core takes them: JSON, name → kind and figures in base units."""
    return msgspec.json.encode({name: model.values() for name, model in known.items()})


def normal(text: str, more: Iterable[str] = ()) -> str:
    """A device expression in its normal form. InputError with the position of a mistake and the nearest name."""
    return _core.normal_device(text, for_core(models(more)))
