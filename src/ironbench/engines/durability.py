"""Settings with which a crash or a power failure can lose committed data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

OFF, ON = ("off", "0", "false", "no"), ("on", "1", "true", "yes")


@dataclass(frozen=True, slots=True)
class Hazard:
    """Values of one setting with which an event, such as a crash, can lose data."""

    setting: str
    values: tuple[str, ...]
    """The values, in lower case."""
    event: str
    """The event that may lose the data: a key of `EVENTS` in `report/wording/storage.py`."""
    loss: str
    """What may be lost: a key of `LOSSES` in `report/wording/storage.py`."""
    needs: str = ""
    """Another setting that must be on for the loss to be possible, or "" if there is no such setting."""


class Loss(NamedTuple):
    """A setting of a server with a value that can lose data. Notes in records contain such settings."""

    setting: str
    value: str
    event: str
    loss: str


def losses(hazards: Sequence[Hazard], settings: Mapping[str, str]) -> tuple[Loss, ...]:
    """Returns the settings with which data can be lost. `settings`: either the declared settings, or all settings of a
    server."""
    return tuple(_losses(hazards, {name.lower(): str(value) for name, value in settings.items()}))


def _losses(hazards: Sequence[Hazard], settings: Mapping[str, str]) -> Iterator[Loss]:
    for one in hazards:
        value = settings.get(one.setting.lower(), "")
        if value.strip().lower() not in one.values:
            continue
        if not one.needs or settings.get(one.needs.lower(), "").strip().lower() not in ("", *OFF):
            yield Loss(one.setting, value, one.event, one.loss)
