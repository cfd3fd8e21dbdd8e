"""Roles that a capture's statements set with SET ROLE. They must exist on the server that replays the statements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import duckdb

from ironbench import engines
from ironbench.errors import InputError, written
from ironbench.model.session import Session
from ironbench.words import counted, grouped, in_percent, some
from ironbench.workloads.capture import file
from ironbench.workloads.capture.file import quoted

if TYPE_CHECKING:
    from ironbench.engines.base import CaptureTraits
    from ironbench.workloads.capture.tape import Chosen

_SET = "^set (session |local )?role\\b"
"""Pattern of the template of a statement that sets a role."""
_START = re.compile(r"(?i)\bset\s+(?:(?:session|local)\s+)?role(?:\s*=\s*|\s+to\s+|\s+)")
_NAME = re.compile(
    r"""(?x) \s* (?: "(?P<name>(?:[^"]|"")+)" | `(?P<tick>(?:[^`]|``)+)` | '(?P<text>(?:[^']|'')+)' | (?P<word>[\w$]+) )
    (?: @ (?: `[^`]*` | '[^']*' | "[^"]*" | [\w$%.]+ ) )? \s*"""
)
"""Pattern of a role. In MySQL, the name of a host can follow, and a statement can set several roles, separated by
commas."""
_CALL = r"(?i)\bset_config\s*\(\s*'role'\s*,\s*(?:'([^']+)'|\$(\d+))"
"""Pattern of a function call that sets a role, for example in statements of PostgREST. The groups are the role, and the
number of the parameter that contains the role."""


_NO_ROLES = ("none", "default", "all")
"""Words that SET ROLE accepts in place of a role."""


class RoleUse(NamedTuple):
    """How often the statements of a capture set a role."""

    statements: int
    calls: int
    """Number of those statements that call set_config. The option `except` cannot select them by role."""


def read(opened: duckdb.DuckDBPyConnection, folds: bool) -> dict[str, RoleUse]:
    """Returns the roles that the chosen statements set. Statements that failed when they were captured do not count,
    because they are expected to fail again. `opened` must contain the view `chosen`. `folds`: whether the server
    converts names without quotes to lower case."""
    statements, calls = Counter[str](), Counter[str]()
    texts = file.asked(
        opened,
        f"SELECT text, count(*) FROM chosen WHERE regexp_matches(template, {quoted(_SET)}) AND error IS NULL "
        "GROUP BY 1",
    )
    for text, number in texts:
        for name in _named(text, folds):
            statements[name] += number
    by_function = file.asked(
        opened,
        f"""
        SELECT coalesce(nullif(call.role, ''), parameters[TRY_CAST(call.parameter AS INTEGER)]) AS name, count(*)
        FROM (
            SELECT parameters, regexp_extract(text, {quoted(_CALL)}, ['role', 'parameter']) AS call
            FROM chosen WHERE template LIKE '%set_config%' AND error IS NULL
        ) GROUP BY 1 HAVING name <> ''
        """,
    )
    for name, number in by_function:
        statements[name] += number
        calls[name] += number
    return {
        name: RoleUse(number, calls[name])
        for name, number in sorted(statements.items())
        if name.lower() not in _NO_ROLES
    }


def _named(text: str, folds: bool) -> Iterator[str]:
    """Yields the roles that a SET ROLE sets."""
    if (start := _START.search(text)) is None:
        return
    at = start.end()
    while named := _NAME.match(text, at):
        if named["name"]:
            yield named["name"].replace('""', '"')
        elif named["tick"]:
            yield named["tick"].replace("``", "`")
        elif named["text"]:
            yield named["text"].replace("''", "'")
        else:
            yield named["word"].lower() if folds else named["word"]
        if text[named.end() : named.end() + 1] != ",":
            return
        at = named.end() + 1


def create(session: Session, path: str, chosen: Chosen) -> None:
    """Creates the missing roles on a server that ironbench has started. A session that sets such a role has all
    privileges, because the restored data contain no privileges."""
    captures = engines.capturing(file.facts(path).protocol)
    for name in _missing(session, captures, chosen):
        if not re.fullmatch(captures.reserved_roles, name):
            quote = captures.quote
            for statement in captures.create_role:
                session.query(statement.format(quote + name.replace(quote, 2 * quote) + quote))


def require(session: Session, path: str, chosen: Chosen) -> None:
    """Raises InputError if a role is missing on an existing server, or if the user may not change to the role."""
    missing = _missing(session, engines.capturing(file.facts(path).protocol), chosen)
    if not missing:
        return
    cause = "statements set a role that does not exist on the server, or that the user may not set"
    hint = "create the role" if len(missing) == 1 else "create the roles"
    if not any(use.calls for use in missing.values()):
        without = written("workload.with", "except='statement:set *role*'")
        hint += f", or leave out these transactions: {without}"
    raise InputError(path, f"{cause}: {some([_with_share(name, use, chosen) for name, use in missing.items()])}", hint)


def _with_share(name: str, use: RoleUse, chosen: Chosen) -> str:
    of_all = counted(chosen.statements, "statement")
    return f"{name} ({grouped(use.statements)} of {of_all}, {in_percent(use.statements / chosen.statements)})"


def _missing(session: Session, captures: CaptureTraits, chosen: Chosen) -> dict[str, RoleUse]:
    """Returns the roles to which the user of the session cannot change."""
    if not chosen.roles or not captures.usable_roles:
        return {}
    usable = {name for (name,) in session.query(captures.usable_roles)}
    return {name: use for name, use in chosen.roles.items() if name not in usable}
