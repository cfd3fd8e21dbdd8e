"""The answer to a lab's question in one paragraph, in words that its data support and no stronger ones."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.analyse.growth import ALL
from ironbench.analyse.labstudy import Effect, LabStudy
from ironbench.analyse.scalability import Fit
from ironbench.model.finding import Conclusion
from ironbench.report import trend
from ironbench.report.findings import at_least, interval, metric_words, ratio
from ironbench.report.numbers import confidence, percent, quantity

_EACH = 3
"""More comparisons than this are told by how they ended, not one by one."""
_NAMED = 4
"""Of one ending, at most so many are named."""


def answer(study: LabStudy) -> str:
    """Sentences in reading order: what was found, how sure, what the machine's own noise is, what was expected."""
    contrary = trend.sentences(study.against)
    said = (*findings(study), *contrary, *growth(study), limits(study), *disturbed(study), noise(study), claims(study))
    return " ".join(words for words in said if words)


def findings(study: LabStudy) -> list[str]:
    """What was found, comparison by comparison or ending by ending."""
    if not any(effect.finding.blocks for effect in study.effects):
        return [_nothing(study)]
    if len(study.effects) > _EACH or len(study.ended(Conclusion.CANNOT_TELL)) > 1:
        return [*_endings(study), *(one.sentence for one in study.ceilings)]
    measured = {(one.finding.cell, one.finding.baseline): one.sentence for one in study.ceilings}
    return [
        measured.get((effect.finding.cell, effect.finding.baseline)) or sentence(effect) for effect in study.effects
    ]


def growth(study: LabStudy) -> list[str]:
    """Where throughput stops growing with clients, by the fitted law; never further than was measured."""
    fits = [(curve.name, curve.fit) for curve in study.growths[:_EACH] if curve.fit]
    return [
        f"{'With more clients' if name == ALL else f'{name} with more clients'}: {_peak(fit)}." for name, fit in fits
    ]


def _peak(fit: Fit) -> str:
    if fit.peak_is_beyond:
        return f"throughput still grows at {fit.last:g}, the most that were measured"
    peak = f"throughput peaks at {quantity(fit.peak_throughput.value, '1/s')} near {fit.peak_clients.value:.0f} clients"
    if not fit.peak_is_certain:
        return f"{peak}, perhaps beyond the {fit.last:g} that were measured"
    return f"{peak} ({fit.peak_clients.low:.0f} to {fit.peak_clients.high:.0f})"


def limits(study: LabStudy) -> str:
    """What holds the baseline back, as far as its backends were observed."""
    spent = next((cell.time for cell in study.cells if cell.name == study.lab.baseline and cell.time), None)
    if spent is None:
        return ""
    said = spent.limit.sentence.replace("Cannot tell what limits:", "What limits cannot be told:")
    return f"At {study.lab.baseline}, {said[:1].lower()}{said[1:]}"


def disturbed(study: LabStudy) -> list[str]:
    """What may have made a difference besides the cells."""
    return [one.sentence for one in study.disturbances]


def noise(study: LabStudy) -> str:
    """What the machine shows between two runs of the same cell."""
    if study.noise is None:
        return ""
    floor = percent(study.noise.floor)
    return f"The noise floor of this machine is {floor}: smaller differences may be its own ({study.noise.source})."


def claims(study: LabStudy) -> str:
    """How the author's expectations fared, in numbers."""
    if not study.claims:
        return ""
    tally = [
        (outcome, [judged for judged in study.claims if judged.outcome == outcome])
        for outcome in ("confirmed", "refuted", "undecided")
    ]
    if len(study.claims) == 1:
        return f"The claim of the lab file is {study.claims[0].outcome}."
    words = ", ".join(f"{len(found)} {outcome}" for outcome, found in tally if found)
    return f"Of the {len(study.claims)} claims of the lab file: {words}."


def sentence(effect: Effect) -> str:
    """One comparison: how it ended, by how much, how sure."""
    finding, contrast = effect.finding, effect.contrast
    where = f" at {contrast.where}" if contrast.where else ""
    times = f"{ratio(finding.ratio)} its {metric_words(finding.metric)}"
    blocks = "1 block" if finding.blocks == 1 else f"{finding.blocks} blocks"
    doubt = f"{interval(finding)}, {confidence(finding.confidence)} interval, {blocks}"
    if finding.conclusion in (Conclusion.FASTER, Conclusion.SLOWER):
        words = finding.conclusion.value
        return f"{contrast.cell} is {words} than {contrast.baseline}{where}: {times} ({doubt})."
    if finding.conclusion is Conclusion.EQUIVALENT:
        margin = percent(finding.margin)
        return f"{contrast.cell} and {contrast.baseline} are equivalent within {margin}{where}: {times} ({doubt})."
    text = (
        f"Whether {contrast.cell} is faster or slower than {contrast.baseline}{where} cannot be told from these trials"
    )
    text += f": {times} ({doubt})" if finding.blocks else ": no block has both"
    if finding.barred:
        text += f". {finding.barred}"
    elif finding.detectable is not None:
        text += f", and they would show only differences of {at_least(finding.detectable)}"
    return f"{text}." + _advice(finding.advice)


def _endings(study: LabStudy) -> list[str]:
    baselines = {effect.contrast.baseline for effect in study.effects}
    baseline = baselines.pop() if len(baselines) == 1 else "the baseline"
    said = [f"{len(study.effects)} cells were compared with {baseline} by their {metric_words(study.metric)}."]
    for conclusion in Conclusion:
        ended = study.ended(conclusion)
        if ended:
            said.append(_ending(conclusion, ended, len(study.effects), baseline))
    return said


def _ending(conclusion: Conclusion, ended: Sequence[Effect], everyone: int, baseline: str) -> str:
    how_many = "All" if len(ended) == everyone else str(len(ended))
    if conclusion is Conclusion.CANNOT_TELL and len(ended) == everyone:
        how_many = "None"
    verb = "is" if len(ended) == 1 else "are"
    names = _names(ended)
    if conclusion is Conclusion.EQUIVALENT:
        within = percent(ended[0].finding.margin)
        return f"{how_many} {verb} equivalent to {baseline} within {within}: {names}."
    if conclusion is Conclusion.CANNOT_TELL:
        known = [effect.finding.detectable for effect in ended if effect.finding.detectable is not None]
        least = f" (these blocks would show only differences of {at_least(max(known))})" if known else ""
        advice = next((effect.finding.advice for effect in ended if effect.finding.advice), "")
        can = "can" if how_many == "None" else "cannot"
        text = f"{how_many} {can} be told from {baseline}{least}: {names}."
        return text + _advice(advice)
    return f"{how_many} {verb} {conclusion.value} than {baseline}: {names}."


def _advice(text: str) -> str:
    return f" To tell: {text.rstrip('.')}." if text else ""


def _names(ended: Sequence[Effect]) -> str:
    """The farthest from 1 first."""
    ranked = sorted(ended, key=lambda effect: -abs(effect.finding.ratio - 1))
    names = [
        f"{effect.contrast.cell}{f' at {effect.contrast.where}' if effect.contrast.where else ''} "
        f"({ratio(effect.finding.ratio)}, {interval(effect.finding)})"
        for effect in ranked[:_NAMED]
    ]
    rest = len(ranked) - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest else "")


def _nothing(study: LabStudy) -> str:
    usable = sum(len(cell.usable) for cell in study.cells)
    if not usable:
        return "No trial ended well enough to be compared: there is no answer yet."
    if not study.lab.comparisons:
        return "This lab compares no cells: it describes them."
    return "No block holds both sides of a comparison: there is no answer yet."
