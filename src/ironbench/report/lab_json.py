"""Labs for programs: base units, catalogue names, no rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ironbench.analyse.claims import Judged
from ironbench.analyse.labstudy import Effect, LabStudy
from ironbench.model.record import SCHEMA, Record
from ironbench.report.answer import answer
from ironbench.report.json import encoded, plain, run_fields

if TYPE_CHECKING:
    from ironbench.record import Store


def render(studies: Sequence[LabStudy]) -> bytes:
    """`{schema, labs: […]}`: everything computed; trials by their id."""
    return encoded({"schema": SCHEMA, "labs": [document(study) for study in studies]})


def run_document(study: LabStudy, records: Sequence[Record], store: Store) -> str:
    """What `lab run --json` prints: what `run --json` does, with the lab's own under `lab`."""
    return encoded({**run_fields(records, store), "lab": document(study)}).decode()


def document(study: LabStudy) -> dict[str, Any]:
    """One lab."""
    found: dict[str, Any] = plain(study)
    lab = study.lab
    return {
        "name": lab.name,
        "series": lab.series,
        "question": lab.question,
        "answer": plain(answer(study)),
        "metric": study.metric,
        "complete": study.complete,
        **{key: value for key, value in found.items() if key not in ("effects", "others", "earlier", "lab")},
        "findings": [_finding(effect) for effect in (*study.effects, *study.others)],
        "claims": _claims(study.claims),
        "earlier": [
            {"round": one.number, "findings": list(map(_finding, one.effects)), "claims": _claims(one.claims)}
            for one in study.earlier
        ],
        "cells": [
            {
                **{key: value for key, value in cell.items() if key != "setup"},
                "levels": source.setup.cell.levels,
                "baseline": source.name == lab.baseline,
            }
            for cell, source in zip(found["cells"], study.cells, strict=True)
        ],
        "lab": {
            "design": lab.design,
            "baseline": lab.baseline,
            "factors": plain(lab.factors),
            "method": plain(lab.method),
            "order": [[trial.cell.name, trial.block, trial.stage] for trial in lab.trials],
            "source": lab.source,
        },
    }


def _claims(judgements: Sequence[Judged]) -> list[dict[str, str]]:
    return [{"text": one.claim.text, "outcome": one.outcome, "reason": one.reason} for one in judgements]


def _finding(effect: Effect) -> dict[str, Any]:
    return {**plain(effect.finding), "name": effect.contrast.name}
