"""The answer of a gate: for a terminal, a pull request, a test runner and a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ironbench.model.record import SCHEMA
from ironbench.report import plain, wording
from ironbench.report.as_json import encoded, plain_value
from ironbench.report.cell import count
from ironbench.report.charts.base import Table
from ironbench.report.charts.effects import effects as effect_charts
from ironbench.report.findings import interval, interval_cell, metric_words, ratio, ratio_cell
from ironbench.report.numbers import quantity
from ironbench.report.section import Answer, Point, Section
from ironbench.report.walk import OBSERVED
from ironbench.study.claims import ClaimVerdict, Judged
from ironbench.study.gate import Gate, GatedComparison, GateVerdict
from ironbench.study.slower import Cause, NewStatement, OtherPlanSteps, RepeatedStatement, SlowerStatement, causes
from ironbench.words import clean, clean_document, counted, in_percent, listed

if TYPE_CHECKING:
    from ironbench.report.page import Page

_STEPS = 3
"""Most steps of a plan that are named."""
_KINDS: dict[type[Cause], str] = {
    SlowerStatement: "slower statement",
    RepeatedStatement: "repeated statement",
    NewStatement: "new statement",
    OtherPlanSteps: "other plan",
}
"""As programs read them."""
_HEAD = ("comparison", "metric", "ratio", "interval", "blocks", "gate")


def text(gate: Gate) -> str:
    """For a terminal."""
    blocks = [
        plain.folded(clean(gate.question)),
        plain.folded(sentence(gate)),
        plain.table(_table(gate)),
        plain.bullets("Why", [f"{_name(one)}: {_reason(one)}" for one in gate.comparisons]),
        plain.bullets("What changed", _changes(gate)),
        plain.folded(_observed(gate)),
        plain.bullets("Expectations", [_claim(one) for one in gate.claims]),
        plain.folded(_noise(gate)),
        plain.bullets("Before you use these numbers", _cautions(gate)),
    ]
    return "\n\n".join(filter(None, blocks))


def markdown(gate: Gate) -> bytes:
    """For a comment on a pull request or a step summary, which shows no pictures that lie beside it."""
    head, *rows = (_HEAD, *_table(gate).texts)
    lines = [f"### Gate {'closed' if gate.closed else 'open'}: {gate.verdict.value}", "", _plain(gate.question)]
    lines += ["", sentence(gate), "", _row(head), _row(["---"] * len(head)), *map(_row, rows), ""]
    lines += [f"- {_plain(_name(one))}: {_plain(_reason(one))}" for one in gate.comparisons]
    if changes := _changes(gate):
        lines += ["", "What changed:", "", *(f"- {_plain(one)}" for one in changes)]
        lines += ["", observed] if (observed := _observed(gate)) else []
    if gate.claims:
        lines += ["", "Expectations:", "", *(f"- {_plain(_claim(one))}" for one in gate.claims)]
    lines += ["", noise] if (noise := _noise(gate)) else []
    if cautions := _cautions(gate):
        lines += ["", "Before you use these numbers:", "", *(f"- {_plain(one)}" for one in cautions)]
    return ("\n".join(lines) + "\n").encode()


def junit(gate: Gate) -> bytes:
    """A test case for each comparison: what stops the change is a failure, what is undecided and passes is skipped."""
    stopped = [one for one in gate.comparisons if gate.stops(one)]
    open_yet = [one for one in gate.comparisons if one.verdict is GateVerdict.CANNOT_TELL and not gate.stops(one)]
    refused = [one for one in gate.claims if gate.refuses(one)]
    undecided = [one for one in gate.claims if one.verdict is ClaimVerdict.UNDECIDED and one not in refused]
    counts = {
        "tests": str(len(gate.comparisons) + len(gate.claims)),
        "failures": str(len(stopped) + len(refused)),
        "skipped": str(len(open_yet) + len(undecided)),
    }
    suite = ElementTree.Element("testsuite", {"name": clean(gate.question), "errors": "0", **counts})
    for one in gate.comparisons:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "ironbench.gate", "name": clean(_name(one))})
        if one in stopped:
            attributes = {"type": one.verdict.value, "message": clean(_reason(one))}
            ElementTree.SubElement(case, "failure", attributes).text = clean(
                ". ".join([_figures(one), *_why(gate, one)])
            )
        elif one in open_yet:
            ElementTree.SubElement(case, "skipped", {"message": clean(f"{one.verdict.value}: {_reason(one)}")})
        reasons = _why(gate, one) if one in open_yet else []
        ElementTree.SubElement(case, "system-out").text = clean(
            "\n".join([f"{_figures(one)}. {_reason(one)}", *reasons])
        )
    for claim in gate.claims:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": "ironbench.claim", "name": clean(claim.claim.text)}
        )
        if claim in refused:
            attributes = {"type": claim.verdict.value, "message": clean(_because(claim))}
            ElementTree.SubElement(case, "failure", attributes).text = clean(_claim(claim))
        elif claim in undecided:
            ElementTree.SubElement(case, "skipped", {"message": clean(f"{claim.verdict.value}: {_because(claim)}")})
        ElementTree.SubElement(case, "system-out").text = clean(_because(claim))
    ElementTree.indent(suite)
    data: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def page(gate: Gate) -> Page:
    """For a browser."""
    from ironbench.report.page import Page

    judged = replace(gate.study, effects=tuple(one.effect for one in gate.comparisons))
    points = tuple(Point(_reason(one), f"{_name(one)}:") for one in gate.comparisons)
    return Page(
        title=gate.question,
        lead=f"{counted(len(gate.comparisons), 'comparison')}; a slowdown of {in_percent(gate.margin)} is allowed.",
        answer=Answer(Point(sentence(gate)), points),
        sections=(
            Section("gate", "Comparisons", charts=tuple(effect_charts(judged)), tables=(("", _table(gate)),)),
            Section("changes", "What changed", _observed(gate), sentences=tuple(_changes(gate))),
            Section("noise", "This machine", sentences=(_noise(gate),)),
        ),
        cautions=tuple(_cautions(gate)),
        derived=gate.study.derived,
    )


def document(gate: Gate) -> bytes:
    """For a program: base units, catalogue names, no rounding."""
    return encoded(
        {
            "schema": SCHEMA,
            "question": gate.question,
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
            "warnings": _cautions(gate),
            "derived": gate.study.derived,
        }
    )


def svg(gate: Gate) -> bytes:
    """The chart of the comparisons alone."""
    from ironbench.report.formats.png import charts_svg

    study = replace(gate.study, effects=tuple(one.effect for one in gate.comparisons))
    return charts_svg(gate.question, [sentence(gate)], effect_charts(study))


FORMATS: dict[str, Callable[[Gate], bytes]] = {
    "xml": junit,
    "md": markdown,
    "json": document,
    "svg": svg,
    "txt": lambda gate: f"{text(gate)}\n".encode(),
}
"""By the end of a file's name."""


