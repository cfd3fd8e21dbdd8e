"""Recognises statements of a dump that may fail without affecting any table, row, index or constraint.

The kind of the statement and the SQLSTATE determine whether an error is harmless (PostgreSQL 18 documentation, appendix
A). The message is not used, because it may be in any language. pg_restore does not report the SQLSTATE, so for its
errors only the kind of statement is checked.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

OBSERVING = (
    *("pg_stat_statements", "pg_buffercache", "pgstattuple", "pg_visibility", "pg_freespacemap", "pageinspect"),
    *("pgrowlocks", "pg_walinspect", "pg_prewarm", "amcheck", "pg_stat_kcache", "pg_qualstats", "pg_wait_sampling"),
)
"""Extensions that only observe a server. Tables and functions of an application do not depend on them."""
_HEAD = 2_000
"""Number of characters of a statement from which its kind is determined."""
_MISSING = ("42P01", "42704", "42883", "42703", "3F000")
"""SQLSTATEs for an undefined table, object, function, column or schema."""
_DENIED = "42501"
_OTHERS_DEPEND = "2BP01"


class _Rule(NamedTuple):
    name: str
    """Name of the kind of statement in records and messages."""
    statement: re.Pattern[str]
    codes: tuple[str, ...] | None
    """SQLSTATEs of harmless errors of such statements. If None, all errors are harmless."""
    without_code: bool = True
    """Whether an error of such a statement is harmless if its SQLSTATE is unknown."""


def _rule(name: str, statement: str, codes: tuple[str, ...] | None = None, without_code: bool = True) -> _Rule:
    return _Rule(name, re.compile(statement, re.IGNORECASE | re.DOTALL), codes, without_code)


_PART = r"(?:\"(?:[^\"]|\"\")*\"|[\w$]+)"
NAME = rf"{_PART}(?:\s*\.\s*{_PART})*"
"""Pattern of a name, optionally qualified with a schema. A quote in a quoted name is doubled."""
_RULES = (
    _rule("owner", r"ALTER\s(?:[^;\"]|\"[^\"]*\"){0,1000}?\bOWNER\s+TO\b"),
    _rule("grant", r"(?:GRANT|REVOKE|ALTER\s+DEFAULT\s+PRIVILEGES)\b"),
    _rule("comment", r"COMMENT\s+ON\b"),
    _rule("security label", r"SECURITY\s+LABEL\b"),
    _rule("role", r"(?:SET|RESET)\s+(?:(?:SESSION|LOCAL)\s+)?(?:SESSION\s+AUTHORIZATION|ROLE)\b"),
    # A failed SET of these settings would affect later statements.
    _rule(
        "setting",
        r"SET\s+(?:(?:SESSION|LOCAL)\s+)?(?!search_path\b|client_encoding\b|names\b|standard_conforming|schema\b)\w",
        ("42704", "22023", _DENIED, "55P02"),
    ),
    _rule("schema", r"CREATE\s+SCHEMA\s+(?:IF\s+NOT\s+EXISTS\s+)?\"?public\"?\s*(?:AUTHORIZATION\b|;|\Z)", None),
    _rule("schema", r"CREATE\s+SCHEMA\b", ("42P06",), False),
    _rule("policy", r"(?:CREATE|ALTER)\s+POLICY\b", ("42704",)),
    _rule("language", r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:TRUSTED\s+)?(?:PROCEDURAL\s+)?LANGUAGE\s+\"?plpgsql\b"),
    _rule("extension", rf"CREATE\s+EXTENSION\s+(?:IF\s+NOT\s+EXISTS\s+)?\"?(?:{'|'.join(OBSERVING)})\b"),
    _rule("extension", r"CREATE\s+EXTENSION\b", ("42710",), False),
    _rule("publication", r"(?:CREATE|ALTER|DROP)\s+(?:PUBLICATION|SUBSCRIPTION)\b"),
    _rule("event trigger", r"(?:CREATE|ALTER)\s+EVENT\s+TRIGGER\b", (_DENIED,)),
)
_DROPS = (
    _rule("drop", r"DROP\b", (*_MISSING, _OTHERS_DEPEND, _DENIED)),
    _rule("drop", rf"ALTER\s+[\w ]+?\s{NAME}\s+(?:ALTER\s+(?:COLUMN\s+)?{NAME}\s+)?(?:DROP|DETACH)\b", _MISSING),
)
_MADE = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:(?:GLOBAL|LOCAL|TEMP|TEMPORARY|UNLOGGED|FOREIGN|UNIQUE|MATERIALIZED|RECURSIVE|CONSTRAINT"
    r"|CONCURRENTLY|EVENT)\s+)*(?:TABLE|VIEW|INDEX|SEQUENCE|SCHEMA|FUNCTION|PROCEDURE|TYPE|DOMAIN|TRIGGER|AGGREGATE|RULE"
    rf"|EXTENSION|POLICY)\s+(?:CONCURRENTLY\s+)?(?:IF\s+NOT\s+EXISTS\s+)?({NAME})",
    re.IGNORECASE,
)


def harmless(statement: str, code: str, made_later: Collection[str] | None = None) -> str:
    """Returns the kind of a failed statement if its failure is harmless. Returns "" if it is not.

    `code`: SQLSTATE, or "" if unknown. `made_later`: names of the objects that the file creates, for a file that the
    user wrote. In such a file, a DROP may only fail for these objects. With None, the file is a dump, in which any DROP
    may fail (`pg_dump --clean`).
    """
    # White space is collapsed, because backtracking over runs of spaces would take quadratic time.
    statement = " ".join(statement[:_HEAD].split())
    for rule in (*_RULES, *_DROPS):
        if not rule.statement.match(statement):
            continue
        fits = rule.codes is None or code in rule.codes if code else rule.without_code
        if not fits:
            continue
        if rule in _DROPS and made_later is not None and not _remade(statement, made_later):
            continue
        return rule.name
    return ""


def made(statement: str) -> str:
    """Returns the name of the object that a statement creates, without schema and quotes. Returns "" if the statement
    creates none."""
    found = _MADE.match(statement)
    return _last(found[1]) if found else ""


def _remade(statement: str, made_later: Collection[str]) -> bool:
    names = {_last(name) for name in re.findall(NAME, statement[:1000])}
    return bool(names & set(made_later))


def _last(name: str) -> str:
    part = re.split(r"\.(?=[^\"]*(?:\"[^\"]*\"[^\"]*)*$)", name)[-1].strip()
    return part[1:-1].replace('""', '"') if part.startswith('"') else part.lower()
