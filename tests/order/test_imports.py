"""Data flow in one direction: a package imports only shared packages and the packages before it."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import factories
import pytest

from ironbench.records import Store

SOURCE = Path(__file__).parents[2] / "src" / "ironbench"

SHARED = {"model", "errors", "paths", "catalogue", "printer", "words", "units", "ranges", "fields", "_core"}
"""Packages that every package may import."""

BELOW: dict[str, set[str]] = {
    "__init__": set(),
    "words": set(),
    "model": {"words"},
    "errors": {"model"},
    "streams": {"errors"},
    "paths": {"errors"},
    "units": {"errors", "words"},
    "ranges": {"errors", "units", "words"},
    "fields": {"errors", "model", "ranges"},
    "printer": {"errors", "streams", "words"},
    "catalogue": {"errors", "fields", "units", "ranges"},
}
"""Maximum imports of each of these packages, apart from itself."""

PACKAGES = [
    "stats",
    "plan",
    "host",
    "engines",
    "devices",
    "workloads",
    "trial",
    "records",
    "study",
    "report",
    "lab",
    "serve",
    "cli",
]
"""Packages in the order of the data flow; each imports only from earlier ones."""
NOT_READ = {"study": {"host", "engines", "devices", "workloads", "trial"}}
"""Earlier packages that a package still must not import. The study reads records; facts about an engine or a workload
come from `records.described`."""


pytestmark = pytest.mark.xdist_group("sources")
"""Keeps these tests on one worker, so that every file is read only once."""


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def calls(path: Path) -> list[ast.Call]:
    return [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]


@cache
def imports(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Returns imports at any depth, except those only for types."""
    found, waiting = list[ast.Import | ast.ImportFrom](), list[ast.AST]([parsed(path)])
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(node)
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        elif not isinstance(node, ast.expr):  # contains no statements
            waiting += ast.iter_child_nodes(node)
    return found


@cache
def packages_imported(path: Path) -> set[str]:
    """Returns the packages of ironbench that a file imports."""
    found: set[str] = set()
    for node in imports(path):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "ironbench":
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("ironbench.")}
    return found


FILES = sorted(SOURCE.rglob("*.py"))


def modules_imported(nodes: Iterable[ast.AST]) -> set[str]:
    """Returns the names of modules that these nodes import directly."""
    nodes = list(nodes)
    found = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return found | {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}


def allowed(package: str) -> set[str]:
    if package in BELOW:
        return BELOW[package] | {package}
    if package == "start":
        return {"cli", "errors", "streams"}
    assert package in PACKAGES, f"{package} is not a known package"
    last = {"streams"} if package == "cli" else set()
    return SHARED | last | set(PACKAGES[: PACKAGES.index(package) + 1]) - NOT_READ.get(package, set())


def test_a_package_imports_only_packages_before_it() -> None:
    packages = {path: path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in FILES}
    assert set(PACKAGES) <= set(packages.values())
    reached = {path: packages_imported(path) - allowed(package) for path, package in packages.items()}
    assert not {path: packages for path, packages in reached.items() if packages}, "they reach forward"


MODULES = {
    ".".join(("ironbench", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in FILES
}


def named_modules(node: ast.AST) -> set[str]:
    """Returns the modules that an import names."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if not isinstance(node, ast.ImportFrom):
        return set()
    module, names = node.module or "", [alias.name for alias in node.names]
    whole = module == "ironbench"  # the core is also a module of it
    return {f"{module}.{name}" if whole or f"{module}.{name}" in MODULES else module for name in names}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """This includes imports inside functions, since a late import hides a cycle but does not remove it."""
    imported = {
        name: set[str]().union(*map(named_modules, imports(path))) & MODULES.keys() - {name}
        for name, path in MODULES.items()
    }
    assert sum(map(len, imported.values())) > 1000
    left = set(MODULES)
    while free := {name for name in left if not imported[name] & left}:
        left -= free
    assert not left


def test_what_is_imported_inside_a_function_is_not_there_already() -> None:
    """If a module's other imports load it anyway, an import inside a function defers nothing."""
    first = {
        name: set[str]().union(*map(named_modules, parsed(path).body), parents(name)) for name, path in MODULES.items()
    }
    found = []
    for name, path in MODULES.items():
        there, waiting = set[str](), [name]
        while waiting:
            if (one := waiting.pop()) not in there:
                there.add(one)
                waiting += [*first.get(one, ()), *parents(one)]
        body = parsed(path).body
        late = [node for node in imports(path) if node not in body]
        found += [f"{path}:{node.lineno}" for node in late if named_modules(node) <= there]
    assert not found


def parents(module: str) -> set[str]:
    """Returns the packages whose `__init__` runs before the module."""
    parts = module.split(".")
    return {".".join(parts[:end]) for end in range(1, len(parts))}


def test_the_model_is_pure() -> None:
    forbidden = {"os", "sys", "subprocess", "socket", "time", "pathlib", "random"}
    found = {path: modules_imported(imports(path)) & forbidden for path in (SOURCE / "model").glob("*.py")}
    assert found and not {path: modules for path, modules in found.items() if modules}


def test_the_mathematics_knows_numbers_alone() -> None:
    found = {path: packages_imported(path) - {"stats", "_core"} for path in (SOURCE / "stats").glob("*.py")}
    assert found and not {path: packages for path, packages in found.items() if packages}


def test_scipy_is_imported_inside_functions() -> None:
    for path in FILES:
        roots = {name.split(".")[0] for name in modules_imported(parsed(path).body)}
        assert "scipy" not in roots, f"{path} makes every verb wait for scipy"


def modules_loaded(words: list[str], code: int) -> set[str]:
    """Returns all modules that a separate process has imported when it exits with `code`."""
    program = (
        "import atexit, sys; from ironbench.start import main; "
        f"sys.argv[1:] = {words}; atexit.register(lambda: print(*sys.modules)); main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--help"], 0),
        (["compare", "--help"], 0),
        (["report", "--help"], 0),
        (["run", "nothing"], 2),
        (["report", "-o", "r.pdf"], 2),
    ],
)
def test_help_and_refusals_wait_for_neither_numpy_nor_scipy(words: list[str], code: int) -> None:
    found = modules_loaded(words, code)
    assert "ironbench.start" in found
    assert not {"numpy", "scipy", "duckdb", "jinja2"} & found


