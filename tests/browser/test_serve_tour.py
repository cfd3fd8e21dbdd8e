"""The whole tour in a real browser: a lab is queued from the page, watched to its end, annotated and compared."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from factories import evidence
from labfactory import trials
from playwright.sync_api import Page, Route, expect, sync_playwright
from served import LAB as STOCKED
from served import begun

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [pytest.mark.long, pytest.mark.live, pytest.mark.skipif(BROWSER is None, reason="no Chromium here")]
PATIENCE_MS = 120_000
LAB = """question = "Do two clients get more done than one?"
[workload]
name = "select-only"
[system]
engine = "null"
[load]
duration = "2s"
warmup = "0s"
[vary]
clients = [1, 2]
[measure]
repeats = 6
quiet = "0s"
"""


@contextmanager
def server(place: Path, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Yields the printed address and the process."""
    command = [sys.executable, "-m", "ironbench.start", "serve", "--results", str(place / "results"), *words]
    environment = {**os.environ, "XDG_CACHE_HOME": str(place / "cache")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGINT)
            process.wait(20)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Yields the printed address and the results directory."""
    with server(tmp_path, "--listen", "127.0.0.1:0") as (address, _):
        yield address, tmp_path / "results"


@contextmanager
def measured(place: Path) -> Iterator[None]:
    """Runs a lab with trials of 20 s that was started in a terminal."""
    lab, directory = place / "two.toml", place / "results" / "labs" / "two"
    lab.write_text(LAB.replace('"2s"', '"20s"'))
    process = subprocess.Popen(
        [sys.executable, "-m", "ironbench.start", "lab", "run", str(lab), "--results", str(directory)]
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


@pytest.fixture(params=[1400, 400])
def page(request: pytest.FixtureRequest) -> Iterator[Page]:
    said: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": request.param, "height": 900})
        context.set_default_timeout(PATIENCE_MS)
        found = context.new_page()
        found.on("console", lambda message: said.append(message.text))
        found.on("pageerror", lambda error: said.append(str(error)))
        yield found
        browser.close()
    # The browser itself reports lost connections; only the page's errors matter.
    assert [text for text in said if not re.search("ERR_(CONNECTION|INCOMPLETE|EMPTY_RESPONSE)", text)] == []


def fits(page: Page) -> None:
    """Checks that no part of the page is outside the window."""
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]  # type: ignore[index]


def drawn(page: Page) -> None:
    """Checks that every chart is drawn."""
    for place in page.locator("div.chart").all():
        expect(place.locator("svg").first).to_be_attached(timeout=PATIENCE_MS)


def test_a_lab_is_queued_watched_to_its_end_noted_and_compared(page: Page, served: tuple[str, Path]) -> None:
    address, results = served
    page.goto(address)
    assert "token" not in page.url
    fits(page)
    page.get_by_role("link", name="Queue", exact=True).click()
    page.get_by_role("link", name="Queue a lab file").click()
    draft = page.get_by_role("textbox", name="Lab file", exact=True)
    draft.fill(LAB.replace("select-only", "select-onyl"))
    expect(page.locator("#plan")).to_contain_text("did you mean select-only", timeout=PATIENCE_MS)
    draft.fill(LAB)
    expect(page.locator("#plan")).to_contain_text("6 blocks", timeout=PATIENCE_MS)
    fits(page)
    page.get_by_label("name of the lab file").fill("two")
    page.get_by_role("button", name="Add to the queue").click()
    page.get_by_role("link", name="Watch", exact=True).click()
    expect(page.locator("[data-now=title]")).to_contain_text("trial", timeout=PATIENCE_MS)
    expect(page.locator("[data-now=throughput]")).to_contain_text("/s", timeout=PATIENCE_MS)
    fits(page)
    expect(page.get_by_role("heading", name="How to reproduce")).to_be_visible(timeout=PATIENCE_MS)
    fits(page)
    page.locator("button.trial").first.click()
    expect(page.locator("output.said")).to_contain_text("block 1")
    page.get_by_label("note").fill("seen")
    page.get_by_role("button", name="Save note").click()
    expect(page.get_by_label("note")).to_have_value("seen\n")
    drawn(page)
    lab = next((results / "labs").iterdir())
    assert (lab / "notes" / "lab.md").read_text() == "seen\n"
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_role("heading", name="From 1 client to 2 clients")).to_be_visible()
    expect(page.get_by_role("heading", name="A compared with B")).to_be_visible()
    fits(page)
    page.go_back()
    page.goto(f"{page.url.partition('?')[0]}/gate")  # a lab's page links to it if the lab was run as a gate
    expect(page.locator(".decision")).to_contain_text(re.compile("PASS|FAIL|INCONCLUSIVE"))
    page.get_by_label("allowed slowdown").fill("0.5")
    page.get_by_role("button", name="Evaluate").click()
    expect(page.locator(".decision")).to_contain_text("PASS: ")
    drawn(page)
    fits(page)
    with page.expect_download() as document:
        page.get_by_role("link", name=".md").click()
    assert "PASS" in Path(document.value.path()).read_text()
    page.get_by_role("link", name=re.compile("^lab two-")).click()
    page.get_by_role("link", name="history", exact=True).click()
    expect(page.get_by_role("heading", name="History")).to_be_visible()
    drawn(page)
    fits(page)
    page.get_by_role("link", name="Queue", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("No lab is running")
    expect(page.locator(".state").first).to_have_text(re.compile("done"))
    page.goto(re.sub(r"/\?.*", "/archive?view=labs", address))
    expect(page.locator(f'a[href="/lab/{lab.name}"]')).to_be_visible()
    fits(page)


def test_a_page_says_that_it_is_not_connected_and_is_live_again_by_itself(page: Page, tmp_path: Path) -> None:
    """The browser was asleep, or the server was restarted with the user's token."""
    token, port = tmp_path / "token", free_port()
    token.write_text("a-token-of-sixteen-or-more")
    with measured(tmp_path):
        with server(tmp_path, "--listen", f"127.0.0.1:{port}", "--token-file", str(token)) as (address, _):
            watched(page, address)
        expect(page.locator("#lost")).to_contain_text("Not connected since", timeout=PATIENCE_MS)
        with server(tmp_path, "--listen", f"127.0.0.1:{port}", "--token-file", str(token)):
            expect(page.locator("#lost")).to_be_hidden(timeout=PATIENCE_MS)


