"""Sections of a report. Each subject has a module.

Each module defines `PLACE` and `sections(study)`. `PLACE` determines the order of the modules in a report.
`sections(study)` yields the module's sections, for runs and for labs.

The function `sections` of this package leaves out empty sections. A module therefore need not check whether the study
is about a lab.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ironbench.report import presentation
from ironbench.report.wording.terms import configuration
from ironbench.study.subjects import emulated
from ironbench.words import some

if TYPE_CHECKING:
    from ironbench.model.record import Record
    from ironbench.report.page import Section
    from ironbench.study.study import Study


def sections(study: Study) -> list[Section]:
    """Returns all sections of a report that have content, in reading order."""
    shown = presentation.of_study(study)
    hidden = shown.hides if shown else frozenset[str]()
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    return [
        _marked(section, study)
        for module in sorted(modules, key=lambda module: module.PLACE)
        for section in module.sections(study)
        if section.shows_something and section.id not in hidden
    ]


def _marked(section: Section, study: Study) -> Section:
    """Adds the systems with emulated storage to the title of every chart. A chart may be copied without its page, and
    its readers must know which storage was emulated."""
    shown: list[tuple[str, Sequence[Record]]] = [
        (configuration(cell.configuration), cell.usable) for cell in study.cells
    ]
    shown += [(part.name, part.subject.usable) for part in study.parts]
    names = [name for name, records in shown if any(map(emulated, records))]
    if not names or not section.charts:
        return section
    which = (
        "emulated storage" if len(names) == len([1 for _, records in shown if records]) else f"emulated: {some(names)}"
    )
    return replace(section, charts=tuple(replace(one, title=f"{one.title} ({which})") for one in section.charts))
