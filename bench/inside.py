"""Cost of the server-side observers: the share of throughput that their queries take from a trial.

A trial queries statements and tables twice, and vacuums once a second, which is too little to be visible in the
variation of throughput. Therefore the queries run many times in short trials, interleaved with trials without them. The
cost is the throughput lost per query, in seconds, times the number of queries in a trial. The server comes from a Linux
distribution and uses `pg_stat_statements`, whose own cost is part of all trials. The view contains nearly the default
maximum of 5,000 statements, so that queries take their maximum time.
"""

from __future__ import annotations

import math
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from bench.figures import at_most, report
from bench.pairs import in_turn, ratio
from bench.peers import BIN, SELECT_ONLY
from ironbench import _core, engines
from ironbench.engines.window_ends import WindowEnds
from ironbench.host import processes
from ironbench.model.observation import Source
from ironbench.model.session import Session
from ironbench.model.system import Load, System
from ironbench.trial import observe
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.workloads import ScriptSource
from tests.live.raw_server import RawServer

PAIRS = 10
SCALE = 10
SECONDS = 4.0
CLIENTS = 4
READINGS = 100
ENDS_EVERY_S, SECOND_EVERY_S = 0.2, 0.01
TRIAL_S = 30
"""The default duration of a trial."""
MOST = 0.01
LEAST_KNOWN = 4000
PROGRAMS = Path("/usr/lib/postgresql/15/bin")
INSIDE = ("pg_statements.", "pg_relations.")
_UPDATE = (
    "\\set aid random(1, 100000 * :scale)\nUPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n"
)


@dataclass(frozen=True, slots=True)
class Cost:
    """A share with its 95% confidence interval."""

    centre: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.centre:.2%} (95 % interval {self.low:.2%} to {self.high:.2%})"


def main() -> None:
    if not PROGRAMS.is_dir():
        report("inside the server", f"there is no server with contrib modules in {PROGRAMS}")
        return
    settings = ("shared_preload_libraries=pg_stat_statements", "shared_buffers=1GB", "max_connections=50")
    with RawServer(*settings, programs=PROGRAMS) as server:
        command = [str(BIN / "pgbench"), "-i", "-q", "-s", str(SCALE), "-h", server.host, "-p", str(server.port)]
        subprocess.run([*command, "-U", "postgres", "postgres"], check=True, capture_output=True)
        _fill(server)
        dsn = f"host={server.host} port={server.port} user=postgres dbname=postgres"
        system, secrets = engines.get("postgres").validated(System("postgres", "bench", dsn=dsn), CLIENTS)
        with engines.running(system, secrets, CLIENTS) as session:
            _read(session)
            for name, text in (("select", SELECT_ONLY), ("update", _UPDATE)):
                _compared(session, name, text)


def _fill(server: RawServer) -> None:
    """Creates as many different statements as the server stores."""
    boss = server.connect()
    boss.query("create extension pg_stat_statements")
    for width in range(1, 70):
        columns = ", ".join(["1"] * width)
        boss.query("; ".join(f"select {columns} where {' and '.join(['1 = 1'] * n)}" for n in range(1, 75)))
    (known,) = boss.query("select count(*) from pg_stat_statements")
    assert int(known[0] or 0) >= LEAST_KNOWN, known
    boss.close()


def _looking(session: Session) -> tuple[list[Source], list[Source]]:
    """Returns the sources that are read at both ends of a trial, and the sources that are read every second."""
    found = [one for one in observe.sources(session, clients=CLIENTS) if one.name.startswith(INSIDE)]
    at_ends = [one for one in found if one.period_s == WindowEnds.PERIOD_S]
    each_second = [one for one in found if one.period_s != WindowEnds.PERIOD_S]
    assert len(at_ends) == 3 and len(each_second) == 1, found
    return at_ends, each_second


def _read(session: Session) -> None:
    """Measures the CPU time of the server for the queries of a trial, which other load on the machine does not
    affect."""
    pid = int(session.query("select pg_backend_pid()")[0][0] or 0)
    cores = 0.0
    for what, of_it, usual in zip(("statements, tables", "vacuums"), _looking(session), (2, TRIAL_S + 1), strict=True):
        began_s = processes.cpu_s(pid)
        for _ in range(READINGS):
            for one in of_it:
                session.query(one.target)
        reading_s = (processes.cpu_s(pid) - began_s) / READINGS
        report(f"CPU time of the server for one reading of {what}, ms", reading_s * 1e3)
        cores += reading_s * usual / TRIAL_S
    report(f"cores that the readings of a trial of {TRIAL_S} s take", cores, at_most(MOST))


def _compared(session: Session, name: str, text: str) -> None:
    sources = observe.sources(session, clients=CLIENTS)
    at_ends, each_second = _looking(session)
    without = [one for one in sources if not one.name.startswith(INSIDE)]
    load = Load(clients=CLIENTS, threads=1, duration_s=SECONDS, warmup_s=0.5, seed=1)
    scripts, variables = [ScriptSource(name, text, 1)], {"scale": str(SCALE)}

    def measured(of: Sequence[Source], often_s: float = 1.0) -> tuple[float, float]:
        """Returns throughput, and how often each of these sources was read."""
        more = [replace(one, period_s=often_s) for one in of]
        result = _core.drive(compiled_plan(session.target(), Tasks(scripts, variables), load, [*without, *more]))
        summary = msgspec.json.decode(result.summary, type=dict[str, Any])
        assert summary["samples_dropped"] == 0, summary
        read = [sum(0 <= t_s <= SECONDS for t_s, _ in result.samples[one.name]) for one in of]
        return summary["transactions"] / summary["elapsed_s"], min(read, default=0)

    plain, ends, second = in_turn(
        PAIRS,
        lambda: measured(()),
        lambda: measured(at_ends, ENDS_EVERY_S),
        lambda: measured(each_second, SECOND_EVERY_S),
    )
    costs = []
    for what, of_it, usual in (("statements, tables", ends, 2), ("vacuums", second, TRIAL_S + 1)):
        found = ratio([rate for rate, _ in of_it], [rate for rate, _ in plain])
        readings = fmean(count for _, count in of_it)
        report(f"throughput with {what} read {readings:.0f} times in {SECONDS:g} s / not ({name})", found)
        costs.append(
            [(1 - end) * SECONDS / readings * usual / TRIAL_S for end in (found.centre, found.low, found.high)]
        )
    centre = sum(lost[0] for lost in costs)
    half = math.sqrt(sum(((lost[1] - lost[2]) / 2) ** 2 for lost in costs))
    cost = Cost(centre, centre - half, centre + half)
    report(f"share of throughput that looking inside takes from a trial of {TRIAL_S} s ({name})", cost, at_most(MOST))