def test_a_page_says_that_a_server_is_silent_and_what_becomes_of_what_was_asked(page: Page, tmp_path: Path) -> None:
    """A stopped server, or a machine that is switched off, closes no connection."""
    with measured(tmp_path), server(tmp_path, "--listen", "127.0.0.1:0") as (address, process):
        watched(page, address)
        lost = page.locator("#lost")
        for words in ("throughput in the last second", "Queue a lab file"):
            expect(page.locator("main")).to_contain_text(words)
            process.send_signal(signal.SIGSTOP)
            expect(lost).to_be_visible(timeout=30_000)
            expect(lost).to_contain_text("Not connected since")
            process.send_signal(signal.SIGCONT)
            expect(lost).to_be_hidden(timeout=30_000)
            page.get_by_role("link", name="Queue", exact=True).click()
        page.get_by_role("link", name="Queue a lab file").click()
        draft = page.get_by_role("textbox", name="Lab file", exact=True)
        draft.fill(LAB)
        expect(page.locator("#plan")).to_contain_text("6 blocks", timeout=PATIENCE_MS)
        process.send_signal(signal.SIGSTOP)
        # A locator waits for the response; the text before that must appear without waiting.
        words_shown: list[tuple[str, str]] = []
        page.expose_function("shown", lambda both: words_shown.append(tuple(both)))
        page.evaluate("""{
            const lost = document.getElementById("lost");
            const draft = document.querySelector("textarea[data-plan]");
            new MutationObserver(() => shown([lost.textContent, draft.value])).observe(lost, { childList: true });
        }""")
        page.get_by_role("button", name="Add to the queue").click()
        latest = time.monotonic() + 30
        while not words_shown and time.monotonic() < latest:
            page.wait_for_timeout(200)
        process.send_signal(signal.SIGCONT)
        assert [("The request is sent" in words, typed) for words, typed in words_shown] == [(True, LAB)]
        expect(page.get_by_role("heading", name="Queue", exact=True)).to_be_visible(timeout=PATIENCE_MS)
        expect(page.get_by_role("link", name="lab", exact=True)).to_be_visible()


