"""Shifts times in statements back to the time of the capture: `now()` becomes `(now() - interval '86400 s')`.

Restored data are as old as the capture. A condition such as `at > now() - interval '1 hour'` would find no rows in
them."""

from __future__ import annotations

import re
import time
from functools import lru_cache

import duckdb

FUNCTION = "shifted"
CONDITION = (
    "regexp_matches(template, '\\b(now|clock_timestamp|statement_timestamp|transaction_timestamp)\\s*\\(|"
    "\\bcurrent_(timestamp|date)\\b|\\blocaltimestamp\\b')"
)
"""SQL condition that is true for statements which may contain times to shift. The function is called only for these."""
_TOKENS = re.compile(
    r"""
    '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | (?P<dollar>\$\w*\$).*?(?P=dollar)
    | (?<![\w.$"])(?P<call>(?:now|clock_timestamp|statement_timestamp|transaction_timestamp)\s*\(\s*\))
    | (?<![\w.$"])(?P<name>current_timestamp|localtimestamp)\b(?P<digits>\s*\(\s*\d\s*\))?
    | (?<![\w.$"])(?P<date>current_date)\b
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)


@lru_cache(maxsize=8)
def seconds(began_us: int) -> float:
    """Returns by how many seconds times are shifted back. All trials of a process use the same value, so that they send
    the same statements."""
    return round(time.time() - began_us / 1e6)


def register(opened: duckdb.DuckDBPyConnection, seconds: float) -> None:
    """Makes the function `shifted` available in SQL."""
    opened.create_function(FUNCTION, lambda text: shifted(text, seconds), ["VARCHAR"], "VARCHAR")


def shifted(text: str, seconds: float) -> str:
    """Returns a statement with times shifted back. Strings, names and comments are unchanged."""
    back = f"interval '{seconds:.0f} s'"

    def replaced(found: re.Match[str]) -> str:
        if found["call"] or found["name"]:
            return f"({found[0]} - {back})"
        return f"(localtimestamp - {back})::date" if found["date"] else found[0]

    return _TOKENS.sub(replaced, text)