def sentence(gate: Gate) -> str:
    """The decision."""
    refused = [one for one in gate.claims if gate.refuses(one)]
    if refused and not any(gate.stops(one) for one in gate.comparisons):
        refuted = sum(one.verdict is ClaimVerdict.REFUTED for one in refused)
        what = f"{counted(refuted, 'expectation')} refuted" if refuted else "an expectation is undecided"
        return f"The gate is closed: {what}."
    allowed = f"more than {in_percent(gate.margin)}"
    if gate.verdict is GateVerdict.SLOWER:
        return f"The gate is closed: something is slower by {allowed}."
    if gate.verdict is GateVerdict.NOT_SLOWER:
        return f"The gate is open: nothing is slower by {allowed}, and these blocks would have shown it."
    policy = "--undecided fail" if gate.closed else "--undecided pass"
    state = "closed" if gate.closed else "open"
    return f"The gate is {state} ({policy}): these blocks cannot tell whether something is slower by {allowed}."


def _table(gate: Gate) -> Table:
    rows = []
    for one in gate.comparisons:
        finding = one.effect.finding
        known = (ratio_cell(finding), interval_cell(finding), count(finding.blocks))
        figures = (metric_words(finding.metric), *known)
        rows.append((one.effect.contrast.name, *figures, one.verdict.value))
    return Table(_HEAD, tuple(rows), numbers=True)


