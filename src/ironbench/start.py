"""Where the program begins: `--help` is answered at once, anything else by the command line.

Importing the command line parser takes longer than a person should wait for a page of help (0.13 s of 0.18 s here). The
page is written by `make docs` from that parser, and a test holds it to it.
"""

from __future__ import annotations

import sys
from pathlib import Path

HELP = Path(__file__).parent / "cli" / "help.txt"


def main() -> None:
    if sys.argv[1:] == ["--help"]:
        sys.stdout.write(HELP.read_text(encoding="utf-8"))
        return
    from ironbench.cli import main as run

    run()


if __name__ == "__main__":
    main()
