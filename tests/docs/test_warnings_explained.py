"""Every warning of a record is explained on the page of statuses."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from ironbench.model.record import SUSPICIOUS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guide" / "statuses.md"
TEXTS = [path.read_text() for path in sorted((ROOT / "src" / "ironbench").rglob("*.py"))]


def test_every_warning_stands_on_the_page_of_statuses() -> None:
    codes = set(made())
    assert codes > SUSPICIOUS, "the search for codes finds too few"
    page = PAGE.read_text()
    assert not [code for code in sorted(codes) if f"`{code}`" not in page]


def made() -> Iterator[str]:
    """Codes of the warnings that the program makes."""
    for text in (one for one in TEXTS if "Warning(" in one):
        for node in ast.walk(ast.parse(text)):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Warning"):
                continue
            code = node.args[0]
            if isinstance(code, ast.Constant):
                yield str(code.value)
            elif isinstance(code, ast.Name):
                # A constant may be another file's. A variable without a text passes on what a record has.
                yield from values([text], code.id) or (values(TEXTS, code.id) if code.id.isupper() else [])
            else:
                assert isinstance(code, ast.Attribute), f"a code that this test cannot read: {ast.unparse(node)}"
                yield from values(TEXTS, code.attr)


def values(texts: list[str], name: str) -> list[str]:
    """What is given to a name and looks like a code."""
    found = []
    for text in (one for one in texts if re.search(rf"\b{name}\b.*=", one)):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if name in (ast.unparse(one) for one in targets):
                    found += re.findall(r"'([a-z]+(?:-[a-z]+)+)'", ast.unparse(node.value))
    return found
