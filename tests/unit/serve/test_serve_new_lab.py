"""A lab begins with a question in the browser: forms with the command's fields, and a file that is only looked at."""

from __future__ import annotations

import html
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer.main
from served import browser
from starlette.testclient import TestClient

from ironbench import cli
from ironbench.fields.new import NewLab
from ironbench.fields.row import table
from ironbench.lab import new

SECRET = "S3cr3t"


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    return browser(tmp_path / "results")


def editor(page: str) -> str:
    """Returns the text in the editor of a page."""
    found = re.search(r"<textarea[^>]*data-plan[^>]*>(.*?)</textarea>", page, re.DOTALL)
    assert found is not None, page
    return html.unescape(found[1])


def test_every_kind_of_the_command_is_a_question_with_a_form(client: TestClient) -> None:
    page = client.get("/new").text
    for kind, template in new.KINDS.items():
        assert f'href="/new/{kind}"' in page and template.question in page
        inputs = re.findall(r'<input name="(\w+)"', client.get(f"/new/{kind}").text)
        assert list(dict.fromkeys(inputs)) == [field.name for field in new.fields(kind)]
    assert client.get("/new/nothing").status_code == 404


def test_the_fields_of_the_forms_are_the_options_of_the_command() -> None:
    command: Any = typer.main.get_command(cli.program({"lab"})).commands["lab"].commands["new"]  # type: ignore[attr-defined]
    options = [one.name for one in command.params if one.name not in ("kind", "output", "help")]
    assert options == list(table(NewLab))
    assert {name for template in new.KINDS.values() for name in template.fields} == set(options)
    assert [name for name in new.KINDS if name not in command.params[0].help] == []


@pytest.mark.parametrize("kind", [kind for kind in new.KINDS if kind != "machines"])
def test_the_editor_shows_the_file_that_the_command_writes(kind: str, client: TestClient) -> None:
    today = 1000.0 if "today" in new.KINDS[kind].required else 0.0
    page = client.post(f"/new/{kind}", data={"engine": "sqlite", **({"today": "1000"} if today else {})}).text
    here = new.lab_context(kind, NewLab(engine="sqlite", today=today), None)
    assert editor(page) == new.text(kind, here, f"{kind}.toml")
    assert f'name="name" value="{kind}"' in page and 'data-plan="/queue/plan"' in page
    marked = new.FILL_IN in editor(page).partition("\n[")[2]
    assert ("Replace these values" in page) == bool(new.placeholders(editor(page))) and marked >= ("Replace" in page)


def test_what_a_form_is_given_is_in_the_file(client: TestClient, tmp_path: Path) -> None:
    (tmp_path / "read.sql").write_text("SELECT 1;\n")
    (tmp_path / "index.sql").write_text("CREATE INDEX ON t (a);\n")
    fields = {
        "engine": "postgres",
        "script": [str(tmp_path / "read.sql@3"), "", ""],
        "index": str(tmp_path / "index.sql"),
    }
    text = editor(client.post("/new/index", data=fields).text)
    assert f'files = ["{tmp_path}/read.sql@3"]' in text and f'data.setup = ["{tmp_path}/index.sql"]' in text
    models = {"engine": "postgres", "device": ["aws-gp3", "raid0(2, ssd-sata)"]}
    text = editor(client.post("/new/storage", data=models).text)
    assert (
        '"aws-gp3" = {' in text
        and '"raid0(2, ssd-sata)" = {' in text
        and "nvme" not in text.partition("[vary")[2].partition("#")[0]
    )
    assert "[vary.work_mem]" in editor(
        client.post("/new/setting", data={"engine": "postgres", "setting": "work_mem"}).text
    )


def test_looking_at_a_file_runs_no_program(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[object] = []

    def refuse(*words: object, **_: object) -> None:
        ran.append(words)
        raise OSError("nothing may run")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    for kind in ("setting", "storage", "upgrade"):
        assert client.get(f"/new/{kind}").status_code == 200
        for engine in ("postgres", "sqlite"):
            text = editor(client.post(f"/new/{kind}", data={"engine": engine}).text)
            plan = client.post("/queue/plan", data={"name": kind, "text": text}).text
            assert "blocks" in plan or "fewer than two configurations" in plan or "FILL-IN" in plan, plan
    assert not ran


def test_a_mistake_is_named_in_the_form_with_what_was_entered(client: TestClient) -> None:
    page = client.post("/new/setting", data={"engine": "postgres", "script": ["/nothing/here.sql", "", ""]})
    assert page.status_code == 422 and "no such file" in page.text
    assert 'value="/nothing/here.sql"' in page.text and 'value="postgres"' in page.text
    assert (
        "did you mean work_mem" in client.post("/new/setting", data={"engine": "postgres", "setting": "wrk_mem"}).text
    )
    missing = client.post("/new/machines", data={"other": "postgresql://b/x"})
    assert missing.status_code == 422 and "--dsn is missing" in missing.text
    assert "data-plan" not in missing.text


def test_no_password_is_shown_again_or_gets_into_a_file(client: TestClient) -> None:
    dsn = f"postgresql://u:{SECRET}@127.0.0.1:1/shop"  # nothing listens there
    page = client.post("/new/driver", data={"dsn": dsn})
    assert page.status_code == 422 and "127.0.0.1" in page.text and SECRET not in page.text
    upgrade = client.post("/new/machines", data={"dsn": "postgresql://u@127.0.0.1:1/shop", "other": dsn})
    assert SECRET not in upgrade.text
    alone = client.post("/new/upgrade", data={"engine": "postgres", "other": dsn})
    assert alone.status_code == 422 and "--dsn is missing" in alone.text and SECRET not in alone.text


def test_a_page_of_another_site_cannot_send_a_form(client: TestClient) -> None:
    refused = client.post("/new/setting", data={"engine": "sqlite"}, headers={"origin": "http://evil.example"})
    assert refused.status_code == 403


def test_what_was_entered_is_shown_as_text(client: TestClient) -> None:
    page = client.post("/new/setting", data={"engine": "<script>alert(1)</script>"})
    assert page.status_code == 422 and "<script>alert" not in page.text


PLACES = ["/", "/queue", "/archive", "/archive?view=labs", "/archive?view=labels", "/history", "/compare"]


@pytest.mark.parametrize("path", [*PLACES, "/fragment/answers"])
def test_an_empty_page_leads_to_a_new_lab_and_to_the_documentation(path: str, client: TestClient) -> None:
    page = client.get(path).text
    content = page.partition("<main")[2] or page
    assert 'href="/new"' in content and re.search(r"docs/[\w-]+/[\w-]+\.md|how/serve\.html", content)


def test_a_folder_with_records_needs_no_introduction(tmp_path: Path) -> None:
    from served import stocked

    client = browser(stocked(tmp_path / "stocked"))
    assert "Start here" not in client.get("/").text and "Start a new lab" not in client.get("/archive?view=labs").text
