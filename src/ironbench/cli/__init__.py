"""The command line: each verb is a line in `VERBS` and the module of that name; the others here are shared by verbs."""

from __future__ import annotations

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
    "run": "Drive WORKLOAD against a database and record every trial.",
    "lab": "Measure what a lab file varies, and give a verdict.",
    "tune": "Find which of many settings matter. Few runs screen them, fresh blocks compare those that matter.",
    "device": "Show and mount emulated devices, replay traces on them.",
    "record": "Export records to one file, import them elsewhere.",
    "list": "List workloads, engines, metrics, records and more.",
    "show": "Show a record, workload, engine, metric or observer.",
    "compare": "Compare A and B in every metric. Show ratios, the spread of repeats, and what differs.",
    "explain": "Say where a difference comes from. From throughput down to parts of the time, I/O, plans and settings.",
    "report": "Write a report of the selected records. It has charts, tables, settings, and what differs.",
    "gate": "Stop a change that is slower. Exit 4 unless blocks show that nothing is slower than allowed.",
    "history": "Show a metric of like trials over time. By commit, version or date, with its change points.",
    "lead": "Say how far B is ahead of A. Compare all work that both did, at each number of clients and at the peaks.",
    "leaderboard": "Rank published results, or your own: never together.",
    "cost": "Find the cheapest system that meets a target. Show what each costs, and what it does for that money.",
    "serve": "Show labs and results in a browser. Watch a lab while it runs, queue labs, search and compare records.",
    "doctor": "Find what spoils measurements on a machine or in a database. Show the meaning and remedy of "
    "each; exit 3 if one is severe.",
    "cleanup": "Remove what a killed ironbench left. End its servers, run cleanup commands that were not run, delete "
    "unfinished records; data stay.",
}
"""Verb → what it does; `ironbench --help` shows the first sentence, 60 characters at most.

The module of that name in this folder holds its function, or `app` where it has verbs of its own; it is imported when
its verb is asked for."""


def _version(asked: bool) -> None:
    if asked:
        from ironbench._core import VERSION

        Printer().data(f"ironbench {VERSION}")
        raise typer.Exit


def ironbench(
    version: Annotated[
        bool, typer.Option("--version", help="Say which ironbench this is.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    # The first line of a help page is the app's own `help`.
    return


def program(verbs: Iterable[str]) -> typer.Typer:
    """The program with these verbs whole; of the others it knows what they do."""
    made = group(
        "ironbench",
        "Tells you, with evidence, what faster storage, more memory, more cores, another engine or another setting "
        "would do for your database.",
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
    raise AssertionError("only a verb that was read is called")


def main() -> None:
    """Exit codes: 0 done, 1 a failure, 2 your input, 3 suspect, 4 an expectation refuted, 130 interrupted."""
    from ironbench.cli.mistakes import refuse_empty, refuse_repeated, refuse_unprintable
    from ironbench.cli.plain import without_pydantic

    streams.prepare()
    # `-@2` is standard input with a weight, as for pgbench; to the parser a dash begins an option.
    sys.argv[1:] = [f"/dev/stdin{word[1:]}" if re.fullmatch(r"-@\d+", word) else word for word in sys.argv[1:]]
    # To read all verbs takes longer than many an answer.
    asked = program(VERBS.keys() & set(sys.argv[1:2]))
    try:
        refuse_unprintable(sys.argv[1:])
        refuse_repeated(sys.argv[1:], lambda: typer.main.get_command(asked))
        refuse_empty(sys.argv[1:], lambda: typer.main.get_command(asked))
        command = typer.main.get_command(asked)
        without_pydantic(command)
        # Not `asked(…)`: it turns Ctrl-C into an exit code of 130 without a word.
        with command.make_context("ironbench", sys.argv[1:]) as context:
            code = command.invoke(context) or 0
    except IronbenchError as error:
        Printer().error(error)
        code = error.exit_code
    except typer.Exit as error:
        code = error.exit_code
    except KeyboardInterrupt:
        Printer().say("interrupted; finished trials are kept")
        code = 130
    except BrokenPipeError:
        code = 1
    except Exception as error:
        code = _mistake(error)
    if not streams.ended() and not code:
        code = 1
    sys.exit(code)


def _mistake(error: Exception) -> int:
    """A mistake on the command line, in our words; anything else was not foreseen."""
    from ironbench.cli.mistakes import forbidden, mistake, unforeseen

    if type(error).__name__ == "NoArgsIsHelpError":
        Printer().say(str(error))
        return 2
    if isinstance(error, OSError) and not error.filename and "--help" in sys.argv:
        known: IronbenchError | None = unwritten(error)  # the parser writes its pages itself
    else:
        known = forbidden(error) if isinstance(error, PermissionError) else mistake(error)
    known = known or unforeseen(error)
    Printer().error(known)
    return known.exit_code
