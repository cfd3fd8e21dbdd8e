"""Synthetic records and evidence: deterministic, realistic enough to look at, independent of any engine."""

from __future__ import annotations

import itertools
import math
import random
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ironbench import engines
from ironbench.errors import InputError
from ironbench.model.driven import Driven
from ironbench.model.inside import NOTHING, ServerStatement, ServerStatistics
from ironbench.model.note import Note
from ironbench.model.observation import Counted, Observation, Series
from ironbench.model.profile import SampledStack
from ironbench.model.record import Budget, Record, Status
from ironbench.model.record import Statement as Timed
from ironbench.model.secrets import Secrets
from ironbench.model.system import Cell, Choice, Layout, Load, System
from ironbench.model.workers import WorkerPart
from ironbench.records import attached
from ironbench.records.bundle import Reader
from ironbench.records.importer import ImportResult, import_bundle
from ironbench.report.formats import text
from ironbench.report.page import Page

DISK = System("postgres", "log on disk", {"shared_buffers": "256MB"}, Layout("/srv/d", None, None), 256 << 20)
MEMORY = System("postgres", "log in memory", {"shared_buffers": "256MB"}, Layout("/srv/d", None, "/shm/l"), 256 << 20)
OLTP = Choice("igen-oltp", {"scale": "4", "weight": "light"})


def record(
    system: System = DISK,
    clients: int = 8,
    throughput: float | None = 1000.0,
    *,
    block: int = 0,
    purpose: str = "sweep",
    status: Status = Status.OK,
    metrics: Mapping[str, float] | None = None,
    choice: Choice = OLTP,
    load: Load | None = None,
    **fields: Any,
) -> Record:
    """Returns one trial. `throughput=None`: without any metric of the drive loop."""
    load = replace(load or Load(duration_s=30.0, warmup_s=5.0, on_error="stop", seed=1), clients=clients)
    found: dict[str, float] = {}
    if throughput is not None:
        mean = clients / throughput
        found = {"throughput": throughput, "transactions": throughput * 30, "response_time_mean_s": mean}
        shape = {"p50": 0.8, "p90": 1.7, "p95": 2.2, "p99": 4.0, "p999": 11.0, "max": 40.0}
        found |= {f"response_time_{name}_s": mean * factor for name, factor in shape.items()}
    series = fields.pop("series", f"20261121T010000-{system.label[-4:].strip()}")
    base = Record(
        id=fields.pop("id", f"{series}-clients{clients}-{purpose[0]}{block}"),
        series=series,
        system=system,
        choice=choice,
        cell=Cell(f"clients={clients}", load),
        block=block,
        purpose=purpose,
        started_at=fields.pop("started_at", "2026-11-21T01:00:00"),
        elapsed_s=30.0,
        status=status,
        metrics={**found, **(metrics or {})},
    )
    return replace(base, **fields)


def knee(clients: int, most: float, half: int) -> float:
    """Returns throughput that rises to a knee and then drops slightly."""
    return most * clients / (clients + half) * (1 - 0.004 * clients)


def sweep(
    system: System,
    most: float,
    half: int,
    clients: Sequence[int] = (1, 2, 4, 8, 12, 16, 20),
    repeats: int = 3,
    seed: int = 1,
    **fields: Any,
) -> list[Record]:
    """Returns a sweep with confirmation trials of the best point; noise of 3%, equal for equal seeds."""
    dice = random.Random(seed)

    def one(count: int, block: int, purpose: str) -> Record:
        throughput = knee(count, most, half) * dice.gauss(1, 0.03)
        busy = min(0.95, throughput / 9000)
        budget = Budget(busy * 0.62, busy * 0.2, 0.005, 0.0, busy * 0.1, 0.002, 1 - busy * 0.92 - 0.007)
        return record(
            system, count, throughput, block=block, purpose=purpose, budget=budget, metrics=_extra(system, count, busy),
            machine="m1", engine="e1", **fields,
        )  # fmt: skip

    swept = [one(count, block, "sweep") for block in range(repeats) for count in clients]
    best = max(clients, key=lambda count: knee(count, most, half))
    return swept + [one(best, block, "confirmation") for block in range(3)]


def _extra(system: System, clients: int, busy: float) -> dict[str, float]:
    slow_log = 0.5 if system.layout.log is None else 0.02
    working = 0.2 + 0.6 * busy
    metrics = {
        "wait_share{event=CPU}": working,
        "wait_share{event=IO.WalSync}": slow_log * clients / (clients + 4),
        "wait_share{event=LWLock.WALWrite}": slow_log * 0.4 * clients / (clients + 8),
        "wait_share{event=Client.ClientRead}": max(0.0, 0.9 - working - slow_log),
        "data_bytes": 640e6,
        "checkpoints": 0.0,
        "device_write_bytes_per_s{role=data}": 4e6,
        "device_writes_per_s{role=data}": 300.0,
        "client_cpu_per_transaction_s": 9e-6,
        "wal_bytes_per_transaction": 310.0,
    }
    if system.layout.log is None:
        metrics |= {"device_write_bytes_per_s{role=log}": 22e6, "device_writes_per_s{role=log}": 2100.0}
    return metrics


