"""The answer of a gate: for a terminal, a pull request, a test runner and a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ironbench.analyse.gate import Check, Gate, GateVerdict, slowdown
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
        plain.bullets("Why", [f"{_name(check)}: {check.why}" for check in gate.checks]),
        plain.folded(_noise(gate)),
        plain.bullets("Before you use these numbers", _cautions(gate)),
    ]
    return "\n\n".join(filter(None, blocks))


def markdown(gate: Gate, picture: str = "") -> bytes:
    """For a comment on a pull request; `picture`: the name of the chart's file beside it."""
    head, *rows = (_HEAD, *_table(gate).rows)
    lines = [f"### Gate {'closed' if gate.closed else 'open'}: {gate.verdict.value}", "", _plain(gate.question)]
    lines += ["", sentence(gate), "", _row(head), _row(["---"] * len(head)), *map(_row, rows), ""]
    lines += [f"- {_plain(_name(check))}: {_plain(check.why)}" for check in gate.checks]
    lines += ["", f"![Ratios with their intervals]({picture})"] if picture else []
    lines += ["", noise] if (noise := _noise(gate)) else []
    if cautions := _cautions(gate):
        lines += ["", "Before you use these numbers:", "", *(f"- {_plain(one)}" for one in cautions)]
    return ("\n".join(lines) + "\n").encode()


def junit(gate: Gate) -> bytes:
    """A test case for each comparison: what stops the change is a failure, what is undecided and passes is skipped."""
    stopped = [check for check in gate.checks if gate.stops(check)]
    open_yet = [check for check in gate.checks if check.verdict is GateVerdict.CANNOT_TELL and not gate.stops(check)]
    counts = {"tests": str(len(gate.checks)), "failures": str(len(stopped)), "skipped": str(len(open_yet))}
    suite = ElementTree.Element("testsuite", {"name": clean(gate.question), "errors": "0", **counts})
    for check in gate.checks:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "ironbench.gate", "name": clean(_name(check))})
        if check in stopped:
            attributes = {"type": check.verdict.value, "message": clean(check.why)}
            ElementTree.SubElement(case, "failure", attributes).text = clean(_figures(check))
        elif check in open_yet:
            ElementTree.SubElement(case, "skipped", {"message": clean(f"{check.verdict.value}: {check.why}")})
        ElementTree.SubElement(case, "system-out").text = clean(f"{_figures(check)}. {check.why}")
    ElementTree.indent(suite)
    data: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def page(gate: Gate) -> Page:
    """For a browser."""
    from ironbench.report.page import Page

    judged = replace(gate.study, effects=tuple(check.effect for check in gate.checks))
    points = tuple(Point(check.why, f"{_name(check)}:") for check in gate.checks)
    return Page(
        title=gate.question,
        lead=f"{counted(len(gate.checks), 'comparison')}; a slowdown of {in_percent(gate.margin)} is allowed.",
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
            "checks": [_fields(check) for check in gate.checks],
            "noise": plain_value(gate.study.noise),
            "warnings": _cautions(gate),
            "derived": gate.study.derived,
        }
    )


def svg(gate: Gate) -> bytes:
    """The chart of the comparisons alone."""
    from ironbench.report.formats.png import charts_svg

    study = replace(gate.study, effects=tuple(check.effect for check in gate.checks))
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
    for check in gate.checks:
        one = check.effect.finding
        figures = (metric_words(one.metric), ratio(one.ratio), interval(one), str(one.blocks), check.verdict.value)
        rows.append((check.effect.contrast.name, *figures))
    return Table(_HEAD, tuple(rows), numbers=True)


def _name(check: Check) -> str:
    return f"{check.effect.contrast.name}, {metric_words(check.effect.finding.metric)}"


def _figures(check: Check) -> str:
    one = check.effect.finding
    return f"{ratio(one.ratio)} ({interval(one)}) in {one.blocks} blocks"


def _noise(gate: Gate) -> str:
    noise = gate.study.noise
    if noise is None:
        return "This machine's own noise is not known: `ironbench lab noise` measures it."
    return f"This machine's own noise: up to {in_percent(noise.floor)} ({noise.source})."


def _cautions(gate: Gate) -> list[str]:
    findings = (text for check in gate.checks for text in check.effect.finding.warnings)
    study = gate.study
    known = (*filter(None, (study.derived,)), *study.warnings, *study.left_out, *study.dropped, *findings)
    return list(dict.fromkeys(known))


def _fields(check: Check) -> dict[str, Any]:
    likely, worst = slowdown(check.effect.finding)
    fields: dict[str, Any] = clean_document(plain_value(check.effect.finding))
    return {"outcome": check.verdict.value, "why": check.why, "slowdown": likely, "slowdown_most": worst, **fields}


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(map(_plain, cells)) + " |"


def _plain(text: str) -> str:
    """Neither markup nor a cell's end: a question and names of levels are the user's own."""
    kept = clean(text)
    for sign in "\\|<`*_[":
        kept = kept.replace(sign, f"\\{sign}") if sign != "<" else kept.replace(sign, "&lt;")
    return kept
