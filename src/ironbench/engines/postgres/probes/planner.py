"""Probes of the planner."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.engines.examination import ExaminedServer, Readings
from ironbench.engines.postgres.probes import STATEMENTS, changed, probe
from ironbench.model.diagnosis import note, ok, unseen, warning
from ironbench.model.session import Row
from ironbench.words import counted, in_percent

_FLASH = "1.1"
_DISK_RATIO = 2.0
_JIT_SHARE = 0.05
_SHOWN = 8


@probe("planner", "random page cost", "select current_setting('random_page_cost'), current_setting('seq_page_cost')")
def random_page_cost(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Cost that the planner assumes for reading a random page, compared with a sequential page."""
    random, sequential = (float(value or 0) for value in rows[0])
    seen = f"random_page_cost is {random:g}, seq_page_cost {sequential:g}"
    if random < _DISK_RATIO * sequential:
        return ok(seen)
    if server.rotates:
        return ok(f"{seen}; the kernel reports a rotating disk, which may be wrong in a virtual machine")
    meaning = "The value suits rotating disks. On flash, the planner avoids index scans that would be faster."
    if server.rotates is None:
        return note(seen, meaning, f"on flash: {changed('random_page_cost', _FLASH)}")
    return warning(f"{seen}; the data are not on a rotating disk", meaning, changed("random_page_cost", _FLASH))


def _compiled(server: ExaminedServer) -> str:
    head = "select current_setting('jit') = 'on' and pg_jit_available()"
    if STATEMENTS not in server.extensions or server.number < 150000:
        return f"{head}, null, null, null"
    spent = " + ".join(f"jit_{step}_time" for step in ("generation", "inlining", "optimization", "emission"))
    return (
        f"{head}, sum(calls) filter (where jit_functions > 0), sum({spent}), sum(total_exec_time) "
        f"from {server.extensions[STATEMENTS]}.{STATEMENTS}"
    )


@probe("planner", "compilation", _compiled)
def jit(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Whether compiling statements (JIT) takes more time than it saves."""
    on, calls, spent, whole = rows[0]
    if on != "t":
        return ok("off, or not in this build")
    if whole is None:
        return unseen("requires pg_stat_statements and PostgreSQL 15 or later")
    share = float(spent or 0) / max(float(whole), 1e-9)
    seen = f"JIT compilation takes {in_percent(share)} of statement time ({counted(float(calls or 0), 'execution')})"
    if share < _JIT_SHARE:
        return ok(seen)
    return warning(
        seen,
        "Compilation costs short statements more than it saves.",
        f"{changed('jit', 'off')}; or raise jit_above_cost until only long statements are compiled",
    )


_METHODS = """
    select name from pg_settings where name like 'enable\\_%' and setting = 'off' and boot_val = 'on' order by name
"""


@probe("planner", "methods", _METHODS)
def methods(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Plan node types that the planner is not allowed to use."""
    names = [str(name) for (name,) in rows]
    if not names:
        return ok("all are on")
    return warning(
        f"off: {', '.join(names)}",
        "The planner cannot choose the best plans; these settings are meant for tests, not for production.",
        changed(names[0], "on"),
    )


_STALE = """
    select relid::regclass, n_live_tup, n_mod_since_analyze, greatest(last_analyze, last_autoanalyze) is null
      from pg_stat_user_tables
     where n_live_tup >= 1000
       and (n_mod_since_analyze > 0.2 * n_live_tup or greatest(last_analyze, last_autoanalyze) is null)
     order by n_live_tup desc
"""


@probe("planner", "statistics", _STALE)
def statistics(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Tables that have changed considerably since they were last analysed."""
    if not rows:
        return ok("up to date")
    tables = [
        f"{name} (never analysed)" if never == "t" else f"{name} ({in_percent(float(changed_) / float(live))} changed)"
        for name, live, changed_, never in rows[:_SHOWN]
        if changed_ and live
    ]
    more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
    return warning(
        ", ".join(tables) + more,
        "The planner uses outdated statistics, so plans may be slow or change during a trial.",
        f"ANALYZE {rows[0][0]}" if len(rows) == 1 else "ANALYZE",
    )
