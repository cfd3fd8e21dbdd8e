"""The scripts of the jobs; their commands are LDAP operations (docs/databases/directory.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ironbench.catalogue.typed import text_of
from ironbench.errors import InputError, nearest, written
from ironbench.workloads.base import ScriptSource
from ironbench.workloads.directory.entries import TOP, WORK

JOBS = (
    *("search", "modify", "bind", "auth", "compare", "add-delete", "modify-dn", "mixed", "multi-search", "login"),
    "prime",
)
MIXED = ("search", "modify", "bind", "compare", "add", "delete", "modify-dn")
WEIGHTS = "search=70,modify=10,bind=10,compare=6,add=2,delete=1,modify-dn=1"
MOVED = "moved."
"""Prefix of a person's uid while the person is renamed. A client renames a person and then renames the person back."""
STRIDE = 10_000
"""Maximum number of clients for the job modify-dn, in which no two clients rename the same person."""
_PATTERN = re.compile(r"\[(\d+)([-:])(\d+)\]")
_WEIGHT = re.compile(r"[0-9]{1,9}")
_PERSON = f"uid=user.:id,{TOP}"
_OWN = f"uid=ironbench.:client_id.:{{number}},{WORK}"
_CUTS = re.compile(r"[%?;:'\"\\$\n]|--|/\*")
"""Characters with a special meaning in the script language or in an operation."""
_NEW = (
    f"add {_OWN}?objectClass=top?objectClass=person?objectClass=organizationalPerson?objectClass=inetOrgPerson"
    "?sn=Ironbench?cn=Ironbench :{number}?uid=ironbench.:client_id.:{number}?description=[a-z]{{80}};"
)
_LOGIN = ("cn,mail", "telephoneNumber,mobile", "employeeNumber", "street,l,st", "description", "initials,sn", "mail")
"""Attributes that the job `login` requests. The job finds a person, sends a search for each of these texts, and then
binds as the person."""


def scripts(options: Mapping[str, str]) -> list[ScriptSource]:
    job = options["job"]
    if job == "mixed":
        texts = _mixed(options)
        return [ScriptSource(name, texts[name], weight) for name, weight in weights(options).items() if weight]
    if options["filters"] and job in ("search", "multi-search"):
        return list(_from_file(options))
    if job == "multi-search":
        return list(_searches(options))
    return [ScriptSource(job, _TEXTS[job](options))]


def weights(options: Mapping[str, str]) -> dict[str, int]:
    """Returns the weight of each operation of `mixed`. Raises InputError."""
    found = dict.fromkeys(MIXED, 0)
    for pair in options["weights"].split(","):
        name, _, weight = pair.partition("=")
        subject = written("workload.with", f"weights={options['weights']}")
        if name not in found:
            raise InputError(subject, f"{name!r} is not an operation of the job `mixed`", nearest(name, list(MIXED)))
        if not _WEIGHT.fullmatch(weight) or int(weight) > 1000:
            raise InputError(subject, f"{pair!r} has no weight from 0 to 1000", "for example search=70")
        found[name] = int(weight)
    if not any(found.values()):
        raise InputError(
            written("workload.with", f"weights={options['weights']}"), "all weights are 0", "set at least one weight"
        )
    return found


def _chosen(options: Mapping[str, str]) -> str:
    """Returns script lines that set `:id` to the number of a person. The number is from the range `id` or `id2`, and
    `share` is the percentage of the first."""
    first = _id_in_range(options, "id")
    if int(options["share"]) == 100:
        return first
    second = _id_in_range(options, "id2")
    return f"\\set who random(1, 100)\n\\if :who <= {options['share']}\n{first}\\else\n{second}\\endif\n"


def _id_in_range(options: Mapping[str, str], option: str) -> str:
    """Returns script lines that set `:id` to a number in the range that an option contains. Raises InputError if the
    option is not a range, or if the range exceeds the number of people. Searches for people who do not exist would be
    faster.
    """
    entries = int(options["entries"])
    pattern = options[option] or f"[1-{entries}]"
    subject = written("workload.with", f"{option}={pattern}")
    found = _PATTERN.fullmatch(pattern)
    if found is None or int(found[1]) > int(found[3]):
        hint = "write [1-10000] for random numbers, [1:10000] for consecutive numbers"
        raise InputError(subject, "is not a range of numbers", hint)
    if not (_chooses_itself(options) or 1 <= int(found[1]) <= int(found[3]) <= entries):
        cause = f"exceeds the numbers of the people, 1 to {entries}"
        raise InputError(subject, cause, f"use a smaller range, or increase {written('workload.with', 'entries=N')}")
    return _set("id", int(found[1]), int(found[3]), found[2] == ":")


