"""Every note in a record is explained on the page about statuses and has a wording."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from ironbench.model.record import SUSPICIOUS
from ironbench.report.wording import WORDING

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "statuses.md"
SOURCE = ROOT / "src" / "ironbench"
TEXTS = [path.read_text() for path in sorted(SOURCE.rglob("*.py")) if path.parent != SOURCE / "report" / "wording"]
OF_STUDIES = (
    "balance",
    "bottleneck",
    "capture",
    "comparison",
    "cost",
    "curve",
    "findings",
    "footnotes",
    "history",
    "lead",
    "plans",
    "scalability",
    "search",
    "study",
    "target",
    "verdicts",
    "waterfall",
)
"""Modules that word notes of a study or a capture, which are in no record."""
EARLIER = ("capture-not-replayed",)
"""Codes that only files of earlier versions contain."""


def test_every_note_of_a_record_stands_on_the_page_of_statuses() -> None:
    page = PAGE.read_text()
    codes = {code for code, words in WORDING.items() if words.__module__.rpartition(".")[2] not in OF_STUDIES}
    assert codes > SUSPICIOUS, "the search for codes finds too few"
    assert not [code for code in sorted(codes) if f"`{code}`" not in page]


def test_every_code_that_is_made_has_words_and_no_words_are_for_a_code_that_is_not() -> None:
    assert {*made(), *EARLIER} == WORDING.keys()


def made() -> Iterator[str]:
    """Yields the codes of the notes that the program makes."""
    for text in (one for one in TEXTS if "from ironbench.model.note import" in one):
        for node in ast.walk(ast.parse(text)):
            if not (isinstance(node, ast.Call) and _makes_a_note(node.func) and node.args):
                continue
            code = node.args[0]
            if isinstance(code, ast.Constant):
                yield str(code.value)
            elif isinstance(code, ast.Name):
                # A constant may be defined in another file. A parameter is set by callers.
                yield from values([text], code.id) or (values(TEXTS, code.id) if code.id.isupper() else [])
            else:
                assert isinstance(code, ast.Attribute), f"a code that this test cannot read: {ast.unparse(node)}"
                yield from values(TEXTS, code.attr) if code.attr.isupper() else of_classes(code.attr)


def _makes_a_note(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return function.attr == "noted"
    return isinstance(function, ast.Name) and function.id == "note"


def values(texts: list[str], name: str) -> list[str]:
    """Yields the values of a name that look like codes."""
    found = []
    for text in (one for one in texts if re.search(rf"\b{name}\b.*=", one)):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if name in (ast.unparse(one) for one in targets):
                    found += codes_in(node.value)
    return found


def of_classes(name: str) -> Iterator[str]:
    """Yields the values of an attribute that classes set."""
    for text in (one for one in TEXTS if re.search(rf"^    {name}\b.*=", one, re.MULTILINE)):
        for node in (one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.ClassDef)):
            yield from values([ast.unparse(node)], name)


def codes_in(value: ast.expr) -> Iterator[str]:
    """Yields strings that look like codes, including those in constants, but no keys."""
    keys = {id(node.slice) for node in ast.walk(value) if isinstance(node, ast.Subscript)}
    for node in ast.walk(value):
        if (
            isinstance(node, ast.Constant)
            and id(node) not in keys
            and re.fullmatch("[a-z]+(-[a-z]+)*", str(node.value))
        ):
            yield str(node.value)
        elif isinstance(node, ast.Name) and node.id.isupper():
            yield from values(TEXTS, node.id)
