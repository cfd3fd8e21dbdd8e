"""The web application: routes, error pages, and handlers of forms. Pages are rendered in threads."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from urllib.parse import parse_qs, quote

from anyio.to_thread import current_default_thread_limiter
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from ironbench.errors import FailureError, InputError, IronbenchError
from ironbench.host import scratch
from ironbench.lab import imported
from ironbench.printer import Printer
from ironbench.serve import (
    archive,
    compared,
    gate,
    history_page,
    lab_page,
    measured,
    metrics,
    new_page,
    notes,
    overview,
    queue_page,
    running,
    tools,
)
from ironbench.serve.answers import AnswerCache
from ironbench.serve.auth import AccessPolicy
from ironbench.serve.lab_page import Events
from ironbench.serve.machine_now import MachineMeter
from ironbench.serve.middleware import Application, RequestGuard, TooLargeError
from ironbench.serve.page import page, prepare, problem, static
from ironbench.serve.progress_page import ProgressCache
from ironbench.serve.queue import Queue
from ironbench.serve.results import Results, error_text

Page = Callable[[Request], Response]


class Pages:
    """The server's request handlers."""

    def __init__(self, results: Results, printer: Printer) -> None:
        self.results, self.printer = results, printer
        self.answers = AnswerCache()
        self.known = ProgressCache()
        self.queue = Queue(results.directory, others=lambda: running.others(results))
        self.events = Events(results, self.known, MachineMeter())
        self.running = running.RunningCache(results)

    def overview(self, request: Request) -> Response:
        return overview.overview(self.results, self.queue, self.running)

    def state(self, request: Request) -> Response:
        return PlainTextResponse(overview.state(self.queue, self.running.seen()))

    def metrics(self, request: Request) -> Response:
        found = metrics.document(self.results, self.running.seen(at_once=True))
        return Response(found.encode(errors="replace"), headers={"content-type": metrics.CONTENT_TYPE})

    def latest_answers(self, request: Request) -> Response:
        page = archive.page_of(request.query_params) if "page" in request.query_params else 0
        return HTMLResponse(overview.answers(self.results, self.answers, page))

    def answer(self, request: Request) -> Response:
        return PlainTextResponse(self.answers.decision(self.results, request.path_params["lab"]))

    async def doctor(self, request: Request) -> Response:
        # Pages are rendered in a single thread. The doctor measures for one second, so it runs in another thread.
        return HTMLResponse(await asyncio.to_thread(overview.doctor, self.results.directory))

    def archive(self, request: Request) -> Response:
        return archive.archive_page(
            self.results,
            archive.ArchiveQuery.of(request.query_params),
            request.query_params.get("view", ""),
            self.answers,
        )

    def record(self, request: Request) -> Response:
        return measured.record(self.results, request.path_params.get("lab", ""), request.path_params["id"])

    def series(self, request: Request) -> Response:
        return measured.series(self.results, request.path_params["id"])

    def label(self, request: Request) -> Response:
        return measured.label(self.results, request.query_params.get("name", ""))

    def lab(self, request: Request) -> Response:
        whole = bool(request.query_params.get("report"))
        name = request.path_params["lab"]
        return lab_page.lab(self.results, name, self.known, whole, self.queue.failure(name))

    async def lab_events(self, request: Request) -> Response:
        name = request.path_params["lab"]
        await run_in_threadpool(self.results.lab, name)
        return StreamingResponse(self.events.of(name), media_type="text/event-stream")

    async def post_stop(self, request: Request) -> Response:
        name = request.path_params["lab"]
        await run_in_threadpool(self.results.lab, name)
        if (one := running.experiment(self.results, name)) is not None:
            running.stop(one)
        return RedirectResponse(quote(f"/lab/{name}"), 303)

    def compare(self, request: Request) -> Response:
        fields = request.query_params
        picks = [pick for pick in (*fields.getlist("pick"), fields.get("a", ""), fields.get("b", "")) if pick]
        return compared.compared(self.results, picks, bool(fields.get("different_work")))

    def history(self, request: Request) -> Response:
        return history_page.history(self.results, request.query_params)

    def gate(self, request: Request) -> Response:
        fields = request.query_params
        return gate.gate_response(
            self.results, request.path_params["lab"], fields.get("margin", ""), fields.get("undecided", "")
        )

    def gate_document(self, request: Request) -> Response:
        lab, kind, fields = request.path_params["lab"], request.path_params["kind"], request.query_params
        return gate.document(self.results, lab, kind, fields.get("margin", ""), fields.get("undecided", ""))

    def shared_report(self, request: Request) -> Response:
        return tools.shared_report(self.results, request.path_params["lab"])

    def leaderboard(self, request: Request) -> Response:
        fields = request.query_params
        return tools.leaderboard(self.results, fields.get("name", ""), fields.get("per", ""))

    def cost(self, request: Request) -> Response:
        return tools.cost(self.results, "", "")

    def findings(self, request: Request) -> Response:
        return page("findings.html", "Findings", at="/archive", number=archive.page_of(request.query_params))

    def export(self, request: Request) -> Response:
        context = scratch.folder()
        folder = context.__enter__()
        try:
            path = tools.export(self.results, request.query_params.getlist("pick"), folder)
        except BaseException:
            context.__exit__(None, None, None)
            raise
        # The background task removes the folder. Starlette 1 does not run this task if the `Range` header asks for
        # bytes beyond the end of the file. The header is therefore ignored.
        request.scope["headers"] = [one for one in request.scope["headers"] if one[0] != b"range"]
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
            store = self.results.store(lab)
            known = id == notes.OF_LAB if lab else False
            record = self.results.has(id, lab)
            if not (known or record or self.results.index().count("lab = ? and series = ?", lab, id)):
                raise HTTPException(404)
            notes.write(store.directory, id, text)
            if known:
                return f"/lab/{lab}"
            return archive.record_address(lab, id) if record else f"/series/{id}"

        return RedirectResponse(quote(await run_in_threadpool(keep)), 303)

    async def post_cost(self, request: Request) -> Response:
        fields = await form(request)
        return await run_in_threadpool(
            tools.cost, self.results, fields.get("target", "")[:200], fields.get("systems", "")
        )

    async def post_import(self, request: Request) -> Response:
        with scratch.folder() as folder:
            path = folder / "arrived.ibr"
            try:
                await tools.save_upload(request.stream(), path)
                return PlainTextResponse(await run_in_threadpool(tools.import_bundle, self.results, path))
            except IronbenchError as error:
                return PlainTextResponse(error_text(error, self.results.directory).replace(str(path), "the file"), 400)
            except OSError as error:
                return PlainTextResponse(f"the file cannot be stored: {error.strerror}", 507)

    def questions(self, request: Request) -> Response:
        return new_page.questions()

    def new_lab(self, request: Request) -> Response:
        return new_page.form(request.path_params["kind"], {})

    async def post_new(self, request: Request) -> Response:
        kind, given = request.path_params["kind"], await form_values(request)
        try:
            # Pages are rendered in a single thread. This call may wait for a database server, so it runs in another
            # thread.
            text = await asyncio.to_thread(new_page.text, kind, given)
        except IronbenchError as error:
            return await run_in_threadpool(new_page.form, kind, given, new_page.words(error))
        return await run_in_threadpool(queue_page.editor, self.queue, {"name": kind, "text": text})

    def show_queue(self, request: Request) -> Response:
        return queue_page.show(self.queue)

    def queue_state(self, request: Request) -> Response:
        return PlainTextResponse(queue_page.state(self.queue))

    def queue_new(self, request: Request) -> Response:
        return queue_page.editor(self.queue, request.query_params)

    def queue_entry(self, request: Request) -> Response:
        return queue_page.entry_page(self.queue, request.path_params["id"])

    async def post_plan(self, request: Request) -> Response:
        fields = await form(request)
        shown = await run_in_threadpool(queue_page.plan, fields.get("name", ""), fields.get("text", ""))
        return HTMLResponse(shown)

    async def post_queue(self, request: Request) -> Response:
        fields = await form(request)
        try:
            await run_in_threadpool(queue_page.put, self.queue, fields)
        except InputError as error:
            words = new_page.words(error)
            page = await run_in_threadpool(queue_page.editor, self.queue, fields | {"after": ""}, words)
            page.status_code = 422
            return page
        return RedirectResponse("/queue", 303)

    async def post_queue_change(self, request: Request) -> Response:
        id, change = request.path_params["id"], request.path_params["change"]
        changes: dict[str, Callable[[], None]] = {
            "earlier": lambda: self.queue.move(id, -1),
            "later": lambda: self.queue.move(id, 1),
            "cancel": lambda: self.queue.cancel(id),
            "stop": lambda: self.queue.stop(id),
            "remove": lambda: self.queue.remove(id),
        }
        if change not in changes:
            raise HTTPException(404)
        await run_in_threadpool(changes[change])
        return RedirectResponse("/queue", 303)

    async def post_resume(self, request: Request) -> Response:
        name, more = request.path_params["lab"], (await form(request)).get("more", "")
        directory = await run_in_threadpool(self.results.lab, name)
        queue_page.refuse_person(directory.lab())
        await run_in_threadpool(imported.require_trust, directory, directory.lab())
        if more and not (more.isascii() and more.isdigit() and len(more) <= 4 and 6 <= int(more) <= 1000):
            raise InputError(
                "additional blocks",
                f"{more[:20]!r} is not a number from 6 to 1,000",
                "a verdict needs at least 6 blocks",
            )
        await run_in_threadpool(self.queue.resume, name, int(more or 0))
        return RedirectResponse("/queue", 303)

    async def work(self) -> None:
        """Updates the queue once a second while the server runs."""
        said = ""
        while True:
            try:
                if self.queue.folder.is_dir():  # without a queue, no thread is woken
                    await run_in_threadpool(self.queue.tick)
                said = ""
            # After an error such as a full disk, the server and running labs must continue.
            except Exception as error:
                words = str(error) if isinstance(error, IronbenchError | OSError) else repr(error)
                if words != said:
                    said = words
                    self.printer.say(f"queue: {said}")
            await asyncio.sleep(1.0)

    def routes(self) -> list[Route]:
        shown: dict[str, Page] = {
            "/": self.overview,
            "/state": self.state,
            "/metrics": self.metrics,
            "/fragment/answers": self.latest_answers,
            "/fragment/answer/{lab}": self.answer,
            "/archive": self.archive,
            "/record/{id}": self.record,
            "/series/{id}": self.series,
            "/label": self.label,
            "/lab/{lab}": self.lab,
            "/lab/{lab}/record/{id}": self.record,
            "/lab/{lab}/report.html": self.shared_report,
            "/lab/{lab}/gate": self.gate,
            "/lab/{lab}/gate.{kind}": self.gate_document,
            "/new": self.questions,
            "/new/{kind}": self.new_lab,
            "/queue": self.show_queue,
            "/queue/state": self.queue_state,
            "/queue/new": self.queue_new,
            "/queue/{id}": self.queue_entry,
            "/compare": self.compare,
            "/history": self.history,
            "/leaderboard": self.leaderboard,
            "/cost": self.cost,
            "/findings": self.findings,
            "/export": self.export,
            "/static/{name}": self.static,
        }
        streamed = {"/lab/{lab}/events": self.lab_events, "/fragment/doctor": self.doctor}
        changed: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "/note/{id}": self.post_note,
            "/lab/{lab}/note/{id}": self.post_note,
            "/lab/{lab}/stop": self.post_stop,
            "/lab/{lab}/resume": self.post_resume,
            "/new/{kind}": self.post_new,
            "/queue": self.post_queue,
            "/queue/plan": self.post_plan,
            "/queue/{id}/{change}": self.post_queue_change,
            "/cost": self.post_cost,
            "/import": self.post_import,
        }
        pages = [Route(path, make, methods=["GET"]) for path, make in (*shown.items(), *streamed.items())]
        return [*pages, *(Route(path, change, methods=["POST"]) for path, change in changed.items())]


