"""Runs the user's commands around trials, and undoes each command even if the trial fails.

A cleanup command is stored before the command that it undoes is started (`host.pending_cleanups`). After a kill or a
power cut, `ironbench cleanup` and `ironbench lab resume` run the stored command.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ironbench.errors import FailureError, InputError, shortened
from ironbench.host import command, pending_cleanups, processes
from ironbench.host.command import CommandEnd
from ironbench.host.pending_cleanups import PendingCleanup
from ironbench.model.commands import CommandRun, Commands, manual_step_text, variables
from ironbench.model.lab import Lab
from ironbench.model.note import note
from ironbench.model.plan import Plan
from ironbench.model.purpose import Purpose
from ironbench.model.redact import redacted, redacted_sql
from ironbench.model.secrets import hidden
from ironbench.model.system import System, Trial
from ironbench.model.trial_notes import TrialNotes
from ironbench.plan import commands as planned
from ironbench.plan.commands import Scope
from ironbench.printer import Printer
from ironbench.words import clean

NOT_UNDONE = "not-undone"
"""Code of the warning that the trial started after a failed cleanup."""
LOG = "commands.jsonl"
"""File in a lab's directory with every finished command, one JSON document per line."""
_INTERRUPTED = 130
_LONGEST = 200
"""Maximum length of a command in a record, in characters."""
_KEPT = 16_384
"""Maximum number of characters that are kept from the end of a command's output."""


