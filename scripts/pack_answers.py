"""Packs the answers that `ironbench run tpch` checks against, from the answers of two engines.

    ironbench run tpch --with sf=1 --with answers=A
    ironbench run tpch --with sf=1 --engine duckdb --with answers=B
    python scripts/pack_answers.py 1 A B

Fails if the engines disagree. Prints differences from the answers in further directories, if any are named.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ironbench.workloads.tpch import answers, texts, validation
from ironbench.workloads.tpch.answers import QueryAnswer

STORED = Path(validation.__file__).with_name("expected")


def differences(expected: dict[int, QueryAnswer], found: dict[int, QueryAnswer]) -> list[str]:
    told = ((query, answers.difference(query, expected[query], found[query])) for query in expected)
    return [f"{texts.name(query)}: {text}" for query, text in told if text]


def main(scale: str, *folders: str) -> int:
    first, second, *others = (dict(validation.from_folder(Path(folder))) for folder in folders)
    if apart := differences(first, second):
        sys.stderr.write("the engines do not agree\n" + "\n".join(apart) + "\n")
        return 1
    for folder, other in zip(folders[2:], others, strict=True):
        apart = differences(other, first)
        sys.stdout.write(f"{folder}: {22 - len(apart)} of 22 equal\n" + "".join(f"  {text}\n" for text in apart))
    file = STORED / f"sf{scale}.json.xz"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(validation.packed(first))
    sys.stdout.write(f"{file}: {file.stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
