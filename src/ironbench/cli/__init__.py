"""The command line: each verb is a line in `VERBS` and the module of that name; the others here are shared by verbs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Annotated

import typer

from ironbench.errors import IronbenchError
from ironbench.printer import Printer

VERBS = {
    "run": "Drive WORKLOAD against a database and record every trial.",
    "lab": "Run a declared experiment: what varies, how often, in which order, and what follows from it.",
    "tune": "Screen many settings in few runs, then compare those that matter in fresh blocks.",
    "device": "Look at modelled storage, mount it as a real file system, replay traces on it.",
    "record": "Carry records to another machine in one file, and take them in there.",
    "list": "List workloads, engines, devices, metrics, observers or records.",
    "show": "Show a record, workload, engine, metric or observer.",
    "compare": "Compare A and B: the ratio of every metric, the spread of repeats, what differs.",
    "report": "Write a report of the selected records: charts, tables, configuration, what differs.",
    "gate": "Stop a change that is slower: exit 4 unless blocks show that nothing is slower than allowed.",
    "lead": "Say how far B is ahead of A in every work that both did: at each number of clients and at the peaks.",
    "leaderboard": "Rank published results, and own ones by themselves: never together.",
    "cost": "Say what systems cost, what they do for it, and which is the cheapest that meets a target.",
    "doctor": "Look for what silently spoils numbers on this machine or in a database: each with its meaning and "
    "remedy. Exit 3 if severe.",
    "cleanup": "End servers whose ironbench was killed, and remove what they and unfinished records left.",
}
"""Verb → what it does. The module of that name in this folder holds its function, or `app` where it has verbs of its
own; it is imported when its verb is asked for."""


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
    made = typer.Typer(
        name="ironbench",
        help="Tells you, with evidence, what faster storage, more memory, more cores, another engine or another "
        "setting would do for your database.",
        rich_markup_mode=None,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
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
    found: Callable[..., int] | typer.Typer = getattr(module, "app", None) or getattr(module, function)
    return found


def _unread() -> int:
    raise AssertionError("only a verb that was read is called")


def main() -> None:
    """Exit codes: 0 done, 1 a failure, 2 your input, 3 suspect, 4 an expectation refuted, 130 interrupted."""
    from ironbench import streams
    from ironbench.cli.mistakes import refuse_repeated, refuse_unprintable
    from ironbench.cli.plain import without_pydantic

    streams.prepare()
    # To read all verbs takes longer than many an answer.
    asked = program(VERBS.keys() & set(sys.argv[1:2]))
    try:
        refuse_unprintable(sys.argv[1:])
        refuse_repeated(sys.argv[1:], lambda: typer.main.get_command(asked))
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
    from ironbench.streams import unwritten

    if type(error).__name__ == "NoArgsIsHelpError":
        Printer().say(str(error))
        return 2
    if isinstance(error, OSError) and not error.filename and "--help" in sys.argv:
        found: IronbenchError | None = unwritten(error)  # the parser writes its pages itself
    else:
        found = forbidden(error) if isinstance(error, PermissionError) else mistake(error)
    found = found or unforeseen(error)
    Printer().error(found)
    return found.exit_code
