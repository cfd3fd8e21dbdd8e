"""Every invalid input or environment gives an exit code and one line with subject, cause and hint, but no traceback."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import launch
import pytest

SOURCE = Path(__file__).parents[2] / "src"
PROGRAM = [sys.executable, "-m", "ironbench.start"]


def told(
    words: Sequence[str],
    folder: Path,
    shell: str = "",
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs a command as a user would. `shell`: what follows the command in a shell, e.g. `> /dev/full`.

    How the interpreter sets up its streams and environment can only be tested with a fresh interpreter, which `shell`
    and `env` request.
    """
    ours = {"PYTHONPATH": str(SOURCE), "TMPDIR": str(folder), "IRONBENCH_DATA": str(folder / "data")}
    environment = {**os.environ, **ours, **(env or {})}
    if not (shell or env):
        return launch.run(words, env=environment, cwd=folder)
    quoted = " ".join(f"'{word}'" for word in (*PROGRAM, *words))
    command = ["/bin/sh", "-c", f"{quoted} {shell}"] if shell else [*PROGRAM, *words]
    return subprocess.run(
        command, capture_output=True, text=True, errors="replace", cwd=folder, env=environment, timeout=120, check=False
    )


def in_words(done: subprocess.CompletedProcess[str], code: int) -> str:
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, done.stderr
    assert done.returncode == code, done.stderr
    return str(done.stderr)


@pytest.mark.parametrize("shell", ["> /dev/full", ">&-"])
@pytest.mark.parametrize("words", [["list", "metrics"], ["--version"], ["run", "--help"], ["lab", "plan", "--help"]])
def test_a_result_that_cannot_be_written_is_a_failure_in_one_line(shell: str, words: list[str], tmp_path: Path) -> None:
    assert in_words(told(words, tmp_path, shell), 1).startswith("error: stdout: the result cannot be written")


@pytest.mark.parametrize("shell", ["> /dev/full", ">&-"])
def test_a_page_of_help_that_cannot_be_written_is_a_failure(shell: str, tmp_path: Path) -> None:
    in_words(told(["--help"], tmp_path, shell), 1)


def test_nobody_reading_stderr_or_stdout_is_no_reason_to_fail_loudly(tmp_path: Path) -> None:
    assert told(["list", "metrics"], tmp_path, "2>&-").returncode == 0
    in_words(told(["list", "metrics"], tmp_path, "| head -1"), 0)


def test_a_stream_without_unicode_gets_plainer_characters(tmp_path: Path) -> None:
    done = told(["show", "ssd-é"], tmp_path, env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert "ssd-?" in in_words(done, 2)
    assert done.stderr.isascii()


@pytest.mark.parametrize("word", ["a\x1b[31mb", "a\x07", "\x9b31m"])
def test_control_characters_are_refused_and_never_repeated(word: str, tmp_path: Path) -> None:
    for words in (["run", "select-only", f"--label={word}"], ["run", "script", word], ["compare", word, "b"]):
        message = in_words(told(words, tmp_path), 2)
        assert "control character" in message and not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", message)
    assert "is not a single-line name" in in_words(told(["run", "select-only", "--label=a\nb"], tmp_path), 2)


def test_bytes_that_are_no_utf8_are_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, b"show", b"\xff"], capture_output=True, env={**os.environ, "PYTHONPATH": str(SOURCE)}, check=False
    )  # fmt: skip
    assert done.returncode == 2 and b"is not valid UTF-8" in done.stderr