def _chooses_itself(options: Mapping[str, str]) -> bool:
    """Returns whether `{id}` is not the number of a generated person, because the user's own entries or filters are
    used."""
    searches = options["job"] in ("search", "multi-search", "mixed", "auth", "login")
    return bool(options["ldif"] or (searches and (options["filter"] or options["filters"])))


def _set(variable: str, least: int, most: int, in_turn: bool) -> str:
    if not in_turn:
        return f"\\set {variable} random({least}, {most})\n"
    count = most - least + 1
    # Clients start at distant numbers, so that together they soon use the whole range.
    apart = max(1, round(count * 0.6180339887))
    return f"\\set turn :turn + 1\n\\set {variable} {least} + mod(:client_id * {apart} + :turn - 1, {count})\n"


def plain(text: str) -> str:
    """Escapes a user's text as a part of an operation."""
    return _CUTS.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), text)


def binds_back(options: Mapping[str, str]) -> bool:
    """Returns whether clients must bind again as the user of the DSN. This is the case if they bind as people but also
    run other operations, for which they must be the user of the DSN."""
    if options["job"] == "mixed":
        weighed = {name for name, weight in weights(options).items() if weight}
        return "bind" in weighed and len(weighed) > 1
    return options["job"] in ("auth", "login")


def _patterned(text: str) -> tuple[str, str]:
    """Replaces number ranges and `{id}` in a text with script variables. Returns the script lines that set the
    variables, and the changed text."""
    sets, out, at = "", "", 0
    for number, found in enumerate(_PATTERN.finditer(text), 1):
        if re.match(r"\w", text[found.end() :]):
            cause = f"{found[0]} is followed by a letter or digit"
            raise InputError(f"filter {text}", cause, "put a character that is not a letter or digit after it")
        if int(found[1]) > int(found[3]):
            raise InputError(f"filter {text}", f"{found[0]} is not a range of numbers", "write the lower number first")
        sets += _set(f"value{number}", int(found[1]), int(found[3]), found[2] == ":")
        out += plain(text[at : found.start()]) + f":value{number}"
        at = found.end()
    return sets, _numbered(out + plain(text[at:]), f"filter {text}")


def _numbered(text: str, subject: str) -> str:
    if re.search(r"\{id\}\w", text):
        raise InputError(
            subject, "{id} is followed by a letter or digit", "put a character that is not a letter or digit after it"
        )
    return text.replace("{id}", ":id")


def _search(options: Mapping[str, str], text: str = "") -> str:
    """Returns the script of a search. The search uses the user's filter or, without one, looks for one person."""
    attributes, scope, limit = plain(options["attributes"]), options["scope"], options["limit"]
    limits = "" if limit == "0" else f"?sizelimit={limit}"
    text = text or options["filter"]
    if text:
        sets, shown = _patterned(text)
        return f"{_chosen(options)}{sets}search {_base(options)}?{attributes}?{scope}?{shown}{limits};\n"
    if scope == "base":
        return f"{_chosen(options)}search {_entry(options)}?{attributes}?base?{limits};\n"
    return f"{_chosen(options)}search {_base(options)}?{attributes}?{scope}?(uid=user.:id){limits};\n"


def _base(options: Mapping[str, str]) -> str:
    """Returns the DN at which searches start: the option `dn`, if it is given. Otherwise, it is the base DN for entries
    of an LDIF file, and `TOP` for generated people."""
    return _numbered(plain(options["dn"]), f"dn {options['dn']}") or ("," if options["ldif"] else TOP)


def _entry(options: Mapping[str, str]) -> str:
    """Returns the DN of the entry for an operation: the option `dn`, or a person. In a mix, `dn` applies only to
    searches."""
    return _base(options) if options["dn"] and options["job"] != "mixed" else _PERSON


def _from_file(options: Mapping[str, str]) -> Iterator[ScriptSource]:
    """Yields a script for each line `FILTER` or `FILTER@WEIGHT`. Raises InputError."""
    path = options["filters"]
    rows = text_of(
        Path(path), path, "give the path of a text file that contains one filter per line", 1 << 20
    ).splitlines()
    kept = [(line, row.strip()) for line, row in enumerate(rows, 1) if row.strip() and not row.startswith("#")]
    if not kept:
        raise InputError(path, "contains no filter", "write one on each line, such as (uid=user.[1-10000])")
    for number, (line, row) in enumerate(kept, 1):
        text, at, weight = row.rpartition("@")
        counted = bool(at) and text.endswith(")") and bool(_WEIGHT.fullmatch(weight))
        text = text if counted else row
        _require_filter(text, f"{path}:{line}")
        yield ScriptSource(f"search {number}", _search(options, text), int(weight) if counted else 1)


