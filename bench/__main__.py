"""Runs every benchmark except the long ones, or those that are named.

Exits with 1 if a result misses its target; missed targets are listed at the end.
"""

from __future__ import annotations

import importlib
import pkgutil
import signal
import sys
import traceback

import bench
from bench import figures

HELPERS = {
    "__main__",
    "captures",
    "figures",
    "job_kinds",
    "kills",
    "oltp",
    "outside",
    "pairs",
    "peers",
    "series",
    "simulated",
    "stolen",
    "tuning",
}
LONG = {
    "agreement",
    "brokerage_aa",
    "cluster_kills",
    "gate_aa",
    "headroom",
    "hostile",
    "job_kills",
    "noise_aa",
    "own_data",
    "planted",
    "power",
    "resume",
    "serve",
    "serve_cost",
    "slowdown",
    "tpcc_aa",
    "tune_live",
}
"""Benchmarks that take long or need an idle machine; they run only if named."""


def main() -> int:
    # SIGTERM acts like Ctrl-C, so that benchmarks undo their changes and unmount their file systems.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    known = [module.name for module in pkgutil.iter_modules(bench.__path__) if module.name not in HELPERS]
    chosen = sys.argv[1:] or [name for name in known if name not in LONG]
    unknown = [name for name in chosen if name not in known]
    if unknown:
        sys.stderr.write(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}\n")
        return 2
    for name in chosen:
        print(f"== {name}", flush=True)
        figures.begin(name)
        try:
            importlib.import_module(f"bench.{name}").main()
        except Exception as error:  # the other benchmarks still run; this one counts as missed
            traceback.print_exc()
            figures.failed(str(error) or type(error).__name__)
    print(f"\n{figures.table(figures.FIGURES)}")
    return int(any(one.met is False for one in figures.FIGURES))


if __name__ == "__main__":
    sys.exit(main())
