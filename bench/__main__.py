"""Runs every benchmark, or those named."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import bench

HELPERS = {"__main__", "kills", "pairs", "peers", "series"}
LONG = {"noise_aa", "power", "resume"}
"""Take long or a quiet machine: run when they are named."""


def main() -> int:
    known = [module.name for module in pkgutil.iter_modules(bench.__path__) if module.name not in HELPERS]
    chosen = sys.argv[1:] or [name for name in known if name not in LONG]
    unknown = [name for name in chosen if name not in known]
    if unknown:
        sys.stderr.write(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}\n")
        return 2
    for name in chosen:
        print(f"== {name}", flush=True)
        importlib.import_module(f"bench.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
