"""Probes of replication and archiving. The probes examine the lag, and WAL that is kept although nothing reads it."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.engines.examination import ExaminedServer, Readings
from ironbench.engines.postgres.probes import MONITORING, probe
from ironbench.model.diagnosis import note, ok, severe, warning
from ironbench.model.session import Row
from ironbench.units import span, stored
from ironbench.words import counted

_MUCH, _TOO_MUCH = 1e9, 10e9
_LATE_S = 10.0
_HERE = "case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end"

_SLOTS = f"""
    select slot_name, coalesce(pg_wal_lsn_diff({_HERE}, restart_lsn), 0), wal_status
      from pg_replication_slots where not active order by 2 desc
"""


@probe("replication", "inactive slots", _SLOTS)
def slots(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Inactive replication slots, for which the server retains all later WAL."""
    if not rows:
        return ok("none")
    name, kept, state = str(rows[0][0]), float(rows[0][1] or 0), rows[0][2]
    seen = f"{counted(len(rows), 'slot')}: {name} retains {stored(kept)} of WAL"
    remedy = (
        f"SELECT pg_drop_replication_slot('{name}'), unless its consumer returns; max_slot_wal_keep_size limits the WAL"
    )
    if kept >= _TOO_MUCH or state in ("unreserved", "lost"):
        return severe(f"{seen} (state {state})", "The WAL will fill its disk, and then the server stops.", remedy)
    if kept >= _MUCH:
        return warning(
            seen, "The WAL grows until its disk is full; a logical slot also keeps dead tuples in the catalogs.", remedy
        )
    return note(seen, "The retained WAL keeps growing.", remedy)


_LAG = f"""
    select coalesce(nullif(application_name, ''), pid::text), extract(epoch from replay_lag),
           pg_wal_lsn_diff({_HERE}, replay_lsn), sync_state
      from pg_stat_replication order by 3 desc nulls last
"""


@probe("replication", "replicas", _LAG, MONITORING)
def lag(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Replication lag of the connected replicas."""
    if not rows:
        return ok("no replica is connected")
    late = [row for row in rows if float(row[1] or 0) >= _LATE_S or float(row[2] or 0) >= _MUCH]
    if not late:
        return ok(f"{counted(len(rows), 'replica')}, all less than {span(_LATE_S)} behind")
    name, behind_s, size, state = late[0]
    waits = " Commits wait for this replica (synchronous replication)." if state in ("sync", "quorum") else ""
    return warning(
        f"{name} is {stored(float(size or 0))} behind" + (f", {span(float(behind_s))}" if behind_s else ""),
        (
            "The replica does not keep up, so results may overstate what the primary and the replica can sustain "
            f"together.{waits}"
        ),
        (
            "check the replica's disk and its max_standby_streaming_delay, and compare with a measurement while the "
            "replica is stopped"
        ),
    )


_STANDBY = "select pg_is_in_recovery(), extract(epoch from now() - pg_last_xact_replay_timestamp())"


@probe("replication", "standby", _STANDBY)
def standby(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Whether this server is itself a replica."""
    replica, behind_s = rows[0]
    if replica != "t":
        return ok("not a replica")
    when = f"; the last replayed commit is {span(float(behind_s))} old" if behind_s else ""
    return note(
        f"this server is a replica{when}",
        "A replica accepts no writes, and replays its primary's writes during the measurement.",
        "",
    )


_ARCHIVE = """
    select current_setting('archive_mode'), failed_count, last_failed_time > coalesce(last_archived_time, '-infinity'),
           extract(epoch from now() - last_failed_time)
      from pg_stat_archiver
"""


@probe("replication", "archive", _ARCHIVE)
def archive(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Whether WAL archiving works."""
    mode, failed, behind, ago = rows[0]
    if mode == "off":
        return ok("off")
    if behind != "t":
        return ok("keeps up")
    return severe(
        f"the last attempt failed, {span(float(ago or 0))} ago; {counted(int(failed or 0), 'failure')} in all",
        "The server keeps WAL until it is archived, so the disk will fill, and then the server stops.",
        "read the error of archive_command in the server's log",
    )
