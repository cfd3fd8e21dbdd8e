"""`ironbench doctor`: finds settings and conditions that distort measurements on this machine or in a database."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from ironbench.cli.options import JSON
from ironbench.errors import InputError
from ironbench.printer import Printer
from ironbench.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ironbench.engines.examination import ExaminationResult
    from ironbench.host.host_view import HostView
    from ironbench.model.diagnosis import Diagnosis

_MARKS = {"ok": "ok", "note": "note", "warning": "WARNING", "severe": "SEVERE"}
_SUSPECT = 3
"""Exit code for a severe problem: results from this machine would be flagged."""


def doctor(
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="Directory to check; may be repeated.  [default: the default data directory]",
        ),
    ] = None,
    dsn: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Check this database on an existing server (read-only).")
    ] = "",
    server: Annotated[
        str,
        typer.Option(
            metavar="ssh://USER@HOST",
            help="Check another machine over ssh; --data then refers to directories on that machine.",
        ),
    ] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Also show passed checks and values that doctor cannot read.")
    ] = False,
    json: JSON = False,
) -> int:
    if dsn:
        return _database(dsn, server, data, everything, json)
    if server:
        return _elsewhere(server, data, everything, json)
    from ironbench._core import BUILD_PROFILE
    from ironbench.host.capability_tests import LocalCapabilityTests
    from ironbench.host.host_view import OwnProcesses, watch_host
    from ironbench.host.tree import Tree
    from ironbench.records import running_labs

    printer = Printer()
    places = _places(data)
    printer.say("sampling this machine for one second …")
    host = watch_host(
        Tree(), places, LocalCapabilityTests(), OwnProcesses(BUILD_PROFILE, frozenset({os.getpid(), os.getppid()}))
    )
    own = running_labs.own_processes()
    host = replace(host, ourselves=replace(host.ourselves, pids=host.ourselves.pids | own))
    code = diagnose(printer, host, everything, json)
    _hint_at_leftovers(printer)
    return code


def _hint_at_leftovers(printer: Printer) -> None:
    """Prints a hint about servers left by a killed ironbench, because they would disturb every trial."""
    from ironbench.engines.cleanup import leftovers, unfinished_cleanup_commands

    if commands := unfinished_cleanup_commands():
        printer.say(
            f"changes that were not reverted, because their cleanup failed or was never run: {'; '.join(commands)}"
        )
        printer.say("  hint: run `ironbench cleanup`; with --forget, a cleanup that fails again is discarded")
    left = leftovers()
    if left:
        printer.say(f"left over from a killed ironbench: {'; '.join(left)}")
        printer.say("  hint: run `ironbench cleanup` to stop and remove these leftovers")


def diagnose(printer: Printer, host: HostView, everything: bool, json: bool, areas: Sequence[str] | None = None) -> int:
    """Runs the checks and prints their findings. Returns exit code 3 if a finding is severe, otherwise 0. Checks all
    areas if `areas` is None."""
    from ironbench.host.doctor import AREAS, examine

    diagnoses = examine(host, areas or AREAS)
    if json:
        printer.data(_as_json(diagnoses, host))
    else:
        unseen = [one.name for one in diagnoses if not one.visible]
        hidden = [f"values that ironbench cannot see{_why(host)}: {', '.join(unseen)}"] if unseen else []
        printer.data(_as_text(diagnoses, _what(host), hidden, everything))
    return _code(diagnoses)


def _elsewhere(server: str, data: list[str] | None, everything: bool, json: bool) -> int:
    from ironbench.host.remote import host

    printer = Printer()
    printer.say(f"sampling {server.rpartition('@')[2]} for one second …")
    seen = host.examine(server, tuple(Path(name) for name in data or ()))
    return diagnose(printer, seen, everything, json, host.AREAS)


def _database(dsn: str, server: str, data: list[str] | None, everything: bool, json: bool) -> int:
    from ironbench.engines.examination import examine

    if server:
        raise InputError("--server", "cannot be combined with --dsn", "check the machine and the database separately")
    if data:
        raise InputError("--data", "cannot be combined with --dsn", "remove one of the two")
    printer = Printer()
    examined = examine(dsn)
    if json:
        printer.data(_database_as_json(examined))
    else:
        printer.data(_as_text(examined.diagnoses, examined.words, _hidden(examined), everything))
    return _code(examined.diagnoses)


def _code(diagnoses: Sequence[Diagnosis]) -> int:
    from ironbench.host.doctor import worst
    from ironbench.model.diagnosis import Severity

    return _SUSPECT if worst(one for one in diagnoses if one.visible) is Severity.SEVERE else 0


def _hidden(examined: ExaminationResult) -> list[str]:
    """Returns one line for each reason why checks could not run. A line names these checks, the reason, and the fix."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for one in examined.diagnoses:
        if not one.visible:
            reasons.setdefault((one.seen, one.remedy), []).append(one.name)
    return [
        f"not visible: {', '.join(names)} ({why})" + (f"\n         fix: {remedy}" if remedy else "")
        for (why, remedy), names in reasons.items()
    ]


