"""The table and the answer of a screening experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ironbench.model.finding import Conclusion, Finding
from ironbench.report import wording
from ironbench.report.cell import TableCell
from ironbench.report.charts.base import Table
from ironbench.report.numbers import confidence
from ironbench.report.page import AnswerPoint
from ironbench.report.wording.answers import screening
from ironbench.study.screen import Screen, ScreenedFactor
from ironbench.study.study import Study

EFFECT, NO_EFFECT = "effect detected", "no effect detected"


def verdict(one: ScreenedFactor) -> str:
    """Returns the result of the screening experiment for one factor. This result is not a verdict of the lab."""
    return screening.better_at(EFFECT, one.better, bool(one.losses)) if one.matters else NO_EFFECT


def screened_table(screen: Screen) -> Table:
    """Returns a row for each factor."""
    head = ("factor", "values", "ratio", "CI", "result", "min. detectable effect", "p")
    rows = tuple(
        (
            one.name,
            screening.levels(one.first, one.last),
            TableCell(one.ratio, "ratio"),
            TableCell(None, "ratio", one.low, one.high, one.confidence, note=confidence(one.confidence)),
            verdict(one),
            TableCell(one.detectable, "detectable"),
            TableCell(one.p, "p"),
        )
        for one in screen.factors
    )
    return Table(head, rows)


def points(study: Study, screen: Screen, compared: Sequence[AnswerPoint]) -> list[AnswerPoint]:
    """Returns the points of the answer about a screening experiment and about the blocks that confirm it. `compared`:
    points about the comparisons in these blocks."""
    if not screen.complete:
        return [AnswerPoint(screening.incomplete(screen.trials, screen.missing))]
    if not screen.factors:
        return [AnswerPoint(screening.no_result())]
    if not screen.matter:
        none = screening.no_effect(screen.metric, len(screen.factors), _detectable(screen.factors))
        return [AnswerPoint(none), AnswerPoint(_supported([], study)), *_interaction(screen)]
    points = [*compared]
    if study.complete and any(finding.blocks for finding in study.findings):
        points.append(AnswerPoint(_supported(_faster(study, screen), study)))
    if study.complete:
        points += [AnswerPoint(text) for text in _not_confirmed(study, screen)]
    if rest := [one for one in screen.factors if not one.matters]:
        points.append(AnswerPoint(screening.no_effect_of([one.name for one in rest], _detectable(rest))))
    return [*points, *_interaction(screen)]


def _detectable(factors: Sequence[ScreenedFactor]) -> float:
    return max(one.detectable for one in factors)


def _faster(study: Study, screen: Screen) -> list[str]:
    """Returns the configurations, with one changed factor each, that were faster than the baseline in the confirmation
    blocks. A configuration is left out if the screening experiment found it slower."""
    alone = {f"{one.name}={level}" for one in screen.matter for level in (*one.between, one.last)}
    alone -= {f"{one.name}={one.last}" for one in screen.matter if not one.differs_from_baseline}
    return [one.cell for one in study.ended(Conclusion.FASTER) if one.cell in alone]


def _supported(cells: Sequence[str], study: Study) -> str:
    losses = [one for finding in study.findings if finding.cell in cells for one in finding.losses]
    return screening.supported(cells, wording.texts(losses))


def _not_confirmed(study: Study, screen: Screen) -> Iterator[str]:
    """Yields a sentence for each detected effect that the confirmation blocks contradict or do not confirm."""
    by_cell: dict[str, Finding] = {finding.cell: finding for finding in study.findings}
    for one in screen.matter:
        if (finding := by_cell.get(f"{one.name}={one.last}")) is None:
            continue
        if finding.conclusion is (Conclusion.SLOWER if one.differs_from_baseline else Conclusion.FASTER):
            yield screening.contradicted(one.name, one.better)
        elif finding.conclusion in (Conclusion.CANNOT_TELL, Conclusion.EQUIVALENT):
            yield screening.not_confirmed(one.name, one.first, one.last, screen.metric, one.ratio, one.low, one.high)


def _interaction(screen: Screen) -> Iterator[AnswerPoint]:
    if (found := screen.interaction) is not None:
        pairs = list(zip(found.pairs, found.factors, strict=True))
        yield AnswerPoint(screening.interaction(found.p, pairs), caveat=screening.interaction_caveat())
