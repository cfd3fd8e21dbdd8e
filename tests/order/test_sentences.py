"""The analysis produces facts: sentences are written in `report`, and no code parses a sentence of ironbench."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_imports import SOURCE, parsed

pytestmark = pytest.mark.xdist_group("sources")

SENTENCE = re.compile(r"[A-Za-z][a-z']+(?:[ ,;:]+[A-Za-z][a-z']+){2,}")
"""Three or more consecutive words of everyday language."""
READING = ("startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "replace")
LEGACY = {"records/decoded.py", "records/noise.py"}
"""Files that read records of earlier versions, which contain facts only as sentences."""


def of_errors_and_docstrings(tree: ast.Module) -> set[ast.AST]:
    """Returns the literals that may be sentences: in errors, assertions and docstrings."""
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.add(node.value)
        called = node.func if isinstance(node, ast.Call) else None
        error = isinstance(called, ast.Name) and called.id.endswith("Error")
        if error or isinstance(node, ast.Raise | ast.Assert):
            found.update(ast.walk(node))
    return found


def sentences(path: Path) -> int:
    """Counts the literals of a module that are parts of sentences."""
    tree = parsed(path)
    allowed = of_errors_and_docstrings(tree)
    literals = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return sum(bool(SENTENCE.search(str(node.value))) for node in literals if node not in allowed)


def test_the_analysis_has_no_sentences_besides_errors() -> None:
    found = {path.name: count for path in sorted((SOURCE / "study").glob("*.py")) if (count := sentences(path))}
    assert not found


def read_for_sentences(tree: ast.Module) -> Iterator[int]:
    """Yields lines that search for several words in a text."""

    def words(node: ast.AST) -> bool:
        return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(SENTENCE.search(node.value))

    for node in ast.walk(tree):
        compared = isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
        if compared and words(node.left):  # type: ignore[attr-defined]
            yield node.lineno  # type: ignore[attr-defined]
        called = node.func if isinstance(node, ast.Call) and any(map(words, node.args)) else None
        if isinstance(called, ast.Attribute) and called.attr in READING:
            yield called.lineno


def test_no_code_looks_for_words_in_a_sentence_of_ours() -> None:
    """Engines and devices may parse messages of servers and programs."""
    packages = ("study", "plan", "report", "cli", "serve", "lab", "records", "trial")
    files = [path for package in packages for path in sorted((SOURCE / package).rglob("*.py"))]
    places = {str(path.relative_to(SOURCE)): sorted(read_for_sentences(parsed(path))) for path in files}
    found = {place: lines for place, lines in places.items() if lines and place not in LEGACY}
    assert not found


TAKING_APART = {"re", "fnmatch", "shlex", "string"}
"""Modules that take texts apart."""
OF_CODES = {
    "wording/terms.py": {"partition"},
    "wording/comparison.py": {"partition"},
    "wording/answers/ratios.py": {"partition", "replace"},
}
"""Files in which words depend on parts of a text: the preposition with which a value in the lab file begins, the
section of a field, and the part in a metric's name."""


def taking_apart(tree: ast.Module) -> Iterator[str]:
    """Yields the modules and methods by which a module takes texts apart."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in TAKING_APART)
        elif isinstance(node, ast.ImportFrom) and node.module in TAKING_APART:
            yield node.module
        called = node.func if isinstance(node, ast.Call) and node.args else None
        if isinstance(called, ast.Attribute) and called.attr in READING:
            yield called.attr


def test_words_are_made_from_facts_and_not_from_names() -> None:
    """A wording that needs to know what a name is made of gets it as a fact, such as `Configuration.values`."""
    report = SOURCE / "report"
    found = {
        str(path.relative_to(report)): set(taking_apart(parsed(path))) for path in (report / "wording").rglob("*.py")
    }
    assert {path: how for path, how in found.items() if how} == OF_CODES


SENTENCES = {"cause", "hint", "sentence", "text", "texts", "sentences", "error_text"}
"""Names of attributes that contain a sentence of ironbench, and of functions that return one."""
SEARCHES = {"search", "match", "fullmatch", "findall", "finditer", "sub", "split"}
"""Functions of `re` that search, split or replace."""
PATHS_REMOVED = {"serve/queue_page.py": 2, "serve/app.py": 1}
"""Files in which pages hide directories of this machine, and how often. Only paths are replaced, no words."""


def is_sentence(node: ast.expr) -> bool:
    """Returns whether an expression is a sentence, judging by its name: `error.cause`, `str(error)`,
    `wording.text(…)`."""
    if isinstance(node, ast.Attribute):
        return node.attr in SENTENCES - {"text", "texts", "sentences"}
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in SENTENCES and isinstance(node.func.value, ast.Name) and node.func.value.id == "wording"
    called = node.func.id if isinstance(node.func, ast.Name) else ""
    of_an_error = called == "str" and [ast.unparse(one) for one in node.args] == ["error"]
    return of_an_error or called == "error_text"


def taken_apart(tree: ast.Module) -> Iterator[int]:
    """Yields the lines that search, split or replace in a sentence."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            if any(map(is_sentence, node.comparators)):
                yield node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            # `split()` alone puts a text on one line.
            by_text = node.func.attr in READING and is_sentence(node.func.value) and bool(node.args)
            if by_text or (node.func.attr in SEARCHES and any(map(is_sentence, node.args))):
                yield node.lineno


def test_no_code_outside_report_and_cli_takes_a_sentence_apart() -> None:
    """Engines, devices and the host may read what servers and programs said."""
    packages = (
        "study",
        "plan",
        "serve",
        "lab",
        "records",
        "trial",
        "workloads",
        "fields",
        "model",
        "stats",
        "catalogue",
    )
    files = [path for package in packages for path in sorted((SOURCE / package).rglob("*.py"))]
    assert len(files) > 200
    found = {str(path.relative_to(SOURCE)): len(list(taken_apart(parsed(path)))) for path in files}
    assert {place: count for place, count in found.items() if count and place not in LEGACY} == PATHS_REMOVED


@pytest.mark.parametrize(
    "source",
    [
        'error.cause.partition(": ")',
        '"refused" in str(error)',
        "_REFUSED.search(error.hint)",
        're.sub("a", "b", wording.text(note))',
        'error_text(error, results).replace("a", "b")',
    ],
)
def test_a_sentence_that_is_taken_apart_is_found(source: str) -> None:
    assert list(taken_apart(ast.parse(source)))
