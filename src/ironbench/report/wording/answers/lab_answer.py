"""Words for the answer at the top of a lab's report: verdicts, how throughput grows with clients, and caveats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ironbench.model.finding import NOT_AT_BOTH_ENDS, Conclusion, Finding, Noise
from ironbench.model.lab import Configuration
from ironbench.model.note import Note
from ironbench.report.cell import CONFIDENCE
from ironbench.report.numbers import confidence, percent, quantity, unit_of
from ironbench.report.wording.answers.ratios import (
    change,
    change_bounds,
    confidence_interval,
    metric_words,
    minimum_effect,
    than,
)
from ironbench.report.wording.registry import text
from ironbench.report.wording.terms import comparison as named
from ironbench.report.wording.terms import configuration, opening
from ironbench.report.wording.values import CI
from ironbench.stats.multiplicity import LEAST_BLOCKS
from ironbench.study.claims import ClaimVerdict, JudgedClaim
from ironbench.study.differences import NOT_SET, Difference
from ironbench.study.growth import ALL, Growth, GrowthStep
from ironbench.study.study import Round, Study
from ironbench.study.subjects import failed_percent
from ironbench.study.versions import LACKS, BesideVersion
from ironbench.words import counted, listed, some, upper_first

_BETTER = {Conclusion.FASTER: "better", Conclusion.SLOWER: "worse"}


def comparison(finding: Finding, metric_named: bool = False) -> str:
    """States the verdict of a comparison, with the size of the difference and its confidence interval: `WAL in memory
    is 26% faster than WAL on disk (95% CI …).`

    `metric_named`: whether an earlier sentence already names the metric.
    """
    cell, baseline = map(configuration, finding.sides)
    at = f"With {configuration(finding.where, listed)}, " if finding.where.values else ""
    subject = f"{at}{cell}" if at else opening(finding.sides[0])
    if finding.conclusion in (Conclusion.FASTER, Conclusion.SLOWER):
        return f"{_difference(finding, subject, at)}{_though(finding)}."
    if finding.conclusion is Conclusion.EQUIVALENT:
        seen = _difference_text(finding, metric_named)
        return f"{subject} and {baseline} are equivalent within {percent(finding.margin)} ({seen}){_though(finding)}."
    if not finding.blocks:
        return f"{subject} and {baseline} cannot be compared, because no block has usable trials of both."
    return f"INCONCLUSIVE: {named(finding)}: {_so_far(finding, metric_named)}."


def _difference(finding: Finding, subject: str, at: str) -> str:
    cell, baseline = map(configuration, finding.sides)
    sure, than_or_as = _sure(finding), than(finding.ratio)
    if finding.metric == "throughput" and not cell[:1].isdigit():
        return f"{subject} is {change(finding.ratio, finding.metric)} {than_or_as} {baseline} ({sure})"
    metric = metric_words(finding.metric)
    better = "" if unit_of(finding.metric) in ("s", "1/s") else f", which is {_BETTER[finding.conclusion]}"
    size = f"{change(finding.ratio, '')} with {cell} {than_or_as} with {baseline}"
    return f"{f'{at}{metric}' if at else upper_first(metric)} is {size} ({sure}){better}"


def _so_far(finding: Finding, metric_named: bool) -> str:
    seen = _difference_text(finding, metric_named)
    if finding.blocks < LEAST_BLOCKS:
        return (
            f"too few blocks for a verdict ({finding.blocks} instead of {LEAST_BLOCKS}); the blocks so far show {seen}"
        )
    return f"{text(finding.changed)}; on average {seen}" if finding.changed else seen


def _difference_text(finding: Finding, metric_named: bool) -> str:
    metric = "" if metric_named else f"{metric_words(finding.metric)} "
    return f"{metric}{change(finding.ratio, '')} with {configuration(finding.sides[0])}, {_sure(finding)}"


def _sure(finding: Finding) -> str:
    return f"{confidence_interval(finding)}, {counted(finding.blocks, 'paired repeat')}"


def _though(finding: Finding) -> str:
    return f", though {text(finding.changed)}" if finding.changed else ""


def emulated_too_slow(side: Configuration, slow: int, trials: int) -> str:
    """Example with side='storage io2 (emulated)', slow=4, trials=6: `In 4 of 6 trials with storage io2 (emulated), this
    machine emulated the device too slowly, so the real device would perform better than shown.`"""
    return (
        f"In {slow} of {counted(trials, 'trial')} with {configuration(side)}, this machine emulated the device "
        "too slowly, so the real device would perform better than shown."
    )


CALIBRATE = (
    "`ironbench device calibrate` shows which device models this machine can emulate. Other programs, and a server "
    "that uses all cores, slow the emulation down further."
)
"""Hint that follows a caveat about emulation that was too slow."""


def why_inconclusive(finding: Finding) -> str:
    """States why a comparison is inconclusive. If there is no particular reason, states the minimum detectable effect.
    Returns an empty text if the comparison has a verdict, or if the sentence about the comparison already contains the
    reason."""
    if finding.conclusion is not Conclusion.CANNOT_TELL or not finding.blocks:
        return ""
    if finding.changed and (not finding.barred or finding.barred.code == NOT_AT_BOTH_ENDS):
        return ""
    if finding.barred:
        return f"{text(finding.barred)}."
    if finding.detectable is None:
        return ""
    return f"The minimum detectable effect of these blocks is {minimum_effect(finding.detectable)}."


def to_decide(advice: Note | None, purpose: str = "To decide") -> str:
    """Advises how to decide an inconclusive comparison: `To decide: run a round of at least 6 complete blocks.`"""
    return f"{purpose}: {text(advice)}." if advice else ""


def all_inconclusive(comparisons: int, metric: str) -> str:
    """States that none of a lab's comparisons has a verdict."""
    return f"INCONCLUSIVE: none of the {comparisons} comparisons of {metric_words(metric)} has a verdict."


