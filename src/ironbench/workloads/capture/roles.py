"""Roles that a capture's statements set with SET ROLE. They must exist on the server that replays the statements."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import duckdb

from ironbench import engines
from ironbench.errors import InputError, written
from ironbench.model.session import Session
from ironbench.words import counted, grouped, in_percent, some
from ironbench.workloads.capture import file
from ironbench.workloads.capture.file import quoted

if TYPE_CHECKING:
    from ironbench.workloads.capture.tape import Chosen

_SET = "^set (session |local )?role\\b"
"""Pattern of the template of a statement that sets a role."""
_NAME = re.compile(
    r"""(?ix) \b set \s+ (?: (?: session | local ) \s+ )? role (?: \s* = \s* | \s+ to \s+ | \s+ )
    (?: "(?P<name>(?:[^"]|"")+)" | '(?P<text>(?:[^']|'')+)' | (?P<word>[\w$]+) )"""
)
_CALL = r"(?i)\bset_config\s*\(\s*'role'\s*,\s*(?:'([^']+)'|\$(\d+))"
"""Pattern of a function call that sets a role, for example in statements of PostgREST. The groups are the role, and the
number of the parameter that contains the role."""


def read(opened: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Returns the roles that the chosen statements set, with the number of statements for each. `opened` must contain
    the view `chosen`."""
    found = Counter[str]()
    texts = file.asked(
        opened, f"SELECT text, count(*) FROM chosen WHERE regexp_matches(template, {quoted(_SET)}) GROUP BY 1"
    )
    for text, calls in texts:
        if (named := _NAME.search(text)) is None:
            continue
        if named["name"]:
            found[named["name"].replace('""', '"')] += calls
        elif named["text"]:
            found[named["text"].replace("''", "'")] += calls
        else:
            found[named["word"].lower()] += calls
    calls = file.asked(
        opened,
        f"""
        SELECT coalesce(nullif(call.role, ''), parameters[TRY_CAST(call.parameter AS INTEGER)]) AS name, count(*)
        FROM (
            SELECT parameters, regexp_extract(text, {quoted(_CALL)}, ['role', 'parameter']) AS call
            FROM chosen WHERE template LIKE '%set_config%'
        ) GROUP BY 1 HAVING name IS NOT NULL
        """,
    )
    for name, number in calls:
        found[name] += number
    return {name: number for name, number in sorted(found.items()) if name not in ("none", "default")}


def provide(session: Session, path: str, chosen: Chosen, own_server: bool) -> None:
    """Creates the missing roles on a server that ironbench has started. The roles have all privileges, because the
    restored data have none. Raises InputError if a role is missing on another server, or if the user may not change to
    the role."""
    captures = engines.capturing(file.facts(path).protocol)
    if not chosen.roles or not captures.usable_roles:
        return
    usable = {name for (name,) in session.query(captures.usable_roles)}
    missing = {name: number for name, number in chosen.roles.items() if name not in usable}
    if own_server:
        quote = captures.quote
        for name in missing:
            session.query(captures.create_role.format(quote + name.replace(quote, 2 * quote) + quote))
    elif missing:
        number = sum(missing.values())
        share = (
            f"{grouped(number)} of {counted(chosen.statements, 'statement')} ({in_percent(number / chosen.statements)})"
        )
        verb = "sets" if number == 1 else "set"
        cause = f"{share} {verb} a role that does not exist on the server, or that the user may not set"
        without = written("workload.with", "except=statement:set *role*")
        hint = f"create the role, or leave out these transactions: {without}"
        raise InputError(path, f"{cause}: {some(list(missing))}", hint)
