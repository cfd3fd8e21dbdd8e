"""JSON documents for programs: unrounded values in base units, with metric names as in records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ironbench.model.lab import Configuration
from ironbench.model.note import Note
from ironbench.model.record import SCHEMA, Record
from ironbench.model.sample import sampled
from ironbench.report import wording
from ironbench.report.derived import sentences
from ironbench.study.comparability import merged_notes

if TYPE_CHECKING:
    from ironbench.records import Store
    from ironbench.study.optimum import SearchResult


def run_document(
    records: Sequence[Record],
    store: Store,
    answer: SearchResult | None = None,
    requirements: Sequence[dict[str, Any]] = (),
) -> str:
    """Returns the document that `run --json` prints. `answer`: the result of a search. `requirements`: the outcomes of
    `--require`."""
    fields = run_fields(records, store)
    if requirements:
        fields["requirements"] = list(requirements)
    if answer is not None:
        fields["search"] = {
            **plain_value(answer),
            "of": answer.search.of,
            "inconclusive": answer.inconclusive,
            "sentence": wording.text(answer.note),
        }
    return encoded(fields).decode()


def run_fields(records: Sequence[Record], store: Store) -> dict[str, Any]:
    """Returns the fields `schema`, `system`, `trials`, `warnings` and `derived`."""
    trials = [
        {
            "id": record.id,
            "cell": record.cell.name,
            "block": record.block,
            "purpose": record.purpose,
            "status": record.status.value,
            "cause": wording.cause(record),
            "metrics": record.metrics,
            "undersampled": [name for name in record.metrics if not sampled(record, name)],
            "checks": record.checks,
            "warnings": plain_value(record.warnings),
            "record": str(store.path(record.id)),
        }
        for record in records
    ]
    return {
        "schema": SCHEMA,
        "system": records[0].system if records else None,
        "trials": trials,
        "warnings": plain_value(merged_notes(records)),
        "derived": sentences(records),
    }


def plain_value(value: Any) -> Any:
    """Converts a value for JSON. A dataclass becomes a dict. A note becomes a dict with its code, values and sentence.
    A configuration becomes its name, and a record its id."""
    if isinstance(value, Record):
        return value.id
    if isinstance(value, Configuration):
        return value.marked
    if isinstance(value, Note):
        return {"code": value.code, "values": plain_value(value.values), "text": wording.text(value)}
    if isinstance(value, dict):
        return {key: plain_value(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(part) for part in value]
    if hasattr(value, "__dataclass_fields__"):
        return dict(_plain_fields(value))
    return value


def _plain_fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the fields of a dataclass for JSON. A field that contains a note becomes two fields: one with the note's
    text, and one with the note's code and values."""
    for name, field in value.__dataclass_fields__.items():
        known = getattr(value, name)
        if field.type in ("Note", "Note | None"):
            text_name, note_name = ("sentence", name) if name == "note" else (name, f"{name}_note")
            yield text_name, wording.text(known) if known else ""
            yield note_name, plain_value(known)
        else:
            yield name, plain_value(known)


def encoded(document: Any) -> bytes:
    """Encodes a document as indented JSON with a newline at its end."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
