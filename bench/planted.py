"""Is a known cause of a difference named first by the profile, with an interval that contains its size?

A C function in PostgreSQL takes 20 µs of CPU time per transaction (`burn`), or a trigger waits for 200 µs (`wait`), in
one of two configurations. `nothing` compares equal configurations. Targets: in at least 19 of 20 labs of 3 minutes, the
function is named first and its interval contains its size; in at most 5% of the labs of equal configurations, any
function differs significantly.

`IRONBENCH_BENCH_PLANTED=burn` runs one of the series, `IRONBENCH_BENCH_RUNS=6` six labs of it, and
`IRONBENCH_BENCH_SECONDS=5` trials of 5 s instead of 14 s. A stopped series resumes. All three take three hours.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

from bench.figures import at_least, at_most, report
from bench.series import HOME, Declaration, measured, number_from_environment
from ironbench.engines.postgres.installation import find
from ironbench.study.labstudy import lab_study
from ironbench.study.profiled import CallNode, FrameChange, ProfileComparison

BLOCKS = 6
SECONDS = number_from_environment("IRONBENCH_BENCH_SECONDS", 14)
LIBRARY = r"""
#include "postgres.h"
#include "fmgr.h"
#include <sys/prctl.h>
#include <time.h>

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(planted_burn);
PG_FUNCTION_INFO_V1(planted_wait);

static int64 cpu_time_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * INT64CONST(1000000000) + now.tv_nsec;
}

/* Takes this CPU time at any speed of the CPU. CLOCK_MONOTONIC would also count the time after a preemption. */
Datum planted_burn(PG_FUNCTION_ARGS)
{
    volatile int64 sink = 0;
    int64 length = PG_GETARG_INT32(0) * INT64CONST(1000);
    int64 start = cpu_time_ns();

    while (cpu_time_ns() - start < length)
        for (int64 i = 0; i < 300; i++)
            sink += i;
    PG_RETURN_INT32(0);
}

Datum planted_wait(PG_FUNCTION_ARGS)
{
    struct timespec length = {0, PG_GETARG_INT32(0) * 1000L};

    if (length.tv_nsec > 0)
    {
        prctl(PR_SET_TIMERSLACK, 1);
        nanosleep(&length, NULL);
    }
    PG_RETURN_INT32(0);
}
"""
SETUP = """
CREATE FUNCTION planted_burn(int) RETURNS int AS '@LIBRARY@', 'planted_burn' LANGUAGE C VOLATILE STRICT;
CREATE FUNCTION planted_wait(int) RETURNS int AS '@LIBRARY@', 'planted_wait' LANGUAGE C VOLATILE STRICT;
CREATE TABLE planted (id int PRIMARY KEY, us int NOT NULL);
INSERT INTO planted SELECT id, 0 FROM generate_series(1, 10000) id;
CREATE FUNCTION planted_trigger() RETURNS trigger AS
  'BEGIN PERFORM planted_wait(NEW.us); RETURN NEW; END' LANGUAGE plpgsql;
