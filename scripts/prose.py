"""`make lint`: finds words and turns of phrase that this project no longer uses, in documentation and messages.

It reads README.md, CONTRIBUTING.md, docs (without reference pages), and the string literals of packages whose texts
users read. Known hits are listed in scripts/prose.allowed, which may only shrink: a new hit fails, and so does an entry
that no longer matches. `--write` writes the list again; `--count` shows the number of hits per pattern.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALLOWED = ROOT / "scripts" / "prose.allowed"
PACKAGES = "cli devices engines fields host lab plan records report serve trial workloads"
PATTERNS = {
    # Sentences that hide their subject.
    "opener": r"^(?:Of (?:a|an|the|what|those|these|each|its|all|every)\b|Whoever|Whatever|That of"
    r"|Those (?:of|that|who)|The one that|What (?!.*\?$)(?:is|are|was|were|has|had|a|an|the|it|they|one|no|nobody)\b)",
    "pronoun": r"^(?:it|its|those|they|theirs?|(?:both|none|each) (?:a|are|by|had|has|have|is|of|was|were)) ",
    "nobody": r"\b(?:nobody|no one|whoever|somebody|anybody|nothing (?:is|was|else|says|of)"
    r"|none of (?:them|it|these))\b",
    "of ours": r"\bof (?:ours|yours|theirs|its own|their own|one's own|others)\b",
    "that of": r"\b(?:is|are|was|were|and|than|with|to|by|as|from) (?:that|those) of\b",
    # Everyday verbs in a technical sense.
    "verb": r"\b(?:(?:is|are|was|were|be|being) (?:told|said|held|given up|taken away|asked for)|held (?:against|to)"
    r"|holds? back|said of|stands? (?:in|at|for|beside|behind|below)|bears?|tells? (?:of|from|apart)|lets? expect"
    r"|lies? (?:at|in|on|below|above)|(?:go|goes|going|gone|went) on\b|come to be|is due|takes? turns)\b",
    "again": r"\b(?:anew|afresh|begins? by itself|that runs already|runs already|to and fro|in turns)\b",
    "trailing": r", too\b(?=[.,;:)]|$)|(?<!let )\balone[.,;]",
    # Words for which the field has another name.
    "verdict": r"\bcannot (?:tell|be told)\b|\bfinds? (?:differences )?from\b|\bvoid(?:ed)?\b|\bsuspect\b"
    r"|\bcut[ -]short\b|\bgates? (?:is|are|was|stays?) (?:open|closed)\b|% intervals?\b",
    "doubt": r"\b(?:doubts?|doubtful|cautions?|remed(?:y|ies))\b",
    "private word": r"\b(?:free (?:log|device)s?|(?:dead|old) rows|garbage|bystanders?|run queue|internal locks?|verbs?"
    r"|balance sheets?|crews?|parcels?|catalogues?|A against A|a rate that is kept|share of the peak|reference scores?"
    r"|shelf|debt|ceilings?|spills?|spreads?(?! (?:over|across|out))|I/Os under way|frozen|order system|announced)\b",
    "cell": r"(?<!per )(?<!same )(?<!\[)\bcells?\b(?! by)",
    # Numbers.
    "times": r"× (?:faster|slower|as|equivalent)\b|\btimes (?:faster|slower)\b|\d ×(?! \d)",
    "number": r"[\dX][ \u202f\u00a0]%|\d\u202f\d",
}
COMPILED = {name: re.compile(text, re.IGNORECASE if name != "opener" else 0) for name, text in PATTERNS.items()}
CODE = re.compile(r"`[^`]*`|\]\([^)]*\)|<[^>]*>|\{[^}]*\}")
WORD = re.compile(r"[A-Za-z]{2,}")
NOT_PROSE = re.compile(
    r"datum\.|\b(?:SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|WITH|BEGIN)\b|^\s*(?:select|with|create|insert) "
)
BREAK = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\"(])|\s*\n\s*\n\s*")


def sentences(text: str) -> Iterator[tuple[bool, str]]:
    """Yields the sentences of a text, and whether each is the first."""
    for at, part in enumerate(BREAK.split(text.strip())):
        sentence = " ".join(part.split())
        if len(WORD.findall(sentence)) >= 3:
            yield at == 0, sentence


def patterns_of(first: bool, sentence: str) -> Iterator[str]:
    """Yields the names of the patterns that a sentence matches. Code does not count; a later sentence may begin with
    a pronoun, because its noun can be in the sentence before."""
    prose = CODE.sub("X", sentence)
    yield from (name for name, known in COMPILED.items() if (first or name != "pronoun") and known.search(prose))


def in_markdown(text: str) -> Iterator[tuple[bool, str]]:
    text = re.sub(r"^```.*?^```|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    for block in re.split(r"\n\s*\n", text):
        # A row of a table, a list item and a heading are separate texts.
        for item in re.split(r"\n(?=\s*(?:[-*|#]|\d+\.) ?)", block):
            for cell in item.split("|") if item.lstrip().startswith("|") else [item]:
                yield from sentences(re.sub(r"^\s*(?:[#>*-]+|\d+\.)\s+", "", cell))


def in_python(text: str) -> Iterator[tuple[bool, str]]:
    skipped: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))  # a docstring
        elif isinstance(node, ast.JoinedStr):
            skipped.update(id(part) for part in node.values)
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield from _of_literal("".join(str(part) for part in parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield from _of_literal(node.value)


def _of_literal(text: str) -> Iterator[tuple[bool, str]]:
    if " " in text.strip() and not NOT_PROSE.search(text):
        yield from sentences(text)


def hits() -> Iterator[tuple[str, str, str]]:
    """Yields path, pattern and sentence of every hit."""
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    modules = (path for name in PACKAGES.split() for path in (ROOT / "src" / "ironbench" / name).rglob("*.py"))
    for path in sorted([*pages, *modules]):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith("docs/reference/"):
            continue
        found = (in_markdown if path.suffix == ".md" else in_python)(path.read_text(encoding="utf-8"))
        for first, sentence in found:
            yield from ((name, pattern, sentence) for pattern in patterns_of(first, sentence))


def compared(found: Iterable[tuple[str, str, str]], allowed: Iterable[tuple[str, str, str]]) -> list[str]:
    """Returns a line for every hit that is not allowed, and for every allowed hit that no longer exists."""
    here, known = set(found), set(allowed)
    new = [f"{path}: {pattern}: {text}" for path, pattern, text in sorted(here - known)]
    return new + [f"no longer found, remove it from {ALLOWED.name}: {' | '.join(row)}" for row in sorted(known - here)]


def main(words: list[str]) -> int:
    found = sorted(set(hits()))
    if "--count" in words:
        for pattern, count in Counter(pattern for _, pattern, _ in found).most_common():
            sys.stdout.write(f"{count:5} {pattern}\n")
        return 0
    if "--write" in words:
        ALLOWED.write_text("".join("\t".join(row) + "\n" for row in found), encoding="utf-8")
        return 0
    rows = (line.split("\t") for line in ALLOWED.read_text(encoding="utf-8").splitlines())
    lines = compared(found, ((path, pattern, text) for path, pattern, text in rows))
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
