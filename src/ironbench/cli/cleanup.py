"""`ironbench cleanup`: stops servers that still run after the ironbench process that started them was killed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ironbench.errors import InputError
from ironbench.printer import Printer


def cleanup(
    data: Annotated[
        bool,
        typer.Option("--data", help="Also remove the databases in the default data directory that are not in use."),
    ] = False,
    forget: Annotated[
        bool,
        typer.Option(
            "--forget",
            help="Run the cleanup commands that runs and labs have left behind, and discard the commands that fail.",
        ),
    ] = False,
    results: Annotated[
        str,
        typer.Option(
            metavar="DIR", help="Directory to search for unfinished records and exports.", envvar="IRONBENCH_RESULTS"
        ),
    ] = "ironbench-results",
    dsn: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Instead of cleaning up this machine, remove what ironbench created in this database or LDAP "
            "directory, and the databases that ironbench created on that server.",
        ),
    ] = "",
) -> int:
    from ironbench.engines import cleanup as engines_cleanup
    from ironbench.host import durable
    from ironbench.host.scratch import remove_failures
    from ironbench.lab.upkeep import run_pending_cleanups
    from ironbench.records import running_labs

    printer = Printer()
    if dsn:
        if data:
            raise InputError("--data", "cannot be combined with --dsn", "remove one of the two")
        if forget:
            raise InputError("--forget", "cannot be combined with --dsn", "remove one of the two")
        printer.say(engines_cleanup.database(dsn))
        return 0
    running_labs.all_running()  # also removes the files of killed labs
    cleaned = engines_cleanup.cleanup(remove_data=data)
    # Pending cleanup commands run after the servers have stopped, because a command may unmount a server's directory.
    failed = run_pending_cleanups(printer.say, forget=forget)
    unfinished = [
        *durable.remove_abandoned(Path(results)),
        *durable.remove_abandoned_exports(Path()),
        *durable.remove_abandoned_captures(Path()),
        *durable.remove_abandoned_temporary_folders(),
        *remove_failures(),
    ]
    for line in engines_cleanup.lines_of(cleaned, list(map(str, unfinished))):
        printer.say(line)
    return 1 if cleaned.not_stopped or failed else 0
