"""`ironbench lab`: declared experiments. Each subcommand is a function. Modules that take long to import are imported
inside these functions."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ironbench import units
from ironbench.cli.declared import declares, option
from ironbench.cli.mistakes import whole
from ironbench.cli.options import JSON, group, policies
from ironbench.errors import InputError, in_a_file
from ironbench.fields.lab import LabFile, MeasureSection, range_of
from ironbench.fields.new import NewLab
from ironbench.fields.run import RunSection
from ironbench.model.purpose import Purpose
from ironbench.printer import Printer
from ironbench.ranges import Range
from ironbench.words import counted, in_percent

if TYPE_CHECKING:
    from ironbench.lab.gate_rounds import Policy
    from ironbench.model.lab import Lab
    from ironbench.model.record import Record
    from ironbench.records.labs import LabDirectory

app = group("lab")

FILE = Annotated[str, typer.Argument(help="A lab file (TOML).")]
BUDGET = Annotated[str, option(MeasureSection, "budget")]
CHANGED = Annotated[
    bool, typer.Option("--changed", help="Continue even if the lab file, a program or the machine has changed.")
]


RESULTS = Annotated[
    str,
    typer.Option(metavar="DIR", help="Directory for this lab only.  [default: ironbench-results/labs/NAME-SERIES]"),
]
TRACE = Annotated[str, option(RunSection, "trace")]
BLOCKS = Range(6, 10_000, whole=True, example="12", note="a verdict needs at least six blocks")


@app.command("plan")
def plan(
    file: FILE,
    budget: BUDGET = "",
    trust: Annotated[
        bool,
        typer.Option(
            "--trust",
            help="Also run the database programs that the lab file names (`bin`), to check the engine's settings.",
        ),
    ] = False,
    json: JSON = False,
) -> int:
    """Dry run: show what a lab will do. Configurations, order, time, space and minimum detectable effect."""
    return planned(Path(file), budget, json, trust=trust)


def planned(file: Path, budget: str, json: bool, design: str = "", trust: bool = False) -> int:
    """Prints the plan of a lab file. `design`: as in `labfile.read`. `trust`: whether programs that the file names may
    run."""
    from ironbench.host.trust import reading_only
    from ironbench.lab import declare
    from ironbench.lab.dry_run import lab as plan_page

    with reading_only(trust):
        plan = declare.planned(declare.read(file, design), _seconds(budget), machines_needed=False)
        plan_page.show(plan, json)
    return 0


@app.command("run")
@in_a_file()
def run(
    file: FILE,
    budget: BUDGET = "",
    results: RESULTS = "",
    trace: TRACE = "",
    tag: Annotated[list[str] | None, option(LabFile, "tag", " Overrides the file's `tag`.")] = None,
    json: JSON = False,
    gate: Annotated[
        bool,
        typer.Option(
            "--gate",
            help="Use the lab as a gate, like `ironbench gate`: the exit code is 4 unless every comparison passes.",
        ),
    ] = False,
    undecided: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="Result of --gate if the gate is inconclusive: `fail` or `pass`; `more:30m` measures more blocks for "
            "up to 30 minutes, and then fails if the gate is still inconclusive.",
            autocompletion=policies,
        ),
    ] = "",
) -> int:
    """Run a lab from start to verdict. Measures every planned trial, in blocks of random order."""
    return measured(Path(file), budget, results, trace, json, policy=_policy(gate, undecided), tag=tag or ())


def measured(
    file: Path,
    budget: str,
    results: str,
    trace: str,
    json: bool,
    design: str = "",
    policy: Policy | None = None,
    tag: Sequence[str] = (),
) -> int:
    """Measures a lab and returns the exit code. `design`: as in `labfile.read`. `policy`: how the gate judges an
    inconclusive comparison, or None if there is no gate. `tag`: texts of the form KEY=VALUE."""
    from ironbench.cli.gate import require_comparisons
    from ironbench.cli.gate import whole as judged
    from ironbench.lab import declare, freeze, gate_rounds, loop, upkeep
    from ironbench.model.lab import SCREEN
    from ironbench.records import labs

    printer = Printer()
    lab, secrets = declare.lab(file, _seconds(budget), design, tag)
    # A screening experiment has no comparisons yet. They will follow from its results.
    if policy and lab.design != SCREEN:
        require_comparisons(f"{file} with --gate", lab)
    upkeep.require_person(lab.every_command)
    traces = freeze.traced(lab, trace)
    directory = labs.LabDirectory(Path(results) if results else labs.home() / f"{lab.name}-{lab.series}")
    directory.store.validate()
    _announce(lab, directory, printer)
    with directory.locked(), _resumable(directory, printer):
        directory.begin(replace(freeze.freeze(lab, secrets, directory.store), gate=policy is not None))
        begun = time.monotonic()
        records = loop.conduct(secrets, directory, printer, traces=traces)
        if policy and gate_rounds.adds_blocks(
            policy, directory, records, time.monotonic() - begun, partial(judged, directory, policy.undecided), printer
        ):
            records = loop.conduct(secrets, directory, printer, traces=traces)
    code = _conclude(directory, records, json, printer, policy is not None)
    return _gated(directory, records, code, json, policy) if policy else code


@app.command("resume")
@in_a_file()
def resume(
    lab: Annotated[
        str,
        typer.Argument(help="A lab directory, or a lab file. A lab file selects the newest directory of its lab."),
    ],
    changed: CHANGED = False,
    failed: Annotated[
        bool,
        typer.Option(
            "--failed",
            help="Repeat every block in which a trial failed; also repeat failed searches, pilots and peak "
            "measurements.",
        ),
    ] = False,
    more: Annotated[
        int | None,
        typer.Option(
            parser=whole("--more", BLOCKS),
            metavar="N",
            help="Add N blocks (at least 6) to a finished lab. The additional blocks are analysed "
            "separately from the earlier blocks.",
        ),
    ] = None,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Resume an imported lab, using the commands and servers that the lab names."),
    ] = False,
    trace: TRACE = "",
    json: JSON = False,
) -> int:
    """Continue an interrupted lab. Measures the missing trials in the planned order."""
    from ironbench.catalogue.typed import text_of
    from ironbench.lab import declare, freeze, imported, loop, schedule, search, upkeep
    from ironbench.lab.slices import slice_plan
    from ironbench.model.lab import SCREEN
    from ironbench.records import labs, progress

    printer = Printer()
    directory = labs.find(lab)
    frozen = directory.frozen()
    if not trust:
        imported.require_trust(directory, frozen.lab)
    if frozen.lab.method.duet:
        cause = 'the lab uses method "duet" of an earlier version'
        raise InputError(
            lab, cause, 'measure it again with method = "slices"; `ironbench report` shows its results so far'
        )
    traces = freeze.traced(frozen.lab, trace)
    if more and frozen.lab.design == SCREEN and directory.confirmation() is None:
        cause = "adds blocks to the comparisons after a screen, but this screen has no comparisons yet"
        raise InputError("--more", cause, "finish the screen first: `ironbench lab resume` without --more")
    path = Path(lab)
    with directory.locked(), _resumable(directory, printer):
        source = (
            text_of(path, str(path), "give the path of the lab's directory") if path.is_file() else directory.source()
        )
        freeze.require_scripts(frozen.lab)
        freeze.end_orphans(frozen.lab)
        if upkeep.run_pending_cleanups(printer.say, str(directory.path.absolute())):
            return 1
        declare.refuse_in_use(slice_plan.placed(frozen.lab))
        secrets = freeze.secrets_again(frozen.lab, path, source)
        freeze.require_rights(frozen.lab.measurable, secrets)
        differences = freeze.changes(frozen, secrets, directory, source)
        if not changed:
            freeze.refuse_changed(differences, directory)
        for line in differences:
            printer.say(f"changed since this lab started: {line}")
        _print_warnings(frozen.lab, printer)
        if failed and (repeated := schedule.repeat_failed(directory)):
            printer.say(f"repeating all configurations of {counted(repeated, 'block')} with failed trials")
        before = directory.records()
        forgiven = {record.id for record in progress.given_up_of_all(before)} if failed else set()
        search.reopen(directory, before, forgiven)
        known = freeze.changed_since_start(differences)
        records = loop.conduct(secrets, directory, printer, known, forgiven, traces)
        if not more and len(records) == len(before):
            printer.say(loop.nothing_ran(before))
        if more and not progress.interrupted(records):
            schedule.add_round(directory, more)
            records = loop.conduct(secrets, directory, printer, known, forgiven, traces)
    return _conclude(directory, records, json, printer)


@app.command("noise")
@in_a_file()
def noise(
    file: FILE,
    blocks: Annotated[
        int,
        typer.Option(
            parser=whole("--blocks", BLOCKS),
            metavar="N",
            help="Number of blocks. Each block measures the baseline twice.",
        ),
    ] = 10,
    json: JSON = False,
) -> int:
    """Measure run-to-run variation on this machine. Compares a lab's baseline with itself; later labs use the measured
    variation."""
    from ironbench.lab import declare, freeze, loop, upkeep
    from ironbench.lab.noise import against_itself
    from ironbench.records import labs

    printer = Printer()
    lab, secrets = against_itself(*declare.lab(Path(file)), blocks)
    upkeep.require_person(lab.every_command)
    directory = labs.LabDirectory(labs.home() / f"{lab.name}-{lab.series}")
    directory.store.validate()
    _announce(lab, directory, printer)
    with directory.locked(), _resumable(directory, printer):
        directory.begin(freeze.freeze(lab, secrets, directory.store))
        records = loop.conduct(secrets, directory, printer)
    return _conclude(directory, records, json, printer)


_OF_NEW = {
    "kind": Annotated[
        str,
        typer.Argument(help="Kind of question: setting, index, query, upgrade, storage, machines, headroom or driver."),
    ],
    "output": Annotated[str | None, typer.Option("-o", metavar="FILE", help="New lab file.  [default: KIND.toml]")],
}


@app.command("new")
@declares(_OF_NEW, NewLab)
def new(kind: str, output: str | None, **typed: Any) -> int:
    """Write a commented lab file for a common question. With --dsn, reads engine and settings from the server. Existing
    files are not overwritten."""
    from ironbench.lab import new as begun

    begun.lab_template(kind)
    path = Path(output or f"{kind}.toml")
    if path.exists():
        raise InputError(str(path), "already exists and would be overwritten", "use another file name with -o")
    asked = NewLab(**{name: value for name, value in typed.items() if value is not None})
    here = begun.lab_context(kind, asked, path.absolute().parent)
    text = begun.text(kind, here, str(path))
    begun.write(path, text)
    Printer().say(f"written: {path}")
    for warning in begun.warnings(kind, here):
        Printer().say(f"warning: {warning}")
    for number, line in begun.placeholders(text):
        Printer().say(f"  fill in line {number}: {line}")
    Printer().say(f"next: ironbench lab plan {path}")
    return 0


def _seconds(budget: str) -> float | None:
    return range_of("measure.budget").read("--budget", budget) if budget else None


def _conclude(
    directory: LabDirectory, records: Sequence[Record], json: bool, printer: Printer, gated: bool = False
) -> int:
    """Shows the verdict and returns the exit code. For an A/A test, first stores the run-to-run variation, because the
    verdict states it."""
    from ironbench.cli import verdict
    from ironbench.lab import noise as noise_lab
    from ironbench.lab import upkeep
    from ironbench.records import noise as kept
    from ironbench.records.labs import results

    if not directory.begun():
        verdict.require_kept(directory.store, records)
    lab = directory.lab()
    if noise_lab.is_one(lab):
        found = noise_lab.floors([record for record in records if record.purpose == Purpose.LAB], lab)
        kept.keep(results(), found)
        for one in found:
            if one.metric == lab.method.metric:
                printer.say(f"run-to-run variation of {one.metric}: {in_percent(one.floor)} ({one.source})")
    code = verdict.show(directory, records, json, printer, gated)
    verdict.require_kept(directory.store, records)
    code = upkeep.exit_code(code, str(directory.path.absolute()), printer.say)
    if code == verdict.INTERRUPTED:
        printer.say(_interruption_message(directory, records))
    return code


def _policy(gate: bool, undecided: str) -> Policy | None:
    """Reads the options of a gate. Returns None if there is no gate. Raises InputError if the policy is unknown, or if
    there is a policy but no gate."""
    if undecided and not gate:
        raise InputError("--undecided", "needs --gate", "add --gate, or remove --undecided")
    if not gate:
        return None
    word, colon, time_ = undecided.partition(":")
    more = word == "more" and bool(colon)
    if not more and undecided not in ("", "fail", "pass"):
        raise InputError(
            f"--undecided {undecided}", "is not a valid policy", "use `fail`, `pass`, or for example `more:30m`"
        )
    more_s = range_of("measure.budget").read("--undecided more", time_) if more else 0.0
    from ironbench.lab.gate_rounds import Policy  # this import takes half a second, so it follows the checks

    return Policy("pass" if undecided == "pass" else "fail", more_s)


def _gated(directory: LabDirectory, records: Sequence[Record], code: int, json: bool, policy: Policy) -> int:
    """Shows the result of the gate and returns the gate's exit code. If the lab did not finish, there is no gate:
    returns `code`, and with `json` prints the JSON document of the verdict."""
    from ironbench.cli import verdict
    from ironbench.cli.gate import require_comparisons, write_documents
    from ironbench.cli.gate import whole as gate
    from ironbench.study.findings import declared

    over = code in (0, verdict.SUSPECT, verdict.REFUTED)
    if not over or not declared(directory.lab()):
        if json:
            verdict.show(directory, records, json, Printer.silent())
        if over:
            require_comparisons(str(directory.path), directory.lab())
        return code
    return write_documents(gate(directory, policy.undecided), (), json)


@contextmanager
def _resumable(directory: LabDirectory, printer: Printer) -> Iterator[None]:
    """Handles Ctrl-C between trials like Ctrl-C during a trial: prints how to continue the lab, and exits."""
    from ironbench.cli import verdict

    try:
        yield
    except KeyboardInterrupt:
        if not directory.begun():
            raise
        printer.say(_interruption_message(directory, directory.records()))
        raise typer.Exit(verdict.INTERRUPTED) from None


def _interruption_message(directory: LabDirectory, records: Sequence[Record]) -> str:
    from ironbench.records import progress

    done, trials = progress.measured(records), counted(len(directory.lab().trials), "trial")
    return f"interrupted: {done} of {trials} measured; to continue: `ironbench lab resume {directory.path}`"


def _print_warnings(lab: Lab, printer: Printer) -> None:
    from ironbench.lab import declare

    for warning in declare.script_warnings(lab):
        printer.say(f"warning: {warning}")


def _announce(lab: Lab, directory: LabDirectory, printer: Printer) -> None:
    from ironbench.lab import pace
    from ironbench.lab.dry_run import notes
    from ironbench.model.lab import SCREEN
    from ironbench.plan import blocks

    cells = counted(len(lab.measurable), "configuration")
    seconds = lab.estimate_s or sum(pace.span_s(trial) for trial in lab.trials)
    _print_warnings(lab, printer)
    printer.say(f"{lab.question}")
    trials = counted(blocks.trials_before(lab) + len(lab.trials) + len(blocks.observed_trials(lab)), "trial")
    rated = {setup.cell.name for setup in lab.rated}
    among = sum(trial.cell.name in rated for trial in lab.trials)
    at_rates = f", including {among} at a percentage of the baseline's peak throughput" if among else ""
    printer.say(f"{cells}, {counted(lab.method.blocks, 'block')}, {trials}{at_rates}")
    printer.say(f"takes at least {units.span(seconds)}; results are written to {directory.path}")
    if lab.design == SCREEN:
        printer.say("the lab starts with a screen; then new blocks compare the factors that matter with the baseline")
    for line in notes.commands_of(lab.every_command, lab.folder):
        printer.say(line)
    for setup in lab.setups:
        if setup.skipped:
            printer.say(f"skipped: {setup.cell.name}: {setup.skipped}")
