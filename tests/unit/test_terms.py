"""Names of configurations and comparisons in reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from labfactory import lab

from ironbench import workloads
from ironbench.lab import declare
from ironbench.model.lab import BASELINE, CHANGES, NOTHING_ELSE, Configuration, Factor, Lab, named
from ironbench.model.note import note, text_note
from ironbench.plan import fixed_rates, labfile
from ironbench.report import wording
from ironbench.report.as_json import plain_value
from ironbench.report.wording.terms import comparison, configuration, label, opening, value
from ironbench.study.factors import named_sides
from ironbench.study.verdict import of_blocks

LAB = """question = "Which is faster?"

[workload]
name = "igen-oltp"

[vary]
"""


@pytest.mark.parametrize(
    ("varied", "words"),
    [
        ('log = { "on disk" = {}, memory = { layout.log = "/dev/shm" } }', ("WAL on disk", "WAL in memory")),
        ('"layout.log" = ["/mnt/wal", "ssd-nvme-enterprise"]', ("WAL on /mnt/wal", "WAL on ssd-nvme-enterprise")),
        (
            'log = { "8 disks" = {}, mirrored = { layout.log = "/a" }, "beside the data" = { layout.log = "/b" } }',
            ("WAL on 8 disks", "WAL on mirrored", "WAL beside the data"),
        ),
        ('"layout.temp" = ["", "/mnt/temp"]', ("temp=none", "temporary files on /mnt/temp")),
        ('data = { ssd = {}, "8 disks" = { layout.data = "/a" } }', ("data on ssd", "data on 8 disks")),
        (
            'data = { "half cached" = { memory = "64MB", cache = "warm" }, cached = { cache = "hot" } }',
            ("data half cached", "data cached"),
        ),
        ('log = { "on disk" = {}, "in memory" = { ideal = ["log"] } }', ("WAL on disk", "WAL in memory")),
        (
            'log = { disk = {}, card = { layout.log = "/a" }, free = { ideal = ["log"] } }',
            ("WAL on disk", "WAL on card", "WAL on a zero-latency device"),
        ),
        ('data = { ssd = {}, card = { layout.data = "/a", cache = "cold" } }', ("data on ssd", "data on card")),
        ('data = { ssd = {}, cached = { ideal = ["data"] } }', ("data on ssd", "data cached")),
        (
            '"layout.data" = ["ssd-nvme-enterprise", "free"]',
            ("data on ssd-nvme-enterprise", "data on a zero-latency device"),
        ),
        ("clients = [1, 8]", ("1 client", "8 clients")),
        ("clients = { few = { clients = 2 }, many = { clients = 64 } }", ("clients=few", "clients=many")),
        ("threads = [1, 2]", ("1 thread", "2 threads")),
        ('rate = ["50%", "70% of peak"]', ("50% of peak throughput", "70% of peak throughput")),
        ("rate = [500, 1000.5]", ("500 per second", "1000.5 per second")),
        ("rate = { low = { rate = 100 }, high = { rate = 500 } }", ("rate=low", "rate=high")),
        ('ideal = [[], ["log"], ["log", "data"]]', ("real devices", "zero-latency WAL", "ideal=log+data")),
        ('engine = ["postgres", "mariadb"]', ("postgres", "mariadb")),
        ('version = { "16" = { bin = "wheel:16" }, "17" = { bin = "wheel:17" } }', ("version 16", "version 17")),
        # Factors that have nothing to do with where files are, whatever the names of their values.
        ('log = { off = {}, disk = { set = { log_statement = "all" } } }', ("log=off", "log=disk")),
        ('"system.set.log" = ["on", "off"]', ("log=on", "log=off")),
        ("data = { small = { with = { scale = 1 } }, large = { with = { scale = 2 } } }", ("data=small", "data=large")),
        ('driver = { old = {}, "vendor\'s" = { layout.data = "/a" } }', ("driver=old", "driver=vendor's")),
        ('"system.set.work_mem" = ["4MB", "64MB"]', ("work_mem=4MB", "work_mem=64MB")),
    ],
)
def test_a_value_is_worded_by_the_fields_that_its_factor_sets(varied: str, words: tuple[str, ...]) -> None:
    (factor,) = labfile.read(LAB + varied, "lab.toml").factors
    known = Factor(factor.name, factor.names, factor.fields)
    assert tuple(value(known, level) for level in known.levels) == words


TPCC = """question = "Which is faster?"

[workload]
name = "tpcc"

