"""Both sides of every comparison: the wheel's pgbench as a process, and ironbench's core called as in a trial."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from ironbench import _core, engines, workloads
from ironbench.engines.postgres import installation
from ironbench.engines.postgres.session import PostgresSession
from ironbench.model.observation import Source
from ironbench.model.plan import Plan
from ironbench.model.system import Cell, Choice, Layout, Load, System, Trial
from ironbench.printer import Printer
from ironbench.trial import load
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.workloads import ScriptSource
from tests.live.raw_server import RawServer

BIN = installation.find(None).bin

# The statement of pgbench's `select-only`, written from pgbench's documentation.
SELECT_ONLY = "\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"


@dataclass(frozen=True, slots=True)
class Rate:
    """Result of one run of either side."""

    per_second: float
    cpu_per_transaction_s: float
    """Client only: user and system time."""
    latency_s: float


@contextmanager
def postgres(clients: int, workload: str, asked: dict[str, str]) -> Iterator[PostgresSession]:
    """Starts a server with ironbench in a temporary directory, and loads the data of a workload."""
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as folder:
        system = System("postgres", "bench", {}, Layout(data=f"{folder}/data"), memory_bytes=1 << 30)
        system, secrets = engines.get("postgres").validated(system, clients)
        with engines.running(system, secrets, clients) as session:
            choice = Choice(workload, workloads.get(workload).validated(asked))
            plan = Plan("bench", system, choice, (Trial(Cell("clients=1", Load()), 0),), 0)
            load.data_ready(session, plan, Printer())
            assert isinstance(session, PostgresSession)
            yield session


@contextmanager
def listening_postgres(scale: int) -> Iterator[RawServer]:
    """Starts a temporary server that listens on a Unix socket and on TCP, and initialises it with pgbench. Servers that
    ironbench starts never listen on TCP."""
    with RawServer("shared_buffers=1GB", "max_connections=50") as server:
        command = [str(BIN / "pgbench"), "-i", "-q", "-s", str(scale), "-h", server.host, "-p", str(server.port)]
        subprocess.run([*command, "-U", "postgres", "postgres"], check=True, capture_output=True)
        yield server


def ours(
    target: dict[str, Any],
    scripts: Sequence[ScriptSource],
    variables: dict[str, str],
    asked: Load,
    sources: Sequence[Source] = (),
) -> tuple[Rate, dict[str, Any]]:
    """Runs one trial through the core; also returns its whole summary."""
    result = _core.drive(compiled_plan(target, Tasks(scripts, variables), asked, sources))
    summary = msgspec.json.decode(result.summary, type=dict[str, Any])
    rate = summary["transactions"] / summary["elapsed_s"]
    latency = result.histograms["response_time"].mean_s
    return Rate(rate, summary["client_cpu_per_transaction_s"], latency), summary


def pgbench(target: dict[str, Any], asked: Load, *arguments: str, scale: int = 1) -> Rate:
    """Runs the same load with pgbench, with the protocol of `target`. The CPU time includes the start of the
    process."""
    connection = target["connection"]
    command = [
        str(BIN / "pgbench"), "--no-vacuum", "-h", connection["host"], "-p", str(connection["port"]),
        "-U", connection["user"], "-M", target["protocol"], "-c", str(asked.clients), "-j", str(asked.threads),
        "-T", str(int(asked.duration_s or 0)), "-s", str(scale), *arguments, connection["database"],
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout and process.stderr
    out, err = process.stdout.read(), process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"pgbench failed: {err}")
    done = int(matched_group(r"number of transactions actually processed: (\d+)", out))
    rate = float(matched_group(r"tps = ([\d.]+)", out))
    latency = float(matched_group(r"latency average = ([\d.]+) ms", out)) / 1e3
    return Rate(rate, (used.ru_utime + used.ru_stime) / done, latency)


def matched_group(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise RuntimeError(f"pgbench printed no {pattern}: {json.dumps(text)}")
    return match[1]
