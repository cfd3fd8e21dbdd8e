"""`ironbench serve`: shows labs and results in a browser."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ironbench.cli.options import RESULTS
from ironbench.printer import Printer


def serve(
    listen: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS:PORT",
            help="Address to listen on; port 0 uses a free port. Addresses other than loopback need a token or TLS.",
        ),
    ] = "127.0.0.1:7373",
    results: RESULTS = "ironbench-results",
    token_file: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="File with the access token of at least 16 characters; alternatively, set IRONBENCH_TOKEN.",
        ),
    ] = "",
    tls_certificate: Annotated[str, typer.Option(metavar="FILE", help="PEM file with the certificate for HTTPS.")] = "",
    tls_key: Annotated[str, typer.Option(metavar="FILE", help="PEM file with the private key.")] = "",
) -> int:
    from pathlib import Path

    from ironbench.serve import server
    from ironbench.serve.auth import access_policy

    found = access_policy(listen, token_file, tls_certificate, tls_key, os.environ.get("IRONBENCH_TOKEN", ""))
    return server.run(Path(results), found, Printer())
