"""Probes of durability."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.engines.examination import ExaminedServer, Readings
from ironbench.engines.postgres.probes import changed, probe
from ironbench.model.diagnosis import note, ok, severe, warning
from ironbench.model.session import Row
from ironbench.words import counted


@probe("durability", "fsync", "show fsync")
def fsync(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Whether the server ensures that its writes reach the disk."""
    if rows[0][0] == "on":
        return ok("on")
    return severe(
        "off",
        "An operating system crash can destroy the whole cluster. Commits do not wait for the disk, so a durable "
        "server often reaches only a fraction of this throughput.",
        changed("fsync", "on"),
    )


@probe("durability", "full pages", "show full_page_writes")
def full_page_writes(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Whether partially written (torn) pages can be restored from the WAL."""
    if rows[0][0] == "on":
        return ok("on")
    return severe(
        "full_page_writes is off",
        "A crash during a write can leave torn pages, unless the file system writes pages atomically (ZFS). The "
        "server writes less WAL than a safe server, so writing looks faster.",
        changed("full_page_writes", "on"),
    )


@probe("durability", "commits", "show synchronous_commit")
def commits(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Whether a commit waits until the WAL is durable."""
    value = rows[0][0] or ""
    if value != "off":
        return ok(f"synchronous_commit is {value}")
    return warning(
        "synchronous_commit is off",
        "A crash loses the most recent commits (up to three times wal_writer_delay), and commits do not wait for "
        "the disk, so throughput is not comparable with a fully durable server.",
        changed("synchronous_commit", "on"),
    )


@probe("durability", "checksums", "show data_checksums")
def checksums(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Whether corruption of a page by the storage is detected."""
    if rows[0][0] == "on":
        return ok("on")
    return note(
        "off",
        "Corruption by a drive or controller is not detected when pages are read. Since version 18, new clusters have "
        "checksums, which cost a little CPU time and WAL.",
        "stop the server, then pg_checksums --enable -D DIRECTORY",
    )


_FAILURES = """
    select coalesce(datname, 'shared tables'), checksum_failures from pg_stat_database where checksum_failures > 0
"""


@probe("durability", "damaged pages", _FAILURES)
def damage(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Pages whose checksum was wrong when they were read."""
    if not rows:
        return ok("none seen")
    places = ", ".join(f"{name}: {counted(int(count or 0), 'page')}" for name, count in rows)
    return severe(places, "The storage has damaged data.", "restore a backup, and replace the device")


_IGNORED = """
    select name from pg_settings
     where name in ('zero_damaged_pages', 'ignore_checksum_failure', 'ignore_invalid_pages') and setting = 'on'
"""


@probe("durability", "ignored damage", _IGNORED)
def ignored(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Settings that make the server ignore damaged pages."""
    if not rows:
        return ok("no")
    names = [str(name) for (name,) in rows]
    return severe(
        f"{', '.join(names)} on",
        "The server treats damaged pages as empty or intact, so data are lost silently.",
        changed(names[0], "off"),
    )
