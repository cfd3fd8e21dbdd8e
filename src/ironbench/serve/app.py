"""The application: which address shows which page. Pages are made in threads; errors become pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from ironbench.errors import FailureError, IronbenchError
from ironbench.printer import Printer
from ironbench.process import scratch
from ironbench.serve import archive, archive_page, measured, notes, overview, tools
from ironbench.serve.answers import Answers
from ironbench.serve.door import Door
from ironbench.serve.guard import Application, Guard, TooLargeError
from ironbench.serve.page import fill, problem, simple, static
from ironbench.serve.shelf import Shelf, said

Page = Callable[[Request], Response]


class Pages:
    """Answers of one server about one results directory."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.answers = Answers()

    def overview(self, request: Request) -> Response:
        return overview.overview(self.shelf)

    def fragment(self, request: Request) -> Response:
        if request.path_params["name"] == "answers":
            return HTMLResponse(overview.answers(self.shelf, self.answers))
        if request.path_params["name"] == "doctor":
            return HTMLResponse(overview.doctor(self.shelf.results))
        raise HTTPException(404)

    def archive(self, request: Request) -> Response:
        return archive_page.archive_page(
            self.shelf, archive.Query.of(request.query_params), request.query_params.get("view", "")
        )

    def record(self, request: Request) -> Response:
        return measured.record(self.shelf, request.path_params.get("lab", ""), request.path_params["id"])

    def series(self, request: Request) -> Response:
        return measured.series(self.shelf, request.path_params["id"])

    def label(self, request: Request) -> Response:
        return measured.label(self.shelf, request.query_params.get("name", ""))

    def lab(self, request: Request) -> Response:
        return measured.lab(self.shelf, request.path_params["lab"])

    def compare(self, request: Request) -> Response:
        fields = request.query_params
        picks = [pick for pick in (*fields.getlist("pick"), fields.get("a", ""), fields.get("b", "")) if pick]
        return measured.compared(self.shelf, picks, bool(fields.get("different_work")))

    def leaderboard(self, request: Request) -> Response:
        fields = request.query_params
        return tools.leaderboard(self.shelf, fields.get("name", ""), fields.get("per", ""))

    def cost(self, request: Request) -> Response:
        return tools.cost(self.shelf, "", "")

    def findings(self, request: Request) -> Response:
        body = fill("/fragment/answers", "Reading the labs …")
        return simple("Findings", body, at="/archive", lead="The decision of each lab, the latest first.")

    def export(self, request: Request) -> Response:
        context = scratch.folder()
        folder = context.__enter__()
        try:
            path = tools.export(self.shelf, request.query_params.getlist("pick"), folder)
        except BaseException:
            context.__exit__(None, None, None)
            raise
        task = BackgroundTask(context.__exit__, None, None, None)
        return FileResponse(path, filename=path.name, media_type="application/octet-stream", background=task)

    def static(self, request: Request) -> Response:
        found = static(request.path_params["name"])
        if found is None:
            raise HTTPException(404)
        return found

    async def post_note(self, request: Request) -> Response:
        lab, id = request.path_params.get("lab", ""), request.path_params["id"]
        text = (await form(request)).get("text", "")

        def keep() -> str:
            store = self.shelf.store(lab)
            known = id == notes.OF_LAB if lab else False
            rows = self.shelf.rows(lab)
            if not known and id not in rows and not any(row.series == id for row in rows.values()):
                raise HTTPException(404)
            notes.write(store.directory, id, text)
            if known:
                return f"/lab/{lab}"
            return archive.record_address(lab, id) if id in rows else f"/series/{id}"

        return RedirectResponse(await run_in_threadpool(keep), 303)

    async def post_cost(self, request: Request) -> Response:
        fields = await form(request)
        return await run_in_threadpool(
            tools.cost, self.shelf, fields.get("target", "")[:200], fields.get("systems", "")
        )

    async def post_import(self, request: Request) -> Response:
        with scratch.folder() as folder:
            path = folder / "arrived.ibr"
            try:
                await tools.received(request.stream(), path)
                return PlainTextResponse(await run_in_threadpool(tools.take, self.shelf, path))
            except IronbenchError as error:
                return PlainTextResponse(said(error, self.shelf.results).replace(str(path), "the file"), 400)
            except OSError as error:
                return PlainTextResponse(f"cannot be kept: {error.strerror}", 507)

    def routes(self) -> list[Route]:
        shown: dict[str, Page] = {
            "/": self.overview,
            "/fragment/{name}": self.fragment,
            "/archive": self.archive,
            "/record/{id}": self.record,
            "/series/{id}": self.series,
            "/label": self.label,
            "/lab/{lab}": self.lab,
            "/lab/{lab}/record/{id}": self.record,
            "/compare": self.compare,
            "/leaderboard": self.leaderboard,
            "/cost": self.cost,
            "/findings": self.findings,
            "/export": self.export,
            "/static/{name}": self.static,
        }
        changed: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "/note/{id}": self.post_note,
            "/lab/{lab}/note/{id}": self.post_note,
            "/cost": self.post_cost,
            "/import": self.post_import,
        }
        return [Route(path, make, methods=["GET"]) for path, make in shown.items()] + [
            Route(path, change, methods=["POST"]) for path, change in changed.items()
        ]


def application(results: Path, door: Door, printer: Printer) -> Application:
    """What a server runs."""
    shelf = Shelf(results)
    pages = Pages(shelf)

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, IronbenchError)
        status = 500 if isinstance(error, FailureError) else 404
        return problem("This cannot be shown", said(error, results), status)

    async def not_there(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        words = {404: "There is no such page.", 405: "This address does not take that."}
        return problem("Not here", words.get(error.status_code, error.detail), error.status_code)

    async def unreadable(_: Request, error: Exception) -> Response:
        assert isinstance(error, OSError)
        return problem("The disk does not answer", f"{error.strerror or error}", 507)

    async def too_large(_: Request, error: Exception) -> Response:
        return problem("This is too large", str(error), 413)

    async def failed(_: Request, __: Exception) -> Response:
        return problem("This page failed", "The terminal of the server says why.", 500)

    app = Starlette(
        routes=pages.routes(),
        exception_handlers={
            IronbenchError: refused,
            HTTPException: not_there,
            OSError: unreadable,
            TooLargeError: too_large,
            Exception: failed,
        },
    )
    return Guard(app, door, printer)


async def form(request: Request) -> dict[str, str]:
    """The fields of a form; of a field that comes twice the last."""
    body = (await request.body()).decode("utf-8", errors="replace")
    try:
        parsed = parse_qs(body, keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        raise HTTPException(400, "This is no form.") from None
    return {name: values[-1] for name, values in parsed.items()}
