"""The command line: one file per verb, this one only joins them. Heavy imports wait until a verb runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Annotated

import typer

from ironbench.cli.cleanup import cleanup
from ironbench.cli.compare import compare
from ironbench.cli.cost import cost
from ironbench.cli.device import app as device
from ironbench.cli.doctor import doctor
from ironbench.cli.lab import app as lab
from ironbench.cli.lead import lead
from ironbench.cli.leaderboard import leaderboard
from ironbench.cli.list import list_
from ironbench.cli.record import app as record
from ironbench.cli.report import report
from ironbench.cli.run import run
from ironbench.cli.show import show
from ironbench.errors import IronbenchError
from ironbench.printer import Printer

VERBS: dict[str, Callable[..., int] | typer.Typer] = {
    "run": run,
    "lab": lab,
    "device": device,
    "record": record,
    "list": list_,
    "show": show,
    "compare": compare,
    "report": report,
    "lead": lead,
    "leaderboard": leaderboard,
    "cost": cost,
    "doctor": doctor,
    "cleanup": cleanup,
}


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


def joined(names: Iterable[str]) -> typer.Typer:
    """The program with these verbs alone."""
    made = typer.Typer(
        name="ironbench",
        help="Tells you, with evidence, what faster storage, more memory, more cores, another engine or another "
        "setting would do for your database.",
        rich_markup_mode=None,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    for name in names:
        verb = VERBS[name]
        if isinstance(verb, typer.Typer):
            made.add_typer(verb)
        else:
            made.command(name)(verb)
    made.callback()(ironbench)
    return made


app = joined(VERBS)


def main() -> None:
    """Exit codes: 0 done, 1 a failure, 2 your input, 3 suspect, 4 an expectation refuted, 130 interrupted."""
    from ironbench import streams
    from ironbench.cli.mistakes import refuse_repeated, refuse_unprintable

    streams.prepare()
    # The parsers of all verbs take longer to make than many an answer.
    asked = joined(sys.argv[1:2]) if sys.argv[1:2] and sys.argv[1] in VERBS else app
    try:
        refuse_unprintable(sys.argv[1:])
        refuse_repeated(sys.argv[1:], lambda: typer.main.get_command(asked))
        code = asked(standalone_mode=False, prog_name="ironbench") or 0
    except IronbenchError as error:
        Printer().error(error)
        code = error.exit_code
    except typer.Exit as error:
        code = error.exit_code
    except (KeyboardInterrupt, typer.Abort):
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
    ours = forbidden(error) if isinstance(error, PermissionError) else mistake(error)
    found = ours or unforeseen(error)
    Printer().error(found)
    return found.exit_code