CREATE TRIGGER planted BEFORE UPDATE ON planted FOR EACH ROW EXECUTE FUNCTION planted_trigger();
"""
LAB = """
question = "Is the planted cause found?"
[system]
engine = "postgres"
memory = "64MB"
[layout]
data = "@DATA@/planted"
[data]
setup = ["planted.sql"]
[workload]
name = "script"
files = ["@CAUSE@-planted.sql"]
[workload.define]
us = 0
[load]
clients = 2
duration = "@SECONDS@s"
warmup = "0.5s"
[vary.planted]
none = {}
some = { workload.define.us = @US@ }
[measure]
repeats = @BLOCKS@
seed = @SEED@
quiet = "0s"
rates = "none"
profile = "all"
"""


@dataclass(frozen=True, slots=True)
class Cause:
    name: str
    area: str
    function: str
    us: int
    script: str
    late_us: int
    """Time that the function may take longer: until it reads the clock again, or until the kernel ends the wait."""

    def is_named(self, found: ProfileComparison) -> bool:
        first = found.main
        return first is not None and self.function in (first.name, *first.callers)

    def measured(self, found: ProfileComparison) -> CallNode | None:
        """Returns the function's time in its area. On a busy machine, it also waits for a CPU, which is another
        area."""
        for node in found.nodes:
            root = node
            while root.parent >= 0:
                root = found.nodes[root.parent]
            if (root.name, node.name) == (self.area, self.function):
                return node
        return None

    def is_measured(self, found: ProfileComparison) -> bool:
        node, high = self.measured(found), self.us + self.late_us
        return node is not None and node.low_s * 1e6 <= high and node.high_s * 1e6 >= self.us


BURN = Cause(
    "burn", "engine:cpu", "planted_burn", 20, "SELECT us FROM planted WHERE id = :id;\nSELECT planted_burn(:us);\n", 1
)
WAIT = Cause("wait", "engine:blocked", "planted_wait", 200, "UPDATE planted SET us = :us WHERE id = :id;\n", 20)
NOTHING = Cause("nothing", "", "", 0, BURN.script, 0)


def main() -> None:
    chosen = os.environ.get("IRONBENCH_BENCH_PLANTED", "")
    runs = number_from_environment("IRONBENCH_BENCH_RUNS", 20)
    build()
    for cause in (BURN, WAIT, NOTHING):
        if chosen and cause.name != chosen:
            continue
        found = [_compared(cause, number) for number in range(runs)]
        if cause is NOTHING:
            called = sum(one.main is not None for one in found)
            report(f"equal configurations, {runs} labs: any function differs", called, at_most(0.05 * runs, "≤ 5%"))
            continue
        named = sum(map(cause.is_named, found))
        both = sum(cause.is_named(one) and cause.is_measured(one) for one in found)
        report(f"{cause.name} of {cause.us} µs, {runs} labs: named first", named, at_least(0.95 * runs, "≥ 19 of 20"))
        report("  and its interval contains the size", both, at_least(0.95 * runs, "≥ 19 of 20"))


def build() -> None:
    """Compiles the library for the PostgreSQL that comes with ironbench."""
    HOME.mkdir(parents=True, exist_ok=True)
    source, library = HOME / "planted.c", (HOME / "planted.so").resolve()
    source.write_text(LIBRARY)
    headers = find().bin.parent / "include/postgresql/server"
    subprocess.run(["cc", "-O1", "-g", "-fPIC", "-shared", "-I", headers, "-o", library, source], check=True)
    (HOME / "planted.sql").write_text(SETUP.replace("@LIBRARY@", str(library)))
    for cause in (BURN, WAIT, NOTHING):
        (HOME / f"{cause.name}-planted.sql").write_text(f"\\set id random(1, 10000)\n{cause.script}")


def _compared(cause: Cause, number: int) -> ProfileComparison:
    """Runs a lab if it has not run, and prints what its profile names first."""
    text = LAB.replace("@CAUSE@", cause.name).replace("@SECONDS@", str(SECONDS)).replace("@BLOCKS@", str(BLOCKS))
    # Two configurations must differ, so equal ones get values that do not change anything.
    text = text.replace("@US@", str(cause.us or -1))
    directory, records = measured(Declaration(f"planted-{cause.name}-{SECONDS}s", text), number)
    study = lab_study(directory.lab(), records, directory.store)
    found = next(one.profile for one in study.explanations if one.profile)
    first = found.main
    names = "nothing" if first is None else " ← ".join((first.name, *first.callers))
    sizes = [_written(one) for one in (first, cause.measured(found))]
    sys.stderr.write(f"  {cause.name} {number}: first {names} {sizes[0]}; planted {sizes[1]}\n")
    return found


def _written(one: FrameChange | CallNode | None) -> str:
    return f"{one.delta_s * 1e6:.1f} µs ({one.low_s * 1e6:.1f} to {one.high_s * 1e6:.1f})" if one else "not found"