[vary]
"""


@pytest.mark.parametrize(
    ("varied", "words"),
    [
        (
            'statements = { "client SQL" = {}, procedures = { with.procedures = "true" } }',
            ("client SQL", "stored procedures"),
        ),
        ('"workload.with.procedures" = ["true", "false"]', ("stored procedures", "client SQL")),
        ('"workload.with.warehouses" = [1, 2]', ("warehouses=1", "warehouses=2")),
        (
            'way = { sql = {}, both = { with.procedures = "true", with.delivery = "deferred" } }',
            ("way=sql", "way=both"),
        ),
    ],
)
def test_a_workload_names_the_values_of_its_options(varied: str, words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "lab.toml").write_text(TPCC + varied)
    (factor,) = declare.planned(declare.read(tmp_path / "lab.toml")).lab.factors
    assert tuple(value(factor, level) for level in factor.levels) == words


def test_every_value_of_an_option_has_a_name_or_none_has() -> None:
    options = [one for name in workloads.names() for one in workloads.get(name).options if one.words]
    assert options and all(set(one.words) == set(one.choices) for one in options)


def plan(**factors: tuple[str, ...]) -> Lab:
    return lab({"log": ("disk", "memory"), **factors})


def test_a_name_that_is_made_of_values_is_worded_and_any_other_name_stays_as_it_is() -> None:
    found = plan(clients=("1", "8"))
    assert configuration(found.configuration("log=memory clients=8")) == "WAL in memory, 8 clients"
    assert configuration(found.configuration("log=memory")) == "log=memory", "no configuration of this lab"
    own = replace(found.setups[0], cell=replace(found.setups[0].cell, name="log=card clients=8"))
    named_so = replace(found, setups=(own, *found.setups[1:]), baseline=own.cell.name)
    assert configuration(named_so.configuration("log=card clients=8")) == "log=card clients=8"
    assert configuration("log=memory") == "log=memory"


def test_a_lab_of_an_earlier_version_does_not_say_what_its_values_are() -> None:
    found = plan()
    before = replace(found, factors=tuple(replace(factor, fields=()) for factor in found.factors))
    assert configuration(before.configuration("log=memory")) == "log=memory"


def test_a_fixed_rate_is_a_value_of_its_configuration() -> None:
    rated = fixed_rates.extended(plan(), ["70%"], "lab.toml, measure.rates")
    assert configuration(rated.configuration("log=memory rate=70%")) == "WAL in memory, 70% of peak throughput"


def test_the_confirmation_of_a_screen_names_what_differs_from_the_baseline() -> None:
    found = plan(work_mem=("4MB", "64MB"))
    first, *rest = found.setups
    changed = named({"log": "memory", "work_mem": "64MB"}, CHANGES)
    setups = (
        replace(first, cell=replace(first.cell, name=BASELINE)),
        *(replace(one, cell=replace(one.cell, name=f"run {place}")) for place, one in enumerate(rest)),
    )
    last = replace(setups[-1], cell=replace(setups[-1].cell, name=changed))
    one = replace(setups[2], cell=replace(setups[2].cell, name="log=memory"))
    screen = replace(found, setups=(*setups[:2], one, last), baseline=BASELINE)
    words = {name: configuration(screen.configuration(name)) for name in (BASELINE, "run 0", "log=memory", changed)}
    assert list(words.values()) == ["the baseline", "run 0", "WAL in memory", "WAL in memory, work_mem=64MB"]
    assert label(screen.configuration(BASELINE)) == "baseline"


def test_only_words_get_a_capital_letter_at_the_start_of_a_sentence() -> None:
    log, work_mem = (
        Factor("log", ("ssd",), (("layout.log",),)),
        Factor("work_mem", ("4MB",), (("system.set.work_mem",),)),
    )
    data = Factor("data", ("ssd",), (("layout.data",),))
    assert opening(Configuration("data=ssd", ((data, "ssd"),))) == "Data on ssd"
    assert opening(Configuration("log=ssd", ((log, "ssd"),))) == "WAL on ssd"
    assert opening(Configuration("work_mem=4MB", ((work_mem, "4MB"),))) == "work_mem=4MB"
    assert opening(Configuration("small")) == "small"
    assert opening(Configuration(BASELINE)) == "The baseline"


def test_a_comparison_is_worded_by_its_sides_and_what_they_have_in_common() -> None:
    found = plan(clients=("1", "8"))
    pair = ("log=memory clients=8", "log=disk clients=8")
    ((cell, baseline, where),) = named_sides(found, [pair]).values()
    one = of_blocks("throughput", *pair, [], sides=(cell, baseline), where=where)
    assert comparison(one) == "WAL in memory vs. WAL on disk, with 8 clients"
    emulated = replace(one, sides=(cell, replace(baseline, emulated=True)))
    assert comparison(emulated) == "WAL in memory vs. WAL on disk (emulated), with 8 clients"
    assert emulated.name == "log=memory over log=disk (emulated), at clients=8"
    odd = replace(one, sides=(Configuration("read over network"), Configuration("local, at night")), where=NOTHING_ELSE)
    assert comparison(odd) == "read over network vs. local, at night"


def test_a_note_names_configurations_in_words_and_its_document_by_name() -> None:
    found = plan()
    (parts,) = named_sides(found, [("log=memory", "log=disk")]).values()
    inner = text_note("counters were reset")
    of_two = note("of-subjects", subjects=("log=memory over log=disk",), comparisons=(parts,), note=inner)
    assert wording.text(of_two) == "WAL in memory vs. WAL on disk: counters were reset"
    assert plain_value(of_two)["values"]["comparisons"] == [["log=memory", "log=disk", ""]]
    of_one = note("of-subjects", subjects=(found.configuration("log=disk"),), note=inner)
    assert wording.text(of_one) == "WAL on disk: counters were reset"
    of_a_run = note("of-subjects", subjects="reads over night", note=inner)
    assert wording.text(of_a_run) == "reads over night: counters were reset"
