"""Replay of a recorded trace compared with a live run: recorded on one device, predicted for another, and run there.

The light mix of the order-entry workload with the same seed and number of transactions on both devices, with half of
its data cached, from cold caches; WAL and data share the device. Each run records a trace. The I/Os during the measured
transactions are replayed on the model of the other device and compared with the live run there: the time from the first
I/O to the last, and the mean duration of a read. The same results are shown for whole traces, which are not fixed work:
start, stop, and checks of the data that scan tables. Takes about 6 minutes. `IRONBENCH_BENCH_MODELS=hdd-10k,ssd-sata`
selects other devices; `IRONBENCH_BENCH_TRACES=DIR` stores the traces there, and uses existing ones instead of runs.
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
"""Transactions per client."""
RUNS = 3
"""Runs per device."""
SHARE = 0.25


def main() -> None:
    chosen = os.environ.get("IRONBENCH_BENCH_MODELS", MODELS).split(",")
    # Interleaved, so that changes of the machine affect all devices.
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
    """Compares predictions with runs. `run`: traces on the predicted device, of which only the recorded times are
    used."""
    core = models.for_core(models.models())
    # The computing time of the emulation for an I/O is not part of the workload and cannot be predicted, so the live
    # value is used.
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
    """Returns the trace of a run with this number on the device, or a stored one."""
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
