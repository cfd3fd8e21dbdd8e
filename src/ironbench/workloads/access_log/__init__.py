"""The `access-log` workload: replays operations of a directory access log. Guide: docs/databases/directory.md."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ironbench.errors import InputError, written
from ironbench.model.record import Check
from ironbench.model.session import DirectorySession as DirectorySession
from ironbench.model.session import Session
from ironbench.model.system import Choice, Load, System
from ironbench.words import counted, listed
from ironbench.workloads.access_log import reading
from ironbench.workloads.access_log.reading import LoggedOperation
from ironbench.workloads.base import Dataset, Option, Workload, checked
from ironbench.workloads.directory import counts, entries, entry_password

_UNSAFE = re.compile(r"[^A-Za-z0-9 ,=+._@()&|!<>~*/\\-]+")
_LETTERS = "[a-z]{20}"
"""Pattern of random text. The pattern replaces attribute values, which access logs do not contain."""
_MANY = 10_000_000
"""Assumed number of entries of a directory, for the time limit of a search that counts them."""


@dataclass(frozen=True, slots=True)
class _Replay:
    """The part of a log that is replayed."""

    operations: tuple[str, ...]
    clients: tuple[tuple[tuple[int, int, bool], ...], ...]
    """Operations of each client, in the form that crates/ironbench-core/src/drive/ldap/replay.rs expects."""
    left_out: Mapping[str, int]
    length_s: float

    @property
    def driven(self) -> int:
        return sum(map(len, self.clients))


class AccessLog(Workload):
    name = "access-log"
    doc = (
        "Replays an LDAP access log: runs the logged operations at the logged times, on the "
        "logged number of connections."
    )
    needs = ("directory",)
    warning_code = "log-left-out"
    own_length = True
    scores = ()
    usual_warmup_s = 0.0
    options = (
        Option("log", "", "log file of OpenLDAP (log level stats) or of 389 Directory Server", path="file"),
        Option("digest", "", "checksum of the log's contents; ironbench sets this option"),
        Option(
            "speed",
            "1",
            "replay speed relative to the log, e.g. 2 for twice the speed",
            lowest=0.001,
            highest=1000,
            whole=False,
        ),
        Option(
            "suffix",
            "",
            "base DN of the directory that wrote the log; the replay replaces it with the base DN of "
            "the directory under test; empty: both directories have the same base DN",
        ),
        Option(
            "binds",
            "skip",
            "what to do with bind operations; skip: skip them; password: replay them with the "
            "password in LDAP_ENTRY_PASSWORD",
            choices=("skip", "password"),
        ),
        Option(
            "changes",
            "skip",
            "what to do with logged changes, whose values the log does not contain; skip: skip them; "
            "made-up: replay them with generated values",
            choices=("skip", "made-up"),
        ),
        Option(
            "entries",
            "100000",
            "number of people that ironbench loads into the directory",
            lowest=1,
            highest=100_000_000,
        ),
        Option("template", "", "template file for the entries; empty: the built-in template for people", path="file"),
        Option(
            "ldif",
            "",
            "LDIF file with your entries below the base DN; empty: ironbench generates entries for people",
            path="file",
        ),
        Option(
            "loaded",
            "yes",
            "yes: load entries into the directory; no: use the existing entries of the directory of --dsn",
            choices=("yes", "no"),
        ),
    )

    def validated(self, options: Mapping[str, str]) -> dict[str, str]:
        valid = super().validated(options)
        usual = {option.name: option.default for option in self.options}
        unused: tuple[str, ...] = ("entries", "template") if valid["ldif"] else ()
        why = "ldif, which sets the entries"
        if valid["loaded"] == "no":
            unused, why = ("entries", "template", "ldif"), "loaded=no, which loads no entries"
        for name in unused:
            if valid[name] != usual[name]:
                subject = written("workload.with", f"{name}={valid[name]}")
                raise InputError(subject, f"has no effect with {why}", "remove one of the two")
        if valid["log"]:
            _replay(valid)
        return valid

    def identified(self, choice: Choice, engine: str) -> Choice:
        if not choice.options["log"]:
            return choice
        return replace(choice, options={**choice.options, "digest": reading.digest(choice.options["log"])})

    def core_work(self, engine: str, options: Mapping[str, str]) -> Mapping[str, Any]:
        if not options["log"]:
            return {"kind": "replay", "operations": (), "clients": ()}
        if options["digest"] and reading.digest(options["log"]) != options["digest"]:
            raise InputError(
                options["log"],
                "was changed since these trials were planned",
                "restore the file, or start a new run or lab",
            )
        made = _replay(options)
        password = _escaped(entry_password())
        operations = [text.replace("\n", password) for text in made.operations]
        return {"kind": "replay", "operations": operations, "clients": made.clients}

    def binds_back(self, options: Mapping[str, str]) -> bool:
        """Returns whether clients bind again as the user of the DSN before each change. If binds are replayed, clients
        are bound as other users, who may not change a directory that ironbench started."""
        return options["binds"] == "password" and options["changes"] != "skip"

    def is_paced(self, options: Mapping[str, str]) -> bool:
        return True

    def leading(self, options: Mapping[str, str]) -> tuple[str, ...]:
        return "response_time_p99_s", "response_time_mean_s"

    def usual_duration_s(self, options: Mapping[str, str]) -> float | None:
        """Returns the length of the log, plus a short time for the last operation."""
        if not options["log"]:
            return super().usual_duration_s(options)
        return math.ceil(_replay(options).length_s * 10 + 1) / 10

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        if not choice.options["log"]:
            raise InputError("access-log", "log file is missing", f"add {written('workload.with', 'log=FILE')}")
        refused = {
            written("load.rate"): load.rate is not None or load.rate_share is not None,
            written("load.transactions"): load.transactions is not None,
            written("load.think_time"): load.think_time_s > 0,
        }
        for option, given in refused.items():
            if given:
                cause = "has no effect, because the log determines the start time of each operation"
                raise InputError(
                    option, cause, f"remove it; {written('workload.with', 'speed=2')} replays twice as fast"
                )
        if load.warmup_s > 0 or load.warmup_auto:
            cause = "would exclude the beginning of the log from the measurement"
            raise InputError(written("load.warmup", "auto" if load.warmup_auto else ""), cause, "remove it")
        need = len(_replay(choice.options).clients)
        if load.clients < need:
            cause = f"up to {counted(need, 'connection')} of the log were open at the same time"
            raise InputError(written("load.clients", load.clients), cause, f"use {written('load.clients', need)}")
        if system.dsn is not None and choice.options["changes"] != "skip":
            cause = "the generated values would overwrite values in your directory"
            raise InputError(written("workload.with", "changes=made-up"), cause, f"remove {written('system.dsn')}")
        if system.dsn is None and choice.options["loaded"] == "no":
            cause = "a directory server started by ironbench is empty"
            raise InputError(
                written("workload.with", "loaded=no"),
                cause,
                f"connect to your directory server with {written('system.dsn')}",
            )

    def warnings(self, engine: str, choice: Choice, protocol: str) -> list[str]:
        made = _replay(choice.options) if choice.options["log"] else None
        if made is None or not made.left_out:
            return []
        why = listed([f"{name} ({count})" for name, count in sorted(made.left_out.items())])
        whole = made.driven + sum(made.left_out.values())
        return [f"{made.driven} of {counted(whole, 'operation')} of the log are replayed; left out: {why}"]

    def writes(self, options: Mapping[str, str]) -> bool:
        return options["changes"] != "skip"

    def counts_after_cut(self, options: Mapping[str, str]) -> bool:
        return False  # after a power cut, the server's counters start at zero

    def dataset(self, engine: str, options: Mapping[str, str]) -> Dataset | None:
        return entries.dataset(options) if options["loaded"] == "yes" else None

    def before(self, session: Session, options: Mapping[str, str]) -> Any:
        assert isinstance(session, DirectorySession)
        return counts.entries(session, ",", _MANY), counts.writes(session)

    def check(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> tuple[Check, ...]:
        """Checks that only the clients' changes reached the directory."""
        assert isinstance(session, DirectorySession)
        there, changed = before
        if self.writes(options):
            return counts.changes(session, changed, counts.writes_after(session, changed, summary), summary)
        now = counts.entries(session, ",", _MANY)
        return () if now is None else (checked("entries", there, now),)


