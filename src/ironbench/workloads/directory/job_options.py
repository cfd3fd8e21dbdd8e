"""Determines which options a job uses, and whether it can work on the chosen entries."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from ironbench.catalogue.typed import text_of
from ironbench.errors import InputError, written
from ironbench.words import listed

_PEOPLE = ("id", "id2", "share")
_SEARCH = (*_PEOPLE, "scope", "dn", "filter", "filters", "attributes", "limit")
_MODIFY = (*_PEOPLE, "dn", "attribute", "values", "length")
_USES: Mapping[str, tuple[str, ...]] = {
    "search": _SEARCH,
    "multi-search": tuple(name for name in _SEARCH if name != "filter"),
    "modify": _MODIFY,
    "bind": (*_PEOPLE, "dn"),
    "auth": (*_PEOPLE, "dn", "filter"),
    "login": (*_PEOPLE, "dn", "filter"),
    "compare": _PEOPLE,
    "add-delete": (),
    "modify-dn": (),
    "prime": (),
}
_ALWAYS = ("job", "entries", "template", "ldif", "reconnect")
_LARGEST = 1 << 20


def used(options: Mapping[str, str], weighed: Collection[str]) -> frozenset[str]:
    """Returns the names of the options that the job uses. `weighed`: if the job is a mix, its operations with a weight
    above 0."""
    job = options["job"]
    if job == "mixed":
        each = [_USES.get(name, ()) for name in weighed]
        return frozenset({*_ALWAYS, "weights", *(name for names in each for name in names)} - {"filters"})
    return frozenset({*_ALWAYS, *_USES[job]})


def validate(options: Mapping[str, str], defaults: Mapping[str, str], weights: Mapping[str, int]) -> None:
    """Raises InputError if the job does not use a given option, or if it cannot work on the chosen entries."""
    job = options["job"]
    weighed = [name for name, weight in weights.items() if weight]
    meant = used(options, weighed)
    for name, value in options.items():
        if name not in meant and value != defaults[name]:
            users = [other for other, names in _USES.items() if name in names] or ["mixed"]
            cause = f"has no effect with the job `{job}`"
            hint = f"remove it; jobs that use it: {listed(users)}"
            raise InputError(written("workload.with", f"{name}={value}"), cause, hint)
    if options["id2"] and options["share"] == "100":
        cause = "chooses a second population, which gets no transactions with `share=100`"
        raise InputError(written("workload.with", f"id2={options['id2']}"), cause, "use `share=80`, or remove it")
    if options["ldif"] and options["template"]:
        cause = "describes generated people, but the entries come from the LDIF file"
        raise InputError(written("workload.with", f"template={options['template']}"), cause, "remove one of the two")
    works = weighed if job == "mixed" else [job]
    if options["ldif"]:
        for work in works:
            _require_chosen(options, work)
    elif options["template"]:
        _require_people(options, works)


def _require_chosen(options: Mapping[str, str], work: str) -> None:
    """Raises InputError if the options do not say which entries to use. This is needed for an LDIF file, because by
    default jobs use the generated people, which it does not contain."""
    mixed = options["job"] == "mixed"
    by_name = bool(options["dn"]) and not mixed
    ways: Mapping[str, tuple[str, bool]] = {
        "search": (
            "filter=(cn={id})" if mixed else "filter=(cn={id}), filters=FILE, or scope=base and dn=cn={id},",
            bool(options["filter"] or options["filters"] or (options["scope"] == "base" and by_name)),
        ),
        "multi-search": ("filters=FILE", bool(options["filters"])),
        "auth": ("filter=(cn={id})", bool(options["filter"])),
        "login": ("filter=(cn={id})", bool(options["filter"])),
        "modify": ("job=modify and dn=cn={id},", by_name),
        "bind": ("job=bind and dn=cn={id},", by_name),
        "add-delete": ("", True),
        "add": ("", True),
        "delete": ("", True),
    }
    own = mixed and work == "modify-dn"  # in a mix, a client renames only entries that it has added itself
    way, chosen = ways.get(work, ("", own))
    if not chosen:
        hint = (
            f"select your entries: {way}"
            if way
            else "use the job `search`, `auth` or `modify`, which can use entries of an LDIF file"
        )
        what = f"a mix with {work}" if mixed else f"the job `{work}`"
        cause = f"{what} needs the people that ironbench generates, but the entries come from the LDIF file"
        raise InputError(written("workload.with", f"job={options['job']}"), cause, hint)


def _require_people(options: Mapping[str, str], works: Collection[str]) -> None:
    """Raises InputError if the user's template lacks attributes that the jobs need."""
    path = options["template"]
    text = text_of(Path(path), path, "give the path of a text file that contains a template", _LARGEST)
    chosen = bool(options["filter"] or options["filters"])
    needs = {
        "uid: user.<number>": {*works} - {"add-delete", "add", "delete"} if not (chosen or options["dn"]) else set(),
        "employeeNumber: <number>": {*works} & {"compare"},
        "userPassword: <password>": {*works} & {"bind", "auth", "login"},
    }
    for line, jobs in needs.items():
        name, _, wanted = line.partition(": ")
        exact = re.escape(wanted) if name == "uid" else "."
        if jobs and not re.search(rf"(?im)^(<[^>]*>)?{name}:\s*{exact}", text):
            cause = f"lacks {line if name == 'uid' else name}, which job {sorted(jobs)[0]} needs"
            raise InputError(path, cause, f"add the line {line}")
