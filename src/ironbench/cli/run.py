"""`ironbench run`: measures one system with one workload, at one load or at several loads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ironbench.cli.declared import declares
from ironbench.cli.known_names import names_of
from ironbench.fields.run import RunFile
from ironbench.printer import Printer
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.fields.run import RunSection
    from ironbench.model.lab import Claim
    from ironbench.model.plan import Plan
    from ironbench.model.record import Record
    from ironbench.model.secrets import Secrets
    from ironbench.records import Store

_ARGUMENTS = {
    "workload": Annotated[
        str,
        typer.Argument(
            help="A workload (see `ironbench list workloads`), or `script` for your own SQL.",
            autocompletion=names_of("workloads"),
        ),
    ],
    "files": Annotated[
        list[str] | None,
        typer.Argument(
            help="For the workload `script`: script files, each as FILE or FILE@WEIGHT; - is standard input."
        ),
    ],
}


@declares(_ARGUMENTS, RunFile)
def run(workload: str, files: list[str] | None, **typed: Any) -> int:
    from ironbench.cli import other_programs
    from ironbench.plan import run_file

    other_programs.refuse(workload, files or (), typed.get("options") or (), typed.get("engine") or "")
    return execute(run_file.read(workload, files or (), **typed))


def execute(asked: RunFile) -> int:
    """Plans, measures and shows a run. Returns the exit code (docs/reference/statuses.md)."""
    from ironbench.lab import declare, run_plan, upkeep
    from ironbench.model.system import Setup
    from ironbench.plan import requirements
    from ironbench.records import Store

    own = asked.run
    claims = requirements.read(own.require)
    store = Store(Path(own.results))
    plan, secrets = run_plan.resumed(asked, store) if own.resume else run_plan.planned(asked)
    requirements.refuse_undecidable(claims, plan)
    most = max((trial.cell.load.clients for trial in plan.trials), default=0)
    if asked.load.threads > most > 0 and not (plan.search and plan.search.of == "clients"):
        Printer().say(
            f"warning: --threads {asked.load.threads}: {counted(most, 'client')} cannot use more threads; "
            "--clients sets the number of clients (like sysbench's --threads)"
        )
    if own.plan:
        from ironbench.lab import loop
        from ironbench.lab.dry_run import run as plan_page

        before = run_plan.measured(store, plan.series) if own.resume else []
        over, drawn = loop.is_over(plan, store, before), asked.measure.seed is None and not own.resume
        plan_page.show(plan, before, over, drawn, own.json)
        return 0
    upkeep.require_person(plan.system.commands)
    declare.refuse_in_use([Setup(plan.trials[0].cell, plan.system, plan.choice)])
    store.validate()
    return _measured(replace(plan, requirements=claims), secrets, store, own, claims)


def _measured(plan: Plan, secrets: Secrets, store: Store, own: RunSection, claims: Sequence[Claim]) -> int:
    # These modules are imported after the checks, so that a command with an input error does not wait for the import of
    # numpy.
    from ironbench import engines, workloads
    from ironbench.cli import requirements, verdict
    from ironbench.lab import declare, loop, run_plan, schedule, upkeep
    from ironbench.lab.dry_run.estimate import time_of
    from ironbench.lab.dry_run.run import highest_rate
    from ironbench.model.system import Setup
    from ironbench.records.described import losses
    from ironbench.report import wording
    from ironbench.study import searched

    printer = Printer()
    workload = workloads.get(plan.choice.workload)
    compiled_for = engines.get(plan.system.engine).protocol(plan.trials[0].cell.load.protocol)
    warnings = workload.warnings(plan.system.engine, plan.choice, compiled_for)
    setups = [Setup(trial.cell, plan.system, plan.choice) for trial in plan.trials]
    forecasts = declare.forecasts(setups, highest_rate(plan))
    for warning in (*warnings, *wording.texts(losses(plan.system)), *forecasts):
        printer.say(f"warning: {warning}")
    imported = plan.choice.data is not None and plan.choice.data.imported
    if (where := workload.where(plan.system)) and not imported:
        printer.say(where)
    with store.measuring(plan.series):
        if upkeep.run_pending_cleanups(printer.say, plan.series):
            return 1
        before = run_plan.measured(store, plan.series) if own.resume else []
        if loop.is_over(plan, store, before):
            printer.say(loop.nothing_ran(before))
        elif plan.search:
            best = wording.search.search_subject(plan.search.of)
            printer.say(f"search for the best {best} from {plan.search.low} to {plan.search.high}")
        else:
            count = len(plan.trials) + plan.confirmations
            usable = sum(record.status.comparable for record in before)
            left = schedule.remaining(plan, before)
            done = f"{min(usable, count)} of {counted(count, 'trial')} already measured; " if usable else ""
            printer.say(f"{done}{counted(len(left.trials) + left.confirmations, 'trial')}, {time_of(left)}")
        try:
            records = loop.run(plan, secrets, store, printer, before)
        except KeyboardInterrupt:  # between two trials; during a trial, the loop handles Ctrl-C
            printer.say(_interruption_message(run_plan.measured(store, plan.series)))
            return verdict.INTERRUPTED
    judgements = requirements.judged(claims, records)
    answer = searched.concluded(plan.search, records, store) if plan.search else None
    if own.json:
        from ironbench.report.as_json import run_document

        printer.data(run_document(records, store, answer, requirements.fields(judgements)))
    else:
        from ironbench.report.ending import run_summary, search_summary

        if plan.search and plan.search.of == "rate":
            printer.data(search_summary(plan.search, records, store, answer))
        else:
            run_summary(records, store, printer)
        if judgements:
            printer.data(f"\n{requirements.text(judgements)}")
        printer.say(f"records: {store.directory / 'trials'}  series: {plan.series}")
    verdict.require_kept(store, records)
    code = upkeep.exit_code(verdict.code_of_run(records, answer), plan.series, printer.say)
    if code in (0, verdict.SUSPECT) and requirements.code(judgements):
        printer.say(requirements.words(judgements))
        return requirements.code(judgements)
    if code == verdict.SUSPECT:
        printer.say(f"exit code {verdict.SUSPECT}: {verdict.suspect_words(records, answer)}")
    elif code == verdict.INTERRUPTED:
        printer.say(_interruption_message(records))
    return code


def _interruption_message(records: Sequence[Record]) -> str:
    """Returns the message after Ctrl-C. The message suggests `--resume` only if the run has records, because without
    records `--resume` cannot find the run."""
    kept = counted(sum(record.status.comparable for record in records), "trial")
    way = "to continue, add --resume to the same command" if records else "start the run again"
    return f"interrupted: {kept} measured; {way}"
