"""Measures the cost of observers over ssh on both sides, and checks whether the CPU shares that they report agree with
the CPU shares of local observers.

Uses the ssh server of this machine, so that both observe the same processors: in each trial the core samples /proc/stat
and all processes, and ironbench samples the same files over ssh.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import msgspec

from bench.figures import at_most, report
from bench.peers import BIN, SELECT_ONLY
from ironbench import _core, engines
from ironbench.host.remote import address, link
from ironbench.host.remote.watch import Watch, WatchedTrial
from ironbench.model.observation import Sample
from ironbench.model.session import Session
from ironbench.model.system import Load, System
from ironbench.trial import observe
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.trial.observe import processes
from ironbench.trial.observe.cpu import SHARES
from ironbench.workloads import ScriptSource
from tests.live.raw_server import RawServer, free_port
from tests.live.ssh_server import LACKING, SshServer

TRIALS = 20
SECONDS = 10.0
CLIENTS = 2
MOST_CORES = 0.01
MOST_POINTS = 2.0


def main() -> None:
    if LACKING:
        report("watching over ssh", LACKING)
        return
    with RawServer() as server, SshServer(free_port()) as ssh:
        os.environ["HOME"] = str(ssh.home)
        os.environ.pop("SSH_AUTH_SOCK", None)
        command = [str(BIN / "pgbench"), "-i", "-q", "-s", "1", "-h", server.host, "-p", str(server.port)]
        subprocess.run([*command, "-U", "postgres", "postgres"], check=True, capture_output=True)
        dsn = f"host={server.host} port={server.port} user=postgres dbname=postgres"
        system, secrets = engines.get("postgres").validated(System("postgres", "bench", dsn=dsn), CLIENTS)
        there = link.connection_to(address.parse(ssh.address))
        there.connect()
        with engines.running(system, secrets, CLIENTS) as session:
            _compared([_trial(session, there) for _ in range(TRIALS)])
        there.close()


def _trial(session: Session, there: link.Link) -> tuple[dict[str, float], dict[str, float], WatchedTrial]:
    """Returns the CPU shares from the core's samples, the CPU shares from samples over ssh, and the watched trial,
    which contains the cost of the samples over ssh."""
    sources = [one for one in observe.sources(session, clients=CLIENTS) if one.kind == "file"]
    load = Load(clients=CLIENTS, threads=1, duration_s=SECONDS, warmup_s=1.0, seed=1)
    scripts = [ScriptSource("select", SELECT_ONLY, 1)]
    watch = Watch(there, sources, SECONDS)
    plan = compiled_plan(session.target(), Tasks(scripts, {"scale": "1"}), load, sources)
    progress = _core.Progress()
    over = threading.Event()

    def follow() -> None:
        while not over.wait(0.2):
            watch.follow(progress.phase, progress.elapsed_s)

    watch.begin()
    thread = threading.Thread(target=follow)
    thread.start()
    result = _core.drive(plan, progress)
    over.set()
    thread.join()
    watch.follow(progress.phase, progress.elapsed_s)
    started_unix_s = msgspec.json.decode(result.summary, type=dict[str, Any])["started_unix_s"]
    seen = watch.end(time.monotonic() - (time.time() - started_unix_s))
    return _shares(result.samples), _shares(seen.samples), seen


def _shares(taken: dict[str, list[tuple[float, bytes]]]) -> dict[str, float]:
    samples = {name: [Sample(t_s, raw) for t_s, raw in of_it] for name, of_it in taken.items()}
    metrics = observe.parse(samples, SECONDS).metrics
    cores = os.cpu_count() or 1
    found = {kind: metrics[f"cpu_{kind}_share"] for kind in SHARES if f"cpu_{kind}_share" in metrics}
    return {**found, "engine": metrics.get("engine_cpu_cores", 0.0) / cores}


def _compared(trials: Sequence[tuple[dict[str, float], dict[str, float], WatchedTrial]]) -> None:
    points = [
        (abs(local[kind] - remote[kind]) * 100, kind) for local, remote, _ in trials for kind in local if kind in remote
    ]
    worst, kind = max(points)
    mean = fmean(point for point, _ in points)
    span_s = SECONDS + 1.0
    here = max(seen.cpu_s / span_s for _, _, seen in trials)
    report(
        f"CPU shares over ssh, points from local ones, the worst of {TRIALS} trials",
        worst,
        at_most(MOST_POINTS),
        f"{worst:.2g} ({kind})",
    )
    report("the same, on average", mean)
    report("cores that watching takes here, the most of a trial", here, at_most(MOST_CORES))
    costs = [cost for _, _, seen in trials if (cost := _there(seen)) is not None]
    report("cores that watching takes there, the mean of the trials", fmean(costs), at_most(MOST_CORES))
    report("error of the clock, the worst", max(seen.error_s for _, _, seen in trials))


def _there(seen: WatchedTrial) -> float | None:
    samples = {name: [Sample(t_s, raw) for t_s, raw in taken] for name, taken in seen.samples.items()}
    grown = processes.own_growth(samples, SECONDS, seen.own)
    return None if grown is None else grown.rate("own")
