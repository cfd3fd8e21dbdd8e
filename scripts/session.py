"""`make session`: records docs/img/session.svg: ironbench in a terminal, from a check of the machine to a verdict.

The commands run here and now, in a pseudo-terminal (about two minutes); the picture shows what they printed, nothing
else. The picture is an animation; a viewer without animations shows the last screen.
"""

from __future__ import annotations

import fcntl
import html
import os
import re
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "img" / "session.svg"
LAB = """\
question = "What does a flush at every commit cost SQLite?"
workload.name = "simple-update"
system.engine = "sqlite"
load = { duration = "2s", warmup = "500ms" }
vary.system.set.synchronous = ["full", "normal"]
measure = { rates = "none", quiet = "1s", seed = 1 }
"""
SCREENS: list[tuple[list[str], float]] = [
    (["ironbench doctor"], 6.0),
    (["cat commit.toml", "ironbench lab plan commit.toml"], 8.0),
    (["ironbench lab run commit.toml --results commit", "ironbench report commit -o report.html"], 12.0),
]
"""Commands of each screen, and the seconds that its last state is shown."""
COLUMNS, SNAPSHOTS = 108, 4
CELL, LINE, MARGIN = 8.0, 18, 16
"""Width of a character, height of a line, and margin, in pixels."""
MEASURED = (0, 3)
"""Exit codes of a command that ran to its end. 3: finished, but flagged."""
ESCAPE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]")
OTHER_COLOURS = re.compile(r"[34]8;(?:5;\d+|2;\d+;\d+;\d+)")
STYLES = {"1": "b", "2": "d", **{f"{tens}{one}": f"c{one}" for tens in (3, 9) for one in range(8)}}


class Screen:
    """A minimal terminal: interprets the output of programs as far as ironbench needs, and stores the visible lines."""

    def __init__(self) -> None:
        self.rows: list[list[tuple[str, str]]] = [[]]
        self.row = self.column = 0
        self.style = ""
        self._rest = ""

    def write(self, text: str) -> None:
        text, at = self._rest + text, 0
        # An escape sequence may continue in the next piece.
        cut = text.rfind("\x1b")
        self._rest = text[cut:] if cut >= 0 and not ESCAPE.match(text, cut) else ""
        text = text[: len(text) - len(self._rest)]
        for found in ESCAPE.finditer(text):
            self._print(text[at : found.start()])
            self._control(found[1] or "", found[2] or "")
            at = found.end()
        self._print(text[at:])

    def _print(self, text: str) -> None:
        for char in text:
            if char == "\n":
                self._move(self.row + 1, self.column)
            elif char == "\r":
                self.column = 0
            elif char >= " ":
                if self.column == COLUMNS:
                    self._move(self.row + 1, 0)
                line = self.rows[self.row]
                line += [(" ", "")] * (self.column + 1 - len(line))
                line[self.column] = (char, self.style)
                self.column += 1

    def _control(self, numbers: str, letter: str) -> None:
        count = int(numbers) if numbers.isdigit() else 0
        if letter == "A":
            self._move(max(self.row - (count or 1), 0), self.column)
        elif letter == "G":
            self.column = max(count - 1, 0)
        elif letter == "K":
            self.rows[self.row] = [] if count == 2 else self.rows[self.row][: self.column]
        elif letter == "m":
            plain = OTHER_COLOURS.sub("", numbers).split(";")
            self.style = " ".join(STYLES[one] for one in plain if one in STYLES)

    def _move(self, row: int, column: int) -> None:
        self.row, self.column = row, column
        self.rows += [[] for _ in range(row + 1 - len(self.rows))]

    def copy(self) -> list[list[tuple[str, str]]]:
        rows = [list(line) for line in self.rows]
        while rows and not rows[-1]:
            rows.pop()
        return rows


@dataclass(frozen=True, slots=True)
class Frame:
    rows: list[list[tuple[str, str]]]
    seconds: float