def _name(one: GatedComparison) -> str:
    return f"{one.effect.contrast.name}, {metric_words(one.effect.finding.metric)}"


def _claim(one: Judged) -> str:
    return f"{one.claim.text}: {one.verdict.value}" + (f" ({why})" if (why := _because(one)) else "")


def _because(one: Judged) -> str:
    return "; ".join(wording.texts(one.reasons))


def _reason(one: GatedComparison) -> str:
    return wording.sentences([one.why])[0]


def _changes(gate: Gate) -> list[str]:
    """What was observed to differ, of each comparison that is not shown to be as fast."""
    open_ones = [one for one in gate.comparisons if one.verdict is not GateVerdict.NOT_SLOWER]
    return [f"{_name(one)}: {words}" for one in open_ones for words in _why(gate, one)]


def _observed(gate: Gate) -> str:
    """Where it was observed, if slices decide; empty where nothing changed."""
    return OBSERVED if gate.study.observed and _changes(gate) else ""


def _why(gate: Gate, one: GatedComparison) -> list[str]:
    return [_cause(cause) for cause in _known(gate, one)]


def _known(gate: Gate, one: GatedComparison) -> list[Cause]:
    """Times of statements are of few trials, with labs by slices of one each: without a slowdown a difference between
    them is noise. Other plans and statements are facts."""
    slower = one.verdict is GateVerdict.SLOWER
    found = causes(gate.study, one.effect.finding)
    return [cause for cause in found if slower or not isinstance(cause, SlowerStatement)]


def _cause(cause: Cause) -> str:
    if isinstance(cause, SlowerStatement):
        before, after = quantity(cause.before_s, "s"), quantity(cause.after_s, "s")
        grown = in_percent(cause.after_s / cause.before_s - 1)
        replaced = f", which replaces {cause.replaced}" if cause.replaced else ""
        return f"the statement that adds most time takes {after}, {grown} more than {before}: {cause.text}{replaced}"
    if isinstance(cause, RepeatedStatement):
        often = f"{quantity(cause.after, '1')} times per transaction instead of {quantity(cause.before, '1')}"
        return f"the statement that adds most time runs {often}, {quantity(cause.after_s, 's')} each: {cause.text}"
    if isinstance(cause, NewStatement):
        return f"a statement that the baseline does not have takes {quantity(cause.after_s, 's')}: {cause.text}"
    more, less = (listed(steps[:_STEPS]) for steps in (cause.more, cause.less))
    steps = f"{more} instead of {less}" if more and less else more or f"no longer {less}"
    return f"another plan, {steps}: {cause.statement}"


def _causes(gate: Gate, one: GatedComparison) -> list[dict[str, Any]]:
    found = _known(gate, one)
    return [{"cause": _KINDS[type(cause)], **clean_document(plain_value(cause))} for cause in found]


def _figures(one: GatedComparison) -> str:
    finding = one.effect.finding
    return f"{ratio(finding.ratio)} ({interval(finding)}) in {finding.blocks} blocks"


def _noise(gate: Gate) -> str:
    noise = gate.study.noise
    if noise is None:
        return "This machine's own noise is not known: `ironbench lab noise` measures it."
    return f"This machine's own noise: two single runs differ by up to {in_percent(noise.floor)} ({noise.source})."


def _cautions(gate: Gate) -> list[str]:
    findings = (known for one in gate.comparisons for known in one.effect.finding.warnings)
    study = gate.study
    known = (
        *filter(None, (study.derived,)),
        *map(wording.text, (*study.warnings, *study.left_out)),
        *wording.texts(study.dropped),
        *map(wording.text, findings),
    )
    return list(dict.fromkeys(known))


def _fields(one: GatedComparison) -> dict[str, Any]:
    found = one.slowdown
    fields: dict[str, Any] = clean_document(plain_value(one.effect.finding))
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


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(map(_plain, cells)) + " |"


def _plain(text: str) -> str:
    """Neither markup nor a cell's end: a question and names of levels are the user's own."""
    kept = clean(text)
    for sign in "\\|<`*_[":
        kept = kept.replace(sign, f"\\{sign}") if sign != "<" else kept.replace(sign, "&lt;")
    return kept
