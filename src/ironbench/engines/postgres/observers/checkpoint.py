"""PostgreSQL's checkpoints: number, interval and volume. The counters are in pg_stat_checkpointer, and before version
17 in pg_stat_bgwriter.

The first change of each page after a checkpoint writes the whole page to the WAL. A trial with fewer than two
checkpoints therefore contains either many or few of these full page images. Such a trial does not measure the steady
state.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ironbench.engines.administration import REQUEST
from ironbench.engines.postgres.observers.catalog import has_relation
from ironbench.host.tree import Tree
from ironbench.model.observation import Observation, Source
from ironbench.model.observer import Samples
from ironbench.model.points import (
    SamplePoint,
    Values,
    growth,
    number,
    points,
    present,
    rate_of,
    rate_series,
    rows,
    steps,
)
from ironbench.model.session import Session

_SOURCE = "pg_checkpoint.view"
WITHIN = 0.05
"""Maximum relative error of the mean interval. If the error may be larger, the interval is omitted."""


class PgCheckpoint:
    name = "pg_checkpoint"
    doc = "PostgreSQL's checkpoints: number, interval, bytes written, and time for writing and syncing"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        views = ("pg_stat_checkpointer", "pg_stat_bgwriter")  # since version 17, and before
        view = next((name for name in views if has_relation(session, name)), None)
        if view is None:
            return ()
        sql = f"select to_jsonb(s) || jsonb_build_object('page', current_setting('block_size')::int) from {view} s"
        return (Source(_SOURCE, "sql", sql),)

    def parse(self, samples: Samples, window_s: float) -> Observation:
        answered = _answered_at(samples, window_s)
        # The metric is omitted if the trial requests no checkpoints.
        requested = {"checkpoints_requested": float(len(answered))} if REQUEST in samples else {}
        readings = points(samples.get(_SOURCE), _parse)
        if (grown := growth(readings, window_s)) is None:
            return Observation(requested)
        metrics = requested | {
            "checkpoints": grown.count("done"),
            "checkpoint_write_bytes_per_s": grown.rate("bytes"),
            "checkpoint_write_share": grown.rate("write_s"),
            "checkpoint_sync_share": grown.rate("sync_s"),
        }
        # The time of a requested checkpoint is known exactly. The time of another checkpoint is only known to be
        # between two samples.
        ours = len(answered) > 1 and metrics["checkpoints"] <= len(answered)
        interval_s = _apart(answered) if ours else _seen_apart(readings, window_s)
        metrics |= present({"checkpoint_interval_s": interval_s})
        each = steps(readings)
        series = (
            rate_series("checkpoints", each, lambda step: step.by.get("done")),
            rate_series("checkpoint_write_bytes_per_s", each, rate_of("bytes")),
        )
        return Observation(metrics, series)


def _answered_at(samples: Samples, window_s: float) -> list[float]:
    """Returns the times at which the server completed the requested checkpoints."""
    return [answer.t_s for answer in samples.get(REQUEST) or () if 0.0 <= answer.t_s <= window_s]


def _apart(times: Sequence[float]) -> float:
    return (times[-1] - times[0]) / (len(times) - 1)


def _seen_apart(readings: Sequence[SamplePoint], window_s: float) -> float | None:
    """Returns the mean interval between checkpoints. A checkpoint counts from the first sample that includes it.
    Returns None if the error could exceed `WITHIN`."""
    seen: list[tuple[float, float]] = []
    for before, after in pairwise(readings):
        if 0.0 <= after.t_s <= window_s:
            done = max(0, round(after.values["done"] - before.values["done"]))
            seen += [(after.t_s, after.t_s - before.t_s)] * done
    if len(seen) < 2:
        return None
    (first_s, first_gap_s), (last_s, last_gap_s) = seen[0], seen[-1]
    known = max(first_gap_s, last_gap_s) <= WITHIN * (last_s - first_s)
    return _apart([t_s for t_s, _ in seen]) if known else None


def _parse(text: str) -> Values:
    row = rows(text)[0]
    if "checkpoints_timed" in row:
        done = number(row, "checkpoints_timed") + number(row, "checkpoints_req")
        pages, write, sync = "buffers_checkpoint", "checkpoint_write_time", "checkpoint_sync_time"
    else:
        # num_timed and num_requested include requests that were skipped because nothing had changed. num_done does not
        # include them, but exists only since version 18.
        both = number(row, "num_timed") + number(row, "num_requested")
        done = number(row, "num_done") if "num_done" in row else both
        pages, write, sync = "buffers_written", "write_time", "sync_time"
    return {
        "done": done,
        "bytes": number(row, pages) * number(row, "page"),
        "write_s": number(row, write) / 1e3,
        "sync_s": number(row, sync) / 1e3,
    }


OBSERVER = PgCheckpoint()