LAB = 'question = "?"\n[workload]\nname = "select-only"\n[system]\nengine = "null"\n[vary]\n'


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (LAB + '"load.clients" = ' + "[" * 1000 + "]" * 1000, "brackets"),
        (LAB + '"load.clients" = [1, ' + "9" * 4400 + "]", "too many digits"),
        (LAB + '"load.clients" = [1, 0x' + "f" * 5000 + "]", "64 bits"),
        (LAB + '"load.clients" = [1, 2]\n[system]\n', "not valid TOML"),
        (LAB + '"load.clients" = [1, 1979-05-27]', "date"),
        (LAB + '"system.label" = ["a\\u001b", "b"]', "control character U+001B"),
        ("x" * 2_000_000, "larger than"),
        ("\udcff", "UTF-8"),
    ],
    ids=["nested", "digits", "hexadecimal", "twice", "date", "control", "large", "bytes"],
)
def test_no_lab_file_yields_a_traceback(text: str, cause: str, tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_bytes(text.encode(errors="surrogateescape"))
    assert cause in in_words(told(["lab", "plan", str(file)], tmp_path), 2)


@pytest.mark.parametrize("name", ["lab plan", "--prices", "--systems", "--models", "script"])
def test_what_is_no_regular_file_is_refused_and_not_waited_for(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    # A script may come from a pipe, as in a shell's `<(command)`.
    pipe = [] if name == "script" else [("pipe", "is not a regular file")]
    for path, cause in (
        *pipe,
        ("/dev/zero", "is not a regular file"),
        (".", "cannot be read: Is a directory"),
    ):
        words = [word.replace("PATH", path) for word in PATHS[name]]
        assert f"{path}: {cause}" in in_words(told(words, tmp_path), 2)


@pytest.mark.parametrize(
    ("text", "cause"), [("", "is empty"), (" \n", "is empty"), ("-- a\n/* b\n*/", "only comments")]
)
def test_a_script_without_a_command_is_refused_with_a_way_out(text: str, cause: str, tmp_path: Path) -> None:
    (tmp_path / "x.sql").write_text(text)
    for words, subject in ((["x.sql"], "x.sql"), (["-", "< x.sql"], "standard input (-)")):
        message = in_words(told(["run", "script", words[0]], tmp_path, "".join(words[1:])), 2)
        assert f"{subject}: " in message and cause in message and "hint: add an SQL command" in message


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """A directory that an ordinary user may not enter."""
    folder = tmp_path / "closed"
    (folder / "inner").mkdir(parents=True)
    folder.chmod(0)
    yield folder
    folder.chmod(0o700)


def as_ordinary_user() -> list[str]:
    """Returns the words before a command that make file permissions apply even if the tests run as root."""
    if os.getuid() != 0:
        return []
    if not shutil.which("setpriv"):
        pytest.skip("root may enter every directory, and setpriv is not installed")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


PATHS = {
    "--data": ["run", "select-only", "--engine", "sqlite", "--data", "PATH"],
    "--log": ["run", "select-only", "--log", "PATH"],
    "--results": ["run", "select-only", "--engine", "null", "--results", "PATH"],
    "--trace": ["run", "select-only", "--data", "ram", "--trace", "PATH"],
    "--backing": ["run", "select-only", "--data", "ram", "--backing", "PATH"],
    "--models": ["device", "show", "ram", "--models", "PATH"],
    "--prices": ["cost", "--target", "p99 < 10ms at 5 tps", "--prices", "PATH"],
    "--systems": ["cost", "--systems", "PATH"],
    "report": ["report", "PATH"],
    "report --results": ["report", "--results", "PATH"],
    "report -o": ["report", "-o", "PATH.html"],
    "leaderboard": ["leaderboard", "--results", "PATH"],
    "lead": ["lead", "PATH", "b", "-o", "PATH.html"],
    "compare": ["compare", "PATH", "b"],
    "export": ["record", "export", "-o", "PATH.ibr", "--results", "PATH"],
    "import": ["record", "import", "PATH"],
    "import --results": ["record", "import", "/dev/null", "--results", "PATH"],
    "lab plan": ["lab", "plan", "PATH"],
    "lab run": ["lab", "run", "PATH"],
    "lab resume": ["lab", "resume", "PATH"],
    "script": ["run", "script", "PATH"],
    "show": ["show", "PATH"],
    "replay": ["device", "trace", "replay", "PATH", "--on", "ram"],
    "unmount": ["device", "unmount", "PATH"],
    "cleanup": ["cleanup", "--data"],
}


@pytest.mark.xdist_group("ordinary user")
@pytest.mark.parametrize("name", PATHS)
def test_a_path_below_a_directory_that_may_not_be_entered_is_refused_in_words(name: str, closed: Path) -> None:
    words = [word.replace("PATH", str(closed / "inner/x")) for word in PATHS[name]]
    data = closed / "inner/d" if name == "cleanup" else closed.parent / "data"
    environment = {**os.environ, "TMPDIR": str(closed.parent), "IRONBENCH_DATA": str(data)}
    done = launch.run(words, env=environment, cwd=closed.parent, within=as_ordinary_user())
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr, done.stderr
    assert done.returncode in ((0, 1, 2) if name == "cleanup" else (1, 2)), done.stderr


@pytest.mark.parametrize("place", ["/dev/null", "relative", "/nonexistent/x", "/proc/1/x", "\\x01"])
def test_a_bad_runtime_directory_is_not_used(place: str, tmp_path: Path) -> None:
    words = ["run", "select-only", "--engine", "null", "--duration", "0.1s", "--warmup", "0s", "--no-observe"]
    environment = {**os.environ, "XDG_RUNTIME_DIR": place, "IRONBENCH_DATA": str(tmp_path / "data")}
    done = launch.run(words, env=environment, cwd=tmp_path)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in (0, 3), done.stderr


def test_what_nobody_foresaw_is_one_line_a_file_with_the_details_and_exit_1(tmp_path: Path) -> None:
    code = (
        "import sys; import ironbench.cli.list as l; from ironbench.lab import run_plan\n"
        "from ironbench.model.secrets import Secrets\n"
        "def broken(asked):\n"
        "    Secrets('pa55w0rd!'); raise LookupError('lost pa55w0rd! and S3cr3t')\n"
        "run_plan.planned = broken\n"
        "sys.argv = ['ironbench', 'run', 'select-only', '--dsn', 'postgresql://u:S3cr3t']\n"
        "from ironbench.cli import main; main()"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False, timeout=60
    )  # fmt: skip
    message = in_words(done, 1)
    assert "LookupError: lost" in message
    (file,) = tmp_path.glob("ironbench-failure-*.txt")
    assert str(file) in message and file.stat().st_mode & 0o077 == 0
    details = file.read_text()
    assert "Traceback" in details and "in broken" in details
    for secret in ("pa55w0rd!", "S3cr3t"):
        assert secret not in details and secret not in message


def test_a_command_starts_without_pydantic() -> None:
    script = "import sys; sys.argv = ['ironbench', 'list', 'engines']\nfrom ironbench.start import main\n"
    script += (
        "try: main()\nfinally: print([name for name in sys.modules if name.startswith('pydantic')], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr.strip() == "[]", done.stderr


@pytest.mark.long
def test_a_fresh_interpreter_ends_in_silence(tmp_path: Path) -> None:
    """Commands in other tests are forks that exit before their modules are released: tests/launch.py."""
    trial = ["run", "select-only", "--engine", "sqlite", "--with", "scale=1", "--duration", "0.2s", "--warmup", "0s"]
    for words in (trial, ["report", "-o", "page.png"]):
        done = told(words, tmp_path, env={"IRONBENCH_RESULTS": str(tmp_path / "results")})
        assert done.returncode in (0, 3), done.stderr
        in_words(done, done.returncode)