def test_what_is_asked_of_a_busy_server_is_not_given_up(page: Page, served: tuple[str, Path]) -> None:
    """Pages are made one after another, so a slow one delays all others."""
    address, results = served
    directory = begun(results)
    page.add_init_script(
        "{ const real = AbortSignal.timeout; AbortSignal.timeout = () => real.call(AbortSignal, 200); }"
    )

    def late(route: Route) -> None:
        time.sleep(1)
        route.continue_()

    page.route("**/queue/plan", late)
    page.goto(address)
    page.get_by_role("link", name="Queue", exact=True).click()
    page.get_by_role("link", name="Queue a lab file").click()
    page.get_by_role("textbox", name="Lab file", exact=True).fill(LAB)
    expect(page.locator("#plan")).to_contain_text("6 blocks", timeout=PATIENCE_MS)
    page.goto(re.sub(r"/\?.*", f"/lab/{STOCKED}", address))
    page.route("**/queue/state", lambda route: route.abort("connectionrefused"))
    page.get_by_label("note").fill("seen")
    page.get_by_role("button", name="Save note").click()
    expect(page.locator("#lost")).to_contain_text("Nothing was sent")
    page.unroute("**/queue/state")
    page.route("**/queue/state", lambda _: None)  # no answer
    page.get_by_role("button", name="Save note").click()
    expect(page.get_by_label("note")).to_have_value("seen\n", timeout=PATIENCE_MS)
    assert (directory.path / "notes" / "lab.md").read_text() == "seen\n"


def watched(page: Page, address: str) -> None:
    """Opens the page of the running lab and waits for its figures."""
    page.goto(address)
    page.get_by_role("link", name="two").first.click()
    expect(page.locator("[data-now=throughput]")).to_contain_text("/s", timeout=PATIENCE_MS)
    expect(page.locator("#lost")).to_be_hidden()


HOLDS = """
import sys, time
from pathlib import Path
from ironbench.records.labs import LabDirectory
with LabDirectory(Path(sys.argv[1])).locked():
    print("holds", flush=True)
    time.sleep(600)
"""


def test_a_mark_that_was_chosen_and_its_words_stay_when_another_trial_has_ended(
    page: Page, served: tuple[str, Path]
) -> None:
    address, results = served
    directory = begun(results, share=0.05)  # one trial of twenty
    records = trials(directory.lab(), {"log=disk": 1000.0, "log=memory": 1150.0}, observed=True)
    command = [sys.executable, "-c", HOLDS, str(directory.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as measuring:
        try:
            assert measuring.stdout is not None and measuring.stdout.readline() == "holds\n"
            page.goto(address)
            page.goto(f"{page.url}lab/{STOCKED}")
            said = page.locator("output.said")
            page.locator("button.trial").first.click()
            expect(said).to_contain_text("block 1")
            words = said.text_content()
            directory.store.keep(records[1], **evidence())
            expect(page.locator("#strip")).to_contain_text("2 trials of 20", timeout=PATIENCE_MS)
            assert said.text_content() == words
            assert page.evaluate("document.activeElement.matches('button.trial')")
            page.goto("about:blank")
        finally:
            measuring.kill()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
