"""Whether a change that a lab measured may pass: in short on its page, as a page, and as documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse, Response

from ironbench.errors import InputError
from ironbench.serve.page import report_page
from ironbench.serve.shelf import Shelf

if TYPE_CHECKING:
    from ironbench.study.gate import Gate
    from ironbench.study.study import Study

_KINDS = {"xml": "application/xml", "md": "text/markdown", "json": "application/json", "svg": "image/svg+xml"}
_MOST_MARGIN = 10.0


def judged(study: Study, margin: float | None = None, undecided: str = "fail") -> Gate | None:
    """Every comparison of a lab, at the lab's own margin where none is given; None: it compares nothing."""
    from ironbench.study.gate import gate

    effects = [*study.effects, *study.claimed]
    if study.lab is None or not effects:
        return None
    return gate(study, effects, study.lab.method.margin if margin is None else margin, undecided)


def summary(study: Study) -> dict[str, Any] | None:
    """For the page of a lab: whether the gate is closed, a word and a sentence; None where there is no gate."""
    from ironbench.report.gate import sentence

    found = judged(study)
    if found is None:
        return None
    return {"closed": found.closed, "word": "closed" if found.closed else "open", "sentence": sentence(found)}


def shown(shelf: Shelf, lab: str, margin: str, undecided: str) -> HTMLResponse:
    """The page. InputError."""
    from ironbench.report.gate import page as page_of

    found = _asked(shelf, lab, margin, undecided)
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


def document(shelf: Shelf, lab: str, kind: str, margin: str, undecided: str) -> Response:
    """What `ironbench gate -o` writes. InputError."""
    from ironbench.report.gate import FORMATS, written

    if kind not in _KINDS:
        raise InputError(f"gate.{kind}", "is no document of a gate", f"ask for {', '.join(_KINDS)}")
    content = written(_asked(shelf, lab, margin, undecided), FORMATS[kind])
    headers = {"content-disposition": f'attachment; filename="gate.{kind}"'}
    return Response(content, media_type=_KINDS[kind], headers=headers)


def _asked(shelf: Shelf, lab: str, margin: str, undecided: str) -> Gate:
    from ironbench.report.studies import study_of
    from ironbench.study.gate import POLICIES

    directory = shelf.lab(lab)
    found = judged(study_of(directory), _share(margin), undecided if undecided in POLICIES else "fail")
    if found is None:
        raise InputError(f"lab {lab}", "compares nothing", "a gate needs a lab that varies something")
    return found


def _share(text: str) -> float | None:
    """None: the lab's own. InputError."""
    if not text:
        return None
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= _MOST_MARGIN:
        raise InputError(
            f"margin {text[:20]!r}", "is no share", f"write a number from 0 to {_MOST_MARGIN:g}, e.g. 0.05"
        )
    return found
