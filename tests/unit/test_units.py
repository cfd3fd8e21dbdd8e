"""Sizes and durations are read and written in one way; every quantity has a range, and each reader of it keeps that."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from ironbench import ranges, units
from ironbench.cli import VERBS, program
from ironbench.errors import InputError, MistakesError, in_a_file
from ironbench.plan import commands, labfile, resolve, sections
from ironbench.plan.sections import LoadSection, Sections, Size, Time
from ironbench.ranges import RANGES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30s", 30), ("10ms", 0.01), ("2m", 120), ("1h", 3600), ("5", 5), ("0.5s", 0.5), ("250us", 0.00025),
        ("2d", 172800), (1e-7, 1e-7), (30, 30), ("1_000", 1000), ("1__0s", 10),
    ],
)  # fmt: skip
def test_a_duration_is_read_in_seconds(text: str | float, expected: float) -> None:
    assert units.seconds("--duration", text) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("512MB", 512 * 10**6), ("2GB", 2 * 10**9), ("1.5gb", 15 * 10**8), ("4096", 4096), ("1GiB", 1 << 30),
        ("64K", 64 << 10), ("64kB", 64_000), ("1.5 MiB", 3 << 19), ("2T", 2 << 40), ("7B", 7), (65536, 65536),
    ],
)  # fmt: skip
def test_mb_is_a_million_bytes_and_mib_two_to_the_twentieth(text: str | int, expected: int) -> None:
    assert units.size("--memory", text) == expected


def test_a_size_means_the_same_in_an_option_a_data_sheet_and_a_device_expression() -> None:
    from ironbench.devices import models

    for written in ("64KB", "64KiB", "3MB", "3MiB", "2GB", "2GiB"):
        assert units.size("x", written) == units.figure("x", written)
        assert models.normal(f"hdd-7200(capacity={written})") == models.normal(
            f"hdd-7200(capacity={units.size('x', written)})"
        )


def test_postgresql_counts_in_powers_of_1024_and_a_bare_number_in_the_settings_unit() -> None:
    assert units.size_of_1024("max_wal_size", "1GB", bare=1 << 20) == 1 << 30
    assert units.size_of_1024("max_wal_size", "64", bare=1 << 20) == 64 << 20


@given(st.integers(0, 2**50))
def test_a_size_that_is_written_exactly_is_read_as_the_same(count: int) -> None:
    assert units.size("x", units.exact(count)) == count


@pytest.mark.parametrize(
    "text", ["soon", "-3s", "", "1.2.3s", "1e", "inf", "nan", "9" * 10_000, "1" * 60_000 + "!", "²s"]
)
def test_what_is_no_number_with_a_unit_is_refused_in_a_short_message(text: str) -> None:
    for read in (units.seconds, units.size, units.figure):
        with pytest.raises(InputError) as caught:
            read("--x", text)
        assert len(str(caught.value)) < 200


def below(known: ranges.Range) -> float:
    if known.above:
        return known.low
    return known.low - 1 if known.whole or known.unit == "bytes" else known.low - 1e-6


def within(known: ranges.Range) -> float:
    if known.above:
        return min(known.high, 0.5)
    return known.low


def above(known: ranges.Range) -> float:
    return int(known.high) + 1 if known.whole or known.unit == "bytes" else math.nextafter(known.high, math.inf)


@pytest.mark.parametrize("name", RANGES)
def test_a_quantity_is_taken_at_its_bounds_and_refused_beyond_them(name: str) -> None:
    known = RANGES[name]
    for value in (within(known), known.high):
        known.require(name, value)
    for value in (below(known), above(known), math.nan, math.inf, -math.inf):
        with pytest.raises(InputError, match="out of range"):
            known.require(name, value)
    known.require(name, ranges.read(name, name, known.example) if name != "figure" else 1)


def lab_text(section: str, field: str, value: object) -> str:
    number = (
        f'"{value:.12g}"' if isinstance(value, float) and field not in ("margin", "rate", "reference_score") else value
    )
    own = f"[{section}]\n{field} = {number}\n"
    more = '[load]\nduration = "1s"\n' if section != "load" else ""
    return (
        f'question = "?"\n[workload]\nname = "null"\n{own}{more}'
        '[vary.label]\na = { "system.label" = "a" }\nb = { "system.label" = "b" }\n'
    )


def fields() -> list[tuple[str, str]]:
    """Every field of a lab file that holds a number."""
    structs = {name: kind for name, kind in get_type_hints(Sections).items() if isinstance(kind, type)}
    structs["measure"] = labfile.MeasureSection
    found = []
    for section, struct in structs.items():
        if not issubclass(struct, msgspec.Struct):
            continue
        for name, kind in get_type_hints(struct).items():
            kinds = {kind, *get_args(kind)} - {bool}
            if kinds & {int, float, *get_args(Time), *get_args(Size)} - {str}:
                found.append((section, name))
    return found


@pytest.mark.parametrize(("section", "field"), [one for one in fields() if not one[1].endswith("_cpus")])
def test_every_number_of_a_lab_file_has_a_range_that_is_kept(section: str, field: str) -> None:
    known = RANGES[field]

    def read(value: float) -> None:
        declared = labfile.read(lab_text(section, field, value), "x.toml")
        if section in ("system", "limits", "load", "commands"):
            cell = msgspec.convert(declared.base, Sections)
            with in_a_file():
                resolve.system(cell, "x", Path("/"), (0,))
                resolve.load(cell.load, 1)
                commands.read(cell.commands, "trial")

    def kept(value: float) -> float:
        return int(value) if known.whole or known.unit == "bytes" else value

    if (section, field) != ("measure", "stages"):
        for value in (within(known), known.high):
            read(kept(value))
    for value in (below(known), kept(known.high) + 1 if known.whole else known.high * 1.001):
        with pytest.raises((InputError, MistakesError)) as caught:
            read(kept(value))
        assert field in str(caught.value)


def numeric_options() -> list[tuple[str, Any]]:
    """Every option of the program whose value is a number, a size or a time: by its kind or what help calls it."""
    found: list[tuple[str, Any]] = []

    def walk(command: Any, path: str) -> None:
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, f"{path} {name}")
        for parameter in command.params:
            if not hasattr(parameter, "type_descriptor") or not parameter.opts[0].startswith("-"):
                continue
            kinds = {parameter.type_descriptor.annotation, *get_args(parameter.type_descriptor.annotation)}
            numeric = bool(kinds & {int, float}) or parameter.metavar in ("N", "SIZE", "TIME", "SHARE")
            if numeric or parameter.name in ("duration", "warmup", "think_time", "clients"):
                found.append((f"{path} {parameter.opts[0]}".strip(), parameter))

    walk(typer.main.get_command(program(VERBS)), "")
    return found


@pytest.mark.parametrize(("option", "parameter"), numeric_options(), ids=[name for name, _ in numeric_options()])
def test_every_number_on_the_command_line_has_a_range(option: str, parameter: Any) -> None:
    quantity = {"more": "blocks"}.get(parameter.name, parameter.name)
    assert quantity in RANGES, f"{option}: give it a range in ironbench/ranges.py"
    known = RANGES[quantity]
    parse = parameter.type_descriptor.parameter_info.parser
    if parse is None:  # text, read when the verb runs: see the test of a run
        assert parameter.type_descriptor.annotation is str, f"{option}: read it by cli.mistakes.whole or number"
        return
    for value in (below(known), above(known)):
        with pytest.raises(InputError, match="out of range"):
            parse(str(value))


@pytest.mark.parametrize(
    ("option", "quantity"),
    [
        ("--duration", "duration"), ("--warmup", "warmup"), ("--think-time", "think_time"), ("--rate", "rate"),
        ("--checkpoint", "checkpoint"), ("--memory", "memory"), ("--memory-total", "memory_total"),
        ("--capacity", "capacity"), ("--clients", "clients"), ("--threads", "threads"), ("--repeats", "repeats"),
        ("--transactions", "transactions"), ("--max-tries", "max_tries"), ("--seed", "seed"),
        ("--reference-score", "reference_score"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("side", [below, above])
def test_a_run_refuses_what_is_out_of_range_before_anything_starts(option, quantity, side, capsys, monkeypatch) -> None:
    from ironbench.cli import main

    known = RANGES[quantity]
    value = side(known)
    if value < 0 and known.unit:
        return  # a minus is no duration and no size: test_what_is_no_number_with_a_unit
    text = f"{int(value)}" if known.unit == "bytes" or known.whole else f"{value:.17g}"
    extra = ["--data", "ram"] if option == "--capacity" else []
    monkeypatch.setattr("sys.argv", ["ironbench", "run", "select-only", f"{option}={text}", *extra])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert option in said and "out of range" in said


def test_a_search_keeps_the_range_of_what_it_searches() -> None:
    from ironbench.plan import sweep

    for clients, rate in (("auto:1-10001", None), ("1", "auto:1-9999999999"), ("auto:1-" + "9" * 5000, None)):
        with pytest.raises(InputError):
            sweep.search(clients, rate, (), 1)


@pytest.mark.parametrize("text", ["0-4294967296", "999999999999999999999", "3-1", "0-", "a", "²"])
def test_a_list_of_cpus_is_held_against_those_that_are_there_and_costs_no_memory(text: str) -> None:
    with pytest.raises(InputError):
        resolve.cpus("--server-cpus", text, range(4))


def test_a_cpu_set_is_read_as_taskset_writes_it() -> None:
    assert resolve.cpus("--server-cpus", "0-2,5", range(8)) == (0, 1, 2, 5)


def test_counts_keep_their_order() -> None:
    assert resolve.counts("clients", "--clients", "8,1,4") == (8, 1, 4)


@pytest.mark.parametrize(
    ("read", "cause"),
    [
        (lambda: resolve.counts("clients", "--clients", "1,two"), "not a whole number"),
        (lambda: resolve.counts("clients", "--clients", "2,2"), "twice"),
        (lambda: resolve.cpus("--server-cpus", "9", range(2)), "not available"),
        (lambda: resolve.cpus("--server-cpus", "a", range(2)), "not a CPU"),
        (lambda: resolve.pairs("--set", ["fsync"]), "not KEY=VALUE"),
    ],
)
def test_nonsense_is_refused_with_subject_cause_and_way_out(read, cause) -> None:
    with pytest.raises(InputError) as caught:
        read()
    assert caught.value.subject.startswith("--")
    assert cause in caught.value.cause
    assert caught.value.hint


def test_a_load_of_a_lab_is_resolved_in_base_units() -> None:
    found = resolve.load(LoadSection(duration="2m", think_time="5ms", checkpoint="10s"), 1)
    assert (found.duration_s, found.think_time_s, found.checkpoint_s) == (120.0, 0.005, 10.0)
    assert sections.within("reference_score") == {"gt": 0.0, "le": 1e12}
