"""PostgreSQL's checkpoints: how many, how far apart, how much (pg_stat_checkpointer, before 17 pg_stat_bgwriter).

Right after a checkpoint the first change of each page puts the whole page into the log: a trial that sees fewer than
two checkpoints measures either that flood or its absence, not the steady state.
"""

from __future__ import annotations

from itertools import pairwise

from ironbench.engines.administration import REQUEST
from ironbench.engines.postgres.observers.catalog import has_relation
from ironbench.machine.tree import Tree
from ironbench.model.observation import Observation, Source
from ironbench.model.observer import Samples
from ironbench.model.points import Point, Values, growth, number, points, rate_of, rate_series, rows, steps
from ironbench.model.session import Session

_SOURCE = "pg_checkpoint.view"


class PgCheckpoint:
    name = "pg_checkpoint"
    doc = "PostgreSQL's checkpoints: number, interval, bytes written, time spent writing and syncing"

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        views = ("pg_stat_checkpointer", "pg_stat_bgwriter")  # since version 17, and before
        view = next((name for name in views if has_relation(session, name)), None)
        if view is None:
            return ()
        sql = f"select to_jsonb(s) || jsonb_build_object('page', current_setting('block_size')::int) from {view} s"
        return (Source(_SOURCE, "sql", sql),)

    def parse(self, samples: Samples, window_s: float) -> Observation:
        requested = _requested(samples, window_s)
        readings = points(samples.get(_SOURCE), _parse)
        if (grown := growth(readings, window_s)) is None:
            return Observation(requested)
        times = [t_s for t_s in _done_at(readings) if 0.0 <= t_s <= window_s]
        metrics = requested | {
            "checkpoints": round(grown.by.get("done", 0.0)) * 1.0,
            "checkpoint_write_bytes_per_s": grown.rate("bytes"),
            "checkpoint_write_share": grown.rate("write_s"),
            "checkpoint_sync_share": grown.rate("sync_s"),
        }
        if len(times) > 1:
            metrics["checkpoint_interval_s"] = (times[-1] - times[0]) / (len(times) - 1)
        each = steps(readings)
        series = (
            rate_series("checkpoints", each, lambda step: step.by.get("done")),
            rate_series("checkpoint_write_bytes_per_s", each, rate_of("bytes")),
        )
        return Observation(metrics, series)


def _requested(samples: Samples, window_s: float) -> dict[str, float]:
    """How many of ours the server answered; nothing where none were to be requested."""
    if (answers := samples.get(REQUEST)) is None:
        return {}
    return {"checkpoints_requested": float(sum(0.0 <= answer.t_s <= window_s for answer in answers))}


def _done_at(readings: list[Point]) -> list[float]:
    """When each checkpoint was first seen done; two between the same samples share their time."""
    times: list[float] = []
    for before, after in pairwise(readings):
        times += [after.t_s] * max(0, round(after.values["done"] - before.values["done"]))
    return times


def _parse(text: str) -> Values:
    row = rows(text)[0]
    if "checkpoints_timed" in row:
        done = number(row, "checkpoints_timed") + number(row, "checkpoints_req")
        pages, write, sync = "buffers_checkpoint", "checkpoint_write_time", "checkpoint_sync_time"
    else:
        # num_timed and num_requested also count requests that were skipped because nothing had changed; num_done
        # (since 18) does not.
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
