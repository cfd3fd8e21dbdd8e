"""`ironbench capture`: captures a production workload in one file. The source is logs, a proxy, or a server's
statistics. `ironbench show` and `ironbench run capture` read the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ironbench import units
from ironbench.errors import InputError
from ironbench.printer import Printer
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.workloads.capture.file import CaptureFacts
    from ironbench.workloads.capture.proxy import ProxyOptions

_DEFAULT_DURATION = "60s"


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
    listen: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Create the capture with a proxy that listens at this address, e.g. 127.0.0.1:6432 or the path of a "
            "Unix socket, and passes connections on to the server of --to.",
        ),
    ] = "",
    to: Annotated[str, typer.Option(metavar="DSN", help="With --listen: server to which clients are connected.")] = "",
    tls_cert: Annotated[
        str, typer.Option(metavar="FILE", help="With --listen: certificate for clients that connect with TLS (PEM).")
    ] = "",
    tls_key: Annotated[str, typer.Option(metavar="FILE", help="Private key of --tls-cert (PEM).")] = "",
    duration: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="How long to observe the server (--from; default: 60s) or to run the proxy (--listen; default: until "
            "Ctrl-C).",
        ),
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
        others = (*(logs or ()), output, prefix, server, listen, to, duration, "--mask" if mask else "")
        return _write_mark(mark, others)
    if not logs and not server and not listen:
        raise InputError(
            "capture",
            "the log files are missing",
            "add the log files, for example `ironbench capture log/ -o shop.capture`",
        )
    if not output:
        raise InputError("-o", "is missing", "add the file to write, e.g. -o shop.capture")
    if server and (logs or prefix):
        raise InputError("--from", "cannot be combined with log files", "use either --from or log files")
    if listen and (logs or prefix or server):
        raise InputError("--listen", "cannot be combined with logs or --from", "use one source for a capture")
    if listen and not to:
        raise InputError("--to", "is missing", "add the DSN of the server: --to DSN")
    for option, text in (("--to", to), ("--tls-cert", tls_cert), ("--tls-key", tls_key)):
        if text and not listen:
            raise InputError(option, "has no effect without a proxy", "remove it, or add --listen ADDRESS")
    if duration and not server and not listen:
        raise InputError("--duration", "has no effect on a capture from logs", "remove it, or use --from DSN")
    from ironbench.workloads.capture import digests, file, proxy
    from ironbench.workloads.capture import logs as log_files

    printer = Printer()
    seconds = units.seconds("--duration", duration or _DEFAULT_DURATION)
    if seconds <= 0:
        raise InputError(f"--duration {duration}", "is too short", "use for example --duration 60s")
    if listen:
        limit = seconds if duration else None
        options = proxy.ProxyOptions(listen, to, output, mask, limit, tls_cert, tls_key)
        return _print_summary(printer, _from_proxy(printer, options), output)
    if logs and len(logs) == 1 and file.is_partial(logs[0]):
        return _print_summary(printer, proxy.finish(logs[0], output, mask), output)
    with printer.bar("watching the server" if server else f"reading {counted(len(logs or ()), 'log')}") as show:
        if server:
            facts = digests.capture(server, output, seconds, mask, show)
        else:
            facts = log_files.capture(logs or (), output, prefix, mask, show)
    return _print_summary(printer, facts, output)


def _from_proxy(printer: Printer, options: ProxyOptions) -> CaptureFacts:
    from ironbench.workloads.capture import proxy

    def started(address: str) -> None:
        printer.say(f"listening on {address}; press Ctrl-C to end the capture")
        if cause := proxy.unreachable(options.dsn):
            printer.say(f"warning: the server does not accept connections: {cause}; correct --to, or start the server")

    with printer.bar("capturing") as show:
        return proxy.capture(options, started, show)


def _print_summary(printer: Printer, facts: CaptureFacts, output: str) -> int:
    from ironbench.report import wording

    parts = [
        counted(facts.statements, "statement"),
        counted(facts.transactions, "transaction"),
        counted(facts.sessions, "session"),
    ]
    printer.say(f"captured: {', '.join(parts)}")
    for sentence in wording.sentences(facts.notes):
        printer.say(f"  {sentence}")
    printer.say(f"`ironbench show {output}` shows the contents of the capture")
    printer.data(output)
    return 0


def _write_mark(dsn: str, others: tuple[str, ...]) -> int:
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