class Upkeep:
    """The user's commands whose effects last at the moment, such as those of a block or a trial, as a stack. Also
    stores the results of all commands."""

    def __init__(self, began: str, folder: str, printer: Printer, log: Path | None = None) -> None:
        """Creates an empty stack. `began`: as in `PendingCleanup`. `folder`: working directory of the commands. `log`:
        file to which every finished command is appended."""
        self._began, self._folder, self._printer, self._log = began, folder, printer, log
        self._stack: list[tuple[Scope, PendingCleanup | None, Mapping[str, str]]] = []
        self._failed: dict[str, tuple[PendingCleanup, str]] = {}
        """Cleanups that failed, with the reason. A cleanup is removed when a repetition succeeds."""
        self._runs: list[CommandRun] = []
        self._output: list[str] = []
        self.waited_s = 0.0
        """Seconds spent waiting for a person to make changes."""
        self.hurried = False
        """Whether ironbench is ending. If so, and if a person must undo a change, ironbench shows the change but does
        not wait."""

    def now(self) -> float:
        """Returns monotonic seconds, without the time spent waiting for a person."""
        return time.monotonic() - self.waited_s

    def enter(self, wanted: Sequence[Scope], environment: Mapping[str, str]) -> None:
        """Undoes the commands that the next trial does not need, and then runs those that it needs in addition. Raises
        FailureError if a command fails. The failed command is undone."""
        scopes = [scope for scope, _, _ in self._stack]
        self._leave(planned.shared(scopes, wanted))
        for pending, _ in list(self._failed.values()):
            self._undo(pending)
        for scope in wanted[len(self._stack) :]:
            self._enter(scope, environment)

    def leave_trial(self) -> None:
        """Undoes commands that were run for a single trial."""
        kept = [scope.own for scope, _, _ in self._stack]
        self._leave(kept.index(True) if True in kept else len(kept))

    def close(self) -> None:
        """Undoes all commands."""
        self._leave(0)

    def taken(self, notes: TrialNotes) -> TrialNotes:
        """Returns a trial's notes with the commands that were run since the last call."""
        runs, output = tuple(self._runs), "".join(self._output)
        self._runs, self._output = [], []
        warnings = [
            note(NOT_UNDONE, command=shortened(clean(pending.cleanup)), error=why)
            for pending, why in self._failed.values()
        ]
        merged = notes.merge({}, [one for one in warnings if one not in notes.warnings])
        return replace(merged, commands=(*notes.commands, *runs), output=notes.output + output)

    def _enter(self, scope: Scope, environment: Mapping[str, str]) -> None:
        wanted, pending = scope.commands, None
        if wanted.cleanup:
            pending = pending_cleanups.add(
                wanted.cleanup, wanted.of, wanted.limit_s, self._folder, environment, self._began
            )
        self._stack.append((scope, pending, environment))
        if not wanted.prepare:
            return
        ended = self._carried_out("prepare", wanted, environment, pending)
        if ended.cause:
            self._leave(len(self._stack) - 1)
            cause = f"`{shortened(wanted.prepare)}` {ended.cause}"
            raise FailureError(f"prepare of {wanted.of}", cause, self._way_out(wanted.prepare))

    def _way_out(self, text: str) -> str:
        if manual_step_text(text):
            return "run ironbench in a terminal where a person can answer"
        kept = f"; the output of the command is in {self._log}" if self._log is not None else ""
        return f"run the command by hand in {self._folder} and correct it{kept}"

    def _leave(self, depth: int) -> None:
        """Undoes scopes from the top of the stack until `depth` scopes are left."""
        while len(self._stack) > depth:
            _, pending, _ = self._stack[-1]
            by_hand = pending is not None and manual_step_text(pending.cleanup)
            if by_hand and self.hurried:
                self._printer.say(f"do this by hand: {by_hand} (`ironbench cleanup` repeats this prompt)")
            elif by_hand and pending is not None:
                self._undo(pending)
            elif pending is not None:
                with processes.interrupt_held():  # Ctrl-C does not interrupt a cleanup
                    self._undo(pending)
            self._stack.pop()

    def _undo(self, pending: PendingCleanup) -> None:
        wanted = Commands("", pending.cleanup, pending.limit_s, pending.of)
        ended = self._carried_out("cleanup", wanted, pending.environment, None)
        for other, _ in [(pending, ""), *self._failed.values()]:
            if not ended.cause and (other.cleanup, other.of) == (pending.cleanup, pending.of):
                pending_cleanups.forget(other)
                self._failed.pop(other.id, None)
        known = [one for one, _ in self._failed.values() if (one.cleanup, one.of) == (pending.cleanup, pending.of)]
        if ended.cause and known and known[0].id != pending.id:
            pending_cleanups.forget(pending)  # the same cleanup is already pending
            pending = known[0]
        if ended.cause:
            self._failed[pending.id] = pending, ended.cause
            cause = f"`{shortened(pending.cleanup)}` {ended.cause}"
            self._printer.error(FailureError(f"cleanup of {pending.of}", cause))

    def _carried_out(
        self, when: str, wanted: Commands, environment: Mapping[str, str], pending: PendingCleanup | None
    ) -> CommandEnd:
        text = wanted.prepare if when == "prepare" else wanted.cleanup
        environment = {**environment, "IRONBENCH_WHEN": when}

        def begun(shell: processes.ProcessId | None) -> None:
            if pending is not None:
                pending_cleanups.runs(pending, shell)

        if words := manual_step_text(text):
            ended = command.by_a_person(f"{words}  ({wanted.of})", self._printer.say)
            self.waited_s += ended.took_s
        else:
            ended = command.run(text, self._folder, environment, wanted.limit_s, begun, without_passwords)
        self._keep(
            CommandRun(when, wanted.of, _loggable(text), ended.status, round(ended.took_s, 3), ended.cause), ended
        )
        return ended

    def _keep(self, run: CommandRun, ended: CommandEnd) -> None:
        output = ended.output[-_KEPT:]
        self._runs.append(run)
        self._output.append(f"{run.when} of {run.of}: {run.command}\n{output.rstrip()}\n" if output.strip() else "")
        if self._log is None:
            return
        names = CommandRun.__dataclass_fields__
        line = {"at": datetime.now(UTC).isoformat(timespec="seconds"), **{name: getattr(run, name) for name in names}}
        try:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps({**line, "output": output}, ensure_ascii=False) + "\n")
        except OSError:
            return  # a full disk must not prevent a cleanup, and writing the next record will report it


def without_passwords(text: str) -> str:
    """Removes passwords from a command's output."""
    return redacted_sql(hidden(text))


def _loggable(text: str) -> str:
    return shortened(clean(redacted_sql(text)), _LONGEST)


@contextmanager
def of_lab(lab: Lab, directory: Path, printer: Printer) -> Iterator[Upkeep]:
    """Runs the commands of a lab on entry, and undoes all commands on exit. Raises InputError if a person must act but
    there is no terminal, and FailureError."""
    require_person(lab.every_command)
    upkeep = Upkeep(str(directory.absolute()), lab.folder, printer, directory / LOG)
    with _undone(upkeep, lab.every_command):
        upkeep.enter(planned.of_lab(lab), _lab_variables(lab))
        yield upkeep


@contextmanager
def of_run(plan: Plan, printer: Printer) -> Iterator[Upkeep]:
    """Runs the commands of a run before its engine starts, and undoes them on exit."""
    every = plan.system.commands
    require_person(every)
    upkeep = Upkeep(plan.series, str(Path.cwd()), printer)
    scopes = [Scope(("run", number), one) for number, one in enumerate(every)]
    with _undone(upkeep, every):
        upkeep.enter(scopes, _system_variables(plan.system))
        yield upkeep


