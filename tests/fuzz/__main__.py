"""`python -m fuzz [INPUTS [SECONDS]]`, in `tests`: reads mutated inputs of every kind and prints a table of results."""

from __future__ import annotations

import sys

from fuzz.campaign import campaign, faults, table


def main() -> int:
    inputs = int(sys.argv[1]) if sys.argv[1:] else 100_000
    done = campaign(inputs, *(float(seconds) for seconds in sys.argv[2:3]))
    found = faults(done)
    print(table(done))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
