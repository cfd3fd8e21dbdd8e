"""Evaluates searches and compares. A search that finds no entry does less work, so its speed must not count as a
result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ironbench.model.driven import Driven
from ironbench.model.note import Note, note
from ironbench.model.record import Check
from ironbench.workloads.base import checked

_OWN_CODES = frozenset({"script", "connection"})
"""Classes of errors that are not LDAP result codes."""
_EMPTY = "searches that return no entry"
_MOST = "searches (six kinds of filters) that return no entry"
_FALSE = "compares that are false"
_CHOICES = ("filter", "filters", "dn", "template", "ldif")
"""Options with which users determine what searches find."""


def metrics(summary: Mapping[str, Any]) -> dict[str, float]:
    """Returns the metrics of searches and compares: entries per search, fractions of empty searches and of false
    compares, and counts of result codes. The keys are names in the catalogue."""
    figures = _figures(summary)
    values = {}
    if searches := figures.get("searches", 0.0):
        values["directory_entries_per_search"] = figures.get("entries", 0.0) / searches
        values["directory_empty_searches"] = figures.get("empty_searches", 0.0) / searches
    true, false = figures.get("compare_true", 0.0), figures.get("compare_false", 0.0)
    if true + false:
        values["directory_false_compares"] = false / (true + false)
    codes = {
        "success": figures.get("success", 0.0),
        "sizeLimitExceeded": figures.get("size_limited", 0.0),
        "compareTrue": true,
        "compareFalse": false,
    }
    for name, count in summary.get("errors", {}).items():
        if name not in _OWN_CODES:
            codes[name] = codes.get(name, 0.0) + float(count)
    return values | {f"directory_results{{code={name}}}": count for name, count in codes.items() if count}


def checks(options: Mapping[str, str], summary: Mapping[str, Any]) -> tuple[Check, ...]:
    """Checks that searches for generated people find them, and that compares with their numbers are true."""
    if any(options[name] for name in _CHOICES):
        return ()
    figures = _figures(summary)
    found = []
    if searches := int(figures.get("searches", 0)):
        empty = int(figures.get("empty_searches", 0))
        if options["job"] == "multi-search":  # one of the six filters is a rare name
            found.append(checked(_MOST, f"at most {searches // 2}", empty, 2 * empty <= searches))
        else:
            found.append(checked(_EMPTY, 0, empty))
    if figures.get("compare_true") or figures.get("compare_false"):
        found.append(checked(_FALSE, 0, int(figures.get("compare_false", 0))))
    return tuple(found)


def warnings(driven: Driven) -> tuple[Note, ...]:
    """Returns warnings about empty searches and false compares. If the user determined what is searched for, empty
    results may be intended, so there are warnings and no checks."""
    values = metrics(driven.summary)
    checked_names = {check.name for check in driven.checks}
    found = []
    if (empty := values.get("directory_empty_searches", 0.0)) and not checked_names & {_EMPTY, _MOST}:
        found.append(note("searches-empty", share=empty))
    if (false := values.get("directory_false_compares", 0.0)) and _FALSE not in checked_names:
        found.append(note("compares-false", share=false))
    return tuple(found)


def _figures(summary: Mapping[str, Any]) -> dict[str, float]:
    prefix = "directory_"
    counted = summary.get("figures", {})
    return {name.removeprefix(prefix): value for name, value in counted.items() if name.startswith(prefix)}