def recorded(folder: Path) -> Iterator[Frame]:
    """Runs the commands in a folder and yields what the terminal shows."""
    (folder / "commit.toml").write_text(LAB)
    for commands, seconds in SCREENS:
        screen, seen = Screen(), []
        for command in commands:
            screen.write(f"\x1b[1m$ {command}\x1b[0m\r\n")
            seen.append(screen.copy())
            run(command, folder, screen, lambda seen=seen, screen=screen: seen.append(screen.copy()))
        *before, last = seen
        chosen = before[:: max(len(before) // SNAPSHOTS, 1)][:SNAPSHOTS]
        yield from (Frame(rows, 1.0) for rows in chosen)
        yield Frame(last if last == screen.copy() else screen.copy(), seconds)


def run(command: str, folder: Path, screen: Screen, changed: Callable[[], None]) -> None:
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
    paths = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    hidden = {"IRONBENCH_RESULTS", "COLUMNS", "LINES", "NO_COLOR"}
    variables = {name: value for name, value in os.environ.items() if name not in hidden}
    variables |= {"PATH": paths, "TERM": "xterm-256color", "IRONBENCH_DATA": str(folder / "data")}
    process = subprocess.Popen(
        ["/bin/sh", "-c", command], cwd=folder, stdin=slave, stdout=slave, stderr=slave, env=variables
    )
    os.close(slave)
    due = time.monotonic() + 1
    while piece := _read(master):
        screen.write(piece.decode(errors="replace"))
        if time.monotonic() > due:
            changed()
            due += 1
    os.close(master)
    changed()
    if process.wait() not in MEASURED:
        text = "\n".join("".join(char for char, _ in line) for line in screen.rows)
        raise SystemExit(f"exit code {process.returncode} of: {command}\n{text}")


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # every process that had the terminal has ended
        return b""


STYLE = """
text { font: 13px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #e6edf3; white-space: pre }
.b { font-weight: bold } .d { opacity: .65 } .c1 { fill: #ff7b72 } .c2 { fill: #7ee787 } .c3 { fill: #f2cc60 }
.c4 { fill: #79c0ff } .c5 { fill: #d2a8ff } .c6 { fill: #76e3ea }
"""


def picture(frames: list[Frame]) -> str:
    """Returns the SVG: a dark terminal with a border, which reads well on light and dark pages."""
    total = sum(frame.seconds for frame in frames)
    width = round(COLUMNS * CELL + 2 * MARGIN)
    height = max(len(frame.rows) for frame in frames) * LINE + 2 * MARGIN
    rules, groups, begin = [STYLE], [], 0.0
    for number, frame in enumerate(frames):
        end = begin + frame.seconds
        first, last = (f"{100 * at / total:.2f}%" for at in (begin, end))
        # Only the last screen is visible without the animation.
        usual = int(number == len(frames) - 1)
        rules.append(
            f"@keyframes k{number} {{ 0% {{ opacity: {int(number == 0)} }} {first} {{ opacity: 1 }} "
            f"{last} {{ opacity: {usual} }} }}\n"
            f"#f{number} {{ opacity: {usual}; animation: k{number} {total:g}s step-end infinite }}"
        )
        lines = "".join(_line(line, MARGIN + LINE * (at + 0.75)) for at, line in enumerate(frame.rows))
        groups.append(f'<g id="f{number}">{lines}</g>')
        begin = end
    rules.append("@media (prefers-reduced-motion: reduce) { g { animation: none !important } }")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">\n'
        f"<title>A terminal session with ironbench</title>\n<style>{chr(10).join(rules)}</style>\n"
        f'<rect x="1" y="1" width="{width - 2}" height="{height - 2}" rx="8" fill="#0d1117" stroke="#8b949e"/>\n'
        + "\n".join(groups)
        + "\n</svg>\n"
    )


def _line(line: list[tuple[str, str]], y: float) -> str:
    """Returns a line as SVG. Every run of characters of one style is positioned separately, so that columns stay
    aligned in any font."""
    texts, at = [], 0
    while at < len(line):
        style, end = line[at][1], at
        while end < len(line) and line[end][1] == style:
            end += 1
        text = "".join(char for char, _ in line[at:end])
        start = at + len(text) - len(text.lstrip())
        text, at = text.strip(), end
        if text:
            kind = f' class="{style}"' if style else ""
            length = f'textLength="{len(text) * CELL:g}" lengthAdjust="spacingAndGlyphs"'
            texts.append(
                f'<text x="{MARGIN + start * CELL:g}" y="{y:g}" {length}{kind}>{html.escape(text, quote=False)}</text>'
            )
    return "".join(texts)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        frames = list(recorded(Path(folder)))
    PICTURE.write_text(picture(frames), encoding="utf-8")
    sys.stderr.write(f"written: {PICTURE.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
