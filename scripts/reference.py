"""Generates docs/reference from the program itself, so that it stays accurate. `--check` only compares."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import manual

if TYPE_CHECKING:
    from ironbench.cli.other_programs import OtherOption

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "reference"
HELP = ROOT / "src" / "ironbench" / "cli" / "help.txt"
MANUAL = ROOT / "packaging" / "data" / "share" / "man" / "man1" / "ironbench.1"
NOTE = "<!-- Written by `make docs`; edit the program, not this page. -->\n"


def pages() -> dict[Path, str]:
    """Returns the content of each generated page, by the page's path."""
    written = {
        "command-line.md": command_line(),
        "other-programs.md": other_programs(),
        "metrics.md": metrics(),
        "workloads.md": workloads(),
        "engines.md": engines(),
        "observers.md": observers(),
        "devices.md": devices(),
        "lab-file.md": lab_file(),
    }
    found = {FOLDER / name: NOTE + text for name, text in written.items()}
    return found | {HELP: help_page(), MANUAL: manual.page(), FOLDER / "lab-file.schema.json": lab_schema()}


def help_page() -> str:
    """Returns the output of `ironbench --help` on a terminal with 80 columns."""
    import typer.main

    from ironbench.cli import program

    command = typer.main.get_command(program(()))
    return command.get_help(typer.Context(command, info_name="ironbench", terminal_width=78)) + "\n"


def command_line() -> str:
    import typer.main

    from ironbench.cli import VERBS, program
    from ironbench.fields.row import optional
    from ironbench.fields.run import RunFile

    group = typer.main.get_command(program(VERBS))
    declared = {field.attribute: field for field in optional(RunFile)}
    parts = [
        "# Command line",
        "",
        "Sizes: MB is 10⁶ bytes, and MiB is 2²⁰ bytes; kB, GB and TB are used in the same way. Units of durations are",
        "`us`, `ms`, `s`, `m`, `h`, `d`.",
        "",
    ]
    codes = ", ".join(f"{code} {meaning}" for code, meaning in manual.EXIT_CODES.items())
    parts += [*textwrap.wrap(f"Exit codes: {codes}.", 108), ""]
    for name, command in _verbs(group):
        parts += [
            f"## ironbench {name}",
            "",
            command.help.strip(),
            "",
            "| option | meaning | default |",
            "|---|---|---|",
        ]
        for parameter in command.params:
            if parameter.name == "help":
                continue
            parts.append(_parameter(parameter, declared.get(parameter.name) if name == "run" else None))
        parts.append("")
    return "\n".join(parts)


def _verbs(group: object, before: str = "") -> list[tuple[str, object]]:
    """Returns every command by its full name; commands of a group follow each other."""
    found: list[tuple[str, object]] = []
    for name, command in sorted(group.commands.items()):  # type: ignore[attr-defined]
        inner = hasattr(command, "commands")
        found += _verbs(command, f"{before}{name} ") if inner else [(f"{before}{name}", command)]
    return found


def _parameter(parameter: object, field: object) -> str:
    """Returns a row of the table of options; `field`: the entry in the table of fields, if the option has one."""
    names = ", ".join(f"`{one}`" for one in (*parameter.opts, *parameter.secondary_opts))  # type: ignore[attr-defined]
    if parameter.param_type_name == "argument":  # type: ignore[attr-defined]
        names = f"`{(parameter.name or '').upper()}`"  # type: ignore[attr-defined]
    default = getattr(parameter, "default", None)
    shown = "" if default in (None, "", False, []) or callable(default) else f"`{default}`"
    about = getattr(parameter, "help", "") or ""
    if field is not None:
        about, shown = field.row.help, field.usual  # type: ignore[attr-defined]
    return f"| {names} | {about.replace('|', chr(92) + '|')} | {shown} |"


