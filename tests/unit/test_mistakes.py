"""Errors on the command line have subject, cause, hint and exit code 2, as all errors."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from ironbench import cli

MISTAKES = {
    "run x --threads 0": ("--threads: 0 is out of range", "1 to 1,024"),
    "run x --threads 1.5": ("--threads: '1.5' is not a whole number", "--threads 2"),
    "run x --repeats 0": ("--repeats: 0 is out of range", "1 to 10,000"),
    "run x --repeats nine": ("--repeats: 'nine' is not a whole number", "--repeats 6"),
    "run x --seed -1": ("--seed: -1 is out of range", "0 to 9,223,372,036,854,775,807"),
    "run x --transactions 0": (
        "--transactions: 0 is out of range",
        "1 to 1,000,000,000,000,000",
    ),
    "run x --max-tries -1": ("--max-tries: -1 is out of range", "retries without limit"),
    "run x --rate fast": ("--rate: 'fast' is not a number", "--rate 500"),
    "run select-only --data ~nobody-here/x": (
        "~nobody-here/x: the home directory for `~` is unknown",
        "use an absolute path",
    ),
    "run select-only --set bin=~nobody-here/x": (
        "~nobody-here/x: the home directory for `~` is unknown",
        "use an absolute path",
    ),
    "run": ("ironbench run: WORKLOAD is missing", "ironbench run --help"),
    "run x --cleints 3": ("--cleints: unknown option of ironbench run", "--clients"),
    "run x --clients": ("--clients: takes a value", "--help"),
    "run x --json=3": ("--json: takes no value", "--help"),
    "run x --clients 1 --clients 4": ("--clients: appears 2 times", "1,2,4"),
    "run select-only --dsn= --plan": ("--dsn: is empty", "unset shell variable"),
    "doctor --server=": ("--server: is empty", "remove --server"),
    "report -o a.html -o b.html": ("-o: appears 2 times", "use the option once"),
    "lab plan x --budget=1m --budget 2m": ("--budget: appears 2 times", "use the option once"),
    "report -o x.docx": ("-o x.docx: the file name has no known suffix", ".html"),
    "report --format docx": ("--format docx: no such format", "html"),
    "replay x.capture": ("replay: unknown command of ironbench", "run capture --with file=FILE"),
    "run x.capture": ("workload x.capture: there is no such workload", "capture --with file=x.capture"),
    "run tpcb-like --rate 5 --transactions 5": ("--rate: cannot be combined with --transactions", "use --duration"),
    "show x.capture": ("x.capture: no such file", "make the capture first"),
    "rum": ("rum: unknown command of ironbench", "run"),
    "compare a": ("ironbench compare: B is missing", "ironbench compare --help"),
    "lead a b --json -o x.html": ("--json: cannot be combined with -o x.html", "FILE.json"),
    "leaderboard tpce --per core --sort system": (
        "--sort system: cannot be combined with --per core, which also sets the order",
        "remove one of the two",
    ),
    "device trace replay x --on hdd-7200 --keep-arrivals": (
        "--keep-arrivals: no longer exists: a replay always uses the recorded arrival times",
        "remove --keep-arrivals",
    ),
    "device trace replay x --on hdd-7200 --emulated": (
        "--emulated: no longer exists: a replay predicts the latencies of the device, but no computing time",
        "run the program on the emulated device",
    ),
    "compare a b c": ("c: unexpected argument of ironbench compare", "ironbench compare --help"),
}


def told(words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["ironbench", *words.split()])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


@pytest.mark.parametrize("words", ["run select-only --plan --dsn", "doctor --dsn", "report -o", "cleanup --dsn"])
def test_the_value_of_a_variable_that_is_not_set_is_refused(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["ironbench", *words.split(), ""])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2 and f"{words.split()[-1]}: is empty" in capsys.readouterr().err


def test_an_empty_argument_after_a_switch_or_after_two_dashes_is_no_value_of_an_option(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["run", "--json", ""], ["run", "--plan", "--", "--dsn", ""]):
        monkeypatch.setattr(sys, "argv", ["ironbench", *words])
        with pytest.raises(SystemExit):
            cli.main()
        assert "is empty" not in capsys.readouterr().err


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_names_subject_cause_and_way_out(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(words, monkeypatch) == 2
    out, err = capsys.readouterr()
    first, second = err.splitlines()
    subject, hint = MISTAKES[words]
    assert (out, first) == ("", f"error: {subject}")
    assert second.startswith("  hint: ")
    assert hint in second


def test_the_version_is_the_core_s(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from ironbench._core import VERSION

    assert told("--version", monkeypatch) == 0
    assert capsys.readouterr().out == f"ironbench {VERSION}\n"


@pytest.mark.long
def test_a_path_that_may_not_be_entered_is_named_with_the_directory_that_closes_it(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0)
    # Root can enter every directory, but not in a user namespace that maps it to an ordinary user.
    ordinary = ("unshare", "--user", "--map-user=1000", "--map-group=1000") if os.getuid() == 0 else ()
    if subprocess.run([*ordinary, "test", "-e", tmp_path], check=False).returncode:
        pytest.skip("no user namespaces here")
    inside = str(closed / "inside")
    commands = (
        ("run", "tpcb-like", "--engine", "sqlite", "--data", inside),
        ("run", "tpcb-like", "--engine", "sqlite", "--data", str(tmp_path / "data"), "--results", inside),
        ("run", "storage", "--data", inside),
        ("report", "-o", f"{inside}.html"),
        ("report", inside),
        ("list", "records", "--results", inside),
        ("compare", "a", "b", "--results", inside),
        ("lab", "resume", inside),
        ("cleanup", "--results", inside),
        ("doctor", "--data", inside),
    )
    # Each runs in a separate process in which all imports are done.
    program = """
        import json, os, sys
        from ironbench.cli import VERBS, main, program
        program(VERBS)
        for number, words in enumerate(json.loads(sys.argv[1])):
            if not (child := os.fork()):
                for stream, name in ((1, "out"), (2, "err")):
                    os.dup2(os.open(f"{number}.{name}", os.O_CREAT | os.O_WRONLY, 0o600), stream)
                sys.argv = ["ironbench", *words]
                main()
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    """
    command = [*ordinary, sys.executable, "-c", textwrap.dedent(program), json.dumps(commands)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, timeout=60)
    for number, (words, code) in enumerate(zip(commands, done.stdout.split(), strict=True)):
        out, err = ((tmp_path / f"{number}.{name}").read_text() for name in ("out", "err"))
        assert (code, out) == ("2", ""), (words, err)
        first, second = err.splitlines()
        assert inside in first and str(closed) in first, (words, first)
        assert second.startswith("  hint: "), words
