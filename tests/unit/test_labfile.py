"""A lab file is read correctly, or its errors are located."""

from __future__ import annotations

from typing import Any

import pytest

from ironbench import errors
from ironbench.errors import InputError
from ironbench.plan import design, labfile

START = 'question = "Does it matter?"\n[workload]\nname = "igen-oltp"\n'
CLIENTS = '[vary]\n"load.clients" = [1, 2, 4]\n'


def read(text: str) -> labfile.DeclaredLab:
    return labfile.read(START + text, "labs/x.toml")


def refused(text: str, *, start: str = START) -> InputError:
    with pytest.raises(InputError) as caught:
        declared = labfile.read(start + text, "labs/x.toml")
        design.cells(declared)
    assert caught.value.hint
    return caught.value


def names(text: str) -> list[str]:
    return [cell.name for cell in design.cells(read(text))]


def sections(text: str) -> list[Any]:
    return [cell.sections for cell in design.cells(read(text))]


def test_one_at_a_time_leaves_every_other_factor_at_its_first_level() -> None:
    found = names(CLIENTS + '"system.memory" = ["1GB", "2GB"]\n')
    assert found == [
        "clients=1 memory=1GB",
        "clients=2 memory=1GB",
        "clients=4 memory=1GB",
        "clients=1 memory=2GB",
    ]


def test_a_full_design_has_every_combination() -> None:
    declared = labfile.read('design = "full"\n' + START + CLIENTS + '"system.memory" = ["1GB", "2GB"]\n', "x.toml")
    cells = design.cells(declared)
    assert len(cells) == 6 == design.number_of_cells(declared)
    pairs = design.comparisons(declared, cells)
    assert ("clients=4 memory=2GB", "clients=1 memory=2GB") in pairs
    assert ("clients=4 memory=2GB", "clients=4 memory=1GB") in pairs
    assert len(pairs) == 4 + 3


def test_short_names_quoted_paths_and_dotted_keys_mean_the_same_field() -> None:
    for written in ("clients = [1, 2, 4]", '"load.clients" = [1, 2, 4]', "load.clients = [1, 2, 4]"):
        assert [one.load.clients for one in sections(f"[vary]\n{written}\n")] == [1, 2, 4]


def test_a_named_level_sets_any_fields() -> None:
    text = """
        [system.set]
        work_mem = "4MB"
        [vary.memory]
        "48 GB" = { memory = "480MB", load.cache = "warm", set = { work_mem = "8MB", "a.b" = true } }
        "24 GB" = { memory = "240MB" }
    """
    first, second = sections(text)
    assert (first.system.memory, first.load.cache) == ("480MB", "warm")
    assert first.system.set == {"work_mem": "8MB", "a.b": True}
    assert (second.system.memory, second.load.cache, second.system.set) == ("240MB", "", {"work_mem": "4MB"})


def test_a_setting_with_a_dot_in_its_name_needs_no_quotes() -> None:
    first, second = sections("[system.set]\nauto_explain.log_timing = true\n[vary]\nsystem.set.a.b = [1, 2]\n")
    assert first.system.set == {"auto_explain.log_timing": True, "a.b": 1}
    assert second.system.set == {"auto_explain.log_timing": True, "a.b": 2}


def test_settings_and_workload_options_vary() -> None:
    text = '[vary]\nsystem.set.synchronous_commit = ["on", "off"]\nworkload.with.scale = [1, 2]\n'
    assert names(text) == [
        "synchronous_commit=on scale=1",
        "synchronous_commit=off scale=1",
        "synchronous_commit=on scale=2",
    ]


def test_systems_side_by_side_are_named_levels() -> None:
    text = '[vary.system]\n"PostgreSQL 16" = { bin = "wheel:16" }\n"PostgreSQL 18" = { bin = "wheel:18" }\n'
    assert names(text) == ["system=PostgreSQL 16", "system=PostgreSQL 18"]
    assert [one.system.bin for one in sections(text)] == ["wheel:16", "wheel:18"]


