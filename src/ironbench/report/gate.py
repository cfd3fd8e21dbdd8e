"""The answer of a gate: for a terminal, a pull request, a test runner and a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ironbench.analyse.gate import Gate, GatedComparison, GateVerdict
from ironbench.model.record import SCHEMA
from ironbench.report import plain
from ironbench.report.as_json import encoded, plain_value
from ironbench.report.charts.base import Table
from ironbench.report.charts.effects import effects as effect_charts
from ironbench.report.findings import interval, metric_words, ratio
from ironbench.report.section import Answer, Point, Section
from ironbench.words import clean, clean_document, counted, in_percent

if TYPE_CHECKING:
    from ironbench.report.page import Page

_HEAD = ("comparison", "metric", "ratio", "interval", "blocks", "gate")


def text(gate: Gate) -> str:
    """For a terminal."""
    blocks = [
        plain.folded(clean(gate.question)),
        plain.folded(sentence(gate)),
        plain.table(_table(gate)),
        plain.bullets("Why", [f"{_name(one)}: {one.why}" for one in gate.comparisons]),
        plain.folded(_noise(gate)),
        plain.bullets("Before you use these numbers", _cautions(gate)),
    ]
    return "\n\n".join(filter(None, blocks))


def markdown(gate: Gate, picture: str = "") -> bytes:
    """For a comment on a pull request; `picture`: the name of the chart's file beside it."""
    head, *rows = (_HEAD, *_table(gate).rows)
    lines = [f"### Gate {'closed' if gate.closed else 'open'}: {gate.verdict.value}", "", _plain(gate.question)]
    lines += ["", sentence(gate), "", _row(head), _row(["---"] * len(head)), *map(_row, rows), ""]
    lines += [f"- {_plain(_name(one))}: {_plain(one.why)}" for one in gate.comparisons]
    lines += ["", f"![Ratios with their intervals]({picture})"] if picture else []
    lines += ["", noise] if (noise := _noise(gate)) else []
    if cautions := _cautions(gate):
        lines += ["", "Before you use these numbers:", "", *(f"- {_plain(one)}" for one in cautions)]
    return ("\n".join(lines) + "\n").encode()


def junit(gate: Gate) -> bytes:
    """A test case for each comparison: what stops the change is a failure, what is undecided and passes is skipped."""
    stopped = [one for one in gate.comparisons if gate.stops(one)]
    open_yet = [one for one in gate.comparisons if one.verdict is GateVerdict.CANNOT_TELL and not gate.stops(one)]
    counts = {"tests": str(len(gate.comparisons)), "failures": str(len(stopped)), "skipped": str(len(open_yet))}
    suite = ElementTree.Element("testsuite", {"name": clean(gate.question), "errors": "0", **counts})
    for one in gate.comparisons:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "ironbench.gate", "name": clean(_name(one))})
        if one in stopped:
            attributes = {"type": one.verdict.value, "message": clean(one.why)}
            ElementTree.SubElement(case, "failure", attributes).text = clean(_figures(one))
        elif one in open_yet:
            ElementTree.SubElement(case, "skipped", {"message": clean(f"{one.verdict.value}: {one.why}")})
        ElementTree.SubElement(case, "system-out").text = clean(f"{_figures(one)}. {one.why}")
    ElementTree.indent(suite)
    data: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def page(gate: Gate) -> Page:
    """For a browser."""
    from ironbench.report.page import Page

    judged = replace(gate.study, effects=tuple(one.effect for one in gate.comparisons))
    points = tuple(Point(one.why, f"{_name(one)}:") for one in gate.comparisons)
    return Page(
        title=gate.question,
        lead=f"{counted(len(gate.comparisons), 'comparison')}; a slowdown of {in_percent(gate.margin)} is allowed.",
        answer=Answer(Point(sentence(gate)), points),
        sections=(
            Section("gate", "Comparisons", charts=tuple(effect_charts(judged)), tables=(("", _table(gate)),)),
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
            "checks": [_fields(one) for one in gate.comparisons],
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
        figures = (metric_words(finding.metric), ratio(finding.ratio), interval(finding), str(finding.blocks))
        rows.append((one.effect.contrast.name, *figures, one.verdict.value))
    return Table(_HEAD, tuple(rows), numbers=True)


def _name(one: GatedComparison) -> str:
    return f"{one.effect.contrast.name}, {metric_words(one.effect.finding.metric)}"


def _figures(one: GatedComparison) -> str:
    finding = one.effect.finding
    return f"{ratio(finding.ratio)} ({interval(finding)}) in {finding.blocks} blocks"


def _noise(gate: Gate) -> str:
    noise = gate.study.noise
    if noise is None:
        return "This machine's own noise is not known: `ironbench lab noise` measures it."
    return f"This machine's own noise: up to {in_percent(noise.floor)} ({noise.source})."


def _cautions(gate: Gate) -> list[str]:
    findings = (text for one in gate.comparisons for text in one.effect.finding.warnings)
    study = gate.study
    known = (*filter(None, (study.derived,)), *study.warnings, *study.left_out, *study.dropped, *findings)
    return list(dict.fromkeys(known))


def _fields(one: GatedComparison) -> dict[str, Any]:
    found = one.slowdown
    fields: dict[str, Any] = clean_document(plain_value(one.effect.finding))
    return {
        "outcome": one.verdict.value,
        "why": one.why,
        "slowdown": found.likely,
        "slowdown_least": found.least,
        "slowdown_most": found.most,
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
