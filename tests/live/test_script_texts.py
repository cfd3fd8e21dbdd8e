"""The text of every script is in the store, exported with its records, and shown in reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import launch
import pytest

from ironbench.model.record import Record
from ironbench.model.redact import redacted_sql
from ironbench.records import Store

pytestmark = pytest.mark.live

TRANSFER = "\\set amount random(1, 5)\n-- <b>bold</b> & ```\nSELECT :amount;\n"
SECRET = "SELECT 'CREATE ROLE r PASSWORD ''S3cr3t'''; -- PASSWORD E'S3cr3t' password=S3cr3t\n"


def ironbench(*words: str | Path) -> str:
    done = launch.run(words)
    assert done.returncode in (0, 3), done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two scripts were run on SQLite, and the file of one was deleted since."""
    place = tmp_path_factory.mktemp("texts")
    for name, text in (("transfer.sql", TRANSFER), ("secret.sql", SECRET)):
        (place / name).write_text(text)
    files = [place / "transfer.sql@3", place / "secret.sql"]
    ironbench(
        "run", "script", *files, "--engine", "sqlite", "--data", place / "data", "--results", place / "results",
        "--transactions", "20", "--warmup", "0s", "--no-observe", "--label", "mine",
    )  # fmt: skip
    (place / "transfer.sql").unlink()
    yield place


def one(results: Path) -> Record:
    return Store(results).all()[0]


def test_a_record_names_its_scripts_and_the_store_holds_their_texts_once(place: Path) -> None:
    store, record = Store(place / "results"), one(place / "results")
    assert list(record.scripts) == [str(place / "transfer.sql"), str(place / "secret.sql")]
    assert store.script(record.scripts[str(place / "transfer.sql")]) == TRANSFER
    assert len(list((place / "results" / "scripts").iterdir())) == 2
    assert store.script("0" * 16) == ""


def test_a_workloads_own_scripts_are_kept_too(place: Path) -> None:
    results = place / "own"
    ironbench("run", "select-only", "--engine", "null", "--results", results, "--transactions", "5", "--warmup", "0s")
    record = one(results)
    (name,) = record.scripts
    assert name == "select-only"
    assert "pgbench_accounts" in Store(results).script(record.scripts[name])


def test_no_password_in_a_script_is_kept(place: Path) -> None:
    text = Store(place / "results").script(one(place / "results").scripts[str(place / "secret.sql")])
    assert text and "S3cr3t" not in text
    assert all("S3cr3t" not in path.read_text() for path in (place / "results" / "scripts").iterdir())


def test_reports_show_the_texts_as_written(place: Path) -> None:
    for suffix in ("html", "md", "json"):
        ironbench("report", "mine", "--results", place / "results", "-o", place / f"report.{suffix}")
    page = (place / "report.html").read_text()
    assert "<h2>Scripts</h2>" in page
    assert "<pre>\\set amount random(1, 5)\n-- &lt;b&gt;bold&lt;/b&gt; &amp; ```\nSELECT :amount;</pre>" in page
    assert f"````sql\n{TRANSFER}````" in (place / "report.md").read_text()
    (study,) = json.loads((place / "report.json").read_text())["studies"]
    assert dict(study["scripts"])[str(place / "transfer.sql")] == TRANSFER
    assert all("S3cr3t" not in (place / f"report.{suffix}").read_text() for suffix in ("html", "md", "json"))


def test_texts_travel_with_their_records(place: Path) -> None:
    ironbench("record", "export", "--results", place / "results", "-o", place / "records.ibr")
    ironbench("record", "import", place / "records.ibr", "--results", place / "elsewhere")
    record = one(place / "elsewhere")
    assert Store(place / "elsewhere").script(record.scripts[str(place / "transfer.sql")]) == TRANSFER


def test_a_damaged_text_is_left_out_and_the_report_made(place: Path) -> None:
    kept = place / "results" / "scripts" / f"{one(place / 'results').scripts[str(place / 'transfer.sql')]}.json"
    whole = kept.read_bytes()
    try:
        kept.write_text('{"text": 5}')
        ironbench("report", "mine", "--results", place / "results", "-o", place / "damaged.md")
    finally:
        kept.write_bytes(whole)
    assert "random(1, 5)" not in (place / "damaged.md").read_text()


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE ROLE r PASSWORD 'S3cr3t';",
        "create user u identified by\n  'S3cr3t'",
        "ALTER ROLE r password E'S3\\'S3cr3t'",
        "ALTER ROLE r PASSWORD 'it''S3cr3t'",
        "DO 'ALTER ROLE r PASSWORD ''S3cr3t'''",
        "ALTER ROLE r PASSWORD $x$S3cr3t$x$",
        "ALTER ROLE r PASSWORD 'S3cr3t and was cut",
        "ALTER ROLE r PASSWORD $$S3cr3t and was cut",
        "SET PASSWORD FOR u = PASSWORD('S3cr3t')",
        "CREATE USER u IDENTIFIED VIA x USING PASSWORD('S3cr3t')",
        "SELECT dblink('host=h password=S3cr3t')",
        "SELECT dblink('postgresql://u:S3cr3t@h/d')",
    ],
)
def test_every_form_of_a_password_in_sql_is_hidden(sql: str) -> None:
    assert "S3cr3t" not in redacted_sql(sql)


def test_sql_without_a_password_stays_as_it_is() -> None:
    sql = "SELECT password, 'a' FROM u\nWHERE password IS NOT NULL;\n"
    assert redacted_sql(sql) == sql
