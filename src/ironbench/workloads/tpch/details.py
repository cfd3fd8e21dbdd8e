"""Evidence beside a record: every step of every stream, and the plans."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from ironbench.workloads.tpch import plans
from ironbench.workloads.tpch.plans import Explained
from ironbench.workloads.tpch.streams import Stream

_COLUMNS = ("stream", "step", "begin_s", "elapsed_s", "rows", "error")


def files(streams: Sequence[Stream], explained: Sequence[Explained]) -> dict[str, bytes]:
    """By name of file. The stream of refresh functions in a throughput test has the number -1."""
    found = {"streams.csv": steps(streams).encode()}
    if explained:
        found["plans.txt"] = plans.file(explained).encode()
    return found


def steps(streams: Sequence[Stream]) -> str:
    """One line for each query and refresh function, times from the first submission of all."""
    begin_s = min((one.submitted_s for stream in streams for one in stream.ran), default=0.0)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(_COLUMNS)
    for stream in streams:
        for one in stream.ran:
            times = f"{one.submitted_s - begin_s:.6f}", f"{one.elapsed_s:.6f}"
            table.writerow((stream.number, one.name, *times, one.rows, one.error))
    return text.getvalue()
