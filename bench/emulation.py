"""Compares emulated devices with their models: fio runs on the mounted file system, and the model on a virtual clock.

A point, which is one combination of device and load, has at least 10,000 I/Os if its maximum time allows. Otherwise,
for example for a disk with 80 I/Os per second, the model's virtual clock executes exactly the same I/Os in the same
order (`bench/outside.py`). No sampling error is added, so the same bounds apply as with 10,000 I/Os, and the actual
number is shown beside the rate. Points that write use a new device each time, and are measured after 80 MiB were
written, as far as 5 s allow: by then the cache of a disk and the fast flash of a small SSD are full.

Excluded from live measurement, with a message: points at which a model does more than 100,000 I/Os a second; points at
which half of the I/Os take less time than the I/O path overhead of `/dev/fuse` on this machine, as measured with fio;
and models that cannot run live on this machine. A point starts when the processors are idle, for which the benchmark
waits up to half an hour in total (`IRONBENCH_BENCH_PATIENCE`, in minutes). A point with more than 10% of steal time is
repeated, and is not judged if every attempt has too much steal time. Steal time is shown.

Takes about 19 minutes for all models on an idle machine, and 10 more for the zero-latency device and the comparison
with tmpfs. `IRONBENCH_BENCH_SECONDS=3` limits a point to 3 s, `IRONBENCH_BENCH_MODELS=hdd-10k,ssd-sata` selects models,
`IRONBENCH_BENCH_PAIRS=3` sets the number of pairs.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

from bench import oltp, stolen
from bench.figures import at_least, at_most, report, within
from bench.outside import Done, Point, Run, Seen, expected, fio, modelled, mounted
from bench.pairs import in_turn, ratio
from bench.series import number_from_environment
from ironbench.catalogue.devices import device_models
from ironbench.errors import InputError

LONGEST_S, SHORTEST_S = 10, 2
COUNT = 10_000
RAMP_S, LONGEST_RAMP_S = 1, 5
FILLING = 80 << 20
"""Bytes that are written before the measurement: 64 MiB, and the amount that a disk moves from its cache in the
meantime."""
LIVE_IOPS = 100_000
FREE_RUNS, FREE_S = 5, 3
BATCH = 8
"""Number of I/Os that are submitted with one call, as engines that read ahead do, and of completions that are collected
at a time."""
PAIRS = 6
Measured = tuple[tuple[Seen, Done | None], float]
"""Results of fio and its I/Os, and the share of steal time during the measurement."""
SHARE_OF_MODEL = 0.05
P99_SHARE, P99_US = 0.10, 80
MOUNTING_S, STARTING_S = 4, 2
"""Duration of a mount with its file, and of waiting for an idle machine and starting fio."""

POINTS = (
    Point("4 KiB random read, depth 1", "randread", 4096, 1, False),
    Point("4 KiB random read, depth 32", "randread", 4096, 32, False),
    Point("4 KiB random write, depth 1", "randwrite", 4096, 1, True),
    Point("4 KiB random write, depth 32", "randwrite", 4096, 32, True),
    Point("1 MiB sequential read, depth 8", "read", 1 << 20, 8, False),
    Point("1 MiB sequential write, depth 8", "write", 1 << 20, 8, True),
)


def main() -> None:
    if shutil.which("fio") is None:
        raise RuntimeError("fio is not installed")
    told = os.environ.get("IRONBENCH_BENCH_MODELS")
    chosen = told.split(",") if told else list(device_models())
    plan = {
        name: _runs(name)
        for name, model in device_models().items()
        if model.kind not in ("free", "memory", "controller") and name in chosen
    }
    _estimate(plan)
    way_s = _free()
    for name, runs in plan.items():
        _against_model(name, runs, way_s)
    _beside_tmpfs()


def _runs(name: str) -> tuple[Run, ...]:
    """Returns the points of a model that can be measured live."""
    runs = []
    for point in POINTS:
        filling = FILLING // point.length if point.writes else 0
        rate = expected(name, point, COUNT, warm_up=filling).iops
        if rate > LIVE_IOPS:
            sys.stderr.write(f"{name}, {point.name}: {rate:.0f}/s is for replay\n")
            continue
        filled_s = filling / expected(name, point, filling).iops if filling else RAMP_S
        ramp_s = math.ceil(min(LONGEST_RAMP_S, filled_s))
        longest_s = number_from_environment("IRONBENCH_BENCH_SECONDS", LONGEST_S)
        seconds = math.ceil(min(longest_s, max(SHORTEST_S, COUNT / rate)))
        runs.append(Run(point, ramp_s, seconds, logged=rate * seconds < COUNT))
    return tuple(runs)


def _estimate(plan: Mapping[str, tuple[Run, ...]]) -> None:
    runs = [run for runs in plan.values() for run in runs]
    mounts = sum(_mounts(runs) for runs in plan.values())
    seconds = mounts * MOUNTING_S + sum(run.ramp_s + run.seconds + STARTING_S for run in runs)
    sys.stderr.write(f"{len(runs)} points of {len(plan)} models: about {seconds / 60:.0f} min\n")


def _mounts(runs: Sequence[Run]) -> int:
    return sum(run.point.writes for run in runs) + any(not run.point.writes for run in runs)


def _free() -> dict[bool, float]:
    """Returns the seconds that a read (False) and a write (True) take through `/dev/fuse`, the path of every device
    with latency.

    The kernel passes requests of the zero-latency device through (docs/adr/0014-free-devices-are-passed-through.md). A
    device that is nearly as fast is therefore measured instead: its requests reach its process, which answers them
    immediately.
    """
    one_by_one, lone, written = (Run(POINTS[place], RAMP_S, FREE_S, logged=False) for place in (1, 0, 2))
    in_batches = replace(one_by_one, batch=BATCH)
    through_fuse_s = {}
    for what, model, asked_for in (("free device", "free", True), ("ram, through /dev/fuse", "ram", False)):
        with mounted(model, "ext4") as file:
            each, batched = ([seen.iops for seen in _without_a_model(file, run)] for run in (one_by_one, in_batches))
        with mounted(model) as file:  # the file system that models are measured on
            read_us, write_us = ([seen.mean_s * 1e6 for seen in _without_a_model(file, run)] for run in (lone, written))
        report(
            f"{what}, 4 KiB reads/s at depth 32", median(each), at_least(150_000) if asked_for else "", _spread(each, 0)
        )
        report(f"{what}, 4 KiB reads/s at depth 32 in batches of {BATCH}", median(batched), "", _spread(batched, 0))
        report(
            f"{what}, 4 KiB read at depth 1, us", median(read_us), at_most(35) if asked_for else "", _spread(read_us, 1)
        )
        report(f"{what}, 4 KiB write at depth 1, us", median(write_us), "", _spread(write_us, 1))
        through_fuse_s = {False: median(read_us) / 1e6, True: median(write_us) / 1e6}  # values of the last device
    return through_fuse_s


def _without_a_model(file: Path, run: Run) -> list[Seen]:
    measure = partial(stolen.while_doing, partial(fio, file, run))
    found = (stolen.undisturbed(f"without a model, {run.point.name}", measure) for _ in range(FREE_RUNS))
    measured = [one[0][0] for one in found if one]
    if not measured:
        raise RuntimeError("without a model: not measured, other virtual machines took the CPU time")
    return measured


def _against_model(name: str, runs: Sequence[Run], way_s: Mapping[bool, float]) -> None:
    """Measures all points that read on one device, because reads do not change the device. Each point that writes uses
    a new device, as the model does."""
    try:
        with mounted(name) as file:
            for run in runs:
                if not run.point.writes:
                    _report_point(name, run, way_s, partial(stolen.while_doing, partial(fio, file, run)))
        for run in runs:
            if run.point.writes:
                _report_point(name, run, way_s, partial(_on_a_new_device, name, run))
    except InputError as error:
        sys.stderr.write(f"{name} is not for live use here: {error.cause}\n")


def _on_a_new_device(name: str, run: Run) -> Measured:
    with mounted(name) as file:
        return stolen.while_doing(partial(fio, file, run))


def _report_point(name: str, run: Run, way_s: Mapping[bool, float], measure: Callable[[], Measured]) -> None:
    what = f"{name}, {run.point.name}"
    found = stolen.undisturbed(what, measure)
    if found is None:
        report(f"{what}:", "not measured: this machine was not idle", "within 5 %, p99 10 % or 80 us")
    else:
        (seen, done), share = found
        _report_errors(name, run, seen, done, way_s[run.point.writes], share)


def _report_errors(name: str, run: Run, seen: Seen, done: Done | None, way_s: float, share: float) -> None:
    wanted = modelled(name, run, done)
    if wanted.median_s < way_s:
        told = (
            f"{wanted.median_s * 1e6:.0f} us of half of its I/Os are less than the {way_s * 1e6:.0f} us of the way here"
        )
        sys.stderr.write(f"{name}, {run.point.name}: {told}; {seen.mean_s * 1e6:.0f} us were seen\n")
        return
    what, bounds = f"{name}, {run.point.name}:", within(1 - SHARE_OF_MODEL, 1 + SHARE_OF_MODEL)
    rate, mean = seen.iops / wanted.iops, seen.mean_s / wanted.mean_s
    mb_s = seen.iops * run.point.length / 1e6
    shown = f"{rate:.3f} ({seen.iops:.0f}/s, {mb_s:.1f} MB/s, {seen.count} I/Os, {share:.1%} stolen)"
    report(f"{what} IOPS and MB/s / model", rate, bounds, shown)
    report(f"{what} mean latency / model", mean, bounds, f"{mean:.3f} ({seen.mean_s * 1e6:.0f} us)")
    p99_s = wanted.p99_beyond(seen.p99_s)
    late_us = (seen.p99_s - p99_s) * 1e6
    shown = f"{{}} ({seen.p99_s * 1e6:.0f} us)"
    if wanted.p99_s >= 1e-3:
        share = seen.p99_s / p99_s
        report(f"{what} p99 / model", share, within(1 - P99_SHARE, 1 + P99_SHARE), shown.format(f"{share:.3f}"))
    else:
        report(f"{what} p99 - model, us", late_us, within(-P99_US, P99_US), shown.format(f"{late_us:.0f}"))


def _beside_tmpfs() -> None:
    """Compares a half-cached read-write mix of PostgreSQL on the zero-latency device and on a plain tmpfs.

    Buffers are equal. The page cache of the device is limited, so that half of the data must be read from it; a tmpfs
    consists of page cache, so a limit would leave no space for the data. The third alternative is a loop device of the
    kernel on a file in memory with the same limit, which shows the cost of a file system, its journal and limited
    memory without ironbench.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ironbench-bench-", dir="/dev/shm")))
        _, point = stack.enter_context(oltp.loop_device(folder))
        free, loop, tmpfs = in_turn(
            number_from_environment("IRONBENCH_BENCH_PAIRS", PAIRS),
            lambda: oltp.driven("free", *oltp.TOTAL, "--no-observe").throughput,
            lambda: oltp.loaded_anew(point, "--no-observe").throughput,
            lambda: oltp.driven(str(folder / "data"), "--no-observe").throughput,
        )
    found = ratio(free, tmpfs)
    report("half-cached igen-oltp, free device / tmpfs", found, at_least(0.75), str(found))
    report("half-cached igen-oltp, loop device of the kernel's / tmpfs", str(ratio(loop, tmpfs)))


def _spread(values: list[float], digits: int) -> str:
    return (
        f"{median(values):.{digits}f} (median of {len(values)}, {min(values):.{digits}f} to {max(values):.{digits}f})"
    )
