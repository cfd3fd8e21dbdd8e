"""`ironbench capture`: production work from log files becomes one file, for `ironbench show` and `ironbench run
capture`."""

from __future__ import annotations

from typing import Annotated

import typer

from ironbench.errors import InputError
from ironbench.printer import Printer
from ironbench.words import counted


def capture(
    logs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="LOG...",
            help="Log files of the server (csvlog, jsonlog or stderr; also compressed with gzip or zstd), or their "
            "directory.",
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="New file to write, e.g. shop.capture.")
    ] = "",
    prefix: Annotated[
        str, typer.Option(metavar="TEXT", help="The server's log_line_prefix, for logs in the format stderr.")
    ] = "",
    mask: Annotated[
        bool,
        typer.Option(
            "--mask",
            help="Replace literals and parameters by others of the same type and length. Equal values stay equal.",
        ),
    ] = False,
) -> int:
    if not logs:
        raise InputError("capture", "the log files are missing", "for example: ironbench capture log/ -o shop.capture")
    if not output:
        raise InputError("-o", "is missing", "add the file to write, e.g. -o shop.capture")
    from ironbench.report import wording
    from ironbench.workloads.capture import logs as making

    printer = Printer()
    with printer.bar(f"reading {counted(len(logs), 'log')}") as show:
        made = making.capture(logs, output, prefix, mask, show)
    parts = [
        counted(made.statements, "statement"),
        counted(made.transactions, "transaction"),
        counted(made.sessions, "session"),
    ]
    printer.say(f"captured: {', '.join(parts)}")
    for sentence in wording.sentences(made.notes):
        printer.say(f"  {sentence}")
    printer.say(f"to see what it contains: `ironbench show {output}`")
    printer.data(output)
    return 0
