"""Mutated bundles, most with correct digests, are imported and then reported."""

from __future__ import annotations

import hashlib
import io
import json
import random
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from factories import DISK, MEMORY, arrive, evidence, sweep
from labfactory import lab, trials

from ironbench.host.fingerprint import fingerprint
from ironbench.records import Store
from ironbench.records.export import export
from ironbench.records.labs import FrozenPlan, LabDirectory
from ironbench.report.studies import rendered

Files = dict[str, bytes]
Dice = random.Random
NASTY: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, -5, 1.5, 0.0, -0.0, 1e-300, 1e300, 1e17, -1e17, 1 << 31, 1 << 63, 1 << 70),
    *("", "x", "\0", "\x1b[2J", "a\nb", "../../x", "x" * 300, "x" * 100_000, "𝄞", "\ud800", "nan", "2026-11-21"),
    *([], {}, [[]], [None], {"": ""}, {"a": {"b": []}}, [0] * 1000),
)
FORMATS = ("text", "md", "json", "html")


class Bundles:
    """Mutates two bundles, a sweep of two systems and a lab. The number of an input determines its content."""

    floor_s = 2.0
    """CPU seconds that one input may take, including a report on it."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._bundles = [_contents(_sweep(scratch / "a")), _contents(_lab(scratch / "b"))]

    def allowed_s(self, data: str | bytes) -> float:
        return max(self.floor_s, len(data) / 1e6)

    def input(self, number: int) -> bytes:
        dice = random.Random(number)
        files = dict(dice.choice(self._bundles))
        for _ in range(dice.choice((1, 1, 1, 2, 5))):
            _mutate(files, dice)
        data = _signed(files)
        return _bytes(data, dice) if dice.random() < 0.2 else data

    def read(self, data: str | bytes) -> None:
        """Imports the input. Raises IronbenchError if the input is refused, and AssertionError if a refused bundle left
        files."""
        assert isinstance(data, bytes)
        bundle, there = self._scratch / "x.ibr", self._scratch / "there"
        bundle.write_bytes(data)
        shutil.rmtree(there, ignore_errors=True)
        try:
            arrive(bundle, there)
        except Exception:
            assert not there.exists(), "an import that was refused has left something"
            raise
        form = FORMATS[min(3, int(random.Random(data).expovariate(1.0)))]
        if LabDirectory(there).begun():
            rendered([str(there)], "", form)
        else:
            rendered([], str(there), form)


def _sweep(directory: Path) -> Path:
    store = Store(directory)
    machine = store.keep_shared("machines", msgspec.to_builtins(fingerprint()))
    facts = {"version": "18", "settings": {"fsync": "on", "work_mem": "4MB"}, "extensions": ["a"], "block_bytes": 8192}
    engine = store.keep_shared("engines", facts)
    script = store.keep_shared("scripts", {"text": "\\set n random(1, 10)\nSELECT :n;\n"})
    for system, most in ((DISK, 3000.0), (MEMORY, 9000.0)):
        for one in sweep(system, most, 5, clients=(1, 4), repeats=1):
            store.keep(replace(one, machine=machine, engine=engine, scripts={"a.sql": script}), **evidence())
    export(store, store.all(), directory / "x.ibr")
    return directory / "x.ibr"


def _lab(directory: Path) -> Path:
    plan = lab({"log": ("disk", "memory")}, blocks=6)
    found = LabDirectory(directory)
    machine = found.store.keep_shared("machines", msgspec.to_builtins(fingerprint()))
    found.begin(FrozenPlan(plan, machine, {}, {}))
    found.declare(plan.method.stages[0], plan.trials)
    for number, one in enumerate(trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0}, observed=True)):
        found.store.keep(replace(one, machine=machine), **(evidence() if number < 3 else {}))
    export(found.store, found.records(), directory / "x.ibr", found)
    return directory / "x.ibr"


def _contents(bundle: Path) -> Files:
    with zipfile.ZipFile(bundle) as found:
        return {name: found.read(name) for name in found.namelist()}


def _mutate(files: Files, dice: Dice) -> None:
    """Changes one file, and everything that depends on its content."""
    kinds = sorted({name.rpartition("/")[2] if name.startswith("trials/") else name for name in files})
    kind = dice.choice([*kinds, "record.json", "lab/plan.json"])
    names = [name for name in files if name == kind or name.endswith(f"/{kind}")]
    if not names or kind == "manifest.json":
        return
    name = dice.choice(names)
    change: Callable[[bytes, Dice], bytes] = _json if name.endswith(".json") and dice.random() < 0.95 else _bytes
    files[name] = change(files[name], dice)
    if name.startswith(("machines/", "engines/", "scripts/")):
        _renamed(files, name)
    elif name.startswith("trials/") and not name.endswith("/record.json"):
        _, id, file = name.split("/", 2)
        _in_record(files, id, lambda record: record["files"].update({file: hashlib.sha256(files[name]).hexdigest()}))


def _renamed(files: Files, name: str) -> None:
    """Renames a shared file so that its name matches its content, and replaces the name in all records."""
    kind, _, old = name.partition("/")
    data = files.pop(name)
    try:
        key = hashlib.sha256(msgspec.json.format(data, indent=-1)).hexdigest()[:16]
    except (msgspec.DecodeError, RecursionError):
        key = hashlib.sha256(data).hexdigest()[:16]
    files[f"{kind}/{key}.json"] = data
    for other in [other for other in files if other.endswith("/record.json")]:
        if old.removesuffix(".json").encode() in files[other]:
            files[other] = files[other].replace(old.removesuffix(".json").encode(), key.encode())


def _in_record(files: Files, id: str, change: Callable[[dict[str, Any]], object]) -> None:
    name = f"trials/{id}/record.json"
    try:
        record = json.loads(files[name])
        change(record)
        files[name] = json.dumps(record).encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass  # an earlier change has made the record unreadable


def _bytes(data: bytes, dice: Dice) -> bytes:
    changed = bytearray(data)
    for _ in range(dice.choice((1, 1, 3, 20))):
        place = dice.randrange(len(changed) + 1)
        match dice.randrange(4):
            case 0:
                changed[place : place + 1] = dice.randbytes(1)
            case 1:
                del changed[place : place + dice.choice((1, 8, 200))]
            case 2:
                changed[place:place] = dice.randbytes(dice.choice((1, 4, 100)))
            case 3:
                changed[place : place + 4] = dice.choice((b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0"))
    return bytes(changed)


def _json(data: bytes, dice: Dice) -> bytes:
    """Changes one node of the document at any depth."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return _bytes(data, dice)
    places: list[tuple[Any, Any]] = []
    _places(document, places)
    if not places:
        return json.dumps(dice.choice(NASTY)).encode()
    holder, key = dice.choice(places)
    match dice.randrange(6):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder *= dice.choice((2, 50))
        case 2 if isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
            holder[key] = holder[key] * dice.choice((-1, 0, 1e-12, 1e12, 3))
        case 3:
            other_holder, other_key = dice.choice(places)
            holder[key] = json.loads(json.dumps(other_holder[other_key]))
        case 4:
            return json.dumps(document).encode().replace(b"1", _nested(dice), 1)
        case _:
            holder[key] = dice.choice(NASTY)
    return json.dumps(document).encode()


def _nested(dice: Dice) -> bytes:
    depth = dice.choice((25, 5000, 100_000))
    return b"[" * depth + b"]" * depth


def _places(value: Any, found: list[tuple[Any, Any]]) -> None:
    for key in value if isinstance(value, dict) else range(len(value)):
        found.append((value, key))
        if isinstance(value[key], dict | list):
            _places(value[key], found)


def _signed(files: Files) -> bytes:
    """Returns the bundle with a manifest and a comment that match the files."""
    manifest = json.loads(files["manifest.json"])
    held = {name: data for name, data in files.items() if name != "manifest.json"}
    manifest["files"] = {name: [len(data), hashlib.sha256(data).hexdigest()] for name, data in held.items()}
    text = json.dumps(manifest).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as out:
        for name, data in {**held, "manifest.json": text}.items():
            out.writestr(zipfile.ZipInfo(name), data)
        out.comment = f"ironbench parcel 1 sha256={hashlib.sha256(text).hexdigest()}".encode()
    return packed.getvalue()
