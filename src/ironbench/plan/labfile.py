"""Reads a lab file and reports every mistake with the path of its field."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from typing import Any

import msgspec

from ironbench.catalogue import typed
from ironbench.errors import InputError, collected, nearest
from ironbench.fields import check
from ironbench.fields.lab import LabCommandsSection, LabFile, MeasureSection, range_of
from ironbench.fields.row import table
from ironbench.fields.sections import SECTIONS
from ironbench.plan import paths, resolve, tags, vary
from ironbench.plan.vary import VariedFactor


@dataclass(frozen=True, slots=True)
class DeclaredLab:
    """The contents of a valid lab file, before ironbench checks whether this machine can run the lab."""

    file: str
    """Name of the file as the user typed it. Messages use this name."""
    name: str
    question: str
    design: str
    base: dict[str, Any]
    """Sections that are common to all configurations, before factor values are applied."""
    factors: tuple[VariedFactor, ...]
    explicit: tuple[dict[str, Any], ...]
    measure: MeasureSection
    claims: tuple[str, ...]
    source: str
    commands: LabCommandsSection = field(default_factory=LabCommandsSection)
    """Commands of the lab and its blocks. Commands of trials are in `base`."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """See `Record.tags`."""

    @property
    def seed(self) -> int:
        """The declared seed. If none is declared, the seed is derived from the text of the file, so that `lab plan`
        shows the order in which `lab run` will measure."""
        if self.measure.seed is not None:
            return self.measure.seed
        return int.from_bytes(hashlib.sha256(self.source.encode()).digest()[:4], "big") >> 1

    @property
    def analyses(self) -> int | None:
        """Number of interim analyses, or None if the file does not declare stages."""
        stages = self.measure.stages
        return len(stages) if isinstance(stages, list) else stages

    @property
    def repeats(self) -> int:
        stages = self.measure.stages
        if isinstance(stages, list) and self.measure.repeats is None:
            return sum(stages)
        return DEFAULT_REPEATS if self.measure.repeats is None else self.measure.repeats


DEFAULT_REPEATS = 6
"""Default number of repeats: the minimum number of blocks for a verdict."""


def read(text: str, name: str, design: str = "") -> DeclaredLab:
    """Returns the lab declared by `text`. Raises InputError that contains the path of each invalid field.

    `name`: name of the file. `design`: the design that the caller requests. The file must not declare a different
    design.
    """
    document = paths.with_dotted_keys(typed.document(text, name, "see https://toml.io for the syntax"))
    mistakes = check.mistakes(document, LabFile)
    wrong = {mistake.path[0] for mistake in mistakes}
    sound = check.without(document, (mistake.path for mistake in mistakes))
    file = msgspec.convert({"design": design, **sound} if design else sound, LabFile)
    base = {section: sound.get(section, {}) for section in (*SECTIONS, "devices")}
    base["commands"] = {name: one for name, one in base["commands"].items() if name in SECTIONS["commands"]}
    factors: list[VariedFactor] = []

    def declared() -> DeclaredLab:
        return _declared(text, name, file, base, tuple(factors))

    # An entry is a check and the top-level fields that the check depends on.
    checks: list[tuple[Callable[[], object], set[str]]] = [
        (partial(check.refused, mistakes, name), set()),
        (partial(_validate_question, file, name), {"question"}),
        (lambda: tags.validate(f"{name}, tag", resolve.texts(file.tag)), {"tag"}),
        (lambda: factors.extend(vary.factors(document.get("vary", {}), base, name)), _LENDING),
        (lambda: _validate_measure(declared()), {"measure"}),
        (partial(_validate_asked, design, file, name), {"design"}),
        (lambda: _validate_design(declared(), bool(document.get("vary"))), {"design", "cell"}),
    ]
    strange = wrong.difference(table(LabFile))
    # An unknown field may be a misspelling of a field that other checks depend on. If there is an unknown field, checks
    # with dependencies are therefore skipped.
    collected(check for check, rests_on in checks if not rests_on or not (strange or wrong & rests_on))
    return declared()


_LENDING = {"vary", "system", "workload", "devices"}
"""Sections that must be valid before [vary] can be read, because [vary] may name settings, options, variables and
devices that these sections declare."""


def _validate_asked(design: str, file: LabFile, name: str) -> None:
    """Raises InputError if the caller requests a design that differs from the file's."""
    if design and file.design != design:
        cause = f"is {file.design}, but this command needs {design}"
        raise InputError(f"{name}, design", cause, f"remove `design`, or use `ironbench lab run {name}`")


def _validate_question(file: LabFile, name: str) -> None:
    if not file.question.strip():
        raise InputError(
            f"{name}, question", "is missing", 'add the question that the lab should answer: question = "Is … ?"'
        )


def _declared(
    text: str, name: str, file: LabFile, base: dict[str, Any], factors: tuple[VariedFactor, ...]
) -> DeclaredLab:
    return DeclaredLab(
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


def _validate_measure(declared: DeclaredLab) -> None:
    where = f"{declared.file}, measure"
    collected(partial(one, declared, where) for one in (_validate_stages, _validate_budget, _validate_answer))


def _validate_budget(declared: DeclaredLab, where: str) -> None:
    measure = declared.measure
    if measure.budget != "" and (measure.repeats is not None or isinstance(measure.stages, list)):
        raise InputError(
            f"{where}.budget",
            "cannot be combined with `repeats` or a list of `stages`",
            "remove `budget`, or remove the other",
        )


def _validate_answer(declared: DeclaredLab, where: str) -> None:
    names = [factor.name for factor in declared.factors]
    if declared.measure.answer and declared.measure.answer not in names:
        cause = f"{declared.measure.answer} is not a factor of this lab"
        raise InputError(f"{where}.answer", cause, nearest(declared.measure.answer, names))


def _validate_stages(declared: DeclaredLab, section: str) -> None:
    where = f"{section}.stages"
    measure, analyses = declared.measure, declared.analyses
    counts = measure.stages if isinstance(measure.stages, list) else [1]
    if analyses is not None and (analyses < 1 or min(counts, default=0) < 1):
        raise InputError(where, "every stage needs at least one block", "write for example stages = [6, 4]")
    if isinstance(measure.stages, list):
        range_of("measure.repeats").require(where, sum(counts))
    if isinstance(measure.stages, list) and measure.repeats not in (None, sum(counts)):
        raise InputError(
            where, f"sum up to {sum(counts)} blocks, but `repeats` is {measure.repeats}", "remove `stages` or `repeats`"
        )
    if analyses is not None and analyses > declared.repeats and measure.budget == "":
        raise InputError(
            where, f"{analyses} interim analyses need at least {analyses} repeats", "use fewer stages or more repeats"
        )


def _validate_design(declared: DeclaredLab, varied: bool) -> None:
    """Checks the design. `varied`: whether the file has a [vary] section, even an invalid one."""
    where = declared.file
    if declared.design == "explicit" and not declared.explicit:
        raise InputError(
            f"{where}, design", "an explicit design needs [[cell]] tables", "add [[cell]] tables, or remove `design`"
        )
    if declared.design != "explicit" and declared.explicit:
        raise InputError(f"{where}, cell", "only an explicit design has [[cell]] tables", 'add design = "explicit"')
    if not declared.explicit and not varied:
        raise InputError(
            f"{where}, vary", "nothing varies, so there is nothing to compare", "add [vary] with a list of values"
        )
