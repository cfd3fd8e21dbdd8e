"""The command line. Each command has an entry in `VERBS`, and a module with the command's name. The other modules of
this package are shared by commands."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Annotated

import typer

from ironbench import streams
from ironbench.cli.options import group
from ironbench.errors import IronbenchError
from ironbench.printer import Printer
from ironbench.streams import unwritten

VERBS = {
    "run": "Run WORKLOAD against a database and record every trial.",
    "lab": "Plan, run and resume experiments declared in a lab file.",
    "capture": "Capture a production workload (logs, proxy, statistics). `ironbench show` shows the capture file, and "
    "`ironbench run capture` replays it.",
    "tune": "Find which of many settings matter. Screens all settings in few trials, then measures the settings that "
    "matter in more trials.",
    "device": "Mount and calibrate emulated devices, and replay I/O traces.",
    "record": "Export records to a file, and import records from a file.",
    "list": "List workloads, engines, metrics, records and more.",
    "show": "Show a record, workload, engine, metric or observer.",
    "compare": "Compare A and B in every metric. Shows ratios, variation between repeats, and differences in machine, "
    "versions and settings.",
    "explain": "Explain a difference between A and B. Breaks the difference down by wait class, I/O, query plans and "
    "settings.",
    "report": "Write a report on the selected records. Includes charts, tables, settings and differences.",
    "gate": "Fail if a change is slower. Regression gate for CI: the exit code is 4 unless every comparison passes.",
    "history": "Show a metric over time, with change points. Orders comparable trials by commit, version or date.",
    "lead": "Show how much faster B is than A. Compares all workloads that A and B have in common, at each number of "
    "clients and at peak throughput.",
    "leaderboard": "Rank published results, or your own results.",
    "headroom": "Show how far a load can grow within a limit. Finds the highest rate of each system, with its 95% CI.",
    "cost": "Find the cheapest system that meets a target. Shows each system's cost and performance per cost.",
    "serve": "Show labs and results in a browser. Follow a running lab, queue labs, search and compare records.",
    "doctor": "Check a machine or database for measurement problems. Shows the meaning and the fix of each problem; "
    "the exit code is 3 if a problem is severe.",
    "cleanup": "Clean up after a killed ironbench. Stops servers that ironbench started, runs pending cleanup commands "
    "and deletes unfinished records; keeps data.",
}
"""Help text of each command. `ironbench --help` shows only its first sentence, which has at most 60 characters.

The module of a command has the command's name. The module contains a function with the same name, or `app` if the
command has subcommands. The module is imported when the command is used.
"""


def _version(asked: bool) -> None:
    if asked:
        from ironbench._core import VERSION

        Printer().data(f"ironbench {VERSION}")
        raise typer.Exit


def _shells() -> Iterable[str]:
    from ironbench.cli.completion import SHELLS

    return SHELLS


def _install_completion(shell: str) -> None:
    if shell:
        from pathlib import Path

        from ironbench.cli.completion import installed

        Printer().data(installed(program(VERBS), shell, os.environ, Path.home()))
        raise typer.Exit


def _show_completion(shell: str) -> None:
    if shell:
        from ironbench.cli.completion import script

        Printer().data(script(program(VERBS), "--show-completion", shell))
        raise typer.Exit


def ironbench(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_version)
    ] = False,
    install_completion: Annotated[
        str,
        typer.Option(
            metavar="[SHELL]",
            help="Install shell completion for bash, zsh or fish.  [default: $SHELL]",
            show_default=False,
            is_eager=True,
            callback=_install_completion,
            autocompletion=_shells,
        ),
    ] = "",
    show_completion: Annotated[
        str,
        typer.Option(
            metavar="SHELL",
            help="Print the completion script for bash, zsh or fish.",
            show_default=False,
            is_eager=True,
            callback=_show_completion,
            autocompletion=_shells,
        ),
    ] = "",
) -> None:
    # A docstring here would replace the app's `help` on the help page.
    return


def program(verbs: Iterable[str]) -> typer.Typer:
    """Builds the program with all commands. Imports only the commands named in `verbs`. All other commands get a help
    text but no options."""
    made = group(
        "ironbench",
        "Measures what faster storage, more memory, more cores, another engine or another setting would do for your "
        "database, with evidence.",
    )
    whole = set(verbs)
    for name, help in VERBS.items():
        verb = _verb(name) if name in whole else _unread
        if isinstance(verb, typer.Typer):
            made.add_typer(verb, name=name, help=help)
        else:
            made.command(name, help=help)(verb)
    made.callback()(ironbench)
    return made


def _verb(name: str) -> Callable[..., int] | typer.Typer:
    module = import_module(f"ironbench.cli.{name}")
    function = "list_" if name == "list" else name
    verb: Callable[..., int] | typer.Typer = getattr(module, "app", None) or getattr(module, function)
    return verb


def _unread() -> int:
    raise AssertionError("only a loaded command is invoked")


def main() -> None:
    """Runs the program. Exit codes: 0 success; 1 failure; 2 wrong input; 3 finished, but the result is flagged or
    inconclusive; 4 an expectation was refuted or a gate failed; 130 interrupted."""
    from ironbench.cli.mistakes import refuse_empty, refuse_repeated, refuse_unprintable
    from ironbench.cli.option_values import without_pydantic

    streams.prepare()
    # `-@2` is standard input with weight 2, as in pgbench. The parser would treat it as an option.
    sys.argv[1:] = [f"/dev/stdin{word[1:]}" if re.fullmatch(r"-@\d+", word) else word for word in sys.argv[1:]]
    # Only the requested command is imported. Importing all commands would take longer than most commands run.
    asked = program(VERBS.keys() & set(sys.argv[1:2]))
    failure: IronbenchError | None = None
    try:
        if sys.argv[1:] == ["--install-completion"]:
            from ironbench.cli.completion import users_shell

            sys.argv.append(users_shell(os.environ))
        refuse_unprintable(sys.argv[1:])
        refuse_repeated(sys.argv[1:], lambda: typer.main.get_command(asked))
        refuse_empty(sys.argv[1:], lambda: typer.main.get_command(asked))
        command = typer.main.get_command(asked)
        without_pydantic(command)
        # `asked(…)` is not called, because it would exit with code 130 on Ctrl-C without a message.
        with command.make_context("ironbench", sys.argv[1:]) as context:
            code = command.invoke(context) or 0
    except IronbenchError as error:
        failure = error
    except typer.Exit as error:
        code = error.exit_code
    except KeyboardInterrupt:
        Printer().say("interrupted; completed trials are kept")
        code = 130
    except BrokenPipeError:
        code = 1
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            Printer().say(str(error))
            code = 2
        else:
            failure = _as_ironbench_error(error)
    if failure is not None:
        from ironbench.host.detached import report_failure

        Printer().error(failure)
        report_failure(failure)
        code = failure.exit_code
    if not streams.ended() and not code:
        code = 1
    sys.exit(code)


def _as_ironbench_error(error: Exception) -> IronbenchError:
    """Converts an exception to an IronbenchError. Exceptions that the command line parser or the operating system
    raises have their own messages. Any other exception becomes an "unforeseen" error."""
    from ironbench.cli.mistakes import forbidden, mistake, unforeseen

    if isinstance(error, OSError) and not error.filename and "--help" in sys.argv:
        known: IronbenchError | None = unwritten(error)  # the parser itself prints help pages
    else:
        known = forbidden(error) if isinstance(error, PermissionError) else mistake(error)
    return known or unforeseen(error)