def _replay(options: Mapping[str, str]) -> _Replay:
    names = ("log", "speed", "suffix", "binds", "changes")
    log = reading.read(options["log"])
    return _made(log.stamp, *(options[name] for name in names))


@lru_cache(maxsize=2)
def _made(stamp: tuple[int, int], path: str, speed: str, suffix: str, binds: str, changes: str) -> _Replay:
    """Builds the replay. `stamp` identifies the contents of the file. Raises InputError if no operation of the log
    remains."""
    from ironbench import _core

    log = reading.read(path)
    left_out: Counter[str] = Counter(log.others)
    texts: dict[str, int] = {}
    new: set[int] = set()
    lasting: list[tuple[int, float, int, bool]] = []
    for client, one, first in reading.by_client(log):
        new |= {client} if first else set()
        text, why = _text(one, suffix, binds, changes)
        if why:
            left_out[why] += 1
            continue
        number = texts.setdefault(text, len(texts))
        lasting.append((client, one.at_s, number, client in new))
        new.discard(client)
    wrong = {number for number, cause in enumerate(_core.operation_complaints(list(texts))) if cause}
    kept = [one for one in lasting if one[2] not in wrong]
    if wrong:
        left_out[reading.UNREADABLE] += len(lasting) - len(kept)
    if not kept:
        why = listed([f"{name} ({count})" for name, count in sorted(left_out.items())])
        raise InputError(
            path, f"no operation of the log can be replayed; left out: {why}", "see `ironbench show access-log`"
        )
    began_s, factor = log.operations[0].at_s, float(speed)
    clients: list[list[tuple[int, int, bool]]] = [[] for _ in range(1 + max(one[0] for one in kept))]
    for client, at_s, number, first in kept:
        clients[client].append((round((at_s - began_s) / factor * 1e9), number, first and bool(clients[client])))
    return _Replay(tuple(texts), tuple(map(tuple, clients)), dict(left_out), log.length_s / factor)