@pytest.mark.parametrize("format", ["text", "md", "csv", "json"])
def test_only_html_needs_templates(format: str, tmp_path: Path) -> None:
    """A broken template never prevents text output."""
    for one in factories.example():
        Store(tmp_path).keep(one, **factories.evidence())
    found = modules_loaded(["report", "--results", str(tmp_path), "--format", format], 0)
    assert "ironbench.report.document" in found and "jinja2" not in found


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results directory with an example of runs without profiles."""
    results = tmp_path_factory.mktemp("results")
    for one in factories.example():
        Store(results).keep(one, **{**factories.evidence(), "profile": ()})
    return results


@pytest.mark.parametrize("words", [["compare"], ["lead"], ["list", "records"], ["device", "show", "hdd-7200"]])
def test_no_command_waits_for_numpy_or_scipy_without_need(words: list[str], stocked: Path) -> None:
    """Confidence intervals of comparisons use Student's t without scipy; report modules are not imported either."""
    sides = [factories.DISK.label, factories.MEMORY.label] if words[0] in ("compare", "lead") else []
    results = ["--results", str(stocked)] if words[0] != "device" else []
    found = modules_loaded([*words, *sides, *results], 0)
    assert "ironbench.printer" in found
    assert not {"numpy", "scipy", "duckdb", "ironbench.study.study", "ironbench.report.document"} & found


def test_the_control_process_of_workers_imports_neither_engines_nor_loading() -> None:
    program = "import sys, ironbench.trial.cluster.ray_child; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    packages = {name.split(".")[1] for name in done.stdout.split() if name.startswith("ironbench.")}
    assert "trial" in packages
    assert not {"engines", "workloads"} & packages and "ironbench.trial.load" not in done.stdout.split()


def test_only_the_printer_prints() -> None:
    for path in SOURCE.rglob("*.py"):
        names = {call.func.id for call in calls(path) if isinstance(call.func, ast.Name)}
        assert "print" not in names, f"{path} prints"


def test_only_one_crate_knows_python() -> None:
    manifests = (SOURCE.parents[1] / "crates").glob("*/Cargo.toml")
    assert [path.parent.name for path in manifests if "pyo3" in path.read_text()] == ["ironbench-python"]


def test_every_refusal_of_an_input_names_a_way_out() -> None:
    for path in SOURCE.rglob("*.py"):
        for call in calls(path):
            if isinstance(call.func, ast.Name) and call.func.id == "InputError":
                whole = len(call.args) > 2 or any(isinstance(one, ast.Starred) for one in call.args)
                assert whole, f"{path}, line {call.lineno}: subject and cause alone"


def test_child_processes_start_without_any_other_package() -> None:
    """They run under `python -I -S`; only Ray's child process gets packages, including ironbench."""
    children = [
        name for name, path in MODULES.items() if re.search(r"^def main\(parent\b", path.read_text(), re.MULTILINE)
    ]
    children.remove("ironbench.trial.cluster.ray_child")
    assert "ironbench.engines.sqlite.connection" in children
    for name in children:
        code = f"import sys; sys.path.append({str(SOURCE.parent)!r}); import {name}"
        ended = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
        assert not ended.returncode, ended.stderr
