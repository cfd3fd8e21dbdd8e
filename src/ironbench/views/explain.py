"""Where the difference of A and B comes from, as a page."""

from __future__ import annotations

from ironbench.records.labs import LabDirectory
from ironbench.report import explain, wording
from ironbench.report.answer import comparison
from ironbench.report.comparison import NO_VERDICT, UNDECLARED
from ironbench.report.derived import sentences
from ironbench.report.page import Page
from ironbench.study.labstudy import of_two
from ironbench.study.study import Study, studies
from ironbench.views.compare import Held


def page_of(held: Held, everything: bool = False) -> Page:
    """In every format that reports have."""
    found = held.found
    verdict = [comparison(effect) for effect in held.pairs if effect.finding.decides]
    doubt = UNDECLARED if held.pairs else NO_VERDICT
    cautions = (*wording.texts((*found.left_out, *found.warnings)), *wording.sentences(found.unlike))
    return explain.page(held.explained(), _study(held), verdict, doubt, cautions, everything)


def _study(held: Held) -> Study:
    """Of the two alone."""
    one, other = held.sides
    if held.pairs:
        directory = LabDirectory(one.store.directory)
        look = max(1, len(directory.declared()))
        return of_two(directory.lab(), directory.records(), one.cells[0], other.cells[0], held.store, look)
    records = [*held.found.trials[0], *held.found.trials[1]]
    return studies(records, held.store, sentences(records))[0]
