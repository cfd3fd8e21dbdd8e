"""HTML exists only in templates, to which Python passes values that they escape."""

import ast
import re
from pathlib import Path

import pytest
from test_imports import FILES, SOURCE, parsed

from ironbench.report import markup
from ironbench.serve import page

ELEMENTS = (  # noqa: SIM905
    "a aside body br button code datalist dd details div dl dt em fieldset figcaption figure footer form h[1-6] head "
    "header hr html iframe img input label legend li link main meta nav noscript object ol option output p path pre "
    "progress script section select small span strong style sub summary sup svg table tbody td textarea th thead "
    "title tr ul video"
).split()
TAG = re.compile(rf"<!doctype|</?(?:{'|'.join(ELEMENTS)})(?![\w-])", re.IGNORECASE)
SCRIPTS = {"assets.py": 1}
"""Files that may contain markup, and how often: `assets.py` makes the end of a script element harmless in the charting
libraries."""


def strings(path: Path) -> list[str]:
    """Returns string literals that are not docstrings."""
    bodies = [
        node.body for node in ast.walk(parsed(path)) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
    ]
    texts = {id(one.value) for body in bodies for one in body if isinstance(one, ast.Expr)}
    constants = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Constant) and id(node) not in texts]
    return [node.value for node in constants if isinstance(node.value, str)]


def test_no_markup_is_written_in_python() -> None:
    found = {path.name: sum(bool(TAG.search(text)) for text in strings(path)) for path in FILES}
    assert {name: count for name, count in found.items() if count} == SCRIPTS


def test_the_rule_finds_a_tag() -> None:
    assert TAG.search('f"<p class=') and TAG.search("</td>") and TAG.search("<!DOCTYPE html>")
    assert not TAG.search("a <b and c> d") and not TAG.search("user.<number>") and not TAG.search("</proc/1/stat")


TEMPLATES = sorted([*(SOURCE / "report" / "templates").iterdir(), *(SOURCE / "serve" / "templates").iterdir()])


def test_every_template_can_be_loaded_and_no_two_have_one_name() -> None:
    names = [path.name for path in TEMPLATES]
    assert len(names) == len(set(names)) > 10
    for name in names:
        page.environment().get_template(name)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_values_are_trusted_only_where_the_template_itself_wrote_them(path: Path) -> None:
    """`safe` disables escaping; it is used only for chart markers, which the template itself contains."""
    assert not re.findall(r"\|\s*safe", re.sub(r"MARKS\[\w+\.mark\]\|safe", "", path.read_text()))


def test_a_value_is_escaped_and_freed_of_control_characters() -> None:
    template = markup.environment("ironbench.report").from_string("<p title='{{ one }}'>{{ one }}</p>")
    assert (
        template.render(one="<b>'\x1b[31m&")
        == "<p title='&lt;b&gt;&#39;\ufffd[31m&amp;'>&lt;b&gt;&#39;\ufffd[31m&amp;</p>"
    )
