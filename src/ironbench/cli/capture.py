"""`ironbench capture`: writes a production workload, read from logs or from a server's statistics, to one file for
`ironbench show` and `ironbench run capture`."""

from __future__ import annotations

from typing import Annotated

import typer

from ironbench import units
from ironbench.errors import InputError
from ironbench.printer import Printer
from ironbench.words import counted

_WATCHED = "60s"


def capture(
    logs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="LOG...",
            help="Log files of the server (csvlog, jsonlog or stderr, optionally compressed with gzip or zstd), or the "
            "directory of the log files.",
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="New file to write, e.g. shop.capture.")
    ] = "",
    prefix: Annotated[
        str, typer.Option(metavar="TEXT", help="log_line_prefix of the server; required for logs in the format stderr.")
    ] = "",
    mask: Annotated[
        bool,
        typer.Option(
            "--mask",
            help="Replace literals and parameters with other values of the same type and length. Equal values are "
            "replaced with equal values.",
        ),
    ] = False,
    server: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="DSN",
            help="Create the capture from the statement statistics of a running server instead of "
            "logs. ironbench then generates the parameter values.",
        ),
    ] = "",
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="With --from: how long to observe the server.  [default: 60s]")
    ] = "",
    mark: Annotated[
        str,
        typer.Option(
            metavar="DSN",
            help="Write the server's counters into the server's log. Use this option before and after the recorded "
            "period, so that reports can compare a replay with the recording.",
        ),
    ] = "",
) -> int:
    if mark:
        return _marked(mark, (*(logs or ()), output, prefix, server, duration, "--mask" if mask else ""))
    if not logs and not server:
        raise InputError(
            "capture",
            "no log files are named",
            "name the log files, for example: ironbench capture log/ -o shop.capture",
        )
    if not output:
        raise InputError("-o", "is missing", "add the file to write, e.g. -o shop.capture")
    if server and (logs or prefix):
        raise InputError("--from", "cannot be combined with logs", "name either the server or the log files")
    if duration and not server:
        raise InputError("--duration", "has no effect on a capture from logs", "remove it, or use --from DSN")
    from ironbench.report import wording
    from ironbench.workloads.capture import digests
    from ironbench.workloads.capture import logs as reading

    printer = Printer()
    seconds = units.seconds("--duration", duration or _WATCHED)
    if seconds <= 0:
        raise InputError(f"--duration {duration}", "is too short", "use for example --duration 60s")
    with printer.bar("watching the server" if server else f"reading {counted(len(logs or ()), 'log')}") as show:
        if server:
            made = digests.capture(server, output, seconds, mask, show)
        else:
            made = reading.capture(logs or (), output, prefix, mask, show)
    parts = [
        counted(made.statements, "statement"),
        counted(made.transactions, "transaction"),
        counted(made.sessions, "session"),
    ]
    printer.say(f"captured: {', '.join(parts)}")
    for sentence in wording.sentences(made.notes):
        printer.say(f"  {sentence}")
    printer.say(f"`ironbench show {output}` shows the contents of the capture")
    printer.data(output)
    return 0


def _marked(dsn: str, others: tuple[str, ...]) -> int:
    if any(others):
        raise InputError(
            "--mark",
            "cannot be combined with logs and other options",
            "make the capture afterwards, with a separate command",
        )
    from ironbench.workloads.capture import marks

    written = marks.write(dsn)
    Printer().say(f"mark written: the server's log now contains {counted(len(written), 'counter')} of the server")
    return 0
