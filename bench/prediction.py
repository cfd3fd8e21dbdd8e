"""Replay of fixed work held against the live run: recorded on one device, predicted on another, and run there.

The order system's light mix with the same seed and as many transactions on both devices, its data half cached, from
cold caches; log and data share the device. Each run records a trace, which is replayed on the other's model and held
against what happened there: from the first I/O to the last, and the mean of a read. About 5 minutes;
`IRONBENCH_BENCH_MODELS=hdd-10k,ssd-sata` chooses other devices.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from itertools import permutations
from pathlib import Path

from bench import oltp
from bench.figures import said, within
from ironbench.devices import models, replay, trace
from ironbench.devices.replay import Prediction

MODELS = "hdd-10k,ssd-sata-2011"
CAPACITY = 4 << 30
TRANSACTIONS = 1000
"""Of each client."""
SHARE = 0.25


def main() -> None:
    chosen = os.environ.get("IRONBENCH_BENCH_MODELS", MODELS).split(",")
    core = models.for_core(models.models())
    recorded = {model: _recorded(model) for model in chosen}
    for there, here in permutations(chosen, 2):
        found = replay.predicted(recorded[there], here, core, CAPACITY)
        live = replay.predicted(recorded[here], here, core, CAPACITY)
        _held(there, here, found, live)


def _held(there: str, here: str, found: Prediction, live: Prediction) -> None:
    """`live`: the trace of the run that was predicted; only what it recorded is used."""
    what = f"recorded on {there}, predicted on {here}, / run there"
    time = found.predicted_s / live.recorded_s
    shown = f"{time:.3f} ({found.predicted_s:.1f} s of {live.recorded_s:.1f} s; recorded {found.recorded_s:.1f} s)"
    said(f"{what}: time", time, within(1 - SHARE, 1 + SHARE), shown)
    read, seen = found.latencies[0], live.latencies[0]
    assert read.op == seen.op == "read"
    said(
        f"{what}: mean of a read",
        read.predicted.mean_s / seen.recorded.mean_s,
        "",
        f"{read.predicted.mean_s / seen.recorded.mean_s:.3f} ({read.count} and {seen.count} reads)",
    )
    said(f"{what}: out of range", f"{len(found.out_of_range)} reasons" if found.out_of_range else "no")
    sys.stderr.writelines(f"  out of range: {reason}\n" for reason in found.out_of_range)


def _recorded(model: str) -> trace.Trace:
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as folder:
        words = ["--with", f"scale={oltp.SCALE}", *oltp.BUFFERS, *oltp.TOTAL, "--clients", str(oltp.CLIENTS)]
        words += ["--transactions", str(TRANSACTIONS), "--warmup", "0s", "--cache", "cold", "--seed", "1"]
        words += ["--data", model, "--log", model, "--capacity", str(CAPACITY), "--no-observe"]
        command = [sys.executable, "-c", "from ironbench.cli import main; main()", "run", "igen-oltp", *words]
        command += ["--results", folder, "--trace", f"{folder}/traces"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):
            raise RuntimeError(done.stderr)
        (path,) = Path(folder, "traces").iterdir()
        return trace.read(path)


if __name__ == "__main__":
    main()
