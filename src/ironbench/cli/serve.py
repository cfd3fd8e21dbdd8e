"""`ironbench serve`: labs and results in a browser."""

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
            metavar="ADDRESS:PORT", help="Where to listen; port 0 takes a free one. Others need a token or TLS."
        ),
    ] = "127.0.0.1:7373",
    results: RESULTS = "ironbench-results",
    token_file: Annotated[
        str, typer.Option(metavar="FILE", help="A token of your own, 16 characters or more; or IRONBENCH_TOKEN.")
    ] = "",
    tls_certificate: Annotated[str, typer.Option(metavar="FILE", help="PEM file: the server speaks HTTPS.")] = "",
    tls_key: Annotated[str, typer.Option(metavar="FILE", help="PEM file of its key.")] = "",
) -> int:
    from pathlib import Path

    from ironbench.serve import server
    from ironbench.serve.auth import access_policy

    found = access_policy(listen, token_file, tls_certificate, tls_key, os.environ.get("IRONBENCH_TOKEN", ""))
    return server.run(Path(results), found, Printer())
