"""What `ironbench lab run` and `lab resume` do: begin or find a lab's directory, conduct it, say what follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ironbench import ranges
from ironbench.cli import declared, verdict
from ironbench.errors import InputError
from ironbench.experiment import freeze, pace, schedule
from ironbench.experiment import loop as pipeline
from ironbench.experiment import noise as noise_lab
from ironbench.model.lab import Lab
from ironbench.model.prepared import NOTHING, Prepared
from ironbench.model.record import Record, Warning
from ironbench.model.secrets import Secrets
from ironbench.plan import preliminary
from ironbench.printer import Printer
from ironbench.record import noise as kept
from ironbench.record import progress
from ironbench.record.labs import PLAN, LabDirectory
from ironbench.record.redact import redacted_toml
from ironbench.words import counted, in_percent


def run(file: str, budget: str, results: str, json: bool, trace: str = "") -> int:
    """The exit code (docs/guide/running-a-lab.md)."""
    printer = Printer()
    lab, secrets = declared.lab(Path(file), ranges.read("budget", "--budget", budget) if budget else None)
    traces = traced(lab, trace)
    directory = LabDirectory(Path(results) if results else home() / f"{lab.name}-{lab.series}")
    directory.store.validate()
    _announce(lab, directory, printer)
    with directory.locked():
        directory.begin(freeze.freeze(lab, secrets, directory.store))
        records = pipeline.conduct(secrets, directory, printer, traces=traces)
    return _told(directory, records, json, printer)


def noise(file: str, blocks: int, json: bool) -> int:
    """The exit code; an interrupted one goes on with `lab resume` and its directory."""
    printer = Printer()
    lab, secrets = noise_lab.against_itself(*declared.lab(Path(file)), blocks)
    directory = LabDirectory(home() / f"{lab.name}-{lab.series}")
    directory.store.validate()
    _announce(lab, directory, printer)
    with directory.locked():
        directory.begin(freeze.freeze(lab, secrets, directory.store))
        records = pipeline.conduct(secrets, directory, printer)
    return _told(directory, records, json, printer)


def resume(name: str, changed: bool, failed: bool, more: int | None, json: bool, trace: str = "") -> int:
    """The exit code. InputError: no such lab, somebody works on it, or what it began with has changed."""
    printer = Printer()
    directory = LabDirectory(found(name))
    frozen = directory.frozen()
    traces = traced(frozen.lab, trace)
    path = Path(name)
    with directory.locked():
        source = path.read_text(encoding="utf-8") if path.is_file() else directory.source()
        freeze.require_scripts(frozen.lab)
        freeze.end_orphans(frozen.lab)
        secrets = _secrets(frozen.lab, path, source)
        freeze.require_rights([setup for setup in frozen.lab.setups if not setup.skipped], secrets)
        differences = freeze.changes(frozen, secrets, directory, source)
        if not changed:
            freeze.refuse_changed(differences, directory)
        for line in differences:
            printer.say(f"changed since this lab began: {line}")
        forgiven = {record.id for record in progress.given_up(directory.records())} if failed else set()
        known = _caution(differences)
        records = pipeline.conduct(secrets, directory, printer, known, forgiven, traces)
        if more and not verdict.interrupted(records):
            schedule.more(directory, more)
            records = pipeline.conduct(secrets, directory, printer, known, forgiven, traces)
    return _told(directory, records, json, printer)


def _told(directory: LabDirectory, records: Sequence[Record], json: bool, printer: Printer) -> int:
    """Of a lab against itself, the noise floors are kept first, so that what is told quotes them."""
    lab = directory.lab()
    if noise_lab.is_one(lab):
        found = noise_lab.floors([record for record in records if record.purpose == "lab"], lab)
        kept.keep(verdict.results(), found)
        for one in found:
            if one.metric == lab.method.metric:
                printer.say(f"noise floor of {one.metric}: {in_percent(one.floor, 1)} ({one.source})")
    return verdict.told(directory, records, json, printer)


def found(name: str) -> Path:
    """The directory of a lab by its own name, or the newest of a lab file. InputError."""
    path = Path(name)
    if path.is_dir():
        return path
    begun = sorted(place.parent for place in home().glob(f"{path.stem}-*/{PLAN}"))
    own = [place for place in begun if LabDirectory(place).frozen().lab.name == path.stem]
    if not own:
        raise InputError(
            name,
            f"no lab of it has begun in {home()}",
            "name the directory of a lab, or begin with `ironbench lab run`",
        )
    return own[-1]


def home() -> Path:
    """Where directories of labs lie when nobody said where."""
    return verdict.results() / "labs"


def traced(lab: Lab, told: str) -> str:
    """Directory for traces, absolute; "" where none are wanted. InputError where nothing would be written to it."""
    if not told:
        return ""
    if not any(setup.system.layout.devices for setup in lab.setups if not setup.skipped):
        cause = "no cell of this lab is on an emulated device"
        raise InputError(f"--trace {told}", cause, "name devices in [devices] and [layout], or leave it out")
    place = Path(told).absolute()
    if place.exists() and not place.is_dir():
        raise InputError(f"--trace {told}", "it is not a directory", "name one, or one that does not exist yet")
    return str(place)


def _secrets(lab: Lab, path: Path, source: str) -> Mapping[str, Secrets]:
    """From the lab file where it is given and still the same, else from the environment and password files."""
    if not any(setup.system.dsn for setup in lab.setups):
        return {}
    if path.is_file() and redacted_toml(source) == lab.source:
        return declared.lab(path)[1]
    return freeze.secrets_of(lab)


def _caution(differences: list[str]) -> Prepared:
    """What every trial says that is measured although something has changed."""
    if not differences:
        return NOTHING
    text = "since the lab began, this has changed: " + "; ".join(differences)
    return Prepared(warnings=(Warning("lab-changed", text),))


def _announce(lab: Lab, directory: LabDirectory, printer: Printer) -> None:
    cells = counted(sum(not setup.skipped for setup in lab.setups), "cell")
    seconds = lab.estimate_s or sum(pace.span_s(trial) for trial in lab.trials)
    for caution in declared.cautions(lab):
        printer.say(f"caution: {caution}")
    printer.say(f"{lab.question}")
    trials = counted(len(lab.trials) + preliminary.count(lab), "trial")
    rated = {setup.cell.name for setup in lab.rated}
    among = sum(trial.cell.name in rated for trial in lab.trials)
    at_rates = f", {among} of them at shares of the baseline's peak" if among else ""
    printer.say(f"{cells}, {counted(lab.method.blocks, 'block')}, {trials}{at_rates}")
    printer.say(f"at least {pace.spoken(seconds)}, in {directory.path}")
    for setup in lab.setups:
        if setup.skipped:
            printer.say(f"skipped: {setup.cell.name}: {setup.skipped}")
