"""What may stand in a lab file, and how it is read: every mistake with the path of its field."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import partial
from pathlib import PurePath
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from ironbench import ranges
from ironbench.catalogue import typed
from ironbench.errors import InputError, collected
from ironbench.plan import fields, resolve, sections, tags, vary
from ironbench.plan.vary import Varied


class MeasureSection(Struct, forbid_unknown_fields=True):
    """How trials are repeated and judged."""

    repeats: Annotated[int | None, Meta(description="Blocks: how often every cell is measured. Default 6.")] = None
    order: Annotated[
        Literal["random", "fixed"], Meta(description="Of the cells within a block; `fixed` is the order of the file.")
    ] = "random"
    seed: Annotated[
        Annotated[int, Meta(**sections.within("seed"))] | None,
        Meta(description="Of order and random values; without one it follows from the file's text."),
    ] = None
    crash: Annotated[
        Literal["", "lose", "subset", "torn"],
        Meta(
            description="Power cut after each trial, on emulated devices: what becomes of writes without a flush. The "
            "checks then judge what is left."
        ),
    ] = ""
    margin: Annotated[
        float, Meta(description="Cells whose ratio lies within 1/(1+margin) to 1+margin are called equivalent.")
    ] = 0.05
    metric: Annotated[str, Meta(description="The metric that the lab's answer is about.")] = "throughput"
    compare: Annotated[
        list[str],
        Meta(
            description="The comparisons that get a verdict, e.g. `log=memory over log=disk`; by default those of the "
            "design. Other cells are measured and shown without one."
        ),
    ] = field(default_factory=list)
    method: Annotated[
        Literal["trials", "slices", "auto"],
        Meta(
            description="`trials`: the cells of a block are measured one after another, each in one piece. `slices`: "
            "their systems stand side by side and take turns of about a second, the others frozen. Where they cannot, "
            "trials, and `lab plan` says why. `auto`: `slices` where it applies. See `docs/concepts/slices.md`."
        ),
    ] = "trials"
    slice: Annotated[
        sections.Time,
        Meta(
            description="Length of a slice, of method `slices`. By default a pilot in the first block "
            "chooses: the shortest of 0.5, 1, 2 and 5 s of which the start-up is less than 1 %."
        ),
    ] = ""
    restore: Annotated[
        Literal["auto", "trial", "block"], Meta(description="When data go back to their first state.")
    ] = "auto"
    quiet: Annotated[
        sections.Time, Meta(description="Longest wait for a machine without other load before a trial.")
    ] = "30s"
    rates: Annotated[
        Literal["auto", "none"] | list[str],
        Meta(
            description="Shares of the baseline's peak at which cells are measured, too, so that response times can be "
            "compared at the same load; `auto`: 50, 70 and 90 % where the lab varies the system; `none`: not."
        ),
    ] = "auto"
    budget: Annotated[
        sections.Time, Meta(description="Time for the whole lab: chooses repeats and duration, as --budget does.")
    ] = ""
    stages: Annotated[
        int | list[int] | None,
        Meta(description="Looks at the findings: a number of looks, or the blocks before each look, e.g. [6, 4]."),
    ] = None


class ExpectSection(Struct, forbid_unknown_fields=True):
    """What the author expects, so that a run can confirm or refute it."""

    claims: Annotated[
        list[str],
        Meta(
            description="`log=memory over log=disk: 1.00 to 1.10`, `order: memory > ssd > disk`; (metric) before `:`."
        ),
    ] = field(default_factory=list)


class LabCommandsSection(sections.CommandsSection, forbid_unknown_fields=True):
    """Commands of your own: what ironbench cannot vary, a command can. Those of a factor's level are added to these."""

    lab: Annotated[sections.PairSection, Meta(description="Once for the whole lab: `lab.prepare`, `lab.cleanup`.")] = (
        field(default_factory=sections.PairSection)
    )
    block: Annotated[sections.PairSection, Meta(description="Once for each block.")] = field(
        default_factory=sections.PairSection
    )


