"""The page of `ironbench explain A B`: the breakdown, the waterfall chart, and sections with more detail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ironbench.model.finding import LEAST_BLOCKS_SHOWN, Conclusion
from ironbench.model.note import Note, note
from ironbench.records.labs import LabDirectory
from ironbench.report import wording
from ironbench.report.answer import comparison
from ironbench.report.as_json import plain_value
from ironbench.report.breakdown import FEW, WIDTH, measure_name, measure_table, scripts, section, within
from ironbench.report.cell import cell_text
from ironbench.report.charts.base import Table
from ironbench.report.compare_page import NamedComparison
from ironbench.report.derived import sentences
from ironbench.report.facts import CHANGED, difference_rows, fact_name, values
from ironbench.report.page import Answer, AnswerPoint, Page, Section, with_rows
from ironbench.report.sections import profile
from ironbench.report.sections import sections as every_section
from ironbench.report.wording.answers import compare_answer
from ironbench.report.wording.answers.ratios import change, metric_words
from ironbench.stats.multiplicity import LEAST_BLOCKS
from ironbench.study.differences import is_address, most_relevant
from ironbench.study.explain import Explanation, Measure
from ironbench.study.labstudy import of_two
from ironbench.study.runstudy import studies
from ironbench.study.study import Study
from ironbench.words import counted, cut, upper_first

_BELOW = ("queries", "statements", "time", "server-statements", "server-plans", "device-io", "cpu", "waits")
"""Ids of the report's sections that this page also shows below the breakdown, because they contain more detail."""
_SCRIPTS = (
    "The contribution of a script to the mean response time is its share of the transactions times its mean "
    "response time. The mean response time of all transactions is the sum of these contributions. The table "
    "shows how each contribution changed."
)
_IO = (
    "The table shows I/O per transaction, because more transactions need more I/O. The counters of a shared "
    "device include the I/O of all programs; rows with such counters are marked."
)


_UNDECIDED = ("no-difference-ranges-overlap", "no-difference-within-interval")
"""Codes of those reasons for no shown difference that apply although there are enough trials. All other reasons mean
that no verdict is possible."""


def page(compared: NamedComparison, everything: bool = False) -> Page:
    """Returns the page. `everything`: whether to list all facts that differ, and not only the important ones."""
    found, one, study = compared.found, compared.explained(), _study(compared)
    deciding = [finding for finding in compared.pairs if finding.decides]
    caveat = compare_answer.undeclared() if compared.pairs else compare_answer.not_interleaved()
    shown = {part.id: part for part in every_section(study)}
    if "time" in shown:  # the breakdown already contains the waterfall chart
        shown["time"] = replace(shown["time"], charts=tuple(one for one in shown["time"].charts if one.id == "time"))
    return Page(
        title=f"From {wording.terms.configuration(one.before)} to {wording.terms.configuration(one.after)}",
        lead=study.work,
        answer=answer(one, list(map(comparison, deciding)), caveat, _why_not_shown(compared, one)),
        sections=(
            section(one),
            Section(
                "measures",
                "Throughput and response times",
                tables=with_rows(measure_table((*one.throughput, *one.response))),
            ),
            Section("scripts", "Scripts", _SCRIPTS, tables=with_rows(scripts(one))),
            *(shown[id] for id in _BELOW if id in shown),
            profile.section(study.details.profiles, [one.profile] if one.profile else []),
            Section("io", "I/O", _IO, tables=with_rows(measure_table(one.io))),
            Section("differences", "What differs", tables=_differences(one, everything)),
        ),
        caveats=(*wording.texts((*found.left_out, *found.warnings)), *wording.sentences(found.unlike)),
        derived=study.derived,
        fields=lambda: {"explanation": plain_value(one)},
    )


def _study(compared: NamedComparison) -> Study:
    """Returns a study that contains only the two compared systems."""
    one, other = compared.sides
    if compared.pairs:
        directory = LabDirectory(one.store.directory)
        stage = max(1, len(directory.declared()))
        return of_two(directory.lab(), directory.records(), one.cells[0], other.cells[0], compared.store, stage)
    records = [*compared.found.trials[0], *compared.found.trials[1]]
    return studies(records, compared.store, sentences(records))[0]


def _differences(one: Explanation, everything: bool) -> tuple[tuple[str, Table], ...]:
    main, rest = (one.differences, ()) if everything else most_relevant(one.differences)
    head = ("fact", wording.terms.label(one.before), wording.terms.label(one.after))
    of_rest = Table(head, difference_rows(rest), words=True, counted=True)
    return (
        *with_rows(Table(head, difference_rows(main), words=True)),
        *with_rows(of_rest, "All other facts that differ"),
    )


