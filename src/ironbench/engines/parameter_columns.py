"""Finds out with which column of a table a statement compares each of its parameters, or in which column it stores
them. The text is not parsed completely, so the columns of some parameters are not found."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_PARAMETER = re.compile(r"\$(\d+)")
_NAME = r'(?:"[^"]+"|`[^`]+`|[a-zA-Z_][\w$]*)'
_TABLES = re.compile(
    rf"\b(?:from|join|update|into|using)\s+(?:only\s+)?({_NAME}(?:\.{_NAME})?)(?:\s+(?:as\s+)?({_NAME}))?|"
    rf",\s*({_NAME}(?:\.{_NAME})?)\s+(?:as\s+)?({_NAME})(?=\s*(?:,|where\b|$))",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    rf"({_NAME}(?:\.{_NAME})*)\s*(?:"
    r"(?:=|<>|!=|<=>|<=|>=|<|>|(?:not\s+)?i?like|=\s*any\s*\()\s*(\$\d+)|"
    r"(?:not\s+)?between\s+(\$\d+)(?:\s+and\s+(\$\d+))?|"
    r"(?:not\s+)?in\s*\(([$\d,\s]+))",
    re.IGNORECASE,
)
_INSERTED = re.compile(
    rf"\binto\s+({_NAME}(?:\.{_NAME})?)\s*(?:\(([^)]*)\)\s*)?values\s*((?:\((?:[^()]|\([^()]*\))*\)\s*,?\s*)+)",
    re.IGNORECASE | re.DOTALL,
)
_ROW = re.compile(r"\(((?:[^()]|\([^()]*\))*)\)")
_COMMA = re.compile(r",(?![^(]*\))")
_WORDS = frozenset(
    ("set", "where", "on", "values", "select", "order", "group", "limit", "returning", "inner", "left", "join")
)


def columns_of_parameters(
    text: str, columns_of: Callable[[str], Sequence[str]], exists: Callable[[str, str], bool]
) -> dict[int, tuple[str, str]]:
    """Returns a table and a column for the number of each parameter. Parameters are written as `$1`, `$2` and so on.

    Tables and columns have the names that they have in the text, with quotes. `columns_of` returns the columns of a
    table in their order. `exists` returns whether a table has a column.
    """
    tables: dict[str, str] = {}
    for table, alias, more, of_more in _TABLES.findall(text):
        name, other = table or more, alias or of_more
        tables[_plain(name.rpartition(".")[2])] = name
        if other and other.lower() not in _WORDS:
            tables[_plain(other)] = name
    found: dict[int, tuple[str, str]] = {}
    for table, names, rows in _INSERTED.findall(text):
        columns = names.split(",") if names else columns_of(table)
        for row in _ROW.findall(rows):
            for name, place in zip(columns, _COMMA.split(row), strict=False):
                if parameter := _PARAMETER.fullmatch(place.strip()):
                    found[int(parameter[1])] = (table, name.strip())
    compared = [
        (column, int(number))
        for column, *places in _COMPARED.findall(text)
        for number in _PARAMETER.findall(" ".join(places))
    ]
    for column, number in compared:
        owner, _, name = column.rpartition(".")
        owner = _plain(owner.rpartition(".")[2])
        owners = [tables[owner]] if owner in tables else [] if owner else dict.fromkeys(tables.values())
        for table in owners:
            if exists(table, name):
                found.setdefault(number, (table, name))
                break
    return found


def inserted_parameters(text: str) -> frozenset[int]:
    """Returns the numbers of the parameters that become values of new rows."""
    return frozenset(int(one) for _, _, values in _INSERTED.findall(text) for one in _PARAMETER.findall(values))


def _plain(name: str) -> str:
    """Returns a name as the key of a table, so that a quoted name and the same name without quotes are equal."""
    return name.strip('"`').lower()