class LabFile(sections.Sections, forbid_unknown_fields=True):
    """A declared experiment."""

    question: Annotated[str, Meta(description="What the lab shall answer, as a sentence. Required.")] = ""
    design: Annotated[
        Literal["one-at-a-time", "full", "explicit", "screen"],
        Meta(
            description="Which combinations of levels are measured; the first level of a factor is the baseline's. "
            "`screen` is what `ironbench tune` does."
        ),
    ] = "one-at-a-time"
    vary: Annotated[
        dict[str, list[Any] | str | dict[str, Any]],
        Meta(
            description="Factor = list of a field's values, a range `128MB..2GB` (its two ends), or a table of named "
            "levels that override any fields."
        ),
    ] = field(default_factory=dict)
    cell: Annotated[
        list[dict[str, Any]],
        Meta(description="For the explicit design: factor = level, or a name with fields; the first is the baseline."),
    ] = field(default_factory=list)
    commands: LabCommandsSection = field(default_factory=LabCommandsSection)
    tag: Annotated[
        dict[str, sections.Setting],
        Meta(
            description="Notes for every record of the lab, e.g. `commit`; `ironbench history` orders records by one."
        ),
    ] = field(default_factory=dict)
    measure: MeasureSection = field(default_factory=MeasureSection)
    expect: ExpectSection = field(default_factory=ExpectSection)


@dataclass(frozen=True, slots=True)
class Declared:
    """A lab file that is right in itself; whether this machine can do it is not known yet."""

    file: str
    """As the user named it; subject of every message."""
    name: str
    question: str
    design: str
    base: dict[str, Any]
    """Sections of the file that a cell is made of, before any level."""
    factors: tuple[Varied, ...]
    explicit: tuple[dict[str, Any], ...]
    measure: MeasureSection
    claims: tuple[str, ...]
    source: str
    commands: LabCommandsSection = dataclass_field(default_factory=LabCommandsSection)
    """Of the lab and its blocks; those of trials are in `base`, too."""
    tags: Mapping[str, str] = dataclass_field(default_factory=dict)
    """See `Record.tags`."""

    @property
    def seed(self) -> int:
        """The declared one, else one that follows from the text: the order shown by `plan` is the order of the run."""
        if self.measure.seed is not None:
            return self.measure.seed
        return int.from_bytes(hashlib.sha256(self.source.encode()).digest()[:4], "big") >> 1

    @property
    def looks(self) -> int | None:
        """At the findings; None: not declared."""
        stages = self.measure.stages
        return len(stages) if isinstance(stages, list) else stages

    @property
    def repeats(self) -> int:
        stages = self.measure.stages
        if isinstance(stages, list) and self.measure.repeats is None:
            return sum(stages)
        return DEFAULT_REPEATS if self.measure.repeats is None else self.measure.repeats


DEFAULT_REPEATS = 6
"""The fewest blocks that carry a verdict."""


def read(text: str, name: str, design: str = "") -> Declared:
    """The lab that `text` declares; `name` is its file. InputError with the path of the field at fault.

    `design`: what the caller asks for, and the file may say, too.
    """
    document = fields.with_dotted_keys(typed.document(text, name, "https://toml.io shows how it is written"))
    wrong = {key for key, value in document.items() if not fields.is_sound({key: value}, LabFile)}
    sound = fields.sound(document, LabFile)
    file = fields.converted({"design": design, **sound} if design else sound, LabFile, name)
    base = {section: sound.get(section, {}) for section in (*fields.SECTIONS, "devices")}
    base["commands"] = {name: one for name, one in base["commands"].items() if name in fields.SECTIONS["commands"]}
    factors: list[Varied] = []

    def declared() -> Declared:
        return _declared(text, name, file, base, tuple(factors))

    # Each with the fields at the top that it rests on.
    checks: list[tuple[Callable[[], object], set[str]]] = [
        (partial(fields.validate, document, LabFile, name), set()),
        (partial(fields.validate_kinds, document, LabFile, name), set()),
        (partial(_validate_question, file, name), {"question"}),
        (lambda: tags.validate(f"{name}, tag", resolve.texts(file.tag)), {"tag"}),
        (lambda: factors.extend(vary.factors(document.get("vary", {}), base, name)), _LENDING),
        (lambda: _validate_measure(declared()), {"measure"}),
        (partial(_validate_asked, design, file, name), {"design"}),
        (lambda: _validate_design(declared(), bool(document.get("vary"))), {"design", "cell"}),
    ]
    strange = wrong.difference(fields.names(LabFile))
    # Under a name that is not known, anything that a check rests on may stand.
    collected(check for check, rests_on in checks if not rests_on or not (strange or wrong & rests_on))
    return declared()


