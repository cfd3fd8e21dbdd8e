"""Device models: parameters with their sources, and published results to compare the models with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from ironbench.catalogue.typed import document
from ironbench.errors import InputError, nearest
from ironbench.fields.check import converted
from ironbench.ranges import Range
from ironbench.units import figure

KINDS: dict[str, tuple[str, ...]] = {
    "free": ("capacity",),
    "memory": ("capacity", "latency", "rate"),
    "disk": (
        *("capacity", "rpm", "seek_track_read", "seek_average_read", "seek_full_read", "seek_track_write"),
        *("seek_average_write", "seek_full_write", "rate_outer", "rate_inner", "interface_rate", "overhead", "queue"),
        *("cache", "write_cache", "read_ahead"),
    ),
    "flash": (
        *("capacity", "units", "page", "switch", "read_latency", "read_iops", "read_depth", "read_rate"),
        *("write_latency", "write_iops", "write_rate", "sustained_write_iops", "sustained_write_rate"),
        *("interface_rate", "duplex", "buffer", "quick_flash", "write_cache", "protected", "flush_latency", "spare"),
        *("rated_fill", "compresses", "host_cpu"),
    ),
    "volume": ("capacity", "iops", "rate", "read_latency", "write_latency", "io_size", "burst"),
    "controller": ("rate", "iops", "latency", "cache", "write_cache"),
}
"""The parameters of each kind of model. All parameters are required. `crates/ironbench-device/src/parameters.rs`
explains them."""

_FIGURES = Range(0.0, 1e18, example="7.5 ms")
"""Allowed values of numeric parameters: seconds, bytes, bytes per second, and counts."""
_SWITCHES = {"write_cache", "duplex", "protected", "compresses"}
_WHOLE = {"queue", "units", "read_depth"}
_MAY_BE_ZERO = {
    *("cache", "buffer", "quick_flash", "switch", "host_cpu", "spare", "burst", "latency", "overhead", "rated_fill"),
}
_ORIGINS = ("source", "derived", "assumed")
_NAME = re.compile(r"[a-z][a-z0-9._-]*")
"""Pattern of names that can be used in a device expression. Upper-case letters are not allowed, because expressions are
case-insensitive. The first character is not a digit, because a digit starts a count
(`crates/ironbench-device/src/text/parser.rs`)."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A parameter of a model."""

    name: str
    written: str
    """The value as written in the file, such as `7.5 ms`."""
    value: float | int | bool
    """The value in base units."""
    origin: str
    """Origin of the value: `source` (published), `derived` (computed from published values), `assumed` (neither), or
    `yours` (from a user's file)."""
    why: str
    """The published source, the rule by which the value was derived, or the reason for the assumption."""


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """A published result that was not used to build the model."""

    what: str
    on: str
    """The device expression that was measured."""
    load: Mapping[str, Any]
    """The load under which the device was measured, in the format of the core's `probe_device`."""
    against: Mapping[str, Any] | None
    """The load whose result is the denominator if the published result is a ratio. The value is None if the result is
    not a ratio."""
    of: str
    """The quantity that was measured: `iops` or `rate`."""
    low: float
    high: float
    source: str
    not_held: str | None
    """Why the result is only shown and not compared with the model, for example because the source does not name the
    device or the load. The value is None if the result is compared."""


@dataclass(frozen=True, slots=True)
class DeviceModel:
    name: str
    kind: str
    doc: str
    year: int | None
    figures: tuple[Figure, ...]
    published: tuple[PublishedFigure, ...] = field(default=())

    @property
    def assumed(self) -> tuple[str, ...]:
        """Names of the parameters without a published value."""
        return tuple(figure.name for figure in self.figures if figure.origin == "assumed")

    def values(self) -> dict[str, Any]:
        """Returns the kind and the parameters in base units, as the core expects them."""
        return {"kind": self.kind} | {figure.name: figure.value for figure in self.figures}


@cache
def device_models() -> dict[str, DeviceModel]:
    """Returns the built-in models in the order of devices.toml. The keys are the names of the models."""
    text = files(__package__).joinpath("devices.toml").read_text(encoding="utf-8")
    return read(text, "catalogue/devices.toml", {})


class _PublishedRow(msgspec.Struct, forbid_unknown_fields=True):
    what: str
    load: dict[str, Any]
    of: str
    source: str
    on: str = ""
    against: dict[str, Any] | None = None
    is_: float | None = msgspec.field(default=None, name="is")
    low: float | None = None
    high: float | None = None
    not_held: str | None = None


