"""`ironbench cleanup`: ends servers that outlived their ironbench."""

from __future__ import annotations

from typing import Annotated

import typer


def cleanup(
    data: Annotated[
        bool,
        typer.Option("--data", help="Remove the databases in the default data directory too, if nobody uses them."),
    ] = False,
) -> int:
    """End servers whose ironbench was killed, and remove what they left."""
    from ironbench.engines import cleanup as engines_cleanup
    from ironbench.printer import Printer

    cleaned = engines_cleanup.cleanup(remove_data=data)
    printer = Printer()
    for line in engines_cleanup.told(cleaned):
        printer.say(line)
    return 1 if cleaned.stubborn else 0