_LENDING = {"vary", "system", "workload", "devices"}
"""Of the names that levels may use some stand there: settings, options, variables, devices."""


def _validate_asked(design: str, file: LabFile, name: str) -> None:
    """InputError: the caller asks for another design than the file declares."""
    if design and file.design != design:
        cause = f"{file.design} is no {design}"
        raise InputError(f"{name}, design", cause, f"leave it out here; `ironbench lab run {name}` runs it as it is")


def _validate_question(file: LabFile, name: str) -> None:
    if not file.question.strip():
        raise InputError(f"{name}, question", "is missing", 'write what the lab shall answer: question = "Is … ?"')


def _declared(text: str, name: str, file: LabFile, base: dict[str, Any], factors: tuple[Varied, ...]) -> Declared:
    return Declared(
        file=name,
        name=PurePath(name).stem,
        question=file.question.strip(),
        design=file.design,
        base=base,
        factors=factors,
        explicit=tuple(file.cell),
        measure=file.measure,
        claims=tuple(file.expect.claims),
        source=text,
        commands=file.commands,
        tags=resolve.texts(file.tag),
    )


def _validate_measure(declared: Declared) -> None:
    where = f"{declared.file}, measure"
    checks = (_validate_repeats, _validate_margin, _validate_stages, _validate_budget, _validate_slice)
    collected(partial(check, declared, where) for check in checks)


def _validate_repeats(declared: Declared, where: str) -> None:
    measure = declared.measure
    if measure.repeats is not None:
        ranges.RANGES["repeats"].require(f"{where}.repeats", measure.repeats)
    ranges.read("quiet", f"{where}.quiet", measure.quiet)


def _validate_slice(declared: Declared, where: str) -> None:
    measure = declared.measure
    if measure.slice != "":
        ranges.read("slice", f"{where}.slice", measure.slice)


def _validate_margin(declared: Declared, where: str) -> None:
    measure = declared.measure
    ranges.RANGES["margin"].require(f"{where}.margin", measure.margin)


def _validate_budget(declared: Declared, where: str) -> None:
    measure = declared.measure
    if measure.budget != "":
        ranges.read("budget", f"{where}.budget", measure.budget)
        if measure.repeats is not None or isinstance(measure.stages, list):
            raise InputError(
                f"{where}.budget", "chooses the repeats, and they are declared, too", "keep one of the two"
            )


def _validate_stages(declared: Declared, section: str) -> None:
    where = f"{section}.stages"
    measure, looks = declared.measure, declared.looks
    counts = measure.stages if isinstance(measure.stages, list) else [1]
    if looks is not None and (looks < 1 or min(counts, default=0) < 1):
        raise InputError(where, "every stage has at least one block", "write for example stages = [6, 4]")
    if isinstance(measure.stages, list):
        ranges.RANGES["repeats"].require(where, sum(counts))
    if isinstance(measure.stages, list) and measure.repeats not in (None, sum(counts)):
        raise InputError(where, f"sum up to {sum(counts)} blocks, but repeats is {measure.repeats}", "keep one of them")
    if looks is not None and looks > declared.repeats and measure.budget == "":
        raise InputError(where, f"{looks} looks need at least as many repeats", "ask for fewer looks")


def _validate_design(declared: Declared, varied: bool) -> None:
    """`varied`: whether the file has a [vary], right or wrong."""
    where = declared.file
    if declared.design == "explicit" and not declared.explicit:
        raise InputError(
            f"{where}, design", "an explicit design names its cells", "add [[cell]] tables, or leave design out"
        )
    if declared.design != "explicit" and declared.explicit:
        raise InputError(f"{where}, cell", "cells are named only in an explicit design", 'add design = "explicit"')
    if not declared.explicit and not varied:
        raise InputError(
            f"{where}, vary", "nothing varies, so there is nothing to compare", "add [vary] with a list of levels"
        )