def doubles(*values: float) -> bytes:
    """Returns a column in the core's format."""
    return struct.pack(f"<{len(values)}d", *values)


TIMED = {
    "script": "a.sql",
    "line": 1,
    "command": 1,
    "text": "select 1",
    "count": 5,
    "failed": 0,
    "mean_s": 0.1,
    "stdev_s": 0.0,
}
WORKER = WorkerPart(1, "a", 4, 100, 0, 2.0, 0.1)
INSIDE = ServerStatistics(statements=(ServerStatement("select 1", 5.0, 0.1),), statements_s=0.1)


def evidence() -> dict[str, Any]:
    """Returns the arguments with which `Store.keep` writes an example of each kind of evidence."""
    from ironbench._core import Histogram

    histogram = Histogram()
    for thousand in range(1, 200):
        histogram.record(thousand * 10_000)
    seconds = [float(second) for second in range(90)]
    rates = {"transactions": doubles(*seconds), "response_p99_s": doubles(*seconds)}
    driven = Driven(
        timeline={"t_s": doubles(0.0, 0.1), "transactions": doubles(5, 6)},
        seconds={"t_s": doubles(*seconds), **rates},
        histograms={"response_time": histogram},
        log=b"ended\n",
        files={"plans.txt": b"Seq Scan\n", "streams.csv": b"stream,step\n"},
    )
    observation = Observation(
        series=(Series("device_writes_per_s{role=data}", (0.0, 1.0), (0.5, 0.6)),),
        counted=(Counted("device_read_latency_s{role=data}", (1e-3, 2e-3), (4.0, 5.0)),),
    )
    return {
        "driven": driven,
        "observation": observation,
        "profile": [SampledStack("cpu", "engine", "postgres", "", "main;exec;read_[k]", "", 12, 0.12)],
        "files": {
            "inside.json": attached.written_inside(INSIDE),
            "statements.json": attached.written_timed([TIMED]),
            "workers.json": attached.written_workers([WORKER], {}),
            "commands.log": b"done\n",
            "slices.json": b'[{"at_s":0.0,"dropped":false}]',
        },
    }


def suspect(record: Record, code: str = "client-saturated", **values: Any) -> Record:
    """Returns a flagged trial, by default flagged because the client's thread was busy."""
    busy = {"busy": 0.97, "threads": 1, "clients": 8} if code == "client-saturated" else {}
    return replace(record, status=Status.SUSPECT, warnings=(Note(code, {**busy, **values}),))


class SortedHistogram:
    """Substitute for the core's histogram: exact, in seconds."""

    def __init__(self, values: Iterable[float] = ()) -> None:
        self._values = sorted(values)

    @property
    def count(self) -> int:
        return len(self._values)

    def quantiles(self, q: Sequence[float]) -> list[float]:
        return [self._values[min(self.count - 1, max(0, math.ceil(share * self.count) - 1))] for share in q]

    def merge(self, other: SortedHistogram) -> None:
        self._values = sorted([*self._values, *other._values])

    def to_bytes(self) -> bytes:
        return repr(self._values).encode()

    @staticmethod
    def from_bytes(data: bytes) -> SortedHistogram:
        return SortedHistogram(float(value) for value in data.decode().strip("[]").split(",") if value.strip())


def _quantiles(metrics: Mapping[str, float], shares: Iterable[float]) -> list[float]:
    """Returns quantiles at ascending shares, interpolated between the trial's percentiles on a logarithmic axis."""
    names = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999, "max": 1.0}
    known = [(0.0, metrics["response_time_p50_s"] / 3)]
    known += [(at, metrics[name]) for part, at in names.items() if (name := f"response_time_{part}_s") in metrics]
    lines = itertools.pairwise(known)
    (low, a), (high, b) = next(lines)
    values = []
    for share in shares:
        while share > high:
            (low, a), (high, b) = next(lines, ((high, b), (math.inf, b)))
        values.append(a * (b / a) ** ((share - low) / (high - low)))
    return values


MACHINE = {
    "cpu": {"model": "Example CPU 3.0 GHz", "sockets": 1, "cores": 2, "threads": 4},
    "memory_bytes": 24 << 30,
    "kernel": "6.1.0",
    "virtualisation": "none",
}
ENGINE = {"version": "PostgreSQL 18.1", "configure": ["--without-icu"], "settings": {"fsync": "on", "work_mem": "4MB"}}