def answer(one: Explanation, verdict: Sequence[AnswerPoint], caveat: str, not_shown: Note | None = None) -> Answer:
    """Returns the answer. The verdict or the ratio comes first. A point follows for each level of the breakdown that
    explains part of the difference.

    `not_shown`: why the trials show no difference, or None if they show one. Without a shown difference, the first
    point states that the other points only list what differed.
    """
    points = list(_points(one))
    if not_shown:
        points.insert(0, AnswerPoint(compare_answer.only_listed(no_verdict=not_shown.code not in _UNDECIDED)))
    if verdict:
        return Answer(verdict[0], (*verdict[1:], *points))
    if not one.throughput:
        return Answer(AnswerPoint(compare_answer.nothing_in_common()), tuple(points), caveats=(caveat,))
    first = _result(one)
    before, after = (wording.terms.configuration(side) for side in (one.before, one.after))
    text = compare_answer.explained_ratio(first.metric, before, after, first.ratio, within(first), not_shown)
    return Answer(AnswerPoint(text), tuple(points), caveats=(caveat,))


def _result(one: Explanation) -> Measure:
    """Returns the main result of the trials. This is the throughput. For an open loop, it is the 99th-percentile
    response time, because the target rate determines the throughput."""
    percentiles = [measure for measure in one.response if measure.metric == "response_time_p99_s"]
    return percentiles[0] if one.open_loop and percentiles else one.throughput[0]


def _why_not_shown(compared: NamedComparison, one: Explanation) -> Note | None:
    """Returns the reason why the trials show no difference. Returns None if they show one. The rules are those of
    `ironbench compare`."""
    deciding = [finding for finding in compared.pairs if finding.decides]
    if deciding:
        first = deciding[0]
        is_open = first.conclusion is Conclusion.CANNOT_TELL
        if is_open and first.blocks < LEAST_BLOCKS:
            return first.barred or note("no-difference-too-few-blocks", least=LEAST_BLOCKS)
        return (first.barred or note("no-difference-within-interval")) if is_open else None
    if not one.throughput:
        return None
    result, peaks = _result(one), compared.found.peaks
    row = None if compared.pairs or peaks is None else peaks.row(result.metric)
    if row is not None:
        return None if row.shown else row.difference
    if not result.known:
        return note("no-difference-too-few-blocks", least=LEAST_BLOCKS_SHOWN)
    return None if result.clear else note("no-difference-within-interval")


def _points(one: Explanation) -> Iterator[AnswerPoint]:
    for measure in one.response[:1]:
        yield AnswerPoint(
            f"{change(measure.ratio, '')}{within(measure)}.", f"{upper_first(metric_words(measure.metric))}:"
        )
    if one.scripts and (first := one.scripts[0]).clear:
        yield AnswerPoint(compare_answer.most_changed_script(first.name, first.delta_s), "Scripts:")
    if one.contradicted:
        before, after = (wording.terms.configuration(side) for side in (one.before, one.after))
        text = compare_answer.observed_contradict(one.throughput[0].metric, before, after, one.contradicted)
        yield AnswerPoint(text, "Observed trials:")
    if one.statements and (one.statements[0][1].known or not one.contradicted):
        command, found = one.statements[0]
        text = compare_answer.takes(cut(command.text, WIDTH), found.ratio, observed_once=not found.known)
        yield AnswerPoint(text, "Commands:")
    if one.queries:
        query = one.queries[0]
        yield AnswerPoint(compare_answer.takes(query.query, query.ratio, observed_once=False), "Queries:")
    if one.waterfall and not one.contradicted:
        source = f" {compare_answer.from_one_trial()}" if one.observed else ""
        yield AnswerPoint(wording.sentences([one.waterfall.note])[0] + source, "Time:")
    if one.io and not one.contradicted and one.io[0].clear and not one.io[0].whole_device:
        yield AnswerPoint(f"{measure_name(one.io[0])} {change(one.io[0].ratio, '')}{within(one.io[0])}.", "I/O:")
    if one.plans:
        more = f", and {counted(len(one.plans) - 1, 'other plan')}" if len(one.plans) > 1 else ""
        yield AnswerPoint(
            f"{cut(one.plans[0].plan.statement, WIDTH)}: {wording.text(one.plans[0].words)}{more}.", "Plans:"
        )
    for text in wording.sentences(one.work):
        yield AnswerPoint(text, "Work:")
    yield AnswerPoint(_configuration(one), "Configuration:")


def _configuration(one: Explanation) -> str:
    main, rest = most_relevant(one.differences)
    if not main:
        return compare_answer.same_configuration()
    named = [row for row in main if not is_address(row) and not row.name.startswith(CHANGED)] or list(main)
    names = [fact_name(row.name.removeprefix("settings.")) for row in named]
    # The machine and the engine may have facts with the same name. The first of them is used.
    known = {name: values(row) for name, row in reversed([*zip(names, named, strict=True)])}
    first = list(dict.fromkeys(names))[:FEW]
    facts = [(name, cell_text(known[name][0]), cell_text(known[name][1])) for name in first]
    more = len(main) + len(rest) - sum(name in first for name in names)
    return compare_answer.changed_facts(facts, more)