class _ModelRow(msgspec.Struct, forbid_unknown_fields=True):
    kind: str = ""
    doc: str = ""
    year: int | None = None
    like: str = ""
    figures: dict[str, Any] = msgspec.field(default_factory=dict)
    published: list[_PublishedRow] = msgspec.field(default_factory=list)


class _Sources(msgspec.Struct):
    sources: dict[str, str]


_HINT = "see docs/how/emulated-devices.md for the format of your own models"


def read(text: str, place: str, known: Mapping[str, DeviceModel]) -> dict[str, DeviceModel]:
    """Reads models from a TOML text. Raises InputError.

    A model can take its defaults from another model, which it names in `like`. That model is either an earlier one in
    the text or one in `known`.
    """
    table = document(text, place, _HINT)
    sources = converted({"sources": table.pop("sources", {})}, _Sources, place, _HINT).sources
    models: dict[str, DeviceModel] = {}
    for name, row in table.items():
        subject = f"{place}: {name}"
        if not _NAME.fullmatch(name):
            hint = "start with a letter, and use only lower-case letters, digits, - _ and ."
            raise InputError(subject, "the name cannot be used in a device expression", hint)
        models[name] = _model(subject, name, converted(row, _ModelRow, subject, _HINT), sources, {**known, **models})
    return models


def _model(
    subject: str, name: str, row: _ModelRow, sources: Mapping[str, str], known: Mapping[str, DeviceModel]
) -> DeviceModel:
    like = known.get(row.like)
    if row.like and like is None:
        raise InputError(f"{subject}.like", f"unknown model {row.like!r}", nearest(row.like, list(known)))
    kind = row.kind or (like.kind if like else "")
    if kind not in KINDS or (like is not None and like.kind != kind):
        raise InputError(
            f"{subject}.kind",
            f"{kind!r} is not a kind of device model, or differs from the kind of the model in `like`",
            nearest(str(kind), list(KINDS)),
        )
    figures = {figure.name: figure for figure in like.figures} if like else {}
    for key, value in row.figures.items():
        if key not in KINDS[kind]:
            raise InputError(f"{subject}.{key}", f"unknown figure of a {kind}", nearest(key, list(KINDS[kind])))
        figures[key] = _figure(f"{subject}.{key}", key, value, sources)
    missing = [key for key in KINDS[kind] if key not in figures]
    if missing:
        raise InputError(
            subject, f"lacks {', '.join(missing)}", 'add each figure, or like = "MODEL" to start from another model'
        )
    published = tuple(_published(name, one) for one in row.published)
    ordered = tuple(figures[key] for key in KINDS[kind])
    return DeviceModel(name, kind, row.doc, row.year, ordered, published)


def _figure(subject: str, key: str, value: Any, sources: Mapping[str, str]) -> Figure:
    if not isinstance(value, dict):
        return Figure(key, str(value), _value(subject, key, value), "yours", "")
    origins = [origin for origin in _ORIGINS if origin in value]
    if "is" not in value or len(origins) != 1:
        raise InputError(
            subject, "needs `is` and one of `source`, `derived`, `assumed`", 'e.g. { is = "7.5 ms", source = "…" }'
        )
    why = str(value[origins[0]])
    return Figure(key, str(value["is"]), _value(subject, key, value["is"]), origins[0], sources.get(why, why))


def _value(subject: str, key: str, written: Any) -> float | int | bool:
    if (key in _SWITCHES) != isinstance(written, bool):
        raise InputError(
            subject,
            f"{written!r} is not a valid value",
            "use true or false" if key in _SWITCHES else "use a number with its unit",
        )
    if isinstance(written, bool):
        return written
    value = figure(subject, written)
    _FIGURES.require(subject, value)
    if value == 0 and key not in _MAY_BE_ZERO:
        raise InputError(subject, f"{written!r} is not above zero", "use a value above zero")
    if key not in _WHOLE:
        return value
    if value != int(value):
        raise InputError(subject, f"{written!r} is not a whole number", "use a whole number")
    return int(value)


def _published(name: str, row: _PublishedRow) -> PublishedFigure:
    low, high = (row.low, row.high) if row.is_ is None else (row.is_, row.is_)
    if low is None or high is None:
        raise InputError(f"{name}, published", f"{row.what} has no value", "write is = …, or low = … and high = …")
    return PublishedFigure(
        what=row.what,
        on=row.on or name,
        load=row.load,
        against=row.against,
        of=row.of,
        low=low,
        high=high,
        source=row.source,
        not_held=row.not_held,
    )