def test_explicit_cells_choose_levels_or_have_names() -> None:
    start = 'design = "explicit"\n' + START
    chosen = labfile.read(start + CLIENTS + "[[cell]]\nclients = 2\n[[cell]]\nclients = 4\n", "x.toml")
    assert [cell.name for cell in design.cells(chosen)] == ["clients=2", "clients=4"]
    named = labfile.read(start + '[[cell]]\nname = "plain"\n[[cell]]\nname = "tuned"\nmemory = "1GB"\n', "x.toml")
    plain, tuned = design.cells(named)
    assert (plain.name, tuned.name, dict(tuned.levels)) == ("plain", "tuned", {"cell": "tuned"})
    assert (plain.sections.system.memory, tuned.sections.system.memory) == ("", "1GB")


ARRAY = '[devices.array]\nmodel = "hdd-7200"\n[layout]\ndata = "array"\n'


@pytest.mark.parametrize(
    "written", ["devices.array.fs = 'xfs'", "'devices.array.fs' = 'xfs'", "devices = { array = { fs = 'xfs' } }"]
)
def test_a_level_changes_a_field_of_a_declared_device(written: str) -> None:
    plain, other = design.cells(read(f"{ARRAY}[vary.system]\na = {{}}\nb = {{ {written} }}\n"))
    assert (plain.sections.devices["array"].fs, other.sections.devices["array"].fs) == ("", "xfs")
    assert other.sections.devices["array"].model == "hdd-7200"


def test_the_seed_follows_from_the_text_unless_it_is_declared() -> None:
    assert read(CLIENTS).seed == read(CLIENTS).seed != read(CLIENTS + "\n").seed
    assert read(CLIENTS + "[measure]\nseed = 7\n").seed == 7


