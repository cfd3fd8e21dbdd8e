"""Reads the log of HammerDB's transaction counter (`hdbtcount.log`).

The counter adds a section to the file at each start. A line contains the transactions per minute since the last line
and, with `tcset timestamps 1`, its time in the default format of Tcl's `clock format` (src/generic/gentccmn.tcl in the
sources of HammerDB 5.0).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from ironbench.records.foreign.output import MOST_RESULTS, Output, Result, put, safe

START = "Hammerdb Transaction Counter Log @"
_COUNT = re.compile(r"(\d{1,12}) (.{1,40}?) tpm(?: @ (.{1,60}))?")
_TIME = re.compile(r"\w{3} (\w{3}) +(\d{1,2}) (\d\d:\d\d:\d\d) \S{1,10} (\d{4})")


def read(output: Output) -> list[Result]:
    """Returns a result with a time series for each section of the log that has at least two intervals. Raises
    InputError if the log contains no times."""
    return _results(output, output.lines())


def _results(output: Output, lines: Iterable[str]) -> list[Result]:
    results: list[Result] = []
    now, start = Result(), None
    for line in lines:
        if line.startswith(START):
            now, start = Result(), None
        elif found := _COUNT.fullmatch(line):
            if found[3] is None:
                raise output.refused("contains no times", "switch the times on before the test: `tcset timestamps 1`")
            if (moment := _moment(found[3])) is None:
                continue
            # The first line is written when the counter starts, and always contains 0.
            if start is None:
                start = moment
                now.started_at = start.isoformat(sep=" ")
                now.facts = {"workload": "TPROC-C", "database": safe(found[2])}
                continue
            row = {"t_s": (moment - start).total_seconds()}
            put(row, "transactions_per_min", found[1])
            if row["t_s"] > (now.rows[-1]["t_s"] if now.rows else 0.0):
                now.rows.append(row)
            if len(now.rows) == 2:
                if len(results) == MOST_RESULTS:
                    break
                results.append(now)
    return results


def _moment(text: str) -> datetime | None:
    """Parses the time of a line, without its time zone."""
    if not (found := _TIME.fullmatch(text.strip())):
        return None
    try:
        return datetime.strptime(f"{found[1]} {found[2]} {found[3]} {found[4]}", "%b %d %H:%M:%S %Y")
    except ValueError:
        return None