def _text(one: LoggedOperation, suffix: str, binds: str, changes: str) -> tuple[str, str]:
    """Converts the operation to the syntax of scripts. In place of the password is a newline. Returns ("", reason) if
    the operation is not replayed, and otherwise (text, "")."""
    if not one.succeeded:
        return "", "operations without a result in the log" if one.code is None else "operations that failed originally"
    dn = _name(one.dn, suffix)
    if one.verb == "search":
        attributes = ",".join(map(_escaped, one.attributes))
        return f"search {dn}?{attributes}?{one.scope}?{_escaped(one.filter)}", ""
    if one.verb == "compare":
        return f"compare {dn}?{_escaped(one.attributes[0])}=ironbench", ""
    if one.verb == "bind":
        if binds == "skip" or not one.simple:
            return "", "binds"
        return (f"bind {dn}?\n" if dn else "bind ?"), ""
    if changes == "skip":
        return "", "changes"
    return _change(one, dn, suffix)


def _change(one: LoggedOperation, dn: str, suffix: str) -> tuple[str, str]:
    if one.verb == "delete":
        return f"delete {dn}", ""
    if one.verb == "rename":
        parent = f"?{_name(one.parent, suffix)}" if one.parent else ""
        return (
            (f"rename {dn}?{_escaped(one.new_rdn)}{parent}", "")
            if one.new_rdn
            else ("", "renames with an unknown new name")
        )
    if one.verb == "modify":
        values = "?".join(f"replace {_escaped(name)}={_LETTERS}" for name in dict.fromkeys(one.attributes))
        return (f"modify {dn}?{values}", "") if values else ("", "changes with unknown attributes")
    rdn = one.dn.partition(",")[0]
    if "\\" in rdn or "+" in rdn:
        return "", "add operations whose RDN is escaped or multi-valued"
    name, _, value = rdn.partition("=")
    own = f"{_escaped(name)}={_escaped(value)}"
    common = "" if name.lower() == "cn" else f"?cn={_LETTERS}"
    return f"add {dn}?objectClass=device?objectClass=extensibleObject?{own}{common}", ""


def _name(dn: str, suffix: str) -> str:
    """Removes the suffix of a DN. The result ends with a comma, to which the core appends the base DN."""
    if suffix and dn.lower() == suffix.lower():
        return ","
    if suffix and dn.lower().endswith(f",{suffix.lower()}"):
        return _escaped(dn[: -len(suffix)])
    return _escaped(dn)


def _escaped(text: str) -> str:
    """Escapes the text as a part of an operation."""
    return _UNSAFE.sub(lambda found: f"%{found[0].encode('utf-8', 'surrogateescape').hex('%').upper()}", text)


WORKLOAD = AccessLog()
