"""Each format contains what it promises, and user text cannot break it."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import jinja2
import pytest
from factories import DISK, MEMORY, Shelf, example, record, suspect, sweep

from ironbench.errors import FailureError, InputError
from ironbench.model.note import text_note
from ironbench.model.record import Check, Record, Status
from ironbench.printer import Printer
from ironbench.report import formats, markup, text_layout, theme
from ironbench.report.answer import answer
from ironbench.report.as_json import run_document
from ironbench.report.charts.base import Table
from ironbench.report.compare_page import page as comparison
from ironbench.report.document import caveats
from ironbench.report.ending import run_summary
from ironbench.report.formats.md import escaped
from ironbench.report.headline import headline
from ironbench.report.sections import sections
from ironbench.study.archive import EMPTY
from ironbench.study.compare import compare
from ironbench.study.runstudy import studies
from ironbench.study.subjects import Subject
from ironbench.words import clean

EVIL = "</script><img src=http://x onerror=alert(1)>|`*\x1b[31m\"'&"


def rendered(format: str, trials: Sequence[Record]) -> str:
    return formats.get(format)(studies(trials, Shelf(trials))).decode()


class Page(HTMLParser):
    """Elements with their attributes, and the text of script elements by id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self._in_script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
            self._in_script = True

    def handle_endtag(self, tag: str) -> None:
        self._in_script = self._in_script and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._in_script:
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)


@pytest.fixture(scope="module")
def page() -> str:
    trials = example()
    trials[3] = suspect(trials[3])
    return rendered("html", trials)


def test_the_page_refers_to_nothing_outside_itself(page: str) -> None:
    for tag, attributes in Page(page).elements:
        assert not {"src", "href", "srcset", "action", "data"} & set(attributes), (tag, attributes)
    style = "".join(re.findall(r"<style>(.*?)</style>", page, re.DOTALL))
    assert "url(" not in style
    assert "@import" not in style


def test_the_page_forbids_itself_to_fetch(page: str) -> None:
    policies = [a.get("content") for tag, a in Page(page).elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies
    assert str(policies[0]).startswith("default-src 'none'")


def test_the_page_holds_the_data_of_every_chart_and_a_table_of_it(page: str) -> None:
    found = Page(page)
    charts = next(json.loads(text) for attributes, text in found.scripts if attributes.get("id") == "charts")
    places = {a["id"] for tag, a in found.elements if a.get("class") == "chart"}
    assert places == set(charts)
    rows = charts["study0-chart-throughput"]["datasets"]["trials"]
    assert len(rows) == len(example())
    assert page.count('<summary>Figures</summary><div class="scroll"><table') == len(charts)


def test_every_chart_says_in_words_what_it_shows(page: str) -> None:
    for _, attributes in Page(page).elements:
        if attributes.get("class") == "chart":
            assert attributes["role"] == "img"
            assert len(str(attributes["aria-label"])) > 30


def test_ids_are_unique(page: str) -> None:
    ids = [attributes["id"] for _, attributes in Page(page).elements if attributes.get("id")]
    assert len(ids) == len(set(ids))


def test_what_a_user_wrote_cannot_become_part_of_the_page() -> None:
    system = replace(DISK, label=EVIL, settings={EVIL: EVIL})
    text = rendered("html", [suspect(record(system, n), "lab-changed", text=EVIL) for n in (1, 2)])
    found = Page(text)
    assert not [tag for tag, _ in found.elements if tag == "img"]
    assert len(found.scripts) == 3
    names = {row["system"] for row in json.loads(found.scripts[1][1])["study0-chart-throughput"]["datasets"]["trials"]}
    assert names == {clean(EVIL)}
    assert "\x1b" not in text


def test_a_control_character_in_a_text_does_not_end_the_process_that_draws_it() -> None:
    """The drawing library would abort (exit code 134)."""
    system = replace(DISK, label="a\x00b\x1b[31m\x07\x9b", settings={"x\x01": "y\x02"})
    text = rendered("svg", [suspect(record(system, n), "lab-changed", text="said \x1b[2J") for n in (1, 2)])
    assert text.startswith("<svg") and not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)