@pytest.mark.parametrize(
    ("text", "subject", "words"),
    [
        ("[system]\nmemroy = 1\n" + CLIENTS, "labs/x.toml, system.memroy", "memory"),
        ("[system]\nlog = '/a'\n" + CLIENTS, "labs/x.toml, system.log", "[layout]"),
        ("[load]\ncache = 'wram'\n" + CLIENTS, "labs/x.toml, load.cache", "warm"),
        ("[load]\nclients = 'many'\n" + CLIENTS, "labs/x.toml, load.clients", "whole number"),
        ("[sytem]\n" + CLIENTS, "labs/x.toml, sytem", "system"),
        ("[vary]\nclient = [1, 2]\n", "labs/x.toml, vary.client", "clients"),
        ("[vary]\nload.clients = 3\n", 'labs/x.toml, vary."load.clients"', "no values"),
        ("[vary]\nclients = []\n", "labs/x.toml, vary.clients", "no values"),
        ("[vary]\nclients = [4]\n", "labs/x.toml, vary.clients", "only one value"),
        ("[vary]\nclients = [4, 4]\n", "labs/x.toml, vary.clients", "twice"),
        ("[vary.m]\na = { memory = '1GB' }\nb = { memory = '1GB' }\n", "labs/x.toml, vary.m", "same configuration"),
        ("[vary.m]\na = { memroy = '1GB' }\nb = {}\n", "labs/x.toml, vary.m.a", "memory"),
        ("[vary]\nclients = [1, 'two']\n", "labs/x.toml, vary.clients, value two, load.clients", "whole number"),
        ("[vary.m]\na = { memory = '1GB' }\nb = {}\n[vary.n]\nc = { memory = '2GB' }\nd = {}\n", "vary", "both set"),
        (ARRAY + "[vary.m]\na = { devices.arry.fs = 'xfs' }\nb = {}\n", "labs/x.toml, vary.m.a", "array"),
        (ARRAY + "[vary.m]\na = { devices.array.fz = 'xfs' }\nb = {}\n", "labs/x.toml, vary.m.a", "fs"),
        ("[devices]\nd = 'hdd-7200'\n[vary.m]\na = { devices.d.fs = 'xfs' }\nb = {}\n", "vary.m.a", "[devices.d]"),
        ("", "labs/x.toml, vary", "nothing varies"),
        ("[[cell]]\nname = 'a'\n", "labs/x.toml, cell", "explicit"),
        (CLIENTS + "[measure]\nrepeats = 0\n", "labs/x.toml, measure.repeats", "out of range"),
        (CLIENTS + "[measure]\nmargin = 0.0\n", "labs/x.toml, measure.margin", "out of range"),
        (CLIENTS + "[measure]\nrepeats = 6\nstages = [4, 4]\n", "labs/x.toml, measure.stages", "sum up to 8"),
        (CLIENTS + "[measure]\nstages = []\n", "labs/x.toml, measure.stages", "at least one block"),
        ("[vary]\nclients = [1,", "labs/x.toml", "not valid TOML"),
        ("[vari]\nclients = [1, 2]\n", "labs/x.toml, vari", "vary"),
        ("[vary]\nclients = 3\n", "labs/x.toml, vary", ""),
        ("[system.set]\nwork_mem = [1]\n[vary]\nwork_mem = [1, 2]\n", "labs/x.toml, system.set", ""),
        ("[devices]\nd = 3\n[vary.m]\na = { devices.d.fs = 'xfs' }\nb = {}\n", "labs/x.toml, devices", ""),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_field_and_what_would_do(text: str, subject: str, words: str) -> None:
    error = refused(text)
    assert subject in error.subject
    assert words in f"{error.cause} {error.hint}"


def test_a_question_under_a_wrong_name_is_one_mistake() -> None:
    assert refused(CLIENTS, start='qestion = "x?"\n[workload]\nname = "igen-oltp"\n').subject == "labs/x.toml, qestion"


def test_a_lab_needs_a_question() -> None:
    assert refused(CLIENTS, start='[workload]\nname = "igen-oltp"\n').subject == "labs/x.toml, question"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[cell]]\nname = "a"\n', "a single configuration cannot be compared"),
        ('[[cell]]\nname = "a"\n[[cell]]\nname = "a"\nmemory = "1GB"\n', "two configurations have the name a"),
        ('[[cell]]\nname = "a"\n[[cell]]\nname = "b"\n', "a and b are the same configuration"),
        ('[[cell]]\nmemory = "1GB"\n', "is not a factor"),
        ("", "an explicit design needs"),
    ],
)
def test_explicit_cells_are_named_and_differ(text: str, words: str) -> None:
    assert words in refused(text, start='design = "explicit"\n' + START).cause


def test_a_lab_of_a_million_cells_is_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = ", ".join(map(str, range(1, 1001)))
    text = f"[vary]\nclients = [{levels}]\nthreads = [{levels}]\n"
    monkeypatch.setattr(design, "at", lambda *_: pytest.fail("a cell was made"))
    error = refused(text, start='design = "full"\n' + START)
    assert "1,000,000 configurations in 6 blocks are 6,000,000 trials" in error.cause
    assert "5.7 years" in error.cause
    assert "one-at-a-time" in error.hint


def test_a_shared_message_names_the_option_or_the_field() -> None:
    fields = [("system.set", "work_mem=1GB"), ("system.set", ""), ("system.memory", "1GB"), ("workload.define", "n=1")]
    assert [errors.written(*one) for one in fields] == ["--set work_mem=1GB", "--set", "--memory 1GB", "-D n=1"]
    with errors.in_a_file():
        names = [errors.written(*one) for one in fields]
    assert names == ["system.set.work_mem=1GB", "system.set", "system.memory = 1GB", "workload.define.n=1"]


def test_a_factor_that_the_answer_is_about_must_exist() -> None:
    text = '[vary]\nclients = [1, 2]\n[measure]\nanswer = "client"\n'
    error = refused(text)
    assert "client is not a factor" in error.cause and "clients" in error.hint
    assert read(text.replace('"client"', '"clients"')).measure.answer == "clients"