def _database_as_json(examined: ExaminationResult) -> str:
    from ironbench.host.doctor import worst

    server = msgspec.to_builtins(examined.server)
    document = {"schema": 1, "worst": worst(examined.diagnoses), "server": server, "diagnoses": examined.diagnoses}
    return msgspec.json.encode(document).decode()


def _places(data: list[str] | None) -> tuple[Path, ...]:
    """Returns the directories named by the user, or else the directories that `ironbench run` would use."""
    from ironbench.host import data_dirs

    if data:
        for name in data:
            if not Path(name).exists():
                raise InputError(f"--data {name}", "no such directory", "create the directory, or use an existing one")
        return tuple(Path(name) for name in data)
    return (data_dirs.base(), Path())


def _as_json(diagnoses: tuple[Diagnosis, ...], host: HostView) -> str:
    from ironbench.host.doctor import worst
    from ironbench.host.fingerprint import content_key, of_tree

    machine = of_tree(host.tree)
    document = {
        "schema": 1,
        "worst": worst(diagnoses),
        "machine_key": content_key(machine),
        "machine": machine,
        "directories": [str(place.directory) for place in host.places],
        "diagnoses": diagnoses,
    }
    return msgspec.json.encode(document).decode()


def _as_text(diagnoses: Sequence[Diagnosis], what: str, hidden: Sequence[str], everything: bool) -> str:
    """Formats the findings, the worst first. All passed checks share one line unless `everything` is set. `hidden`:
    lines about checks that could not run."""
    lines = [what, ""]
    visible = [one for one in diagnoses if one.visible]
    shown = [one for one in visible if everything or one.severity != "ok"]
    for one in sorted(shown, key=lambda one: -one.severity.rank):
        lines.append(f"{_MARKS[one.severity]:8} {one.name}: {one.seen}")
        query = one.query if one.severity != "ok" else ""
        details = (one.meaning, one.remedy and f"fix: {one.remedy}", query and f"query: {query}")
        lines += [f"         {detail}" for detail in details if detail]
    if not shown:
        lines.append("no problems found")
    well = _well(visible)
    if well and not everything:
        lines += ["", f"ok: {', '.join(well)}"]
    if hidden:
        lines += ["", *hidden]
    counts = {mark: sum(one.severity == mark for one in visible) for mark in ("severe", "warning", "note", "ok")}
    unseen = len(diagnoses) - len(visible)
    lines += ["", ", ".join(f"{count} {mark}" for mark, count in counts.items()) + f", {unseen} not visible"]
    return "\n".join(lines)


def _well(visible: Sequence[Diagnosis]) -> list[str]:
    """Lists the passed checks. For a check of several values, adds how many of the values passed."""
    readings, fine = Counter(one.name for one in visible), Counter(one.name for one in visible if one.severity == "ok")
    several = {name: f" ({count} of {readings[name]})" for name, count in fine.items() if readings[name] > 1}
    return [name + several.get(name, "") for name in sorted(fine)]


def _what(host: HostView) -> str:
    from ironbench.host.fingerprint import of_tree

    machine = of_tree(host.tree)
    kind = "bare metal" if host.virtual == "none" else f"virtual machine ({host.virtual})"
    inside = "" if host.container == "none" else f", in a container ({host.container})"
    cpu = f"{machine.cpu.model}, {counted(machine.cpu.cores, 'core')}, {counted(machine.cpu.threads, 'thread')}"
    return f"{kind}{inside}: {cpu}, {machine.memory_bytes / 2**30:.1f} GiB, Linux {machine.kernel}"


def _why(host: HostView) -> str:
    if host.virtual != "none":
        return " (a virtual machine cannot see its host: ask the host's operator)"
    return " (check on the container's host)" if host.container != "none" else ""
