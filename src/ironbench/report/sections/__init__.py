"""The sections of a report: one module for each, found by its name.

A module has `PLACE`, which orders them, and `sections(study)`, which yields what the study of runs or of a lab has to
show under its heading. What has nothing to show is left out here: a section need not ask whether it is about a lab.
"""

from __future__ import annotations

import importlib
import pkgutil

from ironbench.analyse.study import Study
from ironbench.report import own
from ironbench.report.section import Section


def sections(study: Study) -> list[Section]:
    """Everything with something to show, in reading order."""
    shown = own.presentation(study)
    hidden = shown.hides if shown else frozenset[str]()
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    return [
        section
        for module in sorted(modules, key=lambda module: module.PLACE)
        for section in module.sections(study)
        if section.shows_something and section.id not in hidden
    ]
