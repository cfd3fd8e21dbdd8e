"""Headroom of a server whose CPU time is halved: is the true ratio of capacities within the interval? (target: in at
least 18 of 20 labs)

Two servers of PostgreSQL run side by side, one with 60% of a CPU and the other with 30%, by a control group of version
1 (Linux: Documentation/scheduler/sched-bwc.rst). A transaction is one statement that needs only CPU time. Each lab has
four rates of each system and four blocks, and takes about two minutes.

The true ratio is about 0.5 by construction. It is measured as the ratio of the peak throughputs in a closed loop, which
pgbench measures before each lab; all of these measurements count together. The rates of a system are near its peak,
from 4% below to 14% above. Within 2 s and the limit of 250 ms, a server passes up to about 12% above its capacity, the
same for both servers, so it cancels out in the ratio. An interval that is wider than these rates would contain any
answer, so its width has a target, too.

20 labs take 40 minutes. `IRONBENCH_BENCH_RUNS=1` runs one lab; a stopped series resumes with the next lab.
"""

from __future__ import annotations

import json
import math
import shutil
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench import captures
from bench.figures import at_least, at_most, report
from bench.peers import matched_group
from bench.series import HOME, Declaration, measured, number_from_environment
from ironbench.plan import requirements
from ironbench.study.archive import Archives
from ironbench.study.headroom import headroom
from tests.live.raw_server import RawServer, binary

RUNS = 20
BLOCKS = 4
SHARES = {"whole": 0.6, "halved": 0.3}
"""CPUs of each server."""
NEAR = (0.96, 1.02, 1.08, 1.14)
"""Rates of a lab, as multiples of the peak throughput of each server."""
LIMIT = "p99 < 250ms"
PEAK_S = 4
_GROUPS = Path("/sys/fs/cgroup/cpu")
_PERIOD_US = 10_000
SCRIPT = "SELECT count(*) FROM generate_series(1, 2500);\n"
LAB = """
question = "How far can the load grow with half of the CPU time?"
[workload]
name = "script"
files = ["headroom.sql"]
[system]
engine = "postgres"
[load]
clients = 8
duration = "2s"
warmup = "0s"
[vary.configuration]
@CONFIGURATIONS@
[measure]
metric = "response_time_p99_s"
repeats = @BLOCKS@
seed = @SEED@
quiet = "0s"
rates = "none"
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A lab, with the peaks that were measured before it, in transactions per second."""

    whole: float
    halved: float
    low: float | None
    """Lower end of the interval of the ratio; None if the lab does not have an interval."""
    high: float | None
    rates: tuple[float | None, float | None]
    """Highest rate of the whole server, and of the halved server."""

    def contains(self, ratio: float) -> bool:
        return self.low is not None and self.high is not None and self.low <= ratio <= self.high


def main() -> None:
    if not (_GROUPS / "cpu.cfs_quota_us").exists():
        raise RuntimeError(f"no limits on CPU time by control groups, version 1, in {_GROUPS}")
    runs, home = number_from_environment("IRONBENCH_BENCH_RUNS", RUNS), HOME / "headroom"
    home.mkdir(parents=True, exist_ok=True)
    (HOME / "headroom.sql").write_text(SCRIPT)
    outcomes = []
    with ExitStack() as stack:
        servers: dict[str, RawServer] = {}
        for number in range(runs):
            kept = home / f"{number:03d}.json"
            if not kept.exists():
                servers = servers or {name: stack.enter_context(_limited(name)) for name in SHARES}
                kept.write_text(json.dumps(asdict(_lab(servers, number))))
            outcomes.append(Outcome(**json.loads(kept.read_text())))
            sys.stderr.write(f"  lab {number + 1} of {runs}: {outcomes[-1]}\n")
    _report_outcomes(outcomes)


def _report_outcomes(outcomes: list[Outcome]) -> None:
    runs = len(outcomes)
    peaks = [one.halved / one.whole for one in outcomes]
    true = math.exp(statistics.fmean(map(math.log, peaks)))
    report(f"peak throughput with 30% of a CPU / with 60%, {runs} times", true)
    inside = sum(one.contains(true) for one in outcomes)
    target = at_least(0.9 * runs, f"≥ 18 of 20, so {0.9 * runs:g}")
    report(f"intervals of the ratio that contain it, {runs} labs", inside, target)
    report("  that contain 0.5", sum(one.contains(0.5) for one in outcomes))
    report("  labs without an interval", sum(one.low is None for one in outcomes))
    if widths := [one.high / one.low for one in outcomes if one.low and one.high]:
        report("  upper end / lower end, median", statistics.median(widths), at_most(1.15))


def _lab(servers: dict[str, RawServer], number: int) -> Outcome:
    first, second = ({name: _peak(servers[name]) for name in order} for order in (SHARES, reversed(SHARES)))
    peaks = {name: math.sqrt(first[name] * second[name]) for name in SHARES}
    configurations = [
        f'"{name} {share:g}" = {{ system.dsn = "{captures.dsn(servers[name], "postgres")}", '
        f"load.rate = {round(share * peak)} }}"
        for name, peak in peaks.items()
        for share in NEAR
    ]
    text = LAB.replace("@CONFIGURATIONS@", "\n".join(configurations)).replace("@BLOCKS@", str(BLOCKS))
    declaration = Declaration("headroom", text)
    # The servers of a lab that was stopped no longer exist.
    shutil.rmtree(HOME / declaration.name / f"{number:03d}", ignore_errors=True)
    directory, records = measured(declaration, number)
    order = [setup.cell.name for setup in directory.lab().all_setups]
    # The label names a configuration, which differs from others of the same system only in its rate.
    records = [replace(one, system=replace(one.system, label="")) for one in records]
    grown = headroom(records, requirements.bound(LIMIT, "LIMIT"), None, Archives([directory.store]), order)
    (ratio,) = grown.ratios
    whole, halved = (one.highest.value if one.highest else None for one in grown.systems)
    low, high = (ratio.low, ratio.high) if ratio else (None, None)
    return Outcome(peaks["whole"], peaks["halved"], low, high, (whole, halved))


def _peak(server: RawServer) -> float:
    words = ("-n", "-c", "8", "-T", str(PEAK_S), "-f", str((HOME / "headroom.sql").resolve()), "postgres")
    ended = captures.used([binary("pgbench"), *captures.at(server), *words], Path.cwd())
    return float(matched_group(r"tps = ([\d.]+)", ended.out))


@contextmanager
def _limited(name: str) -> Iterator[RawServer]:
    """Starts a server whose processes together get a share of one CPU."""
    group = _GROUPS / f"ironbench-bench-{name}"
    group.mkdir(exist_ok=True)
    (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
    (group / "cpu.cfs_quota_us").write_text(str(round(SHARES[name] * _PERIOD_US)))
    try:
        with RawServer("max_connections=50") as server:
            for pid in _processes(server):
                with suppress(ProcessLookupError):  # a session that has just ended
                    (group / "cgroup.procs").write_text(str(pid))
            yield server
    finally:
        group.rmdir()


def _processes(server: RawServer) -> list[int]:
    """Returns the processes of an idle server. Later processes are in the control group of the postmaster."""
    assert server.process is not None
    postmaster = server.process.pid
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    return [postmaster, *map(int, children)]
