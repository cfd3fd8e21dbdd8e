"""Replay of fixed work held against the live run: recorded on one device, predicted on another, and run there.

The order system's light mix with the same seed and as many transactions on both devices, its data half cached, from
cold caches; log and data share the device. Each run records a trace. What arrived while the transactions were measured
is replayed on the other's model and held against what happened there: from the first I/O to the last, and the mean of
a read. The same of whole traces is shown: starting, stopping and the checks of the data afterwards, which scan tables,
are no fixed work. About 6 minutes; `IRONBENCH_BENCH_MODELS=hdd-10k,ssd-sata` chooses other devices, and
`IRONBENCH_BENCH_TRACES=DIR` keeps the traces there, and takes those that it finds instead of runs.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

from bench import oltp
from bench.figures import Asked, said, within
from ironbench.devices import models, replay, trace
from ironbench.devices.replay import Prediction
from ironbench.devices.trace import Trace

MODELS = "hdd-10k,ssd-sata-2011"
CAPACITY = 4 << 30
TRANSACTIONS = 1000
"""Of each client."""
RUNS = 3
"""Of each device."""
SHARE = 0.25


def main() -> None:
    chosen = os.environ.get("IRONBENCH_BENCH_MODELS", MODELS).split(",")
    # In turn, so that what changes on the machine meanwhile meets all devices.
    recorded: dict[str, list[Trace]] = {model: [] for model in chosen}
    for number in range(RUNS):
        for model in chosen:
            recorded[model].append(_recorded(model, number))
    for there, here in permutations(chosen, 2):
        measured = [[one.measured() for one in recorded[model]] for model in (there, here)]
        _held(f"recorded on {there}, predicted on {here}, / run there", here, *measured, within(1 - SHARE, 1 + SHARE))
    for there, here in permutations(chosen, 2):
        _held(f"whole traces, {there} on {here} / run there", here, recorded[there], recorded[here], "")


def _held(what: str, here: str, recorded: Sequence[Trace], run: Sequence[Trace], asked: Asked | str) -> None:
    """`run`: traces of what was predicted; only what they recorded is used."""
    core = models.for_core(models.models())
    # What the emulation computes for an I/O is not the work's, and nothing predicts it: it is as in the run there.
    answering_ns = [one.processors.answering_ns() if one.processors else 0 for one in run]
    found, live = (
        [
            replay.predicted(one, here, core, CAPACITY, answering_ns=each)
            for one, each in zip(traces, answering_ns, strict=True)
        ]
        for traces in (recorded, run)
    )
    times = [one.predicted_s / other.recorded_s for one, other in zip(found, live, strict=True)]
    predicted, lasted, before = (
        statistics.median(all_)
        for all_ in ([o.predicted_s for o in found], [o.recorded_s for o in live], [o.recorded_s for o in found])
    )
    shown = f"predicted {predicted:.2f} s, {lasted:.2f} s there; recorded {before:.2f} s"
    said(f"{what}: time", statistics.median(times), asked, f"{_spread(times)}; {shown}")
    reads = [_read(one).predicted.mean_s / _read(other).recorded.mean_s for one, other in zip(found, live, strict=True)]
    counts = f"{_read(found[0]).count} and {_read(live[0]).count} reads"
    said(f"{what}: mean of a read", statistics.median(reads), "", f"{_spread(reads)}; {counts}")
    reasons = sorted({reason for one in found for reason in one.out_of_range})
    said(f"{what}: out of range", f"{len(reasons)} reasons" if reasons else "no")
    sys.stderr.writelines(f"  out of range: {reason}\n" for reason in reasons)


def _spread(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.3f} (median of {len(ratios)}, {min(ratios):.3f} to {max(ratios):.3f})"


def _read(found: Prediction) -> replay.Latency:
    assert found.latencies[0].op == "read"
    return found.latencies[0]


def _recorded(model: str, number: int) -> Trace:
    """From the run of that number on the device, or kept from an earlier one."""
    kept = os.environ.get("IRONBENCH_BENCH_TRACES", "")
    path = Path(kept, f"{model}-{number}.parquet")
    if kept and path.exists():
        return trace.read(path)
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as folder:
        words = ["--with", f"scale={oltp.SCALE}", *oltp.BUFFERS, *oltp.TOTAL, "--clients", str(oltp.CLIENTS)]
        words += ["--transactions", str(TRANSACTIONS), "--warmup", "0s", "--cache", "cold", "--seed", "1"]
        words += ["--data", model, "--log", model, "--capacity", str(CAPACITY), "--no-observe"]
        command = [sys.executable, "-c", "from ironbench.cli import main; main()", "run", "igen-oltp", *words]
        command += ["--results", folder, "--trace", f"{folder}/traces"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3):
            raise RuntimeError(done.stderr)
        (written,) = Path(folder, "traces").iterdir()
        if kept:
            shutil.copy(written, path)
        return trace.read(written)


if __name__ == "__main__":
    main()
