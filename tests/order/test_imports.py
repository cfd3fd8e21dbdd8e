"""The data goes one way: a stage imports the words everybody shares and the stages before it, nothing else."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "ironbench"

SHARED = {"model", "errors", "paths", "catalogue", "printer", "words", "units", "ranges", "_core"}
"""Seen by all: values, errors, paths, shipped data, the mouth, how counts and units are written, the range of
every quantity, the core."""

STAGES = [
    "stats",
    "plan",
    "machine",
    "process",
    "remote",
    "engines",
    "devices",
    "workloads",
    "load",
    "drive",
    "observe",
    "cluster",
    "record",
    "analyse",
    "report",
]
"""In the order of the data."""

EVERYTHING = {"experiment", "cli"}


def rooms_imported(path: Path) -> set[str]:
    """The rooms of ironbench that a file imports, at any depth of its code, but not for types alone."""
    found: set[str] = set()
    for node in ast.walk(_without_type_checking(ast.parse(path.read_text()))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "ironbench":
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("ironbench.")}
    return found


def _without_type_checking(tree: ast.Module) -> ast.Module:
    class Drop(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST | None:
            is_types = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            return None if is_types else self.generic_visit(node)

    return Drop().visit(tree)


FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_stage_imports_only_what_comes_before_it(path: Path) -> None:
    room = path.relative_to(SOURCE).parts[0]
    if room in EVERYTHING:
        return
    if room == "catalogue":
        allowed = {"catalogue", "errors", "units", "ranges"}
    elif room in SHARED:
        allowed = SHARED
    else:
        assert room in STAGES, f"{room} is not a known room"
        allowed = SHARED | set(STAGES[: STAGES.index(room) + 1])
    assert rooms_imported(path) <= allowed, f"{path.name} reaches forward to {rooms_imported(path) - allowed}"


@pytest.mark.parametrize("path", sorted((SOURCE / "model").glob("*.py")), ids=lambda path: path.name)
def test_the_model_is_pure(path: Path) -> None:
    tree = _without_type_checking(ast.parse(path.read_text()))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert not modules & {"os", "sys", "subprocess", "socket", "time", "pathlib", "random"}


@pytest.mark.parametrize("path", sorted((SOURCE / "stats").glob("*.py")), ids=lambda path: path.name)
def test_the_mathematics_knows_numbers_alone(path: Path) -> None:
    assert rooms_imported(path) <= {"stats"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_scipy_is_imported_inside_functions(path: Path) -> None:
    modules = {node.module or "" for node in ast.parse(path.read_text()).body if isinstance(node, ast.ImportFrom)}
    modules |= {a.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import) for a in node.names}
    assert not any(name.split(".")[0] == "scipy" for name in modules), f"{path.name} makes every verb wait for scipy"


@pytest.mark.parametrize("words", [["--help"], ["compare", "--help"], ["report", "--help"], ["run", "nothing"]])
def test_help_and_refusals_wait_for_neither_numpy_nor_scipy(words: list[str]) -> None:
    code = (
        "import atexit, sys; from ironbench.start import main; "
        f"sys.argv[1:] = {words}; atexit.register(lambda: print(*sys.modules)); main()"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ironbench.start" in found.stdout
    assert not {"numpy", "scipy", "duckdb"} & set(found.stdout.split())


def test_only_the_printer_prints() -> None:
    for path in SOURCE.rglob("*.py"):
        calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        names = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
        assert "print" not in names, f"{path} prints"


@pytest.mark.parametrize("crate", ["ironbench-core", "ironbench-data", "ironbench-device", "ironbench-kernels"])
def test_only_one_crate_knows_python(crate: str) -> None:
    manifest = SOURCE.parents[1] / "crates" / crate / "Cargo.toml"
    assert "pyo3" not in manifest.read_text()


def test_every_refusal_of_an_input_names_a_way_out() -> None:
    for path in SOURCE.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "InputError":
                whole = len(call.args) > 2 or any(isinstance(one, ast.Starred) for one in call.args)
                assert whole, f"{path}, line {call.lineno}: subject and cause alone"