def application(results: Results, policy: AccessPolicy, printer: Printer) -> Application:
    """Builds the ASGI application of a server."""
    pages = Pages(results, printer)

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, IronbenchError)
        status = 500 if isinstance(error, FailureError) else 404
        return problem("This page cannot be shown", error_text(error, results.directory), status)

    async def not_there(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        words = {404: "This page does not exist.", 405: "This page does not accept such a request."}
        return problem("Not found", words.get(error.status_code, error.detail), error.status_code)

    async def unreadable(_: Request, error: Exception) -> Response:
        assert isinstance(error, OSError)
        return problem("Disk error", f"{error.strerror or error}", 507)

    async def too_large(_: Request, error: Exception) -> Response:
        return problem("Too large", str(error), 413)

    async def failed(_: Request, __: Exception) -> Response:
        return problem("This page failed", "The server's terminal shows the error.", 500)

    @contextlib.asynccontextmanager
    async def working(_: Starlette) -> AsyncIterator[None]:
        # Pages are rendered one at a time. Python's threads share a CPU anyway, and msgspec 0.22 crashes the process if
        # two threads use a type for the first time at the same time (SIGSEGV in `msgspec.convert`;
        # test_serve_server.py).
        current_default_thread_limiter().total_tokens = 1
        threading.Thread(target=prepare, name="prepare", daemon=True).start()
        task = asyncio.create_task(pages.work())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            pages.queue.close()

    app = Starlette(
        lifespan=working,
        routes=pages.routes(),
        exception_handlers={
            IronbenchError: refused,
            HTTPException: not_there,
            OSError: unreadable,
            TooLargeError: too_large,
            Exception: failed,
        },
    )
    return RequestGuard(app, policy, printer)


async def form(request: Request) -> dict[str, str]:
    """Parses a form. If a field is repeated, its last value counts."""
    return {name: values[-1] for name, values in (await form_values(request)).items()}


async def form_values(request: Request) -> dict[str, list[str]]:
    """Parses a form in which fields may be repeated."""
    body = (await request.body()).decode("utf-8", errors="replace")
    try:
        return parse_qs(body, keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        raise HTTPException(400, "The request is not a form.") from None
