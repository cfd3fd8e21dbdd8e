"""Where the program begins: `--help` is answered at once, anything else by the command line.

Importing the command line parser takes longer than a person should wait for a page of help (0.13 s of 0.18 s here). The
page is written by `make docs` from that parser, and a test holds it to it.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

HELP = Path(__file__).parent / "cli" / "help.txt"


def main() -> None:
    if sys.argv[1:] == ["--help"]:
        from ironbench import streams
        from ironbench.errors import FailureError

        streams.prepare()
        written = False
        with suppress(OSError, FailureError):  # full, or closed by whoever started us
            sys.stdout.write(HELP.read_text(encoding="utf-8"))
            sys.stdout.flush()
            written = True
        sys.exit(0 if streams.ended() and written else 1)
    from ironbench.cli import main as run

    run()


if __name__ == "__main__":
    main()
