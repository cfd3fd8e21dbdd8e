"""JSON documents of studies, and the document that `lab run --json` prints. These documents contain every computed
value in base units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ironbench.model.finding import Finding
from ironbench.model.lab import Lab
from ironbench.model.record import Record
from ironbench.report import wording
from ironbench.report.answer import answer
from ironbench.report.as_json import encoded, plain_value, run_fields
from ironbench.report.reproduce import run_command
from ironbench.study.claims import JudgedClaim
from ironbench.study.study import Study, SubjectResults

if TYPE_CHECKING:
    from ironbench.records import Store


def lab_document(study: Study, records: Sequence[Record], store: Store) -> str:
    """Returns the document that `lab run --json` prints, with the fields of `run --json`, and the lab's fields in
    `lab`."""
    return encoded({**run_fields(records, store), "lab": document(study)}).decode()


def document(study: Study) -> dict[str, Any]:
    """Returns the fields of one study. The answer comes before the numbers. For a lab, the question comes first."""
    fields: dict[str, Any] = plain_value(study)
    fields |= fields.pop("details")
    fields |= {name: plain_value(getattr(study, name)) for name in ("skipped", "searched", "waterfalls", "dropped")}
    for one, part in zip(fields["parts"], study.parts, strict=True):
        one["command"] = run_command(part.subject.records)
        one["standing"] = _standing(part)
        del one["reference"]
    head: dict[str, Any] = {"answer": plain_value(answer(study))}
    if study.lab is None:
        return {**head, **fields}
    lab = study.lab
    head = {"name": lab.name, "series": lab.series, "question": lab.question, **head}
    head |= {"metric": study.metric, "complete": study.complete}
    rest = {name: value for name, value in fields.items() if name not in ("findings", "others")}
    return {**head, **rest, **_lab(study, lab, fields)}


def _standing(part: SubjectResults) -> dict[str, Any] | None:
    """Returns the comparison between the peaks of a system and of the first system. Returns None for the first
    system."""
    if (one := part.standing) is None:
        return None
    low, high = one.extremes or (None, None)
    names = {"name": part.name, "reference": part.reference}
    bounds = [one.means.low, one.means.high] if one.means and one.means.known else None
    fields = {"ratio": one.ratio, "interval": bounds, "low": low, "high": high, "overlap": one.overlap}
    return {**names, **fields, "difference_shown": one.shown}


def _lab(study: Study, lab: Lab, fields: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields that only labs have. Also returns fields that replace the study's fields of the same name."""
    return {
        "findings": [_finding(effect) for effect in (*study.findings, *study.others)],
        "claimed": list(map(_finding, study.claimed)),
        "claims": _claims(study.claims),
        "earlier": [
            {"round": one.number, "findings": list(map(_finding, one.findings)), "claims": _claims(one.claims)}
            for one in study.earlier
        ],
        "cells": [
            {
                "name": source.name,
                **{key: value for key, value in cell.items() if key not in ("configuration", "setup", "metrics")},
                "levels": source.setup.cell.levels,
                "baseline": source.name == lab.baseline,
            }
            for cell, source in zip(fields["cells"], study.cells, strict=True)
        ],
        "searched": [{"cell": one.cell.name, **plain_value(one.best)} for one in study.searched],
        "lab": {
            "design": lab.design,
            "baseline": lab.baseline,
            "factors": plain_value(lab.factors),
            "method": plain_value(lab.method),
            "order": [[trial.cell.name, trial.block, trial.stage] for trial in lab.trials],
            "source": lab.source,
        },
    }


def _claims(judgements: Sequence[JudgedClaim]) -> list[dict[str, str]]:
    return [
        {
            "text": one.claim.text,
            "outcome": one.verdict,
            "reason": "; ".join(wording.texts(one.reasons)),
            "reasons": plain_value(one.reasons),
        }
        for one in judgements
    ]


def _finding(finding: Finding) -> dict[str, Any]:
    return {**plain_value(finding), "name": finding.name}
