"""The available device models: built-in models, and models from the user's files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ironbench import _core
from ironbench.catalogue.devices import DeviceModel, device_models, read
from ironbench.catalogue.typed import text_of

VARIABLE = "IRONBENCH_DEVICES"
"""Environment variable with the paths of the user's TOML files, separated by colons."""


def models(more: Iterable[str] = ()) -> dict[str, DeviceModel]:
    """Returns all models by name: built-in models, models in the files of `IRONBENCH_DEVICES`, and models in the files
    of `more`. Later definitions replace earlier ones. Raises InputError if a file cannot be read or a
    model is incomplete."""
    by_name = dict(device_models())
    for name in [*filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)), *more]:
        text = text_of(
            Path(name),
            f"device models {name}",
            "give the path of a TOML file; docs/how/emulated-devices.md shows an example",
        )
        by_name |= read(text, name, by_name)
    return by_name


def for_core(known: dict[str, DeviceModel]) -> bytes:
    """Encodes the models as JSON for the core. The JSON maps each name to the kind and the parameters in base units."""
    return msgspec.json.encode({name: model.values() for name, model in known.items()})


def normalized(text: str, more: Iterable[str] = ()) -> str:
    """Returns a device expression in normal form. Raises InputError with the position of the mistake and the nearest
    name."""
    return _core.normal_device(text, for_core(models(more)))
