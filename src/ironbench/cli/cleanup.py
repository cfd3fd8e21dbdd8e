"""`ironbench cleanup`: ends servers that outlived their ironbench."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ironbench.engines.cleanup import Cleaned


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
    for line in told(cleaned):
        printer.say(line)
    return 1 if cleaned.stubborn else 0


def told(cleaned: Cleaned) -> list[str]:
    """What was done and what was left, a line each."""
    lines = []
    for word, entries in (("ended", cleaned.ended), ("cannot end", cleaned.stubborn), ("still used", cleaned.living)):
        for entry in entries:
            server = "no process" if entry.server is None else f"process {entry.server.pid}"
            lines.append(f"{word}: {entry.kind} in {entry.data} ({server}, of ironbench process {entry.owner.pid})")
    lines += [f"removed: {path}" for path in cleaned.removed]
    lines += [f"kept: {path} (--data removes it)" for path in cleaned.kept]
    return lines or ["nothing of ours is left"]
