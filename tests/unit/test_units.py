"""Sizes and durations are read and written in one way; every quantity has a range that each reader checks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from ironbench import units
from ironbench.catalogue.prices import Price
from ironbench.cli import VERBS, program
from ironbench.errors import InputError
from ironbench.fields.check import mistakes, text, without
from ironbench.fields.lab import LabFile, range_of
from ironbench.fields.row import optional, table
from ironbench.fields.run import RunFile
from ironbench.fields.sections import LoadSection
from ironbench.plan import labfile, resolve
from ironbench.plan.offers import _OfferRow
from ironbench.ranges import Range


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
        assert models.normalized(f"hdd-7200(capacity={written})") == models.normalized(
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


def below(known: Range) -> float:
    if known.above:
        return known.low
    return known.low - 1 if known.whole or known.unit == "bytes" else known.low - 1e-6


def within(known: Range) -> float:
    if known.above:
        return min(known.high, 0.5)
    return known.low


def above(known: Range) -> float:
    return int(known.high) + 1 if known.whole or known.unit == "bytes" else math.nextafter(known.high, math.inf)


def ranges_of(file: type[msgspec.Struct], before: str = "") -> Iterator[tuple[str, Range]]:
    """Yields every field with a range, by its path, in sections and devices."""
    for name, one in table(file).items():
        struct = one.section or one.entries
        if struct:
            yield from ranges_of(struct, f"{before}{name}.")
        elif one.row.range:
            yield before + name, one.row.range


RANGES = dict([*ranges_of(LabFile), *ranges_of(RunFile), *ranges_of(Price), *ranges_of(_OfferRow)])


@pytest.mark.parametrize("name", RANGES)
def test_a_quantity_is_taken_at_its_bounds_and_refused_beyond_them(name: str) -> None:
    known = RANGES[name]
    for value in (within(known), known.high):
        known.require(name, value)
    for value in (below(known), above(known), math.nan, math.inf, -math.inf):
        with pytest.raises(InputError, match="out of range"):
            known.require(name, value)
    known.require(name, known.read(name, known.example))


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


def numbers(file: type[msgspec.Struct]) -> list[str]:
    """Returns the paths of the fields of a lab file that contain a number."""
    sections = {name: one.section for name, one in table(file).items() if one.section}
    found = {f"{name}.{field}": one for name, section in sections.items() for field, one in table(section).items()}
    return [path for path, one in found.items() if {int, float} & set(one.kinds) and not path.endswith("_cpus")]


@pytest.mark.parametrize("path", numbers(LabFile))
def test_every_number_of_a_lab_file_has_a_range_that_is_kept(path: str) -> None:
    known, (section, field) = range_of(path), path.split(".")

    def read(value: float) -> None:
        labfile.read(lab_text(section, field, value), "x.toml")

    def kept(value: float) -> float:
        return int(value) if known.whole or known.unit == "bytes" else value

    if field != "stages":
        for value in (within(known), known.high):
            read(kept(value))
    for value in (below(known), kept(known.high) + 1 if known.whole else known.high * 1.001):
        with pytest.raises(InputError) as caught:
            read(kept(value))
        assert field in str(caught.value)


def test_a_field_that_takes_a_search_or_a_curve_names_both_beside_a_number() -> None:
    (found,) = mistakes({"load": {"clients": "many"}}, LabFile)
    assert found.hint == "write for example 8, auto:1-64 or ramp:1-64/60s"


def test_mistakes_are_values_with_path_cause_and_hint() -> None:
    document = {"system": {"memroy": "1GB", "log": "/a"}, "load": {"threads": 0, "duration": "soon", "clients": True}}
    found = {text(one.path): one for one in mistakes(document, LabFile)}
    assert set(found) == {"system.memroy", "system.log", "load.threads", "load.duration", "load.clients"}
    assert found["system.memroy"].hint == "did you mean memory?"
    assert found["system.log"].hint == "`log` belongs to [layout]"
    assert all(one.cause and one.hint for one in found.values())


@given(st.dictionaries(st.sampled_from(numbers(LabFile)), st.floats() | st.integers() | st.text(max_size=8)))
def test_what_has_no_mistake_is_read_and_what_has_one_is_not_in_the_rest(values: dict[str, Any]) -> None:
    document: dict[str, Any] = {}
    for path, value in values.items():
        section, field = path.split(".")
        document.setdefault(section, {})[field] = value
    rest = without(document, (one.path for one in mistakes(document, LabFile)))
    assert mistakes(rest, LabFile) == []
    msgspec.convert(rest, LabFile)


def numeric_options() -> list[tuple[str, Any]]:
    """Returns every option whose value is a number, a size or a duration, by its type or its help."""
    found: list[tuple[str, Any]] = []

    def walk(command: Any, path: str) -> None:
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, f"{path} {name}")
        for parameter in command.params:
            if not hasattr(parameter, "type_descriptor") or not parameter.opts[0].startswith("-"):
                continue
            kinds = {parameter.type_descriptor.annotation, *get_args(parameter.type_descriptor.annotation)}
            numeric = bool(kinds & {int, float}) or parameter.metavar in ("N", "SIZE", "TIME", "SHARE")
            if numeric:
                found.append((f"{path} {parameter.opts[0]}".strip(), parameter))

    walk(typer.main.get_command(program(VERBS)), "")
    return found


@pytest.mark.parametrize(("option", "parameter"), numeric_options(), ids=[name for name, _ in numeric_options()])
def test_every_number_on_the_command_line_has_a_range(option: str, parameter: Any) -> None:
    parse = parameter.type_descriptor.parameter_info.parser
    if parse is None:  # text, parsed when the command runs, by the range of its field
        assert str in {parameter.type_descriptor.annotation, *get_args(parameter.type_descriptor.annotation)}
        assert any(path.endswith(f".{parameter.name}") for path in RANGES), f"{option}: no field is called so"
        return
    for value in ("-1", "1e30"):
        with pytest.raises(InputError, match=r"out of range|not a whole number"):
            parse(value)


@pytest.mark.parametrize("field", [one for one in optional(RunFile) if one.row.range], ids=lambda one: one.name)
@pytest.mark.parametrize("side", [below, above])
def test_a_run_refuses_what_is_out_of_range_before_anything_starts(field, side, capsys, monkeypatch) -> None:
    from ironbench.cli import main

    known, option = field.row.range, field.options[0]
    value = side(known)
    if value < 0 and known.unit:
        return  # a minus is no duration and no size: test_what_is_no_number_with_a_unit
    text = f"{int(value)}" if known.unit == "bytes" or known.whole else f"{value:.17g}"
    monkeypatch.setattr("sys.argv", ["ironbench", "run", "select-only", f"{option}={text}"])
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
    assert resolve.counts("load.clients", "--clients", "8,1,4") == (8, 1, 4)


@pytest.mark.parametrize(
    ("read", "cause"),
    [
        (lambda: resolve.counts("load.clients", "--clients", "1,two"), "not a whole number"),
        (lambda: resolve.counts("load.clients", "--clients", "2,2"), "twice"),
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


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ("aws-io2(iops=32KB,rate=1G)", "aws-io2(iops=32000,rate=1G)"),
        ("raid0(aws-gp3(iops=4K),aws-gp3(iops=3001))", "raid0(aws-gp3(iops=4096),aws-gp3(iops=3001))"),
        ("hdd-7200", "hdd-7200"),
    ],
)
def test_the_iops_of_a_device_are_shown_as_a_number(recorded: str, shown: str) -> None:
    assert units.device(recorded) == shown
