"""Probes of checkpoints. A checkpoint causes a burst of writes, and afterwards full page images in the WAL."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.engines.examination import ExaminedServer, Readings
from ironbench.engines.postgres.probes import changed, probe, since
from ironbench.model.diagnosis import note, ok, unseen, warning
from ironbench.model.session import Row
from ironbench.units import memory, span, stored
from ironbench.words import counted, in_percent

_ENOUGH = 5
"""Minimum number of checkpoints from which a conclusion is drawn."""
_MOST_REQUESTED = 0.3
_CLOSEST_S = 120.0
_BY_THE_LOG = 0.5
"""Minimum fraction of the requested checkpoints that the WAL volume explains if max_wal_size triggers them."""
_BEGINS = (
    "pg_size_bytes(current_setting('max_wal_size')) / (1 + current_setting('checkpoint_completion_target')::float)"
)
"""SQL expression for the number of bytes of WAL after which the server requests a checkpoint. See `_ROOM` for the
source."""
_ROOM = 2.5
"""Recommended max_wal_size as a multiple of the WAL between two checkpoints. The server triggers a checkpoint at 1 / (1
+ completion target) of max_wal_size (src/backend/access/transam/xlog.c, CalculateCheckpointSegments). The factor
includes a reserve for varying load."""
_LEAST_TIMEOUT_S = 300.0


def _counts(server: ExaminedServer) -> str:
    view, timed, requested = "pg_stat_checkpointer", "num_timed", "num_requested"
    if server.number < 170000:
        view, timed, requested = "pg_stat_bgwriter", "checkpoints_timed", "checkpoints_req"
    log = "null" if server.number < 140000 else f"(select wal_bytes / nullif({since()}, 0) from pg_stat_wal)"
    return f"select {timed}, {requested}, {since()}, current_setting('max_wal_size'), {log}, {_BEGINS} from {view}"


@probe("checkpoints", "checkpoints", _counts)
def checkpoints(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """How far apart checkpoints are, and what triggers them."""
    timed, requested, over_s = (float(value or 0) for value in rows[0][:3])
    total = timed + requested
    if total < _ENOUGH:
        return ok(f"{counted(total, 'checkpoint')} in {span(over_s)}: too few to judge")
    seen = (
        f"{counted(total, 'checkpoint')} in {span(over_s)}, {in_percent(requested / total)} of them requested; "
        f"max_wal_size is {rows[0][3]}"
    )
    if requested / total <= _MOST_REQUESTED and over_s / total >= _CLOSEST_S:
        return ok(seen)
    log_per_s, begins = rows[0][4:]
    written = float(log_per_s or 0) * over_s
    if log_per_s is not None and written / float(begins or 1) < requested * _BY_THE_LOG:
        return note(
            f"{seen}, with {stored(written / total)} of WAL between two checkpoints",
            "max_wal_size was not reached, so other requests caused the checkpoints (CREATE DATABASE, backups, "
            "CHECKPOINT). After each checkpoint, the first change of every page writes the whole page to the WAL.",
            "find the cause: with log_checkpoints = on, the server's log shows when each checkpoint started",
        )
    return warning(
        seen,
        "Either WAL reached max_wal_size before checkpoint_timeout, or a CHECKPOINT command or a backup "
        "requested the checkpoints. After each checkpoint, the first change of a page writes the whole page to "
        "the WAL, so frequent checkpoints increase the amount of WAL.",
        "raise max_wal_size until most checkpoints are timed; crash recovery then takes longer",
    )


def _log(server: ExaminedServer) -> str:
    if server.number < 140000:
        return ""
    return f"""
        select wal_bytes, {since()}, pg_size_bytes(current_setting('max_wal_size')),
               extract(epoch from current_setting('checkpoint_timeout')::interval)
          from pg_stat_wal
    """


@probe("checkpoints", "WAL size", _log)
def room(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Whether max_wal_size is large enough for the WAL between two checkpoints."""
    written, over_s, most, timeout_s = (float(value or 0) for value in rows[0])
    if over_s < timeout_s:
        return unseen(f"WAL statistics cover only {span(over_s)}, less than checkpoint_timeout")
    between = written / over_s * timeout_s
    seen = (
        f"{stored(written / over_s)}/s of WAL, which is {stored(between)} per checkpoint_timeout of {span(timeout_s)}"
    )
    if between * _ROOM <= most:
        return ok(f"{seen}; max_wal_size is {memory(most)}")
    return warning(
        f"{seen}; max_wal_size is {memory(most)}",
        "Whenever the load is above its average, checkpoints start before checkpoint_timeout.",
        changed("max_wal_size", f"{max(1024, int(between * _ROOM) >> 20)}MB"),
    )


_PACE = """
    select current_setting('checkpoint_completion_target'),
           extract(epoch from current_setting('checkpoint_timeout')::interval)
"""


@probe("checkpoints", "pace", _PACE)
def pace(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """How much of the time between checkpoints is used to spread their writes."""
    target, timeout_s = (float(value or 0) for value in rows[0])
    seen = f"over {in_percent(target)} of {span(timeout_s)}"
    if timeout_s < _LEAST_TIMEOUT_S:
        return note(
            f"checkpoint_timeout is {span(timeout_s)}",
            (
                "After a checkpoint, the first change of a page writes the whole page to the WAL, so short "
                "checkpoint intervals increase the amount of WAL."
            ),
            changed("checkpoint_timeout", "15min"),
        )
    if target < 0.8:
        return note(
            f"checkpoint_completion_target is {target:g}",
            "Checkpoints write in bursts, which delay all reads and commits.",
            changed("checkpoint_completion_target", "0.9"),
        )
    return ok(seen)