@contextmanager
def _undone(upkeep: Upkeep, every: Sequence[Commands]) -> Iterator[None]:
    if not every:
        yield
        return
    with processes.ended_as_by_interrupt():
        try:
            yield
        except BaseException:
            upkeep.hurried = True
            raise
        finally:
            upkeep.close()


def require_person(every: Sequence[Commands]) -> None:
    """Raises InputError if a person must act but there is no terminal."""
    for one in every:
        for text in one.both:
            if manual_step_text(text) and not command.terminal():
                step = shortened(manual_step_text(text), 60)
                cause = f"waits for a person ({step}), but there is no terminal for the prompt"
                raise InputError(
                    f"commands of {one.of}",
                    cause,
                    "run ironbench in a terminal, or replace the manual step by a command",
                )


def before_trial(lab: Lab, upkeep: Upkeep, trial: Trial) -> None:
    """Runs the commands that this trial needs. Raises FailureError."""
    setup = lab.setup(trial.cell.name)
    numbers = [number for number, one in enumerate(lab.trials, 1) if _same(one, trial)]
    own = {
        "IRONBENCH_CELL": trial.cell.name,
        "IRONBENCH_BLOCK": str(trial.block + 1) if trial.purpose == Purpose.LAB else "",
        "IRONBENCH_TRIAL": str(numbers[0]) if numbers else "",
        "IRONBENCH_PURPOSE": trial.purpose,
        "IRONBENCH_ATTEMPT": str(trial.attempt),
    }
    environment = _lab_variables(lab) | _system_variables(setup.system) | variables(trial.cell.levels) | own
    upkeep.enter(planned.scopes(lab, setup, trial), environment)


def _same(planned_one: Trial, trial: Trial) -> bool:
    return trial.purpose == Purpose.LAB and (planned_one.cell.name, planned_one.block) == (trial.cell.name, trial.block)


def _lab_variables(lab: Lab) -> dict[str, str]:
    return {"IRONBENCH_LAB": lab.name, "IRONBENCH_SERIES": lab.series}


def _system_variables(system: System) -> dict[str, str]:
    found = {"IRONBENCH_ENGINE": system.engine, "IRONBENCH_DSN": redacted(system.dsn or "")}
    return {**found, "IRONBENCH_LAYOUT_DATA": system.layout.data or ""}


FORGET = "if the cleanup cannot succeed, revert the change by hand and run `ironbench cleanup --forget`"


def exit_code(code: int, began: str, say: Callable[[str], None]) -> int:
    """Returns the exit code of an experiment: 1 if its cleanups are still pending, unless it was interrupted; otherwise
    `code`."""
    left = [pending for pending in pending_cleanups.all_pending() if pending.began == began]
    for pending in left:
        say(
            f"not reverted: {pending.of}: {shortened(pending.cleanup)}; `ironbench cleanup` runs this cleanup "
            "command again"
        )
        say(f"  hint: {FORGET}")
    return code if not left or code == _INTERRUPTED else 1


def run_pending_cleanups(say: Callable[[str], None], began: str = "", forget: bool = False) -> list[PendingCleanup]:
    """Runs the pending cleanups of ironbench processes that have ended, the latest first. Returns the cleanups that
    failed. `began`: if given, only cleanups of this experiment are run. `forget`: whether a cleanup that fails again is
    forgotten. The user must then undo the change by hand.
    """
    failed = []
    for pending in pending_cleanups.orphans(began):
        pending_cleanups.end_prepare(pending)
        if words := manual_step_text(pending.cleanup):
            ended = command.by_a_person(f"{words}  ({pending.of})", say)
        else:
            environment = {**pending.environment, "IRONBENCH_WHEN": "cleanup"}
            ended = command.run(
                pending.cleanup, pending.folder, environment, pending.limit_s, without_passwords=without_passwords
            )
        if ended.cause:
            say(f"cannot undo: {pending.of}: `{shortened(pending.cleanup)}` {ended.cause}")
            if forget:
                say(f"discarded: {pending.of}: revert the change by hand in {pending.folder}")
                pending_cleanups.forget(pending)
            else:
                say(f"  hint: {FORGET}")
                failed.append(pending)
        else:
            say(f"reverted: {pending.of}: {shortened(pending.cleanup)} (of ironbench process {pending.owner.pid})")
            pending_cleanups.forget(pending)
    return failed
