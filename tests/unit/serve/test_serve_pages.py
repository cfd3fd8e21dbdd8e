"""Every page of the archive shows what exists, despite damaged or missing files and unusual names."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path

import msgspec
import pytest
from served import LAB, begun, browser, stocked
from starlette.testclient import TestClient

from ironbench.records import Store
from ironbench.serve import archive
from ironbench.serve.queue_entry import DONE, FAILED, STOPPED, QueueEntry
from ironbench.serve.results import Results


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stocked(tmp_path_factory.mktemp("made"))


@pytest.fixture
def results(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "results"))


@pytest.fixture
def client(results: Path) -> TestClient:
    return browser(results)


def ids(results: Path) -> list[str]:
    return sorted(path.name for path in (results / "trials").iterdir())


def test_the_overview_shows_runs_space_and_where_answers_come(client: TestClient) -> None:
    page = client.get("/").text
    assert "log in memory" in page and "free for results" in page
    assert 'data-fill="/fragment/answers"' in page
    answer = client.get("/fragment/answers").text
    assert "Is the log what holds this database back?" in answer and "12% faster than WAL on disk" in answer


def test_the_doctor_tells_what_spoils_numbers(client: TestClient) -> None:
    page = client.get("/fragment/doctor").text
    assert "OK:" in page or "state" in page


def test_a_record_a_series_a_label_and_a_lab_open_as_reports(client: TestClient, results: Path) -> None:
    id = ids(results)[0]
    lab_id = next((results / "labs" / LAB / "trials").iterdir()).name
    series = Store(results).listed()[0].series
    for path in (f"/record/{id}", f"/series/{series}", "/label?name=log on disk", f"/lab/{LAB}"):
        page = client.get(path)
        assert page.status_code == 200 and "How to reproduce" in page.text, path
    assert "log" in client.get(f"/lab/{LAB}/record/{lab_id}").text


def test_search_finds_by_text_workload_engine_machine_status_and_day(client: TestClient, results: Path) -> None:
    known = Results(results)
    every = known.index().count("true")

    def count(**fields: str) -> int:
        return archive.search(known, archive.ArchiveQuery.of(fields)).count

    assert count() == every
    assert 0 < count(q="MEMORY") < every
    assert count(workload="igen-oltp") == every and count(workload="other") == 0
    assert count(engine="postgres") == every and count(engine="other") == 0
    assert count(machine="m1") > 0 and count(status="failed") == 0
    assert count(since="2026-11-22") == 0 and count(until="2026-11-21") == every
    assert "No record matches" in client.get("/archive?q=nothing-like-it").text


@pytest.mark.parametrize("number", ["0", "-1", "x", "99999999999", "２"])
def test_a_page_number_that_makes_no_sense_is_a_page(client: TestClient, number: str) -> None:
    assert client.get("/archive", params={"page": number}).status_code == 200


def test_two_are_compared_and_more_or_fewer_refused(client: TestClient, results: Path) -> None:
    page = client.get("/compare", params={"a": "log on disk", "b": "log in memory"})
    assert page.status_code == 200 and "A compared with B" in page.text
    cells = client.get("/compare", params={"pick": [f"{LAB}/log=disk", f"{LAB}/log=memory"]})
    assert "faster" in cells.text
    for picks in (["log on disk"], ["log on disk"] * 3, ["log on disk", "nothing"], ["../../etc", "log on disk"]):
        assert client.get("/compare", params={"pick": picks}).status_code == 404


def test_a_comparison_walks_the_difference_down_and_links_to_both_sides(client: TestClient) -> None:
    page = client.get("/compare", params={"a": f"{LAB}/log=disk", "b": f"{LAB}/log=memory"}).text
    assert "From WAL on disk to WAL in memory" in page and "What differs" in page
    assert f'href="/lab/{LAB}"' in page and "swap sides" in page
    assert "name two" not in client.get("/compare").text and "required" in client.get("/compare").text


def test_a_lab_alone_is_no_side_and_its_cells_are_named(client: TestClient) -> None:
    refused = client.get("/compare", params={"a": LAB, "b": "log on disk"})
    assert refused.status_code == 404 and f"{LAB}/log=disk" in refused.text


@pytest.mark.parametrize("gate", [False, True])
def test_the_page_of_a_lab_speaks_of_a_gate_only_where_it_was_run_as_one(gate: bool, tmp_path: Path) -> None:
    begun(tmp_path, gate=gate)
    with browser(tmp_path) as client:
        page = client.get(f"/lab/{LAB}").text
    assert ("PASS: " in page, "/gate" in page) == (gate, gate)


def test_a_lab_gives_the_documents_of_a_gate(client: TestClient) -> None:
    page = client.get(f"/lab/{LAB}/gate", params={"margin": "0.01"}).text
    assert "allowed slowdown: 1%" in page and "WAL in memory vs. WAL on disk" in page
    for kind, mark in (
        ("xml", "<testsuite"),
        ("md", "**PASS: "),
        ("json", '"closed": false'),
        ("svg", "<svg"),
    ):
        document = client.get(f"/lab/{LAB}/gate.{kind}")
        assert mark in document.text, kind
        assert f"gate.{kind}" in document.headers["content-disposition"]


@pytest.mark.parametrize("margin", ["x", "-1", "nan", "inf", "1e9"])
def test_a_margin_that_is_no_share_is_refused(client: TestClient, margin: str) -> None:
    refused = client.get(f"/lab/{LAB}/gate", params={"margin": margin})
    assert refused.status_code == 404 and "is not a fraction" in refused.text


def test_the_history_of_a_search_is_a_page_with_its_points(client: TestClient) -> None:
    page = client.get("/history", params={"of": LAB}).text
    assert "by date" in page and "chart" in page
    assert client.get("/history", params={"q": "log on disk", "by": "date"}).status_code == 200
    assert "No record matches" in client.get("/history", params={"of": "nothing"}).text


@pytest.mark.parametrize("fields", [{"by": "colour"}, {"metric": "no_such"}, {"by": "commit"}])
def test_a_history_that_cannot_be_says_why_and_keeps_the_form(client: TestClient, fields: dict[str, str]) -> None:
    page = client.get("/history", params=fields)
    assert page.status_code == 200 and 'role="alert"' in page.text and "one point per" in page.text


def test_what_is_exported_can_be_imported_elsewhere(client: TestClient, results: Path, tmp_path: Path) -> None:
    other = browser(tmp_path / "other")
    for pick in ("log on disk", f"{LAB}/"):
        bundle = client.get("/export", params={"pick": pick})
        assert bundle.headers["content-disposition"].endswith('.ibr"')
        answer = other.post("/import", content=bundle.content)
        assert answer.status_code == 200 and "new record" in answer.text
    assert f"/lab/{LAB}" in other.get("/archive?view=labs").text
    refused = other.post("/import", content=b"no bundle")
    assert refused.status_code == 400 and str(tmp_path) not in refused.text


def test_a_note_lies_beside_the_record_and_never_in_it(client: TestClient, results: Path) -> None:
    id = ids(results)[0]
    before = {path: path.read_bytes() for path in (results / "trials" / id).rglob("*") if path.is_file()}
    page = client.post(f"/note/{id}", data={"text": "<b>seen</b> twice"})
    assert page.status_code == 200 and "&lt;b&gt;seen&lt;/b&gt; twice" in page.text
    assert (results / "notes" / f"{id}.md").read_text() == "<b>seen</b> twice\n"
    assert before == {path: path.read_bytes() for path in (results / "trials" / id).rglob("*") if path.is_file()}
    client.post(f"/note/{id}", data={"text": " "})
    assert not (results / "notes" / f"{id}.md").exists()
    client.post(f"/lab/{LAB}/note/lab", data={"text": "why"})
    assert (results / "labs" / LAB / "notes" / "lab.md").read_text() == "why\n"


@pytest.mark.parametrize("id", ["nothing", "..%2f..%2fetc%2fpasswd", ".hidden"])
def test_a_note_on_nothing_is_refused(client: TestClient, results: Path, id: str) -> None:
    assert client.post(f"/note/{id}", data={"text": "x"}).status_code == 404
    assert not (results / "notes").exists()


def test_records_that_come_vanish_or_break_are_seen_at_the_next_request(client: TestClient, results: Path) -> None:
    first, second, third = ids(results)[:3]
    assert client.get(f"/record/{first}").status_code == 200
    aside = results / "aside"
    (results / "trials" / first).rename(aside)
    assert first not in client.get(f"/archive?q={first}").text.replace(f'value="{first}"', "")
    assert client.get(f"/record/{first}").status_code == 404
    aside.rename(results / "trials" / first)
    assert f"/record/{first}" in client.get(f"/archive?q={first}").text
    (results / "trials" / second / "record.json").write_bytes(b"{")
    assert client.get(f"/record/{second}").status_code == 404
    shutil.rmtree(results / "trials" / third / "log", ignore_errors=True)
    for file in (results / "trials" / third).glob("*.parquet"):
        file.write_bytes(b"damaged")
    assert client.get(f"/record/{third}").status_code == 200
    shutil.rmtree(results / "trials")
    assert "No record matches" in client.get("/archive").text or LAB in client.get("/archive").text


def test_a_lab_with_a_damaged_plan_spoils_no_other_page(client: TestClient, results: Path) -> None:
    (results / "labs" / LAB / "plan.json").write_bytes(b"{")
    assert client.get(f"/lab/{LAB}").status_code == 500
    answer = client.get("/fragment/answers")
    assert answer.status_code == 200 and "cannot be read" in answer.text
    assert str(results) not in answer.text


PATHS = ["/lab/..%2fx/record/x"]
PATHS += [
    "/record/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "/static/..%2f..%2fpyproject.toml",
    "/static/app.py",
]
PATHS += ["/label?name=../../etc", "/export?pick=../../../etc/", "/export?pick=/etc", "/export", "/lab/x%00y"]


@pytest.mark.parametrize("path", PATHS)
def test_no_path_leads_out_of_the_results(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in (400, 404)
    assert "root:" not in answer.text


def test_a_hidden_directory_is_no_lab(client: TestClient, results: Path) -> None:
    (results / "labs" / LAB).rename(results / "labs" / ".hidden")
    assert client.get("/lab/.hidden").status_code == 404
    assert "hidden" not in client.get("/archive?view=labs").text


def test_what_users_wrote_is_shown_as_text(results: Path) -> None:
    from dataclasses import replace

    store = Store(results)
    one = store.all()[0]
    evil = replace(one, id="evil", series="evil", system=replace(one.system, label="<script>alert(1)</script>"))
    from factories import evidence

    store.keep(evil, **evidence())
    client = browser(results)
    for path in ("/", "/archive", "/record/evil", "/series/evil", "/archive?view=labels"):
        assert "<script>alert" not in client.get(path).text, path


def test_the_leaderboard_and_cost_answer_or_say_why_not(client: TestClient) -> None:
    assert "TPC" in client.get("/leaderboard").text
    assert client.get("/leaderboard?name=nothing").status_code == 404
    assert client.get("/leaderboard?per=nothing").status_code == 404
    met = client.post("/cost", data={"target": "p99 < 10ms at 5000 tps"})
    assert met.status_code == 200 and "Target" in met.text
    bad = client.post("/cost", data={"systems": "x ="})
    assert bad.status_code == 200 and "problem" in bad.text


def test_the_overview_tells_what_the_night_brought_and_forgets_it_after_a_day(results: Path) -> None:
    (folder := results / "queue").mkdir()
    for id, ended_at, why in (("a", time.time() - 60, "the disk is full"), ("b", time.time() - 90000, "long ago")):
        entry = QueueEntry(id, f"lab-{id}", ended_at, 1.0, "", state=FAILED, why=why, ended_at=ended_at)
        (folder / f"{id}.json").write_bytes(msgspec.json.encode(entry))
    page = browser(results).get("/").text
    assert "the disk is full" in page and "/queue/a" in page and "/queue/b" not in page


def test_labs_are_shown_with_their_questions_as_they_began_and_all_of_their_answers_in_pages(
    client: TestClient, results: Path
) -> None:
    for number in range(20):
        copy = shutil.copytree(results / "labs" / LAB, results / "labs" / f"copy-{number}")
        os.utime(copy / "plan.json", (1.1e9 + number, 1.1e9 + number))
    shown = re.findall(r"/lab/([\w-]+)", client.get("/archive?view=labs").text)
    assert shown == [LAB, *(f"copy-{number}" for number in reversed(range(20)))]  # its name contains its time
    assert "Is the log what holds this database back?" in client.get("/archive?view=labs").text
    assert 'data-fill="/fragment/answers?page=2"' in client.get("/findings?page=2").text
    first, second = (client.get(f"/fragment/answers?page={page}").text for page in (1, 99))
    assert (first.count("/lab/"), second.count("/lab/")) == (20, 1)
    assert "older" in first and "newer" in second


def test_a_page_beyond_the_last_is_the_last_and_a_day_that_is_none_is_left_out(client: TestClient) -> None:
    found = re.search(r"page (\d+) of (\d+)", client.get("/archive?page=99").text)
    assert found is not None and found[1] == found[2]
    assert client.get("/archive?since=garbage").text.count("/record/") == client.get("/archive").text.count("/record/")


def test_a_page_has_one_main_part_and_a_heading(client: TestClient) -> None:
    for path in ("/", "/archive", f"/lab/{LAB}", "/history", "/compare", "/queue"):
        page = client.get(path).text
        assert page.count("<main") == page.count("</main>") == 1 and page.count("<h1") == 1, path


def test_a_record_that_cannot_be_read_is_named_on_the_overview_and_in_the_labs_report(results: Path) -> None:
    trials = results / "labs" / LAB / "trials"
    one = sorted(trials.iterdir())[0] / "record.json"
    one.write_bytes(one.read_bytes()[:700])
    client = browser(results)
    page = client.get("/").text
    assert "Records that cannot be read" in page and f"lab {LAB}" in page and "1 record" in page
    report = client.get(f"/lab/{LAB}").text
    assert f"{one.parent.name}/record.json is not a readable record" in report and str(results) not in report


def test_the_page_of_a_lab_that_failed_says_why_until_it_is_resumed(results: Path) -> None:
    (folder := results / "queue").mkdir()
    failed = QueueEntry(
        "a", "log", 1.0, 1.0, LAB, state=FAILED, why="prepare exited with status 7", begun_at=1.0, ended_at=2.0
    )
    (folder / "a.json").write_bytes(msgspec.json.encode(failed))
    trials = results / "labs" / LAB / "trials"
    last = trials / browser(results).get(f"/archive?q={LAB}").text.split(f"/lab/{LAB}/record/")[1].split('"')[0]
    last.rename(results / "put aside")
    assert "Failed: prepare exited with status 7" in browser(results).get(f"/lab/{LAB}").text
    done = QueueEntry("b", "log", 3.0, 2.0, LAB, True, state=DONE, begun_at=3.0, ended_at=4.0)
    (folder / "b.json").write_bytes(msgspec.json.encode(done))
    assert "Failed: " not in browser(results).get(f"/lab/{LAB}").text
    (folder / "b.json").unlink()
    (results / "put aside").rename(last)  # another user resumed it in a terminal
    assert "Failed: " not in browser(results).get(f"/lab/{LAB}").text


def test_a_stopped_lab_that_was_resumed_since_is_not_offered_again(results: Path) -> None:
    (folder := results / "queue").mkdir()
    for id, state, begun_at in (("a", STOPPED, 1.0), ("b", STOPPED, 3.0)):
        entry = QueueEntry(id, "log", begun_at, begun_at, LAB, state=state, begun_at=begun_at, ended_at=begun_at + 1)
        (folder / f"{id}.json").write_bytes(msgspec.json.encode(entry))
    assert browser(results).get("/queue").text.count(f"/lab/{LAB}/resume") == 1