def no_comparison(study: Study) -> str:
    """States why nothing was compared."""
    if not any(cell.usable for cell in study.cells):
        return "No answer yet: no trial is usable."
    if not (study.lab and study.lab.comparisons):
        return "This lab measures its configurations but does not compare them."
    if study.missing:
        over = f"{study.trials} of {counted(study.trials + study.missing, 'planned trial')}"
        return f"No answer yet: no block is complete ({over} have finished)."
    return "No answer: no block has a usable trial of both configurations."


def further(findings: Sequence[Finding]) -> str:
    """States how many comparisons are not listed, and their conclusions: `14 more comparisons: 10 faster, 4
    inconclusive.`"""
    ends = _tally([one.conclusion.word for one in findings])
    return f"{counted(len(findings), 'more comparison')}: {ends}; see the findings below."


def rounds(earlier: Sequence[Round]) -> list[str]:
    """States the number of the current round, and the results of the earlier rounds."""
    if not earlier:
        return []
    texts = [f"This is round {len(earlier) + 1}; the verdicts of this round use only blocks of this round."]
    for one in earlier:
        ends = [finding.conclusion.word for finding in one.findings]
        ends += [f"claim {judged.verdict}" for judged in one.claims]
        texts.append(f"Result of round {one.number}: {_tally(ends) or 'no verdict'}.")
    return texts


def claims(judged: Sequence[JudgedClaim]) -> str:
    """States how many claims in the lab file have each outcome."""
    if len(judged) == 1:
        return f"Result of the claim in the lab file: {judged[0].verdict}."
    ends = [one.verdict for verdict in ClaimVerdict for one in judged if one.verdict is verdict]
    return f"Results of the {len(judged)} claims in the lab file: {_tally(ends)}." if judged else ""


def _tally(ends: Sequence[str]) -> str:
    return ", ".join(f"{ends.count(end)} {end}" for end in dict.fromkeys(ends))


def beside_versions(known: Sequence[BesideVersion], findings: Sequence[Finding]) -> list[str]:
    """If two versions are compared, names the other facts that also differ. Otherwise, readers would attribute the
    whole ratio to the version. `effects`: the lab's comparisons, which contain the names of the configurations."""
    named_pairs = {
        (one.cell, one.baseline): f"{configuration(one.sides[1])} → {configuration(one.sides[0])}" for one in findings
    }
    named = [(named_pairs[one.cell, one.baseline], one) for one in known]
    engines = list(dict.fromkeys(pair for pair, one in named if one.other_engine))
    chosen = _by_facts((pair, one.rows) for pair, one in named)
    defaults = _by_facts((pair, one.defaults) for pair, one in named)
    return [
        *([_of_engines(engines)] if engines else []),
        *(
            f"Apart from the version, other facts also differ ({pairs}): {words}. These facts may explain the result."
            for words, pairs in chosen
        ),
        *(f"Default settings changed with the version ({pairs}): {words}." for words, pairs in defaults),
    ]