def _require_filter(text: str, subject: str) -> None:
    """Raises InputError if the text is not a valid filter."""
    from ironbench import _core

    once = _PATTERN.sub("1", text).replace("{id}", "1")
    (complaint,) = _core.operation_complaints([f"search ,?1.1?sub?{plain(once)}"])
    if complaint:
        raise InputError(subject, complaint, "write a filter such as (uid=user.[1-10000])")


def _searches(options: Mapping[str, str]) -> Iterator[ScriptSource]:
    six = ("uid=user.{id}", "employeeNumber={id}", "mail=user.{id}@example.com", "&(sn=Linde)(employeeNumber={id})")
    some = ("|(uid=user.{id})(employeeNumber={id})", "&(objectClass=person)(uid=user.{id})")
    for number, text in enumerate((*six, *some), 1):
        yield ScriptSource(f"search {number}", _search(options, f"({text})"))


def _modify(options: Mapping[str, str]) -> str:
    name, length = plain(options["attribute"]), options["length"]
    first, *more = [f"{name}=[a-z]{{{length}}}" for _ in range(int(options["values"]))]
    others = "".join(f"?add {value}" for value in more)
    return f"{_chosen(options)}modify {_entry(options)}?replace {first}{others};\n"


def _bind(options: Mapping[str, str]) -> str:
    return f"{_chosen(options)}bind {_entry(options)}?:password;\n"


def _search_script(options: Mapping[str, str]) -> str:
    sets, wanted = _patterned(options["filter"] or "(uid=user.{id})")
    return f"{_chosen(options)}{sets}search {_base(options)}?1.1?sub?{wanted}\n\\gset\n"


def _auth(options: Mapping[str, str]) -> str:
    return f"{_search_script(options)}bind :dn?:password;\n"


def _compare(options: Mapping[str, str]) -> str:
    return f"{_chosen(options)}compare {_PERSON}?employeeNumber=:id;\n"


def _add_delete(options: Mapping[str, str]) -> str:
    return f"\\set added :added + 1\n{_NEW.format(number='added')}\ndelete {_OWN.format(number='added')};\n"


def _modify_dn(options: Mapping[str, str]) -> str:
    """Returns a script that renames a person and renames the person back. No two clients rename the same person."""
    stride = min(int(options["entries"]), STRIDE)
    whole = int(options["entries"]) // stride
    return (
        f"\\set id random(0, {whole - 1}) * {stride} + mod(:client_id, {stride}) + 1\n"
        f"rename {_PERSON}?uid={MOVED}:id;\nrename uid={MOVED}:id,{TOP}?uid=user.:id;\n"
    )


def _login(options: Mapping[str, str]) -> str:
    asked = "".join(f"search :dn?{attributes}?base;\n" for attributes in _LOGIN)
    return f"{_search_script(options)}{asked}bind :dn?:password;\nmodify :dn?replace description=[a-z]{{80}};\n"


def _prime(options: Mapping[str, str]) -> str:
    return f"{_set('id', 1, int(options['entries']), in_turn=True)}search {TOP}??sub?(uid=user.:id);\n"


def _mixed(options: Mapping[str, str]) -> dict[str, str]:
    """Returns the scripts of the job `mixed`. A client deletes and renames only entries that it has added itself. If
    none is left, it first adds one. The numbers of a client's entries have no gaps: they are `deleted` + 1 to `added`.
    A rename therefore gives the oldest entry the next number. The variables change only after the operation, because it
    may fail.
    """
    first = f"\\set new :added + 1\n{_NEW.format(number='new')}\n\\set added :new\n"
    oldest = f"\\if :added <= :deleted\n{first}\\endif\n\\set old :deleted + 1\n"
    delete = f"{oldest}delete {_OWN.format(number='old')};\n\\set deleted :old\n"
    renamed = f"rename {_OWN.format(number='old')}?uid=ironbench.:client_id.:new;\n"
    rename = f"{oldest}\\set new :added + 1\n{renamed}\\set added :new\n\\set deleted :old\n"
    plain_jobs = {name: _TEXTS[name](options) for name in ("search", "modify", "bind", "compare")}
    return plain_jobs | {"add": first, "delete": delete, "modify-dn": rename}


_TEXTS = {
    "search": _search,
    "modify": _modify,
    "bind": _bind,
    "auth": _auth,
    "compare": _compare,
    "add-delete": _add_delete,
    "modify-dn": _modify_dn,
    "login": _login,
    "prime": _prime,
}
