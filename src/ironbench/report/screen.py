"""A screen of many factors, in words and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ironbench.model.finding import Conclusion
from ironbench.report import wording
from ironbench.report.cell import TableCell
from ironbench.report.charts.base import Table
from ironbench.report.findings import at_least, bounds, metric_words, ratio
from ironbench.report.numbers import confidence, percent, quantity
from ironbench.report.page import AnswerPoint
from ironbench.study.screen import Screen, ScreenedFactor
from ironbench.study.study import Effect, Study
from ironbench.words import counted, listed


def levels(one: ScreenedFactor) -> str:
    """Writes both levels: `128MB → 2GB`."""
    return f"{one.first} → {one.last}"


def verdict(one: ScreenedFactor) -> str:
    """Returns what the screen shows for one factor; this is not a verdict of the lab."""
    if not one.matters:
        return "no effect seen"
    return f"matters, better at {one.better}" + (", which can lose data" if one.losses else "")


def screened_table(screen: Screen) -> Table:
    """Returns a row per factor."""
    head = ("factor", "levels", "ratio", "interval", "in the screen", "finds from", "p")
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
        return [AnswerPoint(f"The screen is not over ({over} measured): nothing can be told yet.")]
    if not screen.factors:
        return [AnswerPoint("The screen tells no effect: too few of its pairs have two usable trials.")]
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
        f"None of the {count} shows an effect on {metric_words(screen.metric)}: one of {_seen(screen.factors)} would "
        "have been seen in nine of ten such screens."
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
        return "These trials support no change of the baseline."
    what = "one change" if len(cells) == 1 else f"{len(cells)} changes"
    lost = wording.texts(one for effect in study.effects if effect.finding.cell in cells for one in effect.losses)
    risk = "".join(f" {text}." for text in lost)
    return f"These trials support {what} of {study.baseline}: {listed(cells)}.{risk}"


def _not_confirmed(study: Study, screen: Screen) -> Iterator[str]:
    """Yields effects of the screen that fresh blocks did not confirm against the baseline."""
    by_cell = {effect.finding.cell: effect for effect in study.effects}
    for one in screen.matter:
        effect = by_cell.get(f"{one.name}={one.last}")
        if study.complete and effect is not None and effect.finding.conclusion is _opposite(one):
            yield (
                f"{one.name} contradicts itself: in the screen {one.better} was better, over all settings of the "
                "others, and fresh blocks against the baseline say the opposite. It depends on the other settings, or "
                "one of the two is chance; these trials support neither level."
            )
        elif study.complete and effect is not None and _open(effect):
            yield (
                f"In the screen, over all settings of the others, {one.name} at {one.last} had {ratio(one.ratio)} "
                f"what it had at {one.first} ({bounds(one.low, one.high)}); alone against the baseline that is not "
                "confirmed."
            )


def _opposite(one: ScreenedFactor) -> Conclusion:
    """Returns the conclusion of fresh blocks that would contradict the screen."""
    return Conclusion.SLOWER if one.changes else Conclusion.FASTER


def _open(effect: Effect) -> bool:
    return effect.finding.conclusion in (Conclusion.CANNOT_TELL, Conclusion.EQUIVALENT)


def _others(screen: Screen) -> Iterator[str]:
    rest = [one for one in screen.factors if not one.matters]
    if rest:
        verb = "shows" if len(rest) == 1 else "show"
        yield (
            f"Of the others, {listed([one.name for one in rest])} {verb} no effect: one of {_seen(rest)} would have "
            "been seen in nine of ten such screens."
        )


def _interaction(screen: Screen) -> Iterator[AnswerPoint]:
    if screen.interaction is not None:
        found = screen.interaction
        pairs = [f"{pair} {ratio(factor)}" for pair, factor in zip(found.pairs, found.factors, strict=True)][:_NAMED]
        more = len(found.pairs) - len(pairs)
        which = " or ".join(pairs) + (f" or {counted(more, 'other pair')}" if more > 0 else "")
        yield AnswerPoint(
            f"Two factors interact (p {_p(found.p)}). Both changes together, relative to the product of both alone: "
            f"{which}.",
            doubt="The screen cannot tell these pairs from each other; a lab with design full of one pair can.",
        )


_NAMED = 4


def _p(p: float) -> str:
    return quantity(p, "p")


def lead(screen: Screen) -> str:
    """Explains how the screen was made, and how to read its figures."""
    noise = ""
    if screen.spread is not None:
        noise = (
            f" The two runs of a pair differ by {percent(screen.spread)} from block to block ({screen.freedom} degrees "
            "of freedom): that, and no effect taken for zero, is the error."
        )
    return (
        f"{counted(screen.runs, 'run')} of a fractional factorial design of {len(screen.factors)} factors (Plackett "
        f"and Burman, folded over: resolution IV) in {counted(screen.blocks, 'block')}. Each run and its mirror image, "
        "with every factor at its other level, were measured one after the other. An effect is the ratio of a factor's "
        "last level to its first over all settings of the others; no interaction of two factors is in it. Intervals "
        f"share one chance of a false alarm among all factors (Holm).{noise}\n\n"
        "The screen only chooses what fresh blocks compare: of many noisy effects the largest look larger than they "
        "are. Between the two levels of a factor nothing was screened."
    )
