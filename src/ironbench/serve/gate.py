"""The gate of a lab: a summary for the lab's page, a separate page, and the documents of `ironbench gate -o`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse, Response

from ironbench.errors import InputError
from ironbench.serve.page import report_page
from ironbench.serve.results import Results

if TYPE_CHECKING:
    from ironbench.study.gate import Gate
    from ironbench.study.study import Study

_KINDS = {"xml": "application/xml", "md": "text/markdown", "json": "application/json", "svg": "image/svg+xml"}
_MOST_MARGIN = 10.0


def judged(study: Study, margin: float | None = None, undecided: str = "fail") -> Gate | None:
    """Judges every comparison of a lab. Returns None if the lab has no comparison. `margin`: allowed slowdown. If it is
    None, the equivalence margin of the lab is used."""
    from ironbench.study.gate import gate

    findings = [*study.findings, *study.claimed]
    if study.lab is None or not findings:
        return None
    return gate(study, findings, study.lab.method.margin if margin is None else margin, undecided)


def summary(study: Study) -> dict[str, Any] | None:
    """Returns the result of the gate for the lab's page. Returns None if the lab has no comparison."""
    from ironbench.report.gate_page import sentence

    found = judged(study)
    if found is None:
        return None
    return {"closed": found.closed, "word": found.outcome.value, "sentence": sentence(found)}


def gate_response(results: Results, lab: str, margin: str, undecided: str) -> HTMLResponse:
    """Returns the page of a gate. Raises InputError if the lab does not exist or has no comparison, or if the margin is
    invalid."""
    from ironbench.report.gate_page import page as page_of

    found = _gate(results, lab, margin, undecided)
    return report_page(
        "gate.html",
        page_of(found),
        "gate",
        title=f"Gate of {lab}",
        at="/archive",
        lab=lab,
        kinds=list(_KINDS),
        margin=margin,
        undecided=undecided,
        most=f"{_MOST_MARGIN:g}",
        allowed=f"{found.margin:g}",
        policy=found.undecided,
    )


def document(results: Results, lab: str, kind: str, margin: str, undecided: str) -> Response:
    """Returns the document that `ironbench gate -o` would write. `kind`: the file suffix. Raises InputError as `shown`
    does, or if the kind is unknown."""
    from ironbench.report.gate_page import FORMATS, written

    if kind not in _KINDS:
        raise InputError(f"gate.{kind}", "is not a gate document", f"use {', '.join(_KINDS)}")
    content = written(_gate(results, lab, margin, undecided), FORMATS[kind])
    headers = {"content-disposition": f'attachment; filename="gate.{kind}"'}
    return Response(content, media_type=_KINDS[kind], headers=headers)


def _gate(results: Results, lab: str, margin: str, undecided: str) -> Gate:
    from ironbench.report.studies import study_of
    from ironbench.study.gate import POLICIES

    directory = results.lab(lab)
    found = judged(study_of(directory), _share(margin), undecided if undecided in POLICIES else "fail")
    if found is None:
        raise InputError(f"lab {lab}", "has no comparison", "a gate needs a lab with at least one factor")
    return found


def _share(text: str) -> float | None:
    """Reads a margin. Returns None if the text is empty. Raises InputError if it is not a valid fraction."""
    if not text:
        return None
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= _MOST_MARGIN:
        raise InputError(
            f"margin {text[:20]!r}", "is not a fraction", f"write a number from 0 to {_MOST_MARGIN:g}, e.g. 0.05"
        )
    return found
