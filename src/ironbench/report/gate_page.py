"""The result of a gate, as a page and as a JUnit document for CI servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from xml.etree import ElementTree

from ironbench.report import formats, wording
from ironbench.report.as_json import plain_value
from ironbench.report.breakdown import OBSERVED
from ironbench.report.cell import count
from ironbench.report.charts.base import Depth, Table
from ironbench.report.charts.effects import effects as effect_charts
from ironbench.report.finding_tables import interval_cell, ratio_cell
from ironbench.report.page import Answer, AnswerPoint, Page, Section, with_rows
from ironbench.report.wording.answers import gate_answer
from ironbench.report.wording.answers.ratios import metric_words
from ironbench.report.wording.findings import dropped_blocks
from ironbench.study.claims import JudgedClaim
from ironbench.study.gate import Gate, GatedComparison, GateOutcome, of_claim
from ironbench.study.slower import Cause, NewStatement, OtherPlanSteps, RepeatedStatement, SlowerStatement, causes
from ironbench.words import clean, clean_document

_KINDS: dict[type[Cause], str] = {
    SlowerStatement: "slower statement",
    RepeatedStatement: "repeated statement",
    NewStatement: "new statement",
    OtherPlanSteps: "other plan",
}
"""Names of the kinds of causes in JSON documents."""
_HEAD = ("comparison", "metric", "ratio", "CI", "blocks", "gate")


def junit(gate: Gate) -> bytes:
    """Returns JUnit XML with a test case for each comparison and each claim. A test case fails if its comparison or
    claim makes the gate fail. A test case is skipped if the comparison or claim is inconclusive and does not make the
    gate fail."""
    stopped = [one for one in gate.comparisons if gate.stops(one)]
    open_yet = [one for one in gate.comparisons if one.outcome is GateOutcome.INCONCLUSIVE and not gate.stops(one)]
    refused = [one for one in gate.claims if gate.refuses(one)]
    undecided = [one for one in gate.claims if of_claim(one) is GateOutcome.INCONCLUSIVE and one not in refused]
    counts = {
        "tests": str(len(gate.comparisons) + len(gate.claims)),
        "failures": str(len(stopped) + len(refused)),
        "skipped": str(len(open_yet) + len(undecided)),
    }
    suite = ElementTree.Element("testsuite", {"name": clean(gate.question), "errors": "0", **counts})
    caveats = _junit_caveats(gate)
    for one in gate.comparisons:
        # CI servers recognise a test case by its name in later runs. The name therefore contains no measured values,
        # only words from the lab file.
        case = ElementTree.SubElement(suite, "testcase", {"classname": "ironbench.gate", "name": clean(_name(one))})
        message = f"{one.outcome}: {wording.text(one.why)}"
        if one in stopped:
            attributes = {"type": one.outcome.value, "message": clean(message)}
            known = [*_stated(one), *_why(gate, one), *caveats]
            ElementTree.SubElement(case, "failure", attributes).text = _lines(known)
        elif one in open_yet:
            ElementTree.SubElement(case, "skipped", {"message": clean(message)})
        reasons = _why(gate, one) if one in open_yet else []
        ElementTree.SubElement(case, "system-out").text = _lines([*_stated(one), *reasons, *caveats])
    for claim in gate.claims:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": "ironbench.claim", "name": clean(claim.claim.text)}
        )
        if claim in refused:
            attributes = {"type": of_claim(claim).value, "message": clean(_because(claim))}
            ElementTree.SubElement(case, "failure", attributes).text = _lines([_claim(claim), *caveats])
        elif claim in undecided:
            message = f"{of_claim(claim)}: {_because(claim)}"
            ElementTree.SubElement(case, "skipped", {"message": clean(message)})
        ElementTree.SubElement(case, "system-out").text = _lines([_because(claim), *caveats])
    ElementTree.indent(suite)
    data: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def _lines(texts: Sequence[str]) -> str:
    return "\n".join(map(clean, texts))


def _stated(one: GatedComparison) -> list[str]:
    """States the size of a change and the decision. An inconclusive comparison is described by both ends of its
    confidence interval. Readers would take a single size for the result."""
    if one.outcome is not GateOutcome.INCONCLUSIVE:
        return [gate_answer.size(one.finding), _reason(one)]
    inconclusive = one.outcome.value.lower()
    if one.why.code == "perhaps-slower":
        return [f"{inconclusive}: {gate_answer.slowdown_range(one)}", _reason(one)]
    return [f"{inconclusive}: {wording.text(one.why)}"]


def _junit_caveats(gate: Gate) -> list[str]:
    """Returns the caveats for JUnit documents. Each test case contains all caveats, because CI servers show no texts
    outside test cases."""
    return [f"{gate_answer.CAVEAT} {text}" for text in _caveats(gate)]


def page(gate: Gate) -> Page:
    """Returns the page. Only HTML and pictures show the chart, because the table has the same rows."""
    judged = replace(gate.study, findings=tuple(one.finding for one in gate.comparisons))
    charts = tuple(replace(one, depth=Depth.PAGE) for one in effect_charts(judged))
    changes = [(_name(one), words) for one in gate.comparisons for words in _changes(gate, one)]
    observed = (OBSERVED,) if gate.study.details.observed and changes else ()
    expected = [(one.claim.text, one.verdict.value, _because(one)) for one in gate.claims]
    return Page(
        title=gate.question,
        lead=gate_answer.scope(len(gate.comparisons), gate.margin),
        answer=Answer(
            AnswerPoint(sentence(gate)), tuple(AnswerPoint(_reason(one), f"{_name(one)}:") for one in gate.comparisons)
        ),
        sections=(
            Section("gate", "Comparisons", charts=charts, tables=(("", _table(gate)),)),
            Section("changes", "What changed", sentences=observed, tables=_words(("comparison", "change"), changes)),
            Section("claims", "Expectations", tables=_words(("expectation", "outcome", "why"), expected)),
            Section("noise", "Run-to-run variation", sentences=(gate_answer.noise(gate.study.noise),)),
        ),
        caveats=tuple(_caveats(gate)),
        derived=gate.study.derived,
        fields=partial(_document, gate),
    )


def _words(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> tuple[tuple[str, Table], ...]:
    return with_rows(Table(head, tuple(rows), words=True))


def _document(gate: Gate) -> dict[str, Any]:
    """Returns the content of the page for programs. Values are unrounded and in base units, and metrics have the same
    names as in records."""
    return {
        "question": gate.question,
        "result": gate.outcome.value,
        "outcome": gate.verdict.value,
        "closed": gate.closed,
        "margin": gate.margin,
        "undecided": gate.undecided,
        "checks": [{**_fields(one), "causes": _causes(gate, one)} for one in gate.comparisons],
        "claims": [
            {
                "claim": one.claim.text,
                "outcome": one.verdict.value,
                "why": _because(one),
                "closes": gate.refuses(one),
            }
            for one in gate.claims
        ],
        "noise": plain_value(gate.study.noise),
        "warnings": _caveats(gate),
        "derived": gate.study.derived,
    }


FORMATS = {"xml": "xml", "md": "md", "json": "json", "svg": "svg", "txt": "text"}
"""Output formats by file suffix."""


def written(gate: Gate, format: str) -> bytes:
    return junit(gate) if format == "xml" else formats.of_page(format)(page(gate))


def sentence(gate: Gate) -> str:
    """States the decision."""
    ends = [one.outcome for one in gate.comparisons]
    of_claims = [of_claim(one) for one in gate.claims]
    if gate.outcome is GateOutcome.PASS:
        return gate_answer.not_slower(gate.margin)
    if gate.outcome is GateOutcome.FAIL:
        slower, refuted = ends.count(GateOutcome.FAIL), of_claims.count(GateOutcome.FAIL)
        return gate_answer.failed(gate.margin, slower, len(ends), refuted)
    wide = [one for one in gate.comparisons if one.why.code == "perhaps-slower"]
    return gate_answer.inconclusive(
        gate.margin,
        wide[0] if wide and len(ends) == 1 else None,
        ends.count(GateOutcome.INCONCLUSIVE),
        of_claims.count(GateOutcome.INCONCLUSIVE),
        gate.undecided,
        any(one.outcome is GateOutcome.INCONCLUSIVE and one.finding.unequal_losses for one in gate.comparisons),
    )


def _table(gate: Gate) -> Table:
    rows = []
    for one in gate.comparisons:
        finding = one.finding
        known = (ratio_cell(finding), interval_cell(finding), count(finding.blocks))
        figures = (metric_words(finding.metric), *known)
        name = wording.terms.comparison(one.finding)
        rows.append((name, *figures, one.outcome.value))
    return Table(_HEAD, tuple(rows))


def _name(one: GatedComparison) -> str:
    return f"{wording.terms.comparison(one.finding)}, {metric_words(one.finding.metric)}"


def _claim(one: JudgedClaim) -> str:
    return f"{one.claim.text}: {one.verdict.value}" + (f" ({why})" if (why := _because(one)) else "")


def _because(one: JudgedClaim) -> str:
    return "; ".join(wording.texts(one.reasons))


def _reason(one: GatedComparison) -> str:
    return wording.sentences([one.why])[0]


def _changes(gate: Gate, one: GatedComparison) -> list[str]:
    """Returns the likely causes of a slowdown, in words. Returns an empty list if the comparison passes."""
    return [] if one.outcome is GateOutcome.PASS else _why(gate, one)


def _why(gate: Gate, one: GatedComparison) -> list[str]:
    return list(map(gate_answer.cause, _likely_causes(gate, one)))


def _likely_causes(gate: Gate, one: GatedComparison) -> list[Cause]:
    """Returns the likely causes of a slowdown. Slower statements are included only if the comparison failed. Otherwise,
    their differences may be noise, because statement times come from few trials. In a lab with slices, they come from
    only one trial per configuration. New statements and changed plans are certain, so they are always included."""
    slower = one.outcome is GateOutcome.FAIL
    found = causes(gate.study, one.finding)
    return [cause for cause in found if slower or not isinstance(cause, SlowerStatement)]


def _causes(gate: Gate, one: GatedComparison) -> list[dict[str, Any]]:
    found = _likely_causes(gate, one)
    return [{"cause": _KINDS[type(cause)], **clean_document(plain_value(cause))} for cause in found]


def _caveats(gate: Gate) -> list[str]:
    study = gate.study
    # The study's warnings already include those of the lab's comparisons. Only the warnings of other comparisons are
    # missing.
    others = (one.finding for one in gate.comparisons if one.finding not in study.findings)
    warnings = (known for finding in others for known in finding.warnings)
    known = (
        *map(wording.text, (*study.warnings, *study.left_out)),
        *dropped_blocks(study.dropped),
        *map(wording.text, warnings),
    )
    return list(dict.fromkeys(known))


def _fields(one: GatedComparison) -> dict[str, Any]:
    found = one.slowdown
    fields: dict[str, Any] = clean_document(plain_value(one.finding))
    return {
        "outcome": one.verdict.value,
        "why": _reason(one),
        "why_note": plain_value(one.why),
        "slowdown": found.likely,
        "slowdown_least": found.least,
        "slowdown_most": found.most,
        "slowdown_bound": found.bound,
        **fields,
    }
