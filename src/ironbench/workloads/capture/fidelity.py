"""Measures how closely a replay repeated the recorded work. For this, counts of the recording are compared with counts
of the replay. Every capture contains the number of statements and their mix. Rows, WAL and blocks are known only if the
log contains marks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ironbench.model.judging_limits import RATE_KEPT
from ironbench.model.note import Note, note
from ironbench.workloads.capture import file, selection, tape

LATE = "replay_late_s"
RECORDED, REPLAYED, DIVERGENCE = "recorded_work", "replayed_work", "replay_divergence"
"""Names of metrics. Each metric has one value for each measure (`{of=MEASURE}`)."""
STATEMENTS, MIX, FAILED = "statements", "mix", "failed_statements"
NOTED, FLAGGED = 0.05, 0.2
"""Limits for divergences. Above `NOTED`, the trial gets a note. Above `FLAGGED`, the trial is flagged if the measure is
in `WORK`."""
WORK = (STATEMENTS, MIX, FAILED, "rows_inserted", "rows_updated", "rows_deleted", "wal_records")
"""Measures that depend only on the work. Other measures also depend on the memory, plans and checkpoints of the system
that replays the work. For example, the WAL contains full-page images after a checkpoint."""
_LEAST = {
    **{"wal_bytes": 1e6, "blocks_hit": 1000.0, "blocks_read": 1000.0},
    **{"log_bytes": 1e6, "pages_hit": 1000.0, "pages_read": 1000.0},
}
_LEAST_COUNT = 100.0
"""Minimum divisor of a divergence. If the recorded count is smaller, the difference is divided by this number, because
small differences between small counts mean nothing."""


def measured(
    options: Mapping[str, str],
    grown: Mapping[str, int],
    summary: Mapping[str, Any],
) -> dict[str, float]:
    """Returns the metrics of a trial. `grown`: growth of the server's counters during the trial."""
    figures = summary.get("figures") or {}
    chosen, made = tape.chosen(options), tape.tape(options)
    sent = figures.get("capture_statements", 0.0)
    values = dict(_mix(made, summary))
    is_whole = sent + figures.get("capture_skipped", 0.0) >= chosen.statements
    if not is_whole:  # the trial ended before the end of the capture
        return values
    if options["mode"] == "schedule" and summary.get("elapsed_s"):
        values[LATE] = max(0.0, summary["elapsed_s"] - chosen.length_s / float(options["speed"]))
    values |= _compared(STATEMENTS, chosen.statements, sent)
    failed = figures.get("capture_failed_again", 0.0) + sum((summary.get("errors") or {}).values())
    values |= _pair(FAILED, chosen.failed, failed)
    # The difference is divided by the number of all statements, because the number of failures may be 0.
    values[_part(DIVERGENCE, FAILED)] = abs(failed - chosen.failed) / chosen.statements
    if chosen.rows is not None:
        values |= _compared("rows", chosen.rows, figures.get("capture_rows", 0.0))
    facts = file.facts(options["file"])
    is_counted = set(chosen.databases) <= {facts.counted_database} and selection.read(options).is_whole(
        facts.counted_database
    )
    if facts.counters and is_counted:
        for name, recorded in facts.counters.items():
            if name in grown:
                values |= _compared(name, recorded * int(options["sessions"]), grown[name])
    return values


def _mix(made: tape.Tape, summary: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yields the divergence of the mix. This is the fraction of statements that would have to be others to make the
    replay's mix equal to the recording's. Yields nothing if no statement was recorded or replayed."""
    recorded = {(kind, text): calls for kind, counted in made.kinds for text, calls in counted}
    replayed = {(one["script"], one["text"]): one["count"] for one in summary.get("statements") or ()}
    of_recorded, of_replayed = sum(recorded.values()), sum(replayed.values())
    if of_recorded and of_replayed:
        shares = (
            abs(recorded.get(key, 0) / of_recorded - replayed.get(key, 0) / of_replayed)
            for key in recorded.keys() | replayed.keys()
        )
        yield _part(DIVERGENCE, MIX), sum(shares) / 2


def _compared(name: str, recorded: float, replayed: float) -> dict[str, float]:
    least = _LEAST.get(name, _LEAST_COUNT)
    return {
        **_pair(name, recorded, replayed),
        _part(DIVERGENCE, name): abs(replayed - recorded) / max(recorded, least),
    }


def _pair(name: str, recorded: float, replayed: float) -> dict[str, float]:
    return {_part(RECORDED, name): float(recorded), _part(REPLAYED, name): float(replayed)}


def _part(metric: str, name: str) -> str:
    return f"{metric}{{of={name}}}"


def notes(metrics: Mapping[str, float], elapsed_s: float) -> Iterator[Note]:
    """Yields notes on the measures in which a trial diverges from the recording, and on a replay that was slower than
    its schedule. `elapsed_s`: length of the replay."""
    if (late_s := metrics.get(LATE, 0.0)) > (1 - RATE_KEPT) * elapsed_s:
        yield note("replay-late", late_s=late_s, schedule_s=elapsed_s - late_s)
    start = f"{DIVERGENCE}{{of="
    by_measure = {name[len(start) : -1]: value for name, value in metrics.items() if name.startswith(start)}
    flagged = {name: value for name, value in by_measure.items() if name in WORK and value > FLAGGED}
    noted = {name: value for name, value in by_measure.items() if value > NOTED and name not in flagged}
    if flagged:
        yield note("replay-unfaithful", measures=tuple(flagged), most=max(flagged.values()))
    if noted:
        yield note("replay-differs", measures=tuple(noted), most=max(noted.values()))