def test_what_a_user_wrote_is_escaped_in_markdown() -> None:
    assert escaped("a|b `c` `|` <d> [e](http://f) *g*") == r"a\|b `c` \`\|\` \<d\> \[e\](http:​//f) \*g\*"
    text = rendered("md", [record(replace(DISK, label=EVIL))])
    prose = re.sub(r"(?ms)^```.*?^```$", "", text)
    assert "<img" not in prose.replace("\\<img", "")
    assert text.count("\n```") == 2, "a label cannot end the block that shows a command"
    assert "\x1b" not in text


def test_a_label_cannot_move_the_terminals_cursor() -> None:
    assert "\x1b" not in rendered("text", [record(replace(DISK, label=EVIL))])


@pytest.mark.parametrize("format", ["html", "md", "json", "text"])
def test_no_password_is_shown(format: str) -> None:
    system = replace(DISK, dsn="postgres://u:hunter2@h/d", settings={"primary_conninfo": "password=hunter2"})
    assert "hunter2" not in rendered(format, [record(system)])


def test_the_specifications_hold_no_addresses(page: str) -> None:
    for attributes, text in Page(page).scripts:
        if attributes.get("type") == "application/json":
            assert "http" not in text


def test_both_themes_know_every_colour(page: str) -> None:
    assert set(theme.LIGHT) == set(theme.DARK)
    charts = next(text for attributes, text in Page(page).scripts if attributes.get("id") == "charts")
    assert set(re.findall(r'"@(\w+)"', charts)) <= set(theme.LIGHT)


def test_a_system_keeps_its_colour_in_every_chart() -> None:
    (study,) = studies(example(), Shelf(example()))
    scales = set()
    for section in sections(study):
        for chart in section.charts:
            for layer in chart.specification["layer"]:
                colour = layer["encoding"].get("color", {})
                if colour.get("field") == "system":
                    scales.add(json.dumps(colour["scale"]))
    assert len(scales) == 1


def test_the_data_are_left_alone_when_colours_are_filled_in() -> None:
    specification = {"datasets": {"x": [{"system": "@ink"}]}, "mark": {"color": "@ink"}}
    found = theme.coloured(specification, theme.LIGHT)
    assert found["datasets"] == specification["datasets"]
    assert found["mark"]["color"] == theme.LIGHT["ink"]


def test_unknown_formats_are_answered_with_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        formats.get("htm")
    assert "html" in caught.value.hint


def test_every_format_has_a_doc_line() -> None:
    import importlib

    for name in formats.names():
        assert importlib.import_module(f"ironbench.report.formats.{name}").__doc__
        assert formats.of_page(name), "a page that is no report has them all, too"


@pytest.mark.parametrize("format", ["html", "md", "json", "text"])
def test_trials_without_any_result_can_be_reported(format: str) -> None:
    text = rendered(format, [record(throughput=None, status=Status.FAILED, causes=(text_note("no such host"),))])
    assert "no such host" in text


def test_the_headline_says_on_what_it_rests() -> None:
    (study,) = studies(example(), Shelf(example()))
    found = answer(study)
    assert "do not overlap" in found.decision.text
    assert all("3 confirmation trials" in point.text for point in found.points)


def test_the_headline_of_single_trials_claims_no_spread() -> None:
    (study,) = studies([record(DISK), record(MEMORY, throughput=2000.0)])
    said = " ".join(text for _, text in headline(study))
    assert "(1 trial)" in said and "range" not in said
    assert "the variation between trials is unknown" in said


def test_many_systems_are_told_by_the_first_and_the_highest() -> None:
    systems = [replace(DISK, label=f"s{n}") for n in range(6)]
    (study,) = studies([record(system, throughput=100.0 + n) for n, system in enumerate(systems)])
    (first, *rest) = headline(study)
    assert first[1].startswith("No difference shown: each side has only one trial") and "s5 was" in first[1]
    assert {name for name, _ in rest} == {"s0", "s5"}


def test_inconsistent_numbers_are_among_the_caveats() -> None:
    (study,) = studies([record(metrics={"response_time_mean_s": 1e-6})])
    assert any("Little's law is not satisfied" in text for text in caveats(study))


