"""Replay of recorded traces compared with live runs: recorded on one device, predicted for another, and run there.

Five workloads with the same seed and number of transactions on both devices, with half of the data cached, from cold
caches; WAL and data share the device. Each run records a trace. The I/Os during the measured transactions are replayed
on the model of the other device and compared with the live run there: the time from the first I/O to the last, and the
mean duration of a read. A prediction is good if it is within 1.25 times the truth, in both directions of the pair of
devices; at least four of the five workloads must be. Takes about 12 minutes. `IRONBENCH_BENCH_MODELS=hdd-10k,ssd-sata`
selects other devices, `IRONBENCH_BENCH_WORKLOADS=tpcb-like,select-only` fewer workloads, `IRONBENCH_BENCH_RUNS=3` more
runs; `IRONBENCH_BENCH_TRACES=DIR` stores the traces there, and uses existing ones instead of runs.
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
from bench.figures import at_least, said
from ironbench.devices import models, replay, trace
from ironbench.devices.replay import Prediction
from ironbench.devices.trace import Trace

MODELS = "hdd-10k,ssd-sata-2011"
CAPACITY = 4 << 30
CACHED = (*oltp.BUFFERS, *oltp.TOTAL)
WORKLOADS: dict[str, tuple[str, ...]] = {
    "igen-oltp": ("igen-oltp", "--with", f"scale={oltp.SCALE}", *CACHED, "--transactions", "1000"),
    "igen-oltp heavy": (
        *("igen-oltp", "--with", f"scale={oltp.SCALE}", "--with", "weight=heavy", *CACHED, "--transactions", "200"),
    ),
    "select-only": ("select-only", "--with", "scale=24", *CACHED, "--transactions", "500"),
    "tpcb-like": ("tpcb-like", "--with", "scale=24", *CACHED, "--transactions", "300"),
    "simple-update": ("simple-update", "--with", "scale=24", *CACHED, "--transactions", "300"),
}
"""Commands by name. Transactions are per client."""
RUNS = int(os.environ.get("IRONBENCH_BENCH_RUNS", "2"))
"""Runs per device."""
WITHIN = 1.25
ENOUGH = 4


def main() -> None:
    models_of = os.environ.get("IRONBENCH_BENCH_MODELS", MODELS).split(",")
    chosen = os.environ.get("IRONBENCH_BENCH_WORKLOADS", ",".join(WORKLOADS)).split(",")
    good = 0
    for name in chosen:
        # Interleaved, so that changes of the machine affect all devices.
        recorded: dict[str, list[Trace]] = {model: [] for model in models_of}
        for number in range(RUNS):
            for model in models_of:
                recorded[model].append(_recorded(name, model, number))
        ratios = []
        for there, here in permutations(models_of, 2):
            measured = [[one.measured() for one in recorded[model]] for model in (there, here)]
            ratios.append(_compared(f"{name}: recorded on {there}, predicted on {here}, / run there", here, *measured))
        good += all(1 / WITHIN <= ratio <= WITHIN for ratio in ratios)
    asked = at_least(ENOUGH, f"≥ {ENOUGH}") if len(chosen) == len(WORKLOADS) else ""
    said(f"workloads of {len(chosen)} predicted within {WITHIN}x in both directions", good, asked)


def _compared(what: str, here: str, recorded: Sequence[Trace], run: Sequence[Trace]) -> float:
    """Compares predictions with runs and returns the median ratio of times, predicted to live. `run`: traces on the
    predicted device, of which only the recorded times are used."""
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
    said(f"{what}: time", statistics.median(times), "", f"{_spread(times)}; {shown}")
    reads = [_read(one).predicted.mean_s / _read(other).recorded.mean_s for one, other in zip(found, live, strict=True)]
    counts = f"{_read(found[0]).count} and {_read(live[0]).count} reads"
    said(f"{what}: mean of a read", statistics.median(reads), "", f"{_spread(reads)}; {counts}")
    reasons = sorted({reason for one in found for reason in one.out_of_range})
    said(f"{what}: out of range", f"{len(reasons)} reasons" if reasons else "no")
    sys.stderr.writelines(f"  out of range: {reason}\n" for reason in reasons)
    return statistics.median(times)


def _spread(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.3f} (median of {len(ratios)}, {min(ratios):.3f} to {max(ratios):.3f})"


def _read(found: Prediction) -> replay.Latency:
    assert found.latencies[0].op == "read"
    return found.latencies[0]


def _recorded(name: str, model: str, number: int) -> Trace:
    """Returns the trace of a run of a workload with this number on the device, or a stored one."""
    kept = os.environ.get("IRONBENCH_BENCH_TRACES", "")
    path = Path(kept, f"{name.replace(' ', '-')}-{model}-{number}.parquet")
    if kept and path.exists():
        return trace.read(path)
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as folder:
        words = [*WORKLOADS[name], "--clients", str(oltp.CLIENTS), "--warmup", "0s", "--cache", "cold", "--seed", "1"]
        words += ["--data", model, "--log", model, "--capacity", str(CAPACITY), "--no-observe"]
        command = [sys.executable, "-c", "from ironbench.cli import main; main()", "run", *words]
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
