"""Labs are found wherever they are below the results, listed with their answers, and shared as one file."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from labfactory import lab
from served import LAB, begun, browser, stocked
from starlette.testclient import TestClient

from ironbench.model.commands import Commands
from ironbench.records.labs import LabDirectory, begun_below, place_of
from ironbench.serve.queue import Queue
from ironbench.serve.results import Results
from ironbench.serve.tools import without_passwords

QUESTION = "Is the log what holds this database back?"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stocked(tmp_path_factory.mktemp("made"))


@pytest.fixture
def results(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "results"))


@pytest.fixture
def client(results: Path) -> TestClient:
    return browser(results)


@pytest.mark.parametrize(
    ("place", "name"),
    [("first", ":first"), ("demo/first", "demo:first"), ("other/labs/first", "other:labs:first")],
)
def test_a_lab_is_found_wherever_it_is_below_the_results(place: str, name: str, results: Path) -> None:
    (results / place).parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(results / "labs" / LAB, results / place)
    assert begun_below(results) == [LAB, name] or begun_below(results) == [name, LAB]
    assert place_of(results, name) == results / place and place_of(results, LAB) == results / "labs" / LAB
    client = browser(results)
    assert f"/lab/{name.replace(':', '%3A')}" in client.get("/archive?view=labs").text
    assert client.get("/fragment/answers").text.count(QUESTION) == 2
    assert client.get(f"/lab/{name}").status_code == 200
    record = next((results / place / "trials").iterdir()).name
    assert client.get(f"/lab/{name}/record/{record}").status_code == 200
    assert client.post(f"/lab/{name}/note/lab", data={"text": "why"}).status_code == 200
    assert (results / place / "notes" / "lab.md").read_text() == "why\n"
    entry = Queue(results).resume(name)
    assert Queue(results).begun(entry) and QUESTION in Queue(results).text(entry)


def test_parts_of_a_store_and_hidden_directories_are_not_searched(results: Path) -> None:
    for place in ("trials/x", "queue/x", ".hidden/x", "labs/.x", "deep/er/and/deep/er"):
        shutil.copytree(results / "labs" / LAB, results / place)
    (results / "link").symlink_to(results / "labs")
    assert begun_below(results) == [LAB]


@pytest.mark.parametrize("name", ["..:x", ":..:x", "a:..:..:etc", ":", "a::b", ":.hidden"])
def test_no_name_of_a_lab_leads_out_of_the_results(name: str, client: TestClient, results: Path) -> None:
    assert client.get(f"/lab/{name}").status_code == 404
    assert place_of(results, name).resolve().is_relative_to((results / "labs").resolve())


def test_a_lab_in_labs_comes_before_one_elsewhere_with_the_same_name(results: Path) -> None:
    for place in ("demo/first", "labs/demo:first"):
        shutil.copytree(results / "labs" / LAB, results / place)
    assert sorted(begun_below(results)) == sorted([LAB, "demo:first"])
    assert place_of(results, "demo:first") == results / "labs" / "demo:first"


def test_a_list_of_labs_shows_each_answer_beside_its_question(client: TestClient, results: Path) -> None:
    address = f"/fragment/answer/{LAB}"
    first = client.get("/archive?view=labs").text
    assert QUESTION in first and f'data-answer="{address}"' in first
    answer = client.get(address)
    assert answer.headers["content-type"].startswith("text/plain") and "%" in answer.text
    again = client.get("/archive?view=labs").text
    assert "data-answer" not in again and answer.text.split("(")[0].strip() in again
    (results / "labs" / LAB / "plan.json").write_bytes(b"{")
    assert "cannot be read" in browser(results).get(address).text
    assert client.get("/fragment/answer/nothing").status_code == 404


def test_the_report_of_a_lab_is_one_file_that_needs_no_network(client: TestClient) -> None:
    page = client.get(f"/lab/{LAB}").text
    assert f'href="/lab/{LAB}/report.html"' in page and f'href="/export?pick={LAB}%2F"' in page
    file = client.get(f"/lab/{LAB}/report.html")
    assert file.headers["content-disposition"] == f"attachment; filename*=utf-8''{LAB}.html"
    assert QUESTION in file.text and "<script" in file.text
    assert "default-src 'none'" in file.text
    markup = re.sub(r"<script.*?</script>", "", file.text, flags=re.DOTALL)
    assert not re.search(r"(?:src|href)=\"(?!#|data:)", markup)
    assert client.get("/lab/nothing/report.html").status_code == 404


def test_a_shared_file_contains_no_password(tmp_path: Path) -> None:
    plan = lab({"log": ("disk", "memory")}, blocks=6)
    secret = "PGPASSWORD=S3cr3t psql 'postgresql://u:S3cr3t@h/x' -c \"ALTER ROLE u PASSWORD 'S3cr3t'\""
    setups = tuple(
        replace(one, system=replace(one.system, commands=(Commands(prepare=secret),))) for one in plan.setups
    )
    begun(tmp_path, replace(plan, setups=setups, source=f'prepare = """{secret}"""\n'))
    client = browser(tmp_path)
    assert "S3cr3t" not in client.get(f"/lab/{LAB}/report.html").text
    assert b"S3cr3t" not in client.get("/export", params={"pick": f"{LAB}/"}).content


def test_passwords_are_removed_from_every_text_of_a_report(tmp_path: Path) -> None:
    from ironbench.report.document import report
    from ironbench.report.studies import study_of

    page = report(study_of(LabDirectory(begun(tmp_path).path)))
    marked = replace(page, notes=("see postgresql://u:S3cr3t@h/x",), lead="PGPASSWORD=S3cr3t ./prepare.sh")
    clean = without_passwords(marked)
    assert "S3cr3t" not in f"{clean.notes}{clean.lead}"
    assert without_passwords(page) == page


def test_results_name_labs_as_the_lists_do(results: Path) -> None:
    known = Results(results)
    assert known.labs() == [LAB] and known.lab(LAB).path == known.place(LAB)