@dataclass
class Shelf:
    """An archive in memory, with evidence derived from each record's values."""

    records: Sequence[Record] = ()
    machines: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"m1": MACHINE})
    engines: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"e1": ENGINE})
    io: tuple[Counted, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    """Plans by trial id."""
    insides: Mapping[str, ServerStatistics] = field(default_factory=dict)
    """Server statistics by trial id."""
    statements: Mapping[str, Sequence[Timed]] = field(default_factory=dict)
    """Times of the SQL commands in a trial's scripts, by trial id."""
    worker_parts: Mapping[str, Sequence[WorkerPart]] = field(default_factory=dict)
    """Results of a trial's workers, by trial id."""
    profiles: Mapping[str, Sequence[SampledStack]] = field(default_factory=dict)
    """Sampled stacks by trial id."""

    def _of(self, id: str) -> tuple[Record, random.Random] | None:
        found = next((one for one in self.records if one.id == id and "throughput" in one.metrics), None)
        return (found, random.Random(id)) if found else None

    def seconds(self, id: str) -> dict[str, list[float]]:
        known = self._of(id)
        if known is None:
            return {}
        one, dice = known
        p50, p99 = one.metrics["response_time_p50_s"], one.metrics["response_time_p99_s"]
        times = [float(t) for t in range(int(one.elapsed_s))]
        stall = [0.45 if 12 <= t <= 14 and one.system.layout.log is None else 1.0 for t in times]
        return {
            "t_s": times,
            "transactions": [one.metrics["throughput"] * dice.gauss(1, 0.04) * dip for dip in stall],
            "errors": [0.0 for _ in times],
            "response_p50_s": [p50 * dice.gauss(1, 0.05) / dip for dip in stall],
            "response_p99_s": [p99 * dice.gauss(1, 0.15) / dip**3 for dip in stall],
        }

    def observed(self, id: str) -> dict[str, dict[str, list[float]]]:
        known = self._of(id)
        if known is None:
            return {}
        one, dice = known
        times = [float(t) for t in range(int(one.elapsed_s))]
        found = {}
        for name, value in one.metrics.items():
            if name.startswith("device_"):
                found[name] = {"t_s": times, "value": [max(0.0, value * dice.gauss(1, 0.2)) for _ in times]}
        for role in dict.fromkeys(name.partition("role=")[2].rstrip("}") for name in found):
            for kind, centre in (("device_write_latency_s", 0.0008), ("device_utilisation_share", 0.4)):
                found[f"{kind}{{role={role}}}"] = {"t_s": times, "value": [centre * dice.gauss(1, 0.2) for _ in times]}
        return found

    def counted(self, id: str) -> tuple[Counted, ...]:
        return self.io if self._of(id) else ()

    def profile(self, id: str) -> Sequence[SampledStack]:
        return self.profiles.get(id, ())

    def histograms(self, id: str) -> dict[str, SortedHistogram]:
        known = self._of(id)
        if known is None:
            return {}
        one, _ = known
        values = _quantiles(one.metrics, ((place + 0.5) / 4000 for place in range(4000)))
        return {"response_time": SortedHistogram(values), "service_time": SortedHistogram(values)}

    def text(self, id: str, name: str) -> str:
        return self.texts.get(id, "")

    def inside(self, id: str) -> ServerStatistics:
        return self.insides.get(id, NOTHING)

    def timed(self, id: str) -> Sequence[Timed]:
        return self.statements.get(id, ())

    def workers(self, id: str) -> Sequence[WorkerPart]:
        return self.worker_parts.get(id, ())

    def machine(self, key: str) -> Mapping[str, Any]:
        return self.machines.get(key, {})

    def engine(self, key: str) -> Mapping[str, Any]:
        return self.engines.get(key, {})


def example() -> list[Record]:
    """Returns two systems that differ in the location of the WAL, as in the demo."""
    return sweep(DISK, 3600, 6) + sweep(MEMORY, 9800, 5, seed=2, started_at="2026-11-21T01:10:00")


def rarely_mariadb(*others: str, argument: str = "engine", indirect: bool = False) -> pytest.MarkDecorator:
    """Parametrizes a rule that does not depend on the kind of server: MariaDB runs in the long tests only."""
    engines = [*others, pytest.param("mariadb", marks=pytest.mark.long)]
    return pytest.mark.parametrize(argument, engines, indirect=indirect)


def require_installed(engine: str) -> None:
    """Skips a test if its engine is not installed."""
    if reason := lacking(engine):
        pytest.skip(reason)


def lacking(engine: str) -> str:
    """Returns the reason why an engine cannot be started here, with a fix; empty if it can be started."""
    try:
        engines.get(engine).identity(System(engine, "test"), Secrets())
    except InputError as error:
        return str(error) + f": {error.hint}"
    return ""


def arrive(bundle: Path, directory: Path) -> ImportResult:
    """Imports a bundle."""
    with Reader(bundle) as reader:
        return import_bundle(reader, directory)


def codes(*notes: Note) -> list[str]:
    """Lists the codes of notes and of the notes that they contain, in order."""
    found = []
    for one in notes:
        inner = [part for value in one.values.values() for part in (value if isinstance(value, tuple) else (value,))]
        found += [one.code, *codes(*(part for part in inner if isinstance(part, Note)))]
    return found


def unfolded(page: Page) -> str:
    """Returns a page as the terminal shows it, but without line breaks, because the terminal layout folds sentences."""
    return re.sub(r" *\n *", " ", text.page(page))
