"""Whether a change that a lab measured may pass: in short on its page, as a page, and as documents."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse, Response

from ironbench.errors import InputError
from ironbench.serve.page import link, option, page
from ironbench.serve.shelf import Shelf

if TYPE_CHECKING:
    from ironbench.report.charts.base import Chart
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


def short(lab: str, study: Study) -> str:
    """For the page of a lab; empty where there is no gate."""
    from ironbench.report.gate import sentence

    found = judged(study)
    if found is None:
        return ""
    state = f'<span class="state {"failed" if found.closed else "ok"}">{_word(found)}</span>'
    more = link(f"/lab/{lab}/gate", "Every comparison, other margins, documents for a pipeline")
    return f"<section><h2>Gate</h2><p>{state} {escape(sentence(found))}</p><p>{more}</p></section>"


def door(lab: str, study: Study) -> list[str]:
    """A link to the page, which says how it stands; none where there is no gate."""
    found = judged(study)
    return [link(f"/lab/{lab}/gate", f"gate: {_word(found)}")] if found else []


def _word(gate: Gate) -> str:
    return "closed" if gate.closed else "open"


def shown(shelf: Shelf, lab: str, margin: str, undecided: str) -> HTMLResponse:
    """The page. InputError."""
    from ironbench.report.formats.html import page_body
    from ironbench.report.gate import page as page_of

    found = _asked(shelf, lab, margin, undecided)
    charts: dict[str, Chart] = {}
    files = " · ".join(
        link(f"/lab/{lab}/gate.{kind}", f".{kind}", margin=margin, undecided=undecided) for kind in _KINDS
    )
    choices = "".join(
        option(value, found.undecided == value, words)
        for value, words in (("fail", "closes the gate"), ("pass", "opens it"))
    )
    form = (
        f'<form class="inline"><label>allowed slowdown, as a share<input name="margin" type="number" min="0" '
        f'max="{_MOST_MARGIN:g}" step="any" value="{found.margin:g}"></label><label>when the blocks cannot tell'
        f'<select name="undecided">{choices}</select></label><button class="main">Decide</button></form>'
    )
    bodies = [
        f'<header class="top"><p class="lead">{link(f"/lab/{lab}", f"lab {lab}")} · documents: {files}</p></header>',
        page_body(page_of(found), "gate", charts),
        f"<main>{form}</main>",
    ]
    return page(f"Gate of {lab}", bodies, charts, at="/archive")


def document(shelf: Shelf, lab: str, kind: str, margin: str, undecided: str) -> Response:
    """What `ironbench gate -o` writes. InputError."""
    from ironbench.report.gate import FORMATS

    if kind not in _KINDS:
        raise InputError(f"gate.{kind}", "is no document of a gate", f"ask for {', '.join(_KINDS)}")
    content = FORMATS[kind](_asked(shelf, lab, margin, undecided))
    headers = {"content-disposition": f'attachment; filename="gate.{kind}"'}
    return Response(content, media_type=_KINDS[kind], headers=headers)


def _asked(shelf: Shelf, lab: str, margin: str, undecided: str) -> Gate:
    from ironbench.study.gate import POLICIES
    from ironbench.views.labs import study_of

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
