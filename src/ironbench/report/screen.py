"""A screen of many factors, in words and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ironbench.model.finding import Conclusion
from ironbench.report import wording
from ironbench.report.cell import TableCell
from ironbench.report.charts.base import Table
from ironbench.report.finding_tables import ratio
from ironbench.report.numbers import confidence, percent, percent_change, quantity
from ironbench.report.page import AnswerPoint
from ironbench.report.wording.ratios import at_least, metric_words
from ironbench.study.screen import Screen, ScreenedFactor
from ironbench.study.study import Effect, Study
from ironbench.words import counted, listed

EFFECT, NO_EFFECT = "effect detected", "no effect detected"


def levels(one: ScreenedFactor) -> str:
    """Writes both levels: `128MB → 2GB`."""
    return f"{one.first} → {one.last}"


def verdict(one: ScreenedFactor) -> str:
    """Returns what the screen shows for one factor; this is not a verdict of the lab."""
    if not one.matters:
        return NO_EFFECT
    return f"{EFFECT}, better at {one.better}" + (", which risks data loss" if one.losses else "")


def screened_table(screen: Screen) -> Table:
    """Returns a row per factor."""
    head = ("factor", "values", "ratio", "CI", "result", "min. detectable effect", "p")
    rows = tuple(
        (
            one.name,
            levels(one),
            TableCell(one.ratio, "ratio"),
            TableCell(None, "ratio", one.low, one.high, one.confidence, note=confidence(one.confidence)),
            verdict(one),
            TableCell(one.detectable, "detectable"),
            TableCell(one.p, "p"),
        )
        for one in screen.factors
    )
    return Table(head, rows, numbers=True)


def points(study: Study, screen: Screen, compared: Sequence[AnswerPoint]) -> list[AnswerPoint]:
    """Returns the answer of a screen and of its confirmation. `compared`: points about the comparisons."""
    if not screen.complete:
        over = f"{screen.trials} of {counted(screen.trials + screen.missing, 'trial')}"
        return [AnswerPoint(f"The screen is incomplete ({over} measured) and has no result yet.")]
    if not screen.factors:
        return [AnswerPoint("The screen has no result: too few of its pairs have two usable trials.")]
    if not screen.matter:
        rest = [AnswerPoint(text) for text in (_none(screen), _support([], study))]
        return [*rest, *_interaction(screen)]
    points = [*compared]
    if study.complete and any(effect.finding.blocks for effect in study.effects):
        points.append(AnswerPoint(_support(_faster(study, screen), study)))
    points += [AnswerPoint(text) for text in _not_confirmed(study, screen)]
    points += [AnswerPoint(text) for text in _others(screen)]
    return [*points, *_interaction(screen)]


def _none(screen: Screen) -> str:
    count = counted(len(screen.factors), "factor")
    return (
        f"No effect on {metric_words(screen.metric)} was detected for any of the {count}. An effect of "
        f"{_seen(screen.factors)} would have been detected with 90% power."
    )


def _seen(factors: Sequence[ScreenedFactor]) -> str:
    return at_least(max(one.detectable for one in factors))


def _faster(study: Study, screen: Screen) -> list[str]:
    """Returns configurations with one changed factor that the fresh blocks call faster and that the screen did not find
    slower."""
    alone = {f"{one.name}={level}" for one in screen.matter for level in (*one.between, one.last)}
    alone -= {f"{one.name}={one.last}" for one in screen.matter if not one.changes}
    return [one.finding.cell for one in study.ended(Conclusion.FASTER) if one.finding.cell in alone]


def _support(cells: Sequence[str], study: Study) -> str:
    """States the recommendation, and no more: levels that were not measured may be better still."""
    if not cells:
        return "These trials support no change to the baseline."
    what = "one change" if len(cells) == 1 else f"{len(cells)} changes"
    lost = wording.texts(one for effect in study.effects if effect.finding.cell in cells for one in effect.losses)
    risk = "".join(f" {text}." for text in lost)
    return f"These trials support {what} to {study.baseline}: {listed(cells)}.{risk}"


def _not_confirmed(study: Study, screen: Screen) -> Iterator[str]:
    """Yields effects of the screen that fresh blocks did not confirm against the baseline."""
    by_cell = {effect.finding.cell: effect for effect in study.effects}
    for one in screen.matter:
        effect = by_cell.get(f"{one.name}={one.last}")
        if study.complete and effect is not None and effect.finding.conclusion is _opposite(one):
            yield (
                f"The results for {one.name} contradict each other: {one.better} was better in the screen, across all "
                "settings of the other factors, and the later blocks against the baseline show the opposite. The "
                f"effect of {one.name} depends on other settings, or one of the two results is chance; these trials "
                "support neither value."
            )
        elif study.complete and effect is not None and _open(effect):
            yield (
                f"In the screen, across all settings of the other factors, {one.name}={one.last} instead of "
                f"{one.first} changed {metric_words(screen.metric)} by {percent_change(one.ratio)} "
                f"({percent_change(one.low)} to {percent_change(one.high)}); the comparison with the baseline does not "
                "confirm this."
            )


def _opposite(one: ScreenedFactor) -> Conclusion:
    """Returns the conclusion of fresh blocks that would contradict the screen."""
    return Conclusion.SLOWER if one.changes else Conclusion.FASTER


def _open(effect: Effect) -> bool:
    return effect.finding.conclusion in (Conclusion.CANNOT_TELL, Conclusion.EQUIVALENT)


def _others(screen: Screen) -> Iterator[str]:
    rest = [one for one in screen.factors if not one.matters]
    if rest:
        yield (
            f"No effect was detected for {listed([one.name for one in rest])}. An effect of {_seen(rest)} would have "
            "been detected with 90% power."
        )


def _interaction(screen: Screen) -> Iterator[AnswerPoint]:
    if screen.interaction is not None:
        found = screen.interaction
        pairs = [f"{pair} {ratio(factor)}" for pair, factor in zip(found.pairs, found.factors, strict=True)][:_NAMED]
        more = len(found.pairs) - len(pairs)
        which = " or ".join(pairs) + (f" or {counted(more, 'other pair')}" if more > 0 else "")
        yield AnswerPoint(
            f"Two factors interact (p {_p(found.p)}). The effect of both changes together, divided by the product of "
            f"their separate effects, is one of: {which}.",
            doubt='A screen cannot distinguish these pairs; a lab with design = "full" for one pair can.',
        )


_NAMED = 4


def _p(p: float) -> str:
    return quantity(p, "p")


def lead(screen: Screen) -> str:
    """Explains how the screen was made, and how to read its figures."""
    noise = ""
    if screen.spread is not None:
        noise = (
            f" The error is estimated from the variation between blocks, SD {percent(screen.spread)} "
            f"({screen.freedom} degrees of freedom); no effect is assumed to be zero."
        )
    return (
        f"{counted(screen.runs, 'run')} of a fractional factorial design of {len(screen.factors)} factors (Plackett "
        f"and Burman, folded over: resolution IV) in {counted(screen.blocks, 'block')}. Each run was measured next to "
        "its mirror image, which has every factor at its other value. The effect of a factor is the ratio of its last "
        "value to its first, across all settings of the other factors; interactions of two factors do not bias it. "
        f"Confidence intervals are corrected for the number of factors (Holm).{noise}\n\n"
        "The screen only selects what the later blocks compare, because the largest of many noisy effects look larger "
        "than they are. Values between the two of a factor were not screened."
    )
