"""The `directory` workload: jobs on a directory of people. Guide: docs/databases/directory.md."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ironbench.errors import FailureError, InputError, written
from ironbench.model.driven import Driven
from ironbench.model.note import Note
from ironbench.model.record import Check
from ironbench.model.secrets import Secrets
from ironbench.model.session import DirectorySession as DirectorySession
from ironbench.model.session import Session
from ironbench.model.system import Choice, Load, System
from ironbench.workloads.base import Dataset, Option, ScriptSource, Workload, checked
from ironbench.workloads.directory import counts, entries, job_options, jobs, search_results

READING = ("search", "multi-search", "compare", "bind", "auth", "prime")


def entry_password() -> str:
    """Returns the password with which clients bind as entries. If the user set it, all messages mask it."""
    given = Secrets(os.environ.get("LDAP_ENTRY_PASSWORD", ""))
    return given.password or entries.PASSWORD


@dataclass(frozen=True, slots=True)
class DirectoryCounts:
    entries: int | None
    """Number of entries, or None if the server does not allow counting them."""
    writes: int | None
    """Number of changes that the server has completed since it started, or None if the server does not count them."""
    size: int
    """Estimated number of entries. The time limit for counting entries is computed from it."""


class Directory(Workload):
    name = "directory"
    doc = "Searches, modifies, binds, logins, or a mix of these operations on an LDAP directory of people."
    needs = ("directory",)
    options = (
        Option("job", "search", "kind of transaction", choices=jobs.JOBS),
        Option(
            "entries",
            "100000",
            "number of people in the directory; an entry has about 2 KB",
            lowest=1,
            highest=100_000_000,
        ),
        Option(
            "id",
            "",
            "range of people; [1-1000]: chosen at random; [1:1000]: in order; empty: all people, chosen at random",
        ),
        Option("id2", "", "second range of people, for the transactions that do not use `id`; same syntax as `id`"),
        Option(
            "share",
            "100",
            "percentage of transactions that use the people in `id`; the other transactions use the people in `id2`",
            lowest=0,
            highest=100,
        ),
        Option("scope", "sub", "search scope for job=search", choices=("base", "one", "sub")),
        Option(
            "dn",
            "",
            "base DN of searches, or the DN of the entry for modify, bind and scope=base; may contain "
            "{id}; ironbench replaces a comma at the end with the base DN of the directory; empty: the people",
        ),
        Option(
            "filter",
            "",
            "filter for searches, auth and login; may contain {id}, or ranges with the syntax of "
            "`id`; empty: one person by uid",
        ),
        Option(
            "filters",
            "",
            "file with filters for search and multi-search, one FILTER or FILTER@WEIGHT per line",
            path="file",
        ),
        Option("attributes", "", "attributes that a search requests, separated by commas; empty: all; 1.1: none"),
        Option(
            "limit", "0", "maximum number of entries that a search returns; 0: no limit", lowest=0, highest=1_000_000
        ),
        Option("attribute", "description", "attribute that job=modify replaces"),
        Option("values", "1", "number of values that job=modify writes", lowest=1, highest=1000),
        Option(
            "length", "80", "number of random letters in each value that job=modify writes", lowest=1, highest=1_000_000
        ),
        Option("weights", jobs.WEIGHTS, "weights of the operations for job=mixed"),
        Option(
            "reconnect",
            "0",
            "number of requests after which a client opens a new connection; 0: never",
            lowest=0,
            highest=10**9,
        ),
        Option("template", "", "template file for the entries; empty: the built-in template for people", path="file"),
        Option(
            "ldif",
            "",
            "LDIF file with your entries below the base DN; empty: ironbench generates entries for people",
            path="file",
        ),
    )

    def validated(self, options: Mapping[str, str]) -> dict[str, str]:
        valid = super().validated(options)
        job_options.validate(valid, {option.name: option.default for option in self.options}, jobs.weights(valid))
        jobs.scripts(valid)
        return valid

    def telling(self, options: Mapping[str, str]) -> Mapping[str, str]:
        """Returns the options that the job uses and that do not have their default values. Returns all options if the
        job is unknown. Raises InputError if the weights are invalid. `options` may lack some options, because records
        of other versions do.
        """
        usual = {option.name: option.default for option in self.options}
        whole = usual | dict(options)
        if whole["job"] not in jobs.JOBS:
            return options
        meant = job_options.used(whole, [name for name, weight in jobs.weights(whole).items() if weight])
        always = ("job",) if whole["ldif"] else ("entries", "job")
        return {
            name: value
            for name, value in options.items()
            if name in always or (name in meant and value != usual.get(name) and name != "entries")
        }

    def scripts(self, engine: str, choice: Choice) -> list[ScriptSource]:
        return jobs.scripts(choice.options)

    def variables(self, options: Mapping[str, str]) -> dict[str, str]:
        """Returns the script variables. The password is read from the environment, because records must not contain
        it."""
        return {"turn": "0", "added": "0", "deleted": "0", "password": entry_password()}

    def reconnect(self, options: Mapping[str, str]) -> int:
        return int(options["reconnect"])

    def binds_back(self, options: Mapping[str, str]) -> bool:
        return jobs.binds_back(options)

    def writes(self, options: Mapping[str, str]) -> bool:
        return options["job"] not in READING

    def counts_after_cut(self, options: Mapping[str, str]) -> bool:
        return _only_adds(options)

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        most = min(int(choice.options["entries"]), jobs.STRIDE)
        if choice.options["job"] == "modify-dn" and load.clients > most:
            cause = f"each client renames its own entries, but there are only {most}"
            raise InputError(written("load.clients", load.clients), cause, "use fewer clients, or more entries")

    def dataset(self, engine: str, options: Mapping[str, str]) -> Dataset | None:
        return entries.dataset(options)

    def before(self, session: Session, options: Mapping[str, str]) -> DirectoryCounts:
        """Deletes entries that an aborted trial has added, and renames people back that it has renamed. Then counts the
        entries."""
        assert isinstance(session, DirectorySession)
        _clear(session)
        whole, size = _whole(options), _size(options)
        there = counts.entries(session, entries.TOP, size, _IN_PLACE)
        if whole is not None and there != whole:
            # A failure is ignored. The server may not show all entries, and if people are still renamed, the job
            # modify-dn fails.
            with suppress(FailureError):
                _rename_back(session)
                there = counts.entries(session, entries.TOP, size, _IN_PLACE)
        return DirectoryCounts(there if whole is None or there is None else whole, counts.writes(session), size)

    def check(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> tuple[Check, ...]:
        """Checks that no entry was lost, and that the server counted the clients' changes. Removes entries that jobs
        added."""
        assert isinstance(session, DirectorySession)
        size = before.size + int(summary["commits"])
        writes = counts.writes_after(session, before.writes, summary)
        added = _added(session, options, summary, size)
        left = _left(session, options, summary, size)
        _clear(session)
        if options["job"] == "modify-dn":
            _rename_back(session)
        now = counts.entries(session, entries.TOP, size, _IN_PLACE)
        kept = () if now is None else (checked("entries", before.entries, now),)
        return (
            *kept,
            *added,
            *left,
            *search_results.checks(options, summary),
            *self._written(session, options, summary, size),
            *counts.changes(session, before.writes, writes, summary),
        )

    def assessed(self, driven: Driven, seen: Sequence[Note]) -> tuple[Mapping[str, float], tuple[Note, ...]]:
        doubts = search_results.warnings(driven)
        return search_results.metrics(driven.summary), (*counts.others(driven), *doubts)

    def _written(
        self, session: DirectorySession, options: Mapping[str, str], summary: Mapping[str, Any], size: int
    ) -> tuple[Check, ...]:
        """Checks that every person still has the attribute that the job `modify` replaces. Only the built-in template
        gives this attribute to all people, so other entries are not checked. Not checked either if the server refused
        all changes, because it may not allow people to have the attribute. In that case, the failed operations already
        invalidate the trial.
        """
        if options["job"] not in ("modify", "login") or options["ldif"] or options["template"]:
            return ()
        if not summary["commits"]:
            return ()
        name = options["attribute"] if options["job"] == "modify" else "description"
        having = counts.entries_found(
            session, f"search {entries.TOP}?1.1?one?(&(objectClass=person)({jobs.plain(name)}=*))", size
        )
        return () if having is None else (checked(f"people with {name}", int(options["entries"]), having),)


_IN_PLACE = f"(!(uid={jobs.MOVED}*))"
"""Filter that excludes people whom a client has renamed but not renamed back."""


def _whole(options: Mapping[str, str]) -> int | None:
    """Returns the number of entries: the people, their parent, and the parent of entries that jobs add. Returns None if
    the entries are from an LDIF file."""
    return None if options["ldif"] else int(options["entries"]) + 2


def _size(options: Mapping[str, str]) -> int:
    """Returns the estimated number of entries."""
    ldif = options["ldif"]
    return Path(ldif).stat().st_size // _LEAST_BYTES if ldif else int(options["entries"])


_LEAST_BYTES = 200
"""Lower bound for the size of an entry in an LDIF file."""


def _only_adds(options: Mapping[str, str]) -> bool:
    mixed = jobs.weights(options) if options["job"] == "mixed" else {}
    return bool(mixed.get("add")) and not any(mixed[name] for name in ("modify", "delete", "modify-dn"))


def _added(
    session: DirectorySession, options: Mapping[str, str], summary: Mapping[str, Any], size: int
) -> tuple[Check, ...]:
    """Checks that every entry exists whose addition the server has confirmed, even after a power cut. Only for mixes
    that add entries but do not delete or rename any."""
    if not _only_adds(options):
        return ()
    ours, unsure = int(summary["commits"]), int(summary.get("server_commits_uncertain", 0))
    there = session.count(f"search {entries.WORK}?1.1?one", size)
    return (checked("entries added", f"{ours} to {ours + unsure}", there, ours <= there <= ours + unsure),)


def _left(
    session: DirectorySession, options: Mapping[str, str], summary: Mapping[str, Any], size: int
) -> tuple[Check, ...]:
    """Checks the number of entries that jobs left behind: entries that they added, or people that they renamed. Called
    before these are removed. Each change is one commit, so the expected number follows from the numbers of commits and
    of completed transactions, even if a transaction failed between two changes. A commit with an unknown outcome may
    have left or removed one entry.
    """
    if options["job"] not in ("add-delete", "modify-dn", "mixed") or summary.get("power_cut"):
        return ()
    done = {script["name"]: int(script["completed"]) for script in summary["scripts"]}
    commits, unsure = int(summary["commits"]), int(summary.get("server_commits_uncertain", 0))
    if options["job"] == "mixed":
        # If the client had no entry left, a delete or rename has first added one.
        left = commits - 2 * done.get("delete", 0) - done.get("modify", 0) - done.get("modify-dn", 0)
    else:
        left = commits - 2 * done[options["job"]]
    renames = options["job"] == "modify-dn"
    name = "people renamed at the end" if renames else "entries added and not deleted"
    where = f"{entries.TOP}?1.1?one?(uid={jobs.MOVED}*)" if renames else f"{entries.WORK}?1.1?one"
    there = counts.entries_found(session, f"search {where}", size)
    if there is None:
        return ()
    low, high = max(0, left - unsure), left + unsure
    return (checked(name, f"{low} to {high}" if unsure else left, there, low <= there <= high),)


def _clear(session: Any) -> None:
    """Deletes the entries that clients added but did not delete."""
    for dn, *_ in session.query(f"search {entries.WORK}?1.1?one"):
        session.query(f"delete {jobs.plain(dn)}")


def _rename_back(session: Any) -> None:
    """Renames people back whom a client had renamed when its trial ended."""
    for dn, uid in session.query(f"search {entries.TOP}?uid?one?(uid={jobs.MOVED}*)"):
        session.query(f"rename {jobs.plain(dn)}?uid=user.{uid.removeprefix(jobs.MOVED)}")


WORKLOAD = Directory()
