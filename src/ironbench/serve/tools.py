"""The leaderboard page, the cost page, shared reports, and export and import of records."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, Response

from ironbench.errors import InputError, IronbenchError
from ironbench.host import scratch
from ironbench.model.redact import redacted_sql
from ironbench.records import importer
from ironbench.records.bundle import SUFFIX, Reader
from ironbench.records.export import export as write
from ironbench.records.labs import LabDirectory
from ironbench.serve.compared import picked_records
from ironbench.serve.page import page
from ironbench.serve.results import Results, error_text
from ironbench.words import counted

T = TypeVar("T")


def leaderboard(results: Results, name: str, per: str) -> HTMLResponse:
    from ironbench.report import leaderboard as report
    from ironbench.study.leaderboard import PER

    if per == "currency":
        raise InputError(
            "currency", "this page has no field for licences", "use `ironbench leaderboard --per currency --licence`"
        )
    return page(
        "leaderboard.html",
        "Leaderboard",
        at="/archive",
        name=name,
        per=per,
        orders=[one for one in PER if one != "currency"],
        caveat=report.NOT_COMPARABLE,
        report=report.page(report.rankings(name, per, "", "", (), str(results.directory))),
    )


def cost(results: Results, target: str, systems: str) -> HTMLResponse:
    """Shows the cost page. `systems`: the text of a systems file."""
    from ironbench.report.cost import compared
    from ironbench.report.cost import page as report

    shown, problem = None, ""
    if target or systems.strip():
        try:
            with scratch.folder() as folder:
                path = folder / "systems.toml"
                path.write_text(systems, encoding="utf-8", errors="replace")
                found = compared((), target, str(path) if systems.strip() else "", (), "", str(results.directory))
            shown = report(found)
        except IronbenchError as error:
            problem = error_text(error, results.directory)
    return page("cost.html", "Cost", at="/archive", target=target, systems=systems, problem=problem, report=shown)


def export(results: Results, picks: Sequence[str], folder: Path) -> Path:
    """Exports the picks to one file in `folder`. The pick `LAB/` is a whole lab; `compared.named` describes other
    picks. Raises InputError if there are no picks, or if they are records of several labs."""
    if len(picks) == 1 and picks[0].endswith("/"):
        directory = results.lab(picks[0][:-1])
        path = folder / f"{directory.path.name}{SUFFIX}"
        write(directory.store, directory.records(), path, directory)
        return path
    sides = [picked_records(results, pick) for pick in picks]
    stores = {side.store.directory for side in sides}
    if len(stores) != 1:
        cause = "no record is selected" if not sides else "records of several labs are selected"
        raise InputError("export", cause, "select only records of one lab, or only records of runs")
    records = {record.id: record for side in sides for record in side.records}
    path = folder / f"records{SUFFIX}"
    write(sides[0].store, list(records.values()), path)
    return path


def shared_report(results: Results, name: str) -> Response:
    """Returns the report of a lab as one HTML file, without passwords. Raises InputError if there is no such lab."""
    from ironbench.report import formats
    from ironbench.report.document import report
    from ironbench.report.studies import study_of

    directory = results.lab(name)
    content = formats.of_page("html")(without_passwords(report(study_of(directory))))
    headers = {"content-disposition": f"attachment; filename*=utf-8''{quote(directory.path.name, safe='')}.html"}
    return Response(content, media_type="text/html", headers=headers)


def without_passwords(value: T) -> T:
    """Removes passwords from every text of a report, including the commands and the lab file that a user wrote."""
    return _redacted(value)  # type: ignore[no-any-return]


def _redacted(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Enum):
        return redacted_sql(value)
    if isinstance(value, tuple | list):
        return type(value)(_redacted(one) for one in value)
    if isinstance(value, dict):
        return {key: _redacted(one) for key, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: _redacted(getattr(value, one.name)) for one in fields(value)})
    return value


async def save_upload(parts: AsyncIterator[bytes], path: Path) -> None:
    with path.open("wb") as file:
        async for part in parts:
            await run_in_threadpool(file.write, part)


def import_bundle(results: Results, bundle: Path) -> str:
    """Imports a file of records, and returns a sentence about what was imported. Raises InputError if the file is
    damaged or invalid, or was written by a newer version."""
    with Reader(bundle) as reader:
        lab = reader.manifest.lab
        arrived = importer.import_bundle(reader, results.directory / "labs" / lab if lab else results.directory)
    known = f", {arrived.known} already present" if arrived.known else ""
    where = f" in the lab {LabDirectory(arrived.directory).path.name}" if lab else ""
    return f"{counted(len(arrived.new), 'new record')}{known}{where}."
