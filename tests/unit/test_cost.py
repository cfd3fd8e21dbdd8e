"""Cost breakdowns, price sheets and targets are computed by rule, or refused if something is missing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from factories import DISK, MACHINE, MEMORY, record, unfolded

from ironbench.catalogue import prices
from ironbench.cli.cost import cost as command
from ironbench.cli.verdict import REFUTED
from ironbench.errors import InputError
from ironbench.model.cost import Offer
from ironbench.model.curve import Curve
from ironbench.model.note import Note, note
from ironbench.model.record import RATE_NOT_KEPT, Record, Status
from ironbench.model.system import Load, System
from ironbench.plan import offers
from ironbench.report import cost as report
from ironbench.report import formats, wording
from ironbench.report.cost import compared as asked
from ironbench.report.wording.answers.cost_answer import rate_is_an_input
from ironbench.study import target as targets
from ironbench.study.bill import bill, licences
from ironbench.study.cost import Costs, StoredTrials, SystemCost, costs

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "fewer-faster-cores.toml"
LINE = 'price = 100\ncurrency = "USD"\nper = "core"\nkind = "licence"\ndate = "2026-01"\nsource = "a list"\n'


def sheet(text: str = LINE, rates: str = "") -> prices.Sheet:
    return prices.read(f"[price.x]\n{text}\n{rates}", "sheet.toml")


def offer(**fields: object) -> Offer:
    known = {"servers": 1, "sockets": 2, "cores": 16, "processor": "Intel Xeon E5", "buy": ("x",)}
    return Offer("a", "a", **{**known, **fields})  # type: ignore[arg-type]


def test_the_published_bills_are_reproduced_to_the_dollar() -> None:
    found = costs(offers.read(EXAMPLE.read_text(), "f2"), prices.shipped(), StoredTrials())
    totals = {row.name: row.bill.total for row in found.rows if row.bill}
    assert totals["36 cores"] == 247392
    assert totals["16 faster cores"] == 109952
    assert totals["two servers of 16 faster cores"] < totals["36 cores"]
    assert [row.estimate for row in found.rows] == [False, True, True]
    text = unfolded(report.page(found))
    assert "≈2,266 to 2,455" in text
    assert "costs 11% less than 36 cores. Work compared with 36 cores: 20% to 30% more by estimate" in text
    assert "36 cores gives less work per USD than 16 faster cores: 26% to 32% less by estimate" in text


@pytest.mark.parametrize(
    ("rules", "servers", "sockets", "cores", "bought"),
    [
        ("", 1, 2, 16, 16),
        ("pack = 2", 1, 1, 5, 6),
        ("pack = 16", 1, 2, 20, 32),
        ("least_cores_per_socket = 4", 1, 2, 4, 8),
        ("least_cores_per_socket = 8\nleast_cores_per_server = 16", 3, 1, 6, 48),
        ("pack = 2\nleast_cores_per_socket = 4", 1, 2, 36, 36),
        ('core_factors = {"*Xeon*" = 0.5, "*" = 1.0}', 1, 2, 15, 8),
        ('core_factors = {"*SPARC*" = 0.25, "*" = 0.75}\npack = 2', 2, 2, 5, 8),
    ],
)
def test_core_licences_are_counted_with_minimums_factors_and_packs(
    rules: str, servers: int, sockets: int, cores: int, bought: int
) -> None:
    price = sheet(LINE + rules).price("x")
    assert licences(price, servers, sockets, cores, "Intel Xeon E5")[0] == bought


def test_a_processor_that_no_core_factor_fits_is_refused() -> None:
    own = sheet(LINE + 'core_factors = {"*SPARC*" = 0.25}')
    with pytest.raises(InputError, match="has no core factor for the processor Intel Xeon E5"):
        bill(offer(), own, None)


@pytest.mark.parametrize("field", ["price", "currency", "per", "kind", "date", "source"])
def test_a_price_without_unit_currency_date_or_source_is_refused_with_its_line(field: str) -> None:
    text = "\n".join(line for line in LINE.splitlines() if not line.startswith(f"{field} "))
    with pytest.raises(InputError, match=rf"sheet.toml: price x, {field}: is missing"):
        sheet(text)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ('currency = "dollars"', "currency: 'dollars' is not"),
        ('per = "cores"', "unknown"),
        ('date = "yesterday"', "date: 'yesterday' is not"),
        ("price = -1", "out of range"),
        ("price = nan", "out of range"),
        ('price = "much"', "sheet.toml: price x, price: expected a number, got text in quotes"),
        ("colour = 1", "sheet.toml: price x, colour: unknown field"),
        ("pack = 1.5", "price x, pack: expected a whole number, got a number"),
        ('core_factors = {"*" = "half"}', "price x, core_factors: expected a number, got text in quotes"),
        ("core_factors = 0.5", "price x, core_factors: expected a TOML table, got a number"),
        ("pack = 0", "out of range"),
    ],
)
def test_a_price_that_makes_no_sense_is_refused(line: str, cause: str) -> None:
    kept = [old for old in LINE.splitlines() if old.split(" ")[0] != line.split(" ")[0]]
    with pytest.raises(InputError, match=cause):
        sheet("\n".join([*kept, line]))


def test_currencies_are_never_mixed_without_a_stated_rate() -> None:
    euro = LINE.replace("USD", "EUR")
    text = f"[price.y]\n{euro}"
    with pytest.raises(InputError, match="has prices in USD and EUR"):
        bill(offer(buy=("x", "y")), sheet(LINE, text), None)
    with pytest.raises(InputError, match="no price sheet has an exchange rate"):
        bill(offer(buy=("x", "y")), sheet(LINE, text), None, "USD")
    rate = '[rate.r]\nfrom = "EUR"\nto = "USD"\nrate = 1.25\ndate = "2026-01-02"\nsource = "a bank"'
    found = bill(offer(buy=("x", "y")), sheet(LINE, f"{text}\n{rate}"), None, "USD")
    assert found.total == 16 * 100 + 16 * 125
    rated = note("exchange-rate", currency="EUR", rate=1.25, into="USD", date="2026-01-02", source="a bank")
    assert rated in found.lines[1].notes
    backwards = bill(offer(), sheet(LINE, rate), None, "EUR")
    assert backwards.total == 16 * 80


def test_running_costs_need_the_years_they_are_counted_for() -> None:
    power = LINE.replace("100", "0.25").replace('"core"', '"kWh"').replace("licence", "power")
    with pytest.raises(InputError, match="no period is set"):
        bill(offer(watts=400.0), sheet(power), None)
    assert bill(offer(watts=400.0, servers=2), sheet(power), Decimal(3)).total == Decimal("5259.60")
    disk = LINE.replace('"core"', '"TB"').replace("licence", "storage") + 'every = "month"'
    assert bill(offer(storage_tb=1.5), sheet(disk), Decimal(1)).total == 1800


def test_an_edition_that_leaves_cores_unused_says_so() -> None:
    found = bill(offer(cores=36), sheet(LINE + 'most_cores = 16\nedition = "Standard"'), None)
    assert found.caveats == (note("edition-limit", price="x", edition="Standard", most=16, there=36, of="cores"),)


def test_estimated_prices_mark_the_bill() -> None:
    found = bill(offer(), sheet(LINE + "estimate = true"), None)
    assert report.money(found) == "≈1,600 USD"


TARGET = targets.parse("p99 < 10ms at 5000 tps")


def driven(
    p99_s: float, block: int = 0, rate: float | None = 5000.0, system: System = DISK, **fields: object
) -> Record:
    load = Load(rate=rate, duration_s=30.0)
    metrics = {"response_time_p99_s": p99_s}
    name = f"{system.label}-{rate}-{block}"
    return record(system, 16, rate or 9000.0, block=block, load=load, metrics=metrics, id=name, **fields)  # type: ignore[arg-type]


def test_a_target_is_read_and_nonsense_refused() -> None:
    assert (TARGET.metric, TARGET.limit_s, TARGET.rate) == ("response_time_p99_s", 0.01, 5000)
    for text in (
        "fast",
        "p99 < 10ms",
        "p98 < 10ms at 5 tps",
        "p99 < 0ms at 5 tps",
        "p99 < 10ms at 0 tps",
        "p99 < 10 at 5 tps",
    ):
        with pytest.raises(InputError):
            targets.parse(text)


def test_a_target_is_met_only_by_the_upper_bound_of_open_loop_trials_at_that_rate() -> None:
    good = [driven(0.008 + 0.0001 * block, block) for block in range(4)]
    assert targets.attained("a", good, TARGET).meets
    close = [driven(value, block) for block, value in enumerate((0.008, 0.0099, 0.0085, 0.0105))]
    found = targets.attained("a", close, TARGET)
    assert not found.meets
    assert found.why.code == "target-inconclusive"
    assert targets.attained("a", good[:2], TARGET).why.code == "target-of-few-trials"
    closed = [driven(0.001, b, None) for b in range(4)]
    assert targets.attained("a", closed, TARGET).why == note("target-no-rate", curved=False)
    slower = [driven(0.001, block, 4000.0) for block in range(4)]
    assert targets.attained("a", slower, TARGET).why == note("target-rate-lower", highest=4000.0)


def test_a_miss_at_a_higher_rate_is_no_miss_of_the_target() -> None:
    faster = [driven(0.061 + 0.001 * block, block, 9000.0) for block in range(4)]
    found = targets.attained("a", faster, TARGET)
    assert (found.why.code, found.meets, found.misses, found.undecided) == ("target-rate-higher", False, False, True)
    at_rate = [driven(0.008 + 0.0001 * block, block) for block in range(4)]
    assert targets.attained("a", [*faster, *at_rate], TARGET).meets
    slow = [driven(0.020 + 0.0001 * block, block) for block in range(4)]
    assert targets.attained("a", [*faster, *slow], TARGET).misses


@pytest.mark.parametrize(
    ("p99_s", "misses"),
    [
        ((0.020, 0.021, 0.022, 0.0205), True),
        ((0.0095, 0.0105, 0.0110, 0.0120), False),
        ((0.020, 0.021), False),
        ((0.008, 0.0081, 0.0082), False),
    ],
)
def test_a_target_is_missed_only_if_the_interval_excludes_it(p99_s: tuple[float, ...], misses: bool) -> None:
    found = targets.attained("a", [driven(value, block) for block, value in enumerate(p99_s)], TARGET)
    assert found.misses is misses


def test_a_rate_that_no_trial_kept_is_missed_and_one_that_some_kept_is_inconclusive() -> None:
    behind = [Note(RATE_NOT_KEPT, {"text": "behind"})]
    never = [replace(driven(0.001, block), warnings=tuple(behind)) for block in range(3)]
    assert targets.attained("a", never, TARGET).misses
    found = targets.attained("a", [*never[:2], driven(0.001, 2)], TARGET)
    assert not found.misses and not found.meets


def test_a_curve_whose_mean_is_the_rate_of_a_target_was_not_driven_at_it() -> None:
    ramp = Curve("rate", "ramp:100-9900/30s", ((0.0, 100.0), (30.0, 9900.0)))
    steady = [driven(0.008 + 0.0001 * block, block) for block in range(4)]
    load = replace(steady[0].cell.load, curve=ramp)
    changing = [replace(one, cell=replace(one.cell, load=load)) for one in steady]
    assert targets.attained("a", steady, TARGET).meets
    found = targets.attained("a", changing, TARGET)
    assert not found.meets and found.why == note("target-no-rate", curved=True)


def test_trials_that_did_not_keep_the_rate_do_not_meet_a_target() -> None:
    late = Note("rate-not-kept", {"text": "the rate was not kept"})
    trials = [driven(0.001, block, status=Status.SUSPECT, warnings=(late,)) for block in range(4)]
    assert targets.attained("a", trials, TARGET).why.code == "target-rate-not-kept"


def test_a_system_may_meet_a_target_at_a_higher_rate() -> None:
    trials = [driven(0.02, block) for block in range(3)] + [driven(0.009, block, 6000.0) for block in range(3)]
    found = targets.attained("a", trials, TARGET)
    assert found.meets
    assert found.best is not None
    assert found.best.rate == 6000


OFFERS = """
[system."log on disk"]
sockets = 1
cores = 8
buy = ["x"]
[system."log in memory"]
sockets = 1
cores = 4
buy = ["x"]
"""


def test_the_cheapest_system_that_meets_the_target_is_named_and_others_say_how_close_they_came() -> None:
    slow, fast = [driven(0.02, b) for b in range(3)], [driven(0.005, b, system=MEMORY) for b in range(3)]
    records = {"log on disk": slow, "log in memory": fast}
    found = costs(offers.read(OFFERS, "o"), sheet(), StoredTrials(records), TARGET)
    assert found.cheapest is not None
    assert found.cheapest.name == "log in memory"
    strict = targets.parse("p99 < 1ms at 5000 tps")
    none = costs(offers.read(OFFERS, "o"), sheet(), StoredTrials(records), strict)
    assert none.cheapest is None
    assert report.advice(none) == [
        "No system was shown to meet the target. The system that came closest is log in memory: missed with 5 ms at "
        "5,000/s (upper confidence limit 5 ms), 5.00x the limit."
    ]


def test_records_of_different_work_are_not_held_against_one_target() -> None:
    one = driven(0.02)
    other = replace(one, choice=replace(one.choice, options={"scale": "8"}))
    with pytest.raises(InputError, match="measure different work"):
        costs(None, sheet(), StoredTrials({"a": [one], "b": [other]}), TARGET)


def test_bills_in_two_currencies_are_not_shown_beside_each_other() -> None:
    mixed = OFFERS.replace('buy = ["x"]', 'buy = ["y"]', 1)
    both = sheet(LINE, f"[price.y]\n{LINE.replace('USD', 'EUR')}")
    with pytest.raises(InputError, match=r"are in EUR \(log on disk\) and USD \(log in memory\)"):
        costs(offers.read(mixed, "o"), both, StoredTrials())


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "o.toml, system: is missing"),
        ("system = 1", "o.toml, system: expected a TOML table, got a whole number"),
        ("[system]\na = 1", "system a: expected a TOML table, got a whole number"),
        ("[system.a", "is not valid TOML: "),
        ("[system.a]\nsockets = 1\nbuy = []", "system a, cores: is missing"),
        ('[system.a]\nsockets = 1\ncores = "2"\nbuy = []', "a, cores: expected a whole number, got text in quotes"),
        ("[system.a]\nsockets = 1\ncores = 2\nlicences = 3\nbuy = []", "system a, licences: unknown field"),
        ("[system.a]\nsockets = 1\ncores = 2\nbuy = 'x'", "a, buy: expected a list .*, got text in quotes"),
        ("[system]", "has no systems"),
        ("[system.a]\nsockets = 1\ncores = 0\nbuy = []", "out of range"),
        ("[system.a]\nsockets = 4\ncores = 2\nbuy = []", "fewer cores .2. than sockets .4."),
        ("[system.a]\nsockets = 1\ncores = 2\nbuy = []\nscore = 5", "has `score` or `share` but no `source`"),
        (
            '[system.a]\nsockets = 1\ncores = 2\nbuy = []\nshare = 0.5\nshare_of = "b"',
            "has `score` or `share` but no `source`",
        ),
        ('[system.a]\nsockets = 1\ncores = 2\nbuy = []\nshare = 0.5\nsource = "x"', "must be used together"),
        (
            '[system.a]\nsockets = 1\ncores = 2\nbuy = []\nshare = 0.5\nshare_of = "b"\nsource = "x"',
            "no system with a score",
        ),
        ("years = 0\n[system.a]\nsockets = 1\ncores = 2\nbuy = []", "out of range"),
    ],
)
def test_a_systems_file_that_makes_no_sense_is_refused(text: str, cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        offers.read(text, "o.toml")


def test_money_that_would_be_counted_twice_or_not_at_all_is_refused() -> None:
    power = LINE.replace('"core"', '"kWh"').replace("licence", "power")
    with pytest.raises(InputError, match="has `every = 'month'`"):
        sheet(power + 'every = "month"')
    with pytest.raises(InputError, match="has `pack = 2`"):
        sheet(power.replace("kWh", "hour") + "pack = 2")
    with pytest.raises(InputError, match="minimum number of cores"):
        sheet(LINE.replace('"core"', '"server"') + "least_cores_per_socket = 4")
    with pytest.raises(InputError, match="has no watts"):
        bill(offer(), sheet(power), Decimal(3))
    with pytest.raises(InputError, match="has no storage_tb"):
        bill(offer(), sheet(LINE.replace('"core"', '"TB"')), None)
    with pytest.raises(InputError, match="comes to"):
        bill(offer(servers=10**20), sheet(LINE.replace("100", "9e14")), None)


@pytest.mark.parametrize(
    "line",
    ["score = 0", "score = nan", "score = -1", "score = inf", "watts = nan", "storage_tb = inf", "memory_gb = 0"],
)
def test_a_number_that_nothing_can_have_is_refused(line: str) -> None:
    with pytest.raises(InputError, match=line.split(" ")[0]):
        offers.read(f'[system.a]\nsockets = 1\ncores = 2\nbuy = []\nsource = "x"\n{line}', "o")


@pytest.mark.parametrize("years", ["inf", "nan", "1e9"])
def test_years_that_nobody_counts_are_refused(years: str) -> None:
    with pytest.raises(InputError, match="years"):
        offers.read(f"years = {years}\n[system.a]\nsockets = 1\ncores = 2\nbuy = []", "o")


def stored(directory: Path, records: Sequence[Record], machine: object = None) -> str:
    from ironbench.records import Store

    store = Store(directory)
    key = store.keep_shared("machines", machine or MACHINE)
    for one in records:
        store.keep(replace(one, machine=key))
    return str(directory)


def told(results: str, selection: Sequence[str] = (), systems: str = "") -> dict[str, str]:
    found = asked(selection, TARGET.text, systems, (), "", results)
    return {row.name: wording.text(row.target.why) for row in found.rows if row.target}


def test_trials_of_two_machines_or_settings_do_not_add_up(tmp_path: Path) -> None:
    """Two trials here and one on another machine are not three."""
    results = stored(tmp_path, [driven(0.005, block) for block in range(2)])
    stored(tmp_path, [driven(0.005, 2)], {**MACHINE, "kernel": "other"})
    assert [why.split(" (")[0].split(" at ")[0] for why in told(results).values()] == [
        "not measured: a confidence interval needs 3 usable trials",
        "not measured: a confidence interval needs 3 usable trials",
    ]
    stored(tmp_path, [driven(0.005, 3, system=replace(DISK, memory_bytes=1 << 30))])
    assert len(told(results)) == 3
    systems = tmp_path / "systems.toml"
    systems.write_text('[system."log on disk"]\nsockets = 1\ncores = 2\nbuy = ["postgresql"]')
    with pytest.raises(InputError, match="records of 3 systems have the same label"):
        told(results, (), str(systems))


def test_trials_of_unlike_loads_do_not_add_up() -> None:
    trials = [driven(0.005, block) for block in range(2)]
    longer = driven(0.005, 2)
    load = replace(longer.cell.load, duration_s=60.0)
    trials.append(replace(longer, cell=replace(longer.cell, load=load)))
    assert targets.attained("a", trials, TARGET).why.code == "target-of-few-trials"


def test_why_a_system_is_not_measured_is_told_of_all_that_was_driven(tmp_path: Path) -> None:
    results = stored(tmp_path / "a", [driven(0.005, 0, 100.0), driven(0.005, 1, 4000.0), driven(0.005, 2, 100.0)])
    assert told(results) == {"log on disk": "not measured: the highest tested rate is 4,000/s, below the target's rate"}
    results = stored(tmp_path / "b", [driven(0.005, 0, None), driven(0.005, 1, 4000.0)])
    assert told(results) == {"log on disk": "not measured: the highest tested rate is 4,000/s, below the target's rate"}
    failed = driven(0.005, 0, None, status=Status.FAILED)
    results = stored(tmp_path / "c", [failed, driven(0.005, 1, None)])
    assert told(results) == {
        "log on disk": "not measured: all trials ran in a closed loop; run the system with `--rate`"
    }


def test_other_work_that_was_not_driven_so_hard_does_not_stand_in_the_way(tmp_path: Path) -> None:
    other = driven(0.005, 9, None)
    other = replace(other, choice=replace(other.choice, options={"scale": "8"}))
    results = stored(tmp_path, [other, *(driven(0.005, block) for block in range(3))])
    assert next(iter(told(results).values())).startswith("at most 5 ms")


def test_a_system_that_was_held_to_some_cpus_has_as_many_cores(tmp_path: Path) -> None:
    held = replace(DISK, server_cpus=(0,))
    results = stored(tmp_path, [driven(0.005, block, system=held) for block in range(3)])
    row = asked((), TARGET.text, "", (), "", results).rows[0]
    assert (row.cores, row.target and row.target.meets) == (1, True)


def test_a_system_without_an_upper_bound_did_not_come_closest() -> None:
    slow, once = [driven(0.02, block) for block in range(3)], [driven(0.011, system=MEMORY)]
    found = costs(None, sheet(), StoredTrials({"slow": slow, "once": once}), TARGET)
    assert found.nearest is not None
    assert found.nearest.name == "slow"
    assert report.advice(costs(None, sheet(), StoredTrials({"once": once}), TARGET))[0].startswith(
        "No system has at least three trials at"
    )


def test_a_running_price_names_its_period_and_how_often_it_is_paid() -> None:
    monthly = sheet(LINE.replace('per = "core"', 'per = "server"\nevery = "month"'))
    found = bill(offer(), monthly, Decimal(1))
    assert (found.lines[0].every, found.lines[0].times, found.years) == ("month", 12, 1)
    assert bill(offer(), sheet(), Decimal(3)).years is None, "what is paid once has no period"
    row = SystemCost("a", found, 16, None, False, "")
    text = unfolded(report.page(Costs("", None, "", (row,), "", None, None)))
    assert "100 USD per month" in text and "12 months" in text and "total over 1 year" in text


def test_systems_of_one_price_that_meet_a_target_are_tied_and_a_cheaper_unclear_one_is_named() -> None:
    even = offers.read(OFFERS.replace("cores = 4", "cores = 8"), "o")
    good, fast = [[driven(0.005, block, system=side) for block in range(3)] for side in (DISK, MEMORY)]
    found = costs(even, sheet(), StoredTrials({"log on disk": good, "log in memory": fast}), TARGET)
    assert [row.name for row in found.tied] == ["log in memory"]
    assert report.advice(found) == [
        "Cheapest system that meets the target: log on disk and log in memory, 800 USD each."
    ]
    unclear = [driven(p99, block, system=MEMORY) for block, p99 in enumerate((0.006, 0.009, 0.012))]
    records = {"log on disk": good, "log in memory": unclear}
    found = costs(offers.read(OFFERS, "o"), sheet(), StoredTrials(records), TARGET)
    assert [row.name for row in found.undecided] == ["log in memory"]
    assert report.advice(found) == [
        "Inconclusive, because cheaper systems may also meet the target: log in memory (inconclusive). Cheapest system "
        "that was shown to meet the target: log on disk, 800 USD.",
        "To decide, run more trials of log in memory with `--rate 5000`.",
    ]


def test_systems_that_miss_a_target_alike_are_not_ranked() -> None:
    a, b = (
        [driven(p99 * (1 + share * (block - 1)), block, system=side) for block in range(3)]
        for side, p99, share in ((DISK, 0.020, 0.1), (MEMORY, 0.021, 0.1))
    )
    found = costs(None, sheet(), StoredTrials({"a": a, "b": b}), TARGET)
    assert found.nearest is not None and len(found.tied) == 1
    assert "no difference shown" in report.advice(found)[0]


def test_records_are_of_all_servers_together(tmp_path: Path) -> None:
    text = OFFERS.replace("sockets = 1", "servers = 2\nsockets = 1", 1)
    found = costs(
        offers.read(text, "o"),
        sheet(),
        StoredTrials({"log on disk": [driven(0.005, block) for block in range(3)]}),
        TARGET,
    )
    assert (found.rows[0].cores, found.rows[0].trials) == (16, 3)
    assert (
        "log on disk: the records are assumed to be the result of all 2 servers of this system together."
        in unfolded(report.page(found))
    )


def test_the_example_of_a_whole_bill_is_marked_as_made_up() -> None:
    folder = EXAMPLE.parent
    own = prices.with_sheets([folder / "own-prices.toml"])
    found = costs(offers.read((folder / "whole-bill.toml").read_text(), "o"), own, StoredTrials())
    power = Decimal("0.1107") * 3 * 8766 * 600 / 1000
    assert [row.bill and row.bill.estimate for row in found.rows] == [True, True]
    assert found.rows[0].bill is not None
    assert found.rows[0].bill.total == 21000 + 4 * 150 * Decimal("1.10") + 247392 + power.quantize(Decimal("0.01"))
    assert found.rows[0].bill.years == 3
    text = unfolded(report.page(found))
    assert "cost over 3 years" in text and "total over 3 years" in text
    made_up = prices.read((folder / "own-prices.toml").read_text(), "own").prices.values()
    assert all(price.estimate and "made up" in price.source for price in made_up)


TAKEN = note("cpu-taken", programs=0.9, steal=0.04, share=0.94)


def busy(p99_s: float) -> list[Record]:
    """Returns three trials while other programs used the CPU."""
    return [driven(p99_s, block, status=Status.SUSPECT, warnings=(TAKEN,)) for block in range(3)]


def test_the_answer_to_a_target_says_how_many_of_its_trials_are_flagged_and_why() -> None:
    records = {"log on disk": busy(0.005), "log in memory": [driven(0.005, b, system=MEMORY) for b in range(3)]}
    found = costs(offers.read(OFFERS.replace("cores = 4", "cores = 16"), "o"), sheet(), StoredTrials(records), TARGET)
    assert [(row.trials, row.flagged, row.caveats) for row in found.rows] == [(3, 3, (TAKEN,)), (3, 0, ())]
    assert found.cheapest is found.rows[0]
    assert report.advice(found) == [
        "Cheapest system that meets the target: log on disk (3 of 3 trials flagged), 800 USD."
    ]
    assert f"- log on disk (3 of 3 trials flagged): {wording.text(TAKEN)}" in unfolded(report.page(found))
    first = json.loads(formats.of_page("json")(report.page(found)))["systems"][0]
    assert (first["trials"], first["flagged"], first["caveats"]) == (3, 3, [wording.text(TAKEN)])


def test_a_target_missed_by_flagged_trials_is_marked_in_the_text_and_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = stored(tmp_path, busy(0.05))
    assert command(target=TARGET.text, results=results) == REFUTED
    shown = capsys.readouterr()
    assert "The system that came closest is log on disk (3 of 3 trials flagged)" in " ".join(shown.out.split())
    assert shown.err.splitlines()[-1].endswith("log on disk (3 of 3 trials flagged)")


def test_trials_left_out_of_a_target_are_named() -> None:
    trials = [*(driven(0.005, block) for block in range(3)), driven(0.005, 3, status=Status.FAILED)]
    (row,) = costs(None, sheet(), StoredTrials({"log on disk": trials}), TARGET).rows
    assert row.trials == 3 and [one.code for one in row.caveats] == ["trials-left-out"]


def test_a_rate_that_was_asked_for_gives_no_work_per_core_or_price() -> None:
    records = {"log on disk": [driven(0.005, block) for block in range(3)]}
    found = costs(offers.read(OFFERS, "o"), sheet(), StoredTrials(records), TARGET)
    row = found.rows[0]
    assert row.target is not None and row.target.meets and row.bill is not None
    assert (row.score, row.per_core, row.per_thousand) == (None, None, None)
    text = unfolded(report.page(found))
    assert rate_is_an_input() in text and "per core  " not in text and "per 1000" not in text
