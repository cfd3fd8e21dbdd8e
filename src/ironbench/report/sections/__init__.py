"""Sections of a report. Each module has one, or several neighbours of one subject.

A module has `PLACE`, which orders them, and `sections(study)`, which yields what the study of runs or of a lab has to
show under its heading. Empty sections are left out here: a module need not ask whether the study is of a lab.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from ironbench.report import presentation

if TYPE_CHECKING:
    from ironbench.analyse.study import Study
    from ironbench.report.section import Section


def sections(study: Study) -> list[Section]:
    """Everything with something to show, in reading order."""
    shown = presentation.of_study(study)
    hidden = shown.hides if shown else frozenset[str]()
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    return [
        section
        for module in sorted(modules, key=lambda module: module.PLACE)
        for section in module.sections(study)
        if section.shows_something and section.id not in hidden
    ]