def test_suspect_trials_are_ringed_among_others_only() -> None:
    def rings(trials: list[Record]) -> int:
        chart = sections(studies(trials)[0])[0].charts[0]
        return sum("status" in str(layer.get("transform")) for layer in chart.specification["layer"])

    mixed = sweep(DISK, 3000, 6)
    assert rings(mixed) == 0
    assert rings([suspect(mixed[0]), *mixed[1:]]) == 1
    assert rings([suspect(trial) for trial in mixed]) == 0


def test_pictures_are_drawn_without_a_browser() -> None:
    pytest.importorskip("vl_convert")
    trials = sweep(DISK, 3000, 6, clients=(1, 2), repeats=1)
    found = studies(trials, Shelf(trials))
    assert formats.get("png")(found).startswith(b"\x89PNG")
    drawn = formats.get("svg")(found).decode()
    assert drawn.startswith("<svg")
    assert "log on disk" in drawn


def test_the_run_document_has_the_shape_of_the_contract(tmp_path: Path) -> None:

    class Folder:
        def path(self, id: str) -> Path:
            return tmp_path / id

    trial = suspect(record(checks=(Check("totals", True, "1", "1"),)))
    document = json.loads(run_document([trial], Folder()))  # type: ignore[arg-type]
    assert {"schema", "system", "trials", "warnings"} <= set(document)
    (found,) = document["trials"]
    assert {"id", "cell", "block", "status", "metrics", "checks", "warnings", "record"} <= set(found)
    assert found["metrics"]["throughput"] == 1000.0
    assert document["warnings"][0]["code"] == "client-saturated"


def test_the_comparison_document_holds_ratios() -> None:
    found = compare(Subject("a", (record(),)), Subject("b", (record(MEMORY, throughput=2000.0),)))
    document = json.loads(formats.of_page("json")(comparison(found)))
    rows = {row["metric"]: row for row in document["peaks"]["rows"]}
    assert rows["throughput"]["ratio"] == 2.0
    assert rows["throughput"]["overlap"] is False


def test_a_run_ends_with_its_curve_and_caveats() -> None:
    out = io.StringIO()
    run_summary([suspect(record(clients=n)) for n in (1, 2)], EMPTY, Printer(out, io.StringIO()))
    assert "2 trials flagged" in out.getvalue()
    assert "client-saturated" in out.getvalue()


def test_columns_line_up_for_wide_characters() -> None:
    first, _, *rows = text_layout.table(Table(("名前", "n"), (("a", "1"), ("日本", "22")))).splitlines()
    assert len(first) + 2 == len(rows[0]) == len(rows[1]) + 2


@pytest.mark.parametrize("format", ["html", "md", "json", "text", "svg"])
def test_derived_results_carry_their_sentence_in_every_format(format: str) -> None:
    sentence = "Derived: not comparable with published results."
    found = studies([record()], Shelf(), {"igen-oltp": sentence})
    assert sentence in formats.get(format)(found).decode()


def test_a_mix_of_scripts_is_told_script_by_script() -> None:
    metrics = {
        "throughput{script=pay}": 250.0,
        "response_time_p50_s{script=pay}": 0.004,
        "throughput{script=order}": 9.0,
        "failed": 7.0,
        "failed{script=order}": 7.0,
    }
    text = rendered("text", [record(metrics=metrics)])
    (row,) = [line for line in text.splitlines() if line.strip().startswith("pay ")]
    assert re.split(" {2,}", row.strip().replace("\u202f", " ")) == [
        *("pay", "250/s", "0", "not known", "4.00 ms", "not known")
    ]
    (row,) = [line for line in text.splitlines() if line.strip().startswith("order ")]
    assert re.split(" {2,}", row.strip())[2] == "7"
    assert "may not add up" not in text, "of a single trial they do"
    several = rendered("text", [record(metrics=metrics, block=block) for block in range(2)])
    assert "the throughputs of the scripts may not add up to the total" in " ".join(several.split())


def test_a_template_that_fails_is_said_and_the_text_is_still_written(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = jinja2.Environment(
        loader=jinja2.DictLoader({"report.html": "{{ missing.name }}"}), undefined=jinja2.StrictUndefined
    )
    monkeypatch.setattr(markup, "environment", lambda *_: broken)
    with pytest.raises(FailureError) as caught:
        rendered("html", example())
    assert "missing" in caught.value.cause and "text" in caught.value.hint
    assert "Notes" in rendered("text", example())
