"""Duration of `list`, `compare` and `report` with 10,000 records: 4 systems, 25 runs each, 100 trials per run."""

from __future__ import annotations

import array
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import msgspec

from bench.figures import at_most, report
from ironbench._core import Histogram
from ironbench.model.driven import Driven
from ironbench.model.observation import Series
from ironbench.model.record import Budget, Record, Status
from ironbench.model.system import Cell, Choice, Layout, Load, System
from ironbench.records import Store
from ironbench.records.index import NAME

RECORDS = 10_000
TRIALS_OF_A_RUN = 100
DAY = date(2026, 1, 1)
"""Date of the first run."""
_LINKS = 10_000
"""Maximum number of hard links to a file; ext4 allows 65,000."""
CLIENTS = (1, 2, 4, 8, 12, 16, 20, 24, 32)
TRIALS = 3
LIMITS = {"list": 1.0, "compare": 1.0, "report": 5.0}
"""Limits in seconds for the median of three calls after the first call, which builds the index (issue 3, figures)."""
REPEATS = 3


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ironbench-archive-") as made:
        folder = Path(made) / "results"
        fill(folder)
        calls = {
            "list": ["list", "records", "--results", str(folder)],
            "compare": ["compare", "system 0", "system 1", "--results", str(folder)],
            "report": ["report", "--results", str(folder), "-o", str(Path(made) / "report.html")],
        }
        environment = installed(Path(made))
        for words in calls.values():
            timed(words, environment)
        (folder / NAME).unlink()
        first = timed(calls["list"], environment)
        report(f"the first `list` of {RECORDS} records, which makes the index, s", first)
        for verb, words in calls.items():
            took = [timed(words, environment) for _ in range(REPEATS)]
            report(f"{verb}, {RECORDS} records, s", statistics.median(took), at_most(LIMITS[verb]))


def timed(words: list[str], environment: dict[str, str]) -> float:
    """Returns the wall time of one call of the program, including its start."""
    started = time.perf_counter()
    command = [sys.executable, "-c", "from ironbench.cli import main; main()", *words]
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return time.perf_counter() - started


def installed(made: Path) -> dict[str, str]:
    """Returns the environment of an installed program, whose modules are compiled once instead of at every start."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return environment | {"PYTHONPYCACHEPREFIX": str(made / "compiled")}


def fill(folder: Path, records: int = RECORDS) -> None:
    """Creates records of 4 systems in runs of 100 trials. The evidence of one trial is hard-linked into each record's
    folder."""
    store = Store(folder)
    machine = store.keep_shared("machines", {"cpu": {"model": "x", "cores": 2}, "memory_bytes": 24 << 30})
    engine = store.keep_shared("engines", {"version": "18.1", "settings": {f"s{n}": str(n) for n in range(300)}})
    encoder = msgspec.json.Encoder()
    for begin in range(0, records, _LINKS):
        template = replace(trial(0, machine, engine), id="template")
        store.keep(template, driven())
        source = store.path("template")
        files = [file.name for file in source.iterdir() if file.name != "record.json"]
        for number in range(begin, min(begin + _LINKS, records)):
            record = trial(number, machine, engine)
            target = store.path(record.id)
            target.mkdir()
            (target / "record.json").write_bytes(encoder.encode(record))
            for name in files:
                os.link(source / name, target / name)
        shutil.rmtree(source)


def trial(number: int, machine: str, engine: str) -> Record:
    """Creates a record of about 6 KB, like real records."""
    run, place = divmod(number, TRIALS_OF_A_RUN)
    system = run % 4
    clients = CLIENTS[place % len(CLIENTS)]
    throughput = 1000.0 * clients / (clients + 6) * (1 + 0.1 * system + 0.01 * (number % 7))
    confirmation = place >= TRIALS_OF_A_RUN - TRIALS
    clients = CLIENTS[-1] if confirmation else clients
    shape = {"mean": 1.0, "p50": 0.8, "p90": 1.7, "p95": 2.2, "p99": 4.0, "p999": 11.0, "max": 40.0}
    metrics = {"throughput": throughput, "transactions": throughput * 30}
    for script in ("", "{script=pay}", "{script=order}", "{script=stock}", "{script=status}"):
        metrics |= {f"response_time_{name}_s{script}": clients / throughput * by for name, by in shape.items()}
    metrics |= {f"wait_share{{event=IO.Event{n}}}": 0.01 * n for n in range(12)}
    for role in ("data", "log", "temp"):
        metrics |= {f"device_{name}_per_s{{role={role}}}": 100.0 for name in ("reads", "writes", "read_bytes")}
    return Record(
        id=f"r{number:06}",
        series=f"run{run:04}",
        system=System(
            "postgres", f"system {system}", {"work_mem": f"{system}MB"}, Layout("/srv/d", None, f"/srv/l{system}")
        ),
        choice=Choice("igen-oltp", {"scale": "4", "weight": "light"}),
        cell=Cell(f"clients={clients}", Load(clients=clients, duration_s=30.0, warmup_s=5.0)),
        block=place // len(CLIENTS),
        purpose="confirmation" if confirmation else "sweep",
        started_at=f"{DAY + timedelta(days=run)}T{place // 60:02}:{place % 60:02}:00",
        elapsed_s=30.0,
        status=Status.OK,
        metrics=metrics,
        budget=Budget(0.5, 0.2, 0.01, 0.0, 0.1, 0.0, 0.19),
        machine=machine,
        engine=engine,
        software={"ironbench": "0.1.0", "python": "3.12"},
    )


def driven() -> Driven:
    """Returns what was driven in a trial of 30 s."""
    histogram = Histogram()
    for thousand in range(1, 20_000):
        histogram.record(thousand * 1000)
    seconds = [float(second) for second in range(30)]
    columns = {"t_s": seconds} | {
        name: [1.0] * 30 for name in ("transactions", "errors", "response_p50_s", "response_p99_s")
    }
    return Driven(
        seconds={name: array.array("d", values).tobytes() for name, values in columns.items()},
        series=tuple(Series(f"device_writes_per_s{{role={role}}}", tuple(seconds), tuple(seconds)) for role in "dl"),
        histograms={"response_time": histogram},
    )


if __name__ == "__main__":
    main()