def other_programs() -> str:
    """Returns the page that maps options of other programs to options of ironbench. tests/docs makes a dry run of each
    example command."""
    from ironbench.cli.other_programs import programs

    parts = [
        "# Options of pgbench, sysbench and HammerDB",
        "",
        "If you call `ironbench run` with an option of pgbench, sysbench or HammerDB, the error message shows the",
        "corresponding option of ironbench:",
        "",
        "```",
        "$ ironbench run tpcb-like -c 8 -j 2 -T 60",
        "error: -c: unknown option of ironbench run",
        "  hint: -c, -j, -T are options of pgbench; instead, use --clients 8 --threads 2 --duration 60s",
        "```",
        "",
        "Without `--dsn`, ironbench starts a server. `ironbench run` loads the data of a workload before the",
        "first trial, warms up before each trial (for 5 s by default, 10 s with `tpcc`, none with `tpch`), and checks",
        "the results after each trial. No separate commands are needed.",
        "",
    ]
    for program in programs():
        parts += [f"## {program.name}", "", "```", program.example.strip(), "```", ""]
        parts += [f"| {program.name} | `ironbench run` | remarks |", "|---|---|---|"]
        parts += map(_other_option, program.options)
        parts.append("")
    return "\n".join(parts)


def _other_option(option: OtherOption) -> str:
    names = ", ".join(f"`{name}`" for name in option.names)
    value = f" {option.value}" if option.value else ""
    remark = option.remark
    if not option.equivalent:
        remark = remark[:1].upper() + remark[1:] + "."
    equivalent = f"`{option.equivalent.replace('{}', option.value)}`" if option.equivalent else "–"
    return f"| {names}{value} | {equivalent} | {remark.replace('|', chr(92) + '|')} |"


def metrics() -> str:
    from ironbench import catalogue

    rows = [f"| `{m.name}` | {m.unit} | {m.better} | {m.doc} | {m.source} |" for m in catalogue.metrics().values()]
    head = [
        "# Metrics",
        "",
        "Some metrics have separate values for each script or for each directory. The name of the script or the role",
        "of the directory is then written in braces after the name of the metric: `name{script=…}`, `name{role=…}`.",
        "",
    ]
    return "\n".join([*head, "| metric | unit | better | meaning | source |", "|---|---|---|---|---|", *rows, ""])


def _default(value: str) -> str:
    return f"`{value}`" if value else "–"


def workloads() -> str:
    from ironbench import workloads as known

    parts = ["# Workloads", ""]
    for name in known.names():
        one = known.get(name)
        parts += [f"## {name}", "", one.doc, ""]
        if one.derived:
            parts += [f"*{one.derived}*", ""]
        parts += [f"Runs on: {', '.join(one.engines)}.", ""]
        if one.options:
            parts += ["| option (`--with`) | meaning | default |", "|---|---|---|"]
            parts += [f"| `{option.name}` | {option.doc} | {_default(option.default)} |" for option in one.options]
            parts.append("")
    return "\n".join(parts)


def engines() -> str:
    from ironbench import engines as known
    from ironbench.engines.base import ABILITIES

    parts = ["# Engines", ""]
    for one in known.with_variants():
        traits = one.traits
        parts += [f"## {one.name}", "", traits.doc, ""]
        if traits.abilities:
            parts += [f"Abilities: {', '.join(sorted(traits.abilities))}.", ""]
    parts += [
        "# Abilities",
        "",
        "A workload runs on every engine that has all the abilities that the workload needs.",
        "",
    ]
    parts += ["| ability | meaning |", "|---|---|", *(f"| {name} | {text} |" for name, text in ABILITIES.items()), ""]
    return "\n".join(parts)


def observers() -> str:
    from ironbench.trial import observe

    parts = ["# Observers", ""]
    for one in observe.observers():
        parts += [f"## {one.name}", "", one.doc, ""]
    return "\n".join(parts)


def devices() -> str:
    from ironbench.devices import reference

    return reference.page()


def lab_file() -> str:
    from ironbench.plan import reference

    return reference.page()


def lab_schema() -> str:
    from ironbench.plan import reference

    return reference.schema()


def main() -> int:
    stale = []
    for path, content in pages().items():
        if path.exists() and path.read_text() == content:
            continue
        stale.append(path.name)
        if "--check" not in sys.argv:
            path.write_text(content)
    if stale:
        sys.stderr.write(f"{'stale' if '--check' in sys.argv else 'written'}: {', '.join(stale)}\n")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
