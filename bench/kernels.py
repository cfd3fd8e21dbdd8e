"""Compares the kernels of igen-cpu and igen-ram with bare loops and independent implementations. Needs idle CPUs."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from bench.figures import at_least, report, within
from bench.pairs import interleaved, ratio

PAIRS = 24
SHORT_PAIRS = 100
OVERHEAD_PAIRS = 250
"""Pairs needed to detect one percent on a virtual machine, where pairs differ by 5% (images) to 12% (lotteries)."""
SECONDS = 0.4
"""Length of one measurement. Disturbances on a virtual machine last for seconds, so both sides of such a short pair are
affected equally."""
SCALAR = {"kind": "mandelbrot", "width": 480, "height": 320, "limit": 256, "variant": "scalar"}
VECTOR = {**SCALAR, "variant": "vector"}
LOTTERY = {"kind": "lottery", "bytes": 64 << 20, "huge": "default", "draws": 100_000, "probe_s": 0.0}
PROBE = {"kind": "lottery", "bytes": 384 << 20, "huge": "default", "draws": 1000, "probe_s": 1.0}
REFERENCE = Path(__file__).parent / "reference" / "memory.rs"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ironbench-kernels-") as made:
        reference = Path(made) / "memory"
        subprocess.run(["rustc", "--edition", "2024", "-C", "opt-level=3", "-o", reference, REFERENCE], check=True)
        overhead()
        scaling()
        memory(reference)


def overhead() -> None:
    """Compares one thread of the harness with the same kernel in a bare loop."""
    build = ["cargo", "build", "--release", "--quiet", "--locked", "-p", "ironbench-kernels", "--example", "bare_loop"]
    subprocess.run(build, check=True)
    bare_loop = Path(os.environ.get("CARGO_TARGET_DIR", "target")) / "release" / "examples" / "bare_loop"
    for name, kernel in (("scalar", SCALAR), ("vector", VECTOR), ("lottery", LOTTERY)):
        ours, bare = interleaved(OVERHEAD_PAIRS, partial(_rate, kernel, 1), partial(_bare, bare_loop, name))
        report(f"{name}: one thread over a bare loop", ratio(ours, bare), at_least(0.99))


def scaling() -> None:
    """Compares the rate of two threads with twice the rate of one thread."""
    for name, kernel in (("scalar", SCALAR), ("vector", VECTOR)):
        two, one = interleaved(SHORT_PAIRS, partial(_rate, kernel, 2), partial(_rate, kernel, 1))
        report(f"{name}: two threads over twice one", ratio(two, [2 * rate for rate in one]), at_least(0.95))
    vector, scalar = interleaved(SHORT_PAIRS, partial(_rate, VECTOR, 1), partial(_rate, SCALAR, 1))
    report("vector over scalar", ratio(vector, scalar))


def memory(reference: Path) -> None:
    """Compares memory measurements with an independent pointer chase and triad."""
    latency, chase = interleaved(PAIRS, partial(_probed, "latency_s"), partial(_referred, reference, "chase"))
    report("latency over a pointer chase", ratio([one * 1e9 for one in latency], chase), within(0.9, 1.1))
    ours, triad = interleaved(PAIRS, partial(_probed, "triad"), partial(_referred, reference, "triad"))
    report("triad over a STREAM-style triad", ratio(ours, triad), within(0.9, 1.1))


def _run(kernel: Mapping[str, Any], threads: int, seconds: float) -> list[dict[str, Any]]:
    from ironbench import _core

    plan = {"threads": threads, "pin": [], "warmup_s": 0.2, "seed": 1, "kernel": dict(kernel)}
    workers = _core.Kernels(json.dumps(plan).encode())
    while not workers.ready(1.0):
        pass
    workers.start(seconds)
    while not workers.done(1.0):
        pass
    found: list[dict[str, Any]] = json.loads(workers.result()[0])["threads"]
    return found


def _rate(kernel: Mapping[str, Any], threads: int) -> float:
    return sum(float(one["units"]) / float(one["last_s"]) for one in _run(kernel, threads, SECONDS))


def _probed(what: str) -> float:
    return float(_run(PROBE, 1, 0.1)[0]["report"][what])


def _bare(bare_loop: Path, name: str) -> float:
    return _printed([str(bare_loop), name, str(SECONDS)])


def _referred(reference: Path, what: str) -> float:
    return _printed([str(reference), what, "1.0"])


def _printed(command: list[str]) -> float:
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()