def _of_engines(pairs: Sequence[str]) -> str:
    """Example: `Engine, default settings and build differ (PostgreSQL → MariaDB), so the result compares whole
    systems.`"""
    return f"Engine, default settings and build differ ({some(pairs)}), so the result compares whole systems."


def _by_facts(differing: Iterable[tuple[str, Sequence[Difference]]]) -> list[tuple[str, str]]:
    """Groups the comparisons in which the same facts differ. Returns a pair for each group: the facts in words, and the
    names of the comparisons. `differing`: for each comparison, its name and the facts that differ between its sides."""
    pairs: dict[str, list[str]] = {}
    for pair, rows in differing:
        if rows:
            pairs.setdefault(listed([_beside(row) for row in rows]), []).append(pair)
    return [(words, some(list(dict.fromkeys(of)))) for words, of in pairs.items()]


def _beside(row: Difference) -> str:
    if row.name == LACKS:
        return f"features left out of the build ({' → '.join(row.values)})"
    return f"{row.name} ({' → '.join('absent' if value == NOT_SET else value for value in row.values)})"


def course(curve: Growth) -> str:
    """States up to which number of clients the measured throughput grows. The curve must have a `course`. The fitted
    curve is not used for this, because its peak has no confidence interval."""
    assert curve.course and curve.fit
    means = {row.clients: quantity(row.measured, "1/s") for row in curve.fit.residuals}
    enough, step, beyond = counted(curve.course.enough, "client"), curve.course.first, curve.course.beyond
    last = "" if beyond else ", the highest number measured"
    words = "throughput " if curve.name == ALL else f"With {configuration(curve.name, listed)}, throughput "
    if step is None:
        words += f"shows no statistically clear growth beyond {enough} ({means[curve.course.enough]}){last}"
    else:
        start = f"{means[step.fewer]} at {counted(step.fewer, 'client')}"
        words += f"grows from {start} to {means[step.most]} at {step.most} clients{last}: {_size(step)}"
    words += f"; beyond that, it {_beyond(beyond)}" if beyond else ""
    return f"{upper_first(words)}."


def _beyond(step: GrowthStep) -> str:
    """States how throughput changes after the last growth that was shown. Compares the highest number of clients with
    the number up to which throughput grew."""
    verb = "falls" if step.surely_falls else "grows" if step.surely_grows else "shows no statistically clear change"
    if not (step.surely_falls or step.surely_grows) and (step.high < 1 or step.low > 1):
        verb += " after correction for the number of steps"
    return f"{verb}: with {step.most} clients it is {_size(step)} {than(step.ratio)} with {step.fewer}"


def _size(step: GrowthStep) -> str:
    bounds = change_bounds(step.low, step.high, step.ratio)
    return f"{change(step.ratio, '')} ({CI} {bounds})"


def growth(curve: Growth) -> str:
    """States at which number of clients in the measured range throughput stops growing. The fitted curve determines
    this number."""
    which = "With more clients" if curve.name == ALL else f"{opening(curve.name)} with more clients"
    return f"{which}: {_end(curve)}."


def _end(curve: Growth) -> str:
    fit = curve.fit
    assert fit
    if curve.grows:
        return f"throughput still grows at {fit.last:g} clients, the highest number measured"
    if fit.falls:
        return f"throughput does not grow beyond {counted(fit.first, 'client')}"
    if fit.peak_is_beyond:
        return f"there is no peak up to {fit.last:g} clients, the highest number measured{_last_step(curve.last_step)}"
    peak_throughput = quantity(fit.curve.peak_throughput, "1/s")
    return f"the fitted curve peaks near {fit.curve.peak_clients:.0f} clients at {peak_throughput}"


def _last_step(step: GrowthStep | None) -> str:
    if step is None or not math.isfinite(step.high):
        return ""
    verb = "falls" if step.high < 1 else "grows" if step.low > 1 else "shows no statistically clear change"
    return f"; from {step.fewer} to {step.most} clients throughput {verb}: {_size(step)}"


def failures(units: str, shares: Sequence[tuple[Configuration, float]]) -> str:
    """States the percentage of failed transactions of each configuration."""
    known = ", ".join(f"{failed_percent(share)} with {configuration(cell)}" for cell, share in shares)
    return f"Failed {units}: {known}. Throughput counts only successful {units}."


def noise(known: Noise) -> str:
    """States by how much two runs of the same configuration differ on this machine."""
    return (
        "Run-to-run variation of this machine: two runs of the same configuration differ by less than "
        f"{percent(known.floor)} in {confidence(CONFIDENCE)} of cases ({known.source})."
    )
