"""Reads curves of a load: `ramp:100-5000/60s`, `steps:100,500,1000/20s`, `sine:100-500/60s`, `file:day.csv`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from ironbench import units
from ironbench.catalogue.typed import text_of
from ironbench.errors import InputError, quoted, written
from ironbench.fields.lab import range_of
from ironbench.model.curve import WORDS, Curve
from ironbench.paths import expanded

MOST_POINTS = 300
"""Maximum number of points in a file. The curve is part of each record, and records must be small."""
MOST_PERIODS = 10_000
_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_RANGE = re.compile(rf"\s*({_NUMBER})\s*-\s*({_NUMBER})\s*")
_EXAMPLES = {
    "ramp": "ramp:100-5000/60s",
    "steps": "steps:100,500,1000/20s",
    "sine": "sine:100-500/60s",
    "file": "file:day.csv",
}
_OF_CLIENTS = {"ramp": "ramp:1-64/60s", "steps": "steps:1,8,64/20s", "sine": "sine:1-64/60s", "file": "file:day.csv"}


def declares_curve(text: object) -> bool:
    """Returns whether the text declares a curve."""
    return isinstance(text, str) and text.strip().startswith(WORDS)


def read(field: str, text: str, folder: Path | None) -> Curve:
    """Reads the curve in `load.rate` or `load.clients`. Relative file names are relative to `folder`. Raises
    InputError."""
    of = field.rpartition(".")[2]
    kind, _, rest = text.strip().partition(":")
    if kind == "file":
        return _checked(field, _of_file(field, of, rest.strip(), folder))
    values, slash, time = rest.rpartition("/")
    if not slash:
        raise _wrong(field, text, "has no duration")
    seconds = units.seconds(written(field), time.strip())
    range_of("load.duration").require(written(field), seconds)
    normal = f"{kind}:{values.replace(' ', '')}/{time.strip()}"
    if kind == "steps":
        steps = [_value(field, of, one) for one in values.split(",")]
        points = [(second * seconds, step) for place, step in enumerate(steps) for second in (place, place + 1)]
        return _checked(field, Curve(of, normal, tuple(points)))
    match = _RANGE.fullmatch(values)
    if match is None:
        raise _wrong(field, text, "is not a range of two numbers")
    low, high = (_value(field, of, match[place]) for place in (1, 2))
    if kind == "ramp":
        return _checked(field, Curve(of, normal, ((0.0, low), (seconds, high))))
    if low > high:
        raise _wrong(field, text, "must have the lower number first")
    return _checked(field, Curve(of, normal, wave=(low, high, seconds)))


def duration(field: str, curve: Curve, asked_s: float | None) -> float:
    """Returns the duration of the trial: the length of the curve, or a longer time if the user requests it. Raises
    InputError."""
    if asked_s is None:
        return curve.length_s
    if asked_s < curve.length_s:
        whole = units.span(curve.length_s)
        cause = f"{units.span(asked_s)} is shorter than {written(field, curve.text)}, which takes {whole}"
        hint = f"remove {written('load.duration')}, because a trial lasts as long as its curve"
        raise InputError(written("load.duration"), cause, hint)
    if curve.wave and asked_s / curve.length_s > MOST_PERIODS:
        cause = f"{written(field, curve.text)} would repeat more than {MOST_PERIODS} times in {units.span(asked_s)}"
        raise InputError(written("load.duration"), cause, "use a longer period, or a constant rate")
    return asked_s


def _wrong(field: str, text: str, why: str) -> InputError:
    kind = text.strip().partition(":")[0]
    example = (_OF_CLIENTS if field == "load.clients" else _EXAMPLES)[kind]
    return InputError(written(field), f"{quoted(text)} {why}", f"write for example {written(field, example)}")


def _value(field: str, of: str, text: str) -> float:
    if text.strip() in ("0", "0.0"):
        return 0.0
    return float(range_of(f"load.{of}").read(written(field), text.strip()))


def _checked(field: str, curve: Curve) -> Curve:
    if curve.most <= 0:
        raise InputError(written(field), f"{curve.text} is always zero", "use at least one value above zero")
    return curve


def _of_file(field: str, of: str, name: str, folder: Path | None) -> Curve:
    path = expanded(name)
    path = path if path.is_absolute() else (folder or Path()) / path
    hint = "use a text file with a time and a value on each line, e.g. `30s 500`"
    text = text_of(path, f"{written(field)}, {name}", hint)
    points = tuple(_points(field, of, name, text))
    if len(points) < 2:
        raise InputError(written(field), f"{name} has fewer than two points", "write a time and a value on each line")
    if len(points) > MOST_POINTS:
        cause = f"{name} has {len(points)} points; the maximum is {MOST_POINTS}"
        raise InputError(written(field), cause, "remove some points; ironbench connects the points by straight lines")
    if points[-1][0] <= 0:
        raise InputError(
            written(field),
            f"the time of the last point in {name} is 0",
            "the time of the last point must be the duration of the curve",
        )
    digest = hashlib.sha256(repr(points).encode()).hexdigest()[:8]
    return Curve(of, f"file:{Path(name).name} ({len(points)} points, {digest})", points)


def _points(field: str, of: str, name: str, text: str) -> Iterator[tuple[float, float]]:
    last = 0.0
    first = True
    for number, line in enumerate(text.splitlines(), 1):
        words = re.split(r"[\s,;]+", line.partition("#")[0].strip())
        if words == [""]:
            continue
        if number == 1 and len(words) == 2 and not any(character.isdigit() for character in "".join(words)):
            continue  # a heading
        subject = f"{written(field)}, {name} line {number}"
        if len(words) != 2:
            raise InputError(subject, f"{quoted(line)} is not a time and a value", "write for example `30s 500`")
        second = units.seconds(subject, words[0])
        if first and second != 0:
            raise InputError(subject, f"the time of the first point is {words[0]}", "start with a point at the time 0")
        if second < last:
            raise InputError(
                subject, f"the time {words[0]} is earlier than the time on the line before", "sort the lines by time"
            )
        range_of("load.warmup").require(subject, second)
        last, first = second, False
        zero = words[1] in ("0", "0.0")
        try:
            value = 0.0 if zero else float(range_of(f"load.{of}").read(subject, words[1]))
        except InputError as error:
            raise InputError(subject, error.cause, "write a time and a value, for example `30s 500`") from None
        yield second, value
