"""`cost` answers which system gives more work per price, and which cheaper systems a target leaves open."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from factories import DISK, MACHINE, record, unfolded

from ironbench.catalogue import prices
from ironbench.cli.cost import cost as command
from ironbench.cli.verdict import REFUTED, SUSPECT
from ironbench.model.note import note
from ironbench.model.record import Record, Status
from ironbench.model.system import Load, System
from ironbench.plan import offers
from ironbench.records import Store
from ironbench.report import cost as report
from ironbench.report import formats
from ironbench.study.archive import EMPTY
from ironbench.study.cost import Costs, StoredTrials, costs
from ironbench.study.lead import leads

DOCS = Path(__file__).parents[2] / "docs" / "how"
OLD, NEW, SAME = (replace(DISK, label=label) for label in ("old", "new", "same"))
PRICES = "".join(
    f'[price."{name} server"]\nprice = {price}\ncurrency = "USD"\nper = "server"\nkind = "server"\n'
    'date = "2026-01"\nsource = "a list"\n'
    for name, price in (("old", 2000), ("new", 3000), ("same", 2900))
)


def systems(*names: str, cores: int = 2) -> str:
    return "".join(
        f'[system."{name} machine"]\nrecords = "{name}"\nsockets = 1\ncores = {cores}\nbuy = ["{name} server"]\n'
        for name in names
    )


def runs(side: System, levels: Sequence[float], **fields: object) -> list[Record]:
    """Returns three trials of each run. The trials of a run differ less than the runs."""
    return [
        record(side, 8, level * (1 + 0.01 * (block - 1)), block=block, series=f"{side.label}{n}",
               id=f"{side.label}{n}-{block}", **fields)  # type: ignore[arg-type]
        for n, level in enumerate(levels)
        for block in range(3)
    ]  # fmt: skip


def stored(directory: Path, records: Sequence[Record], machine: object = None) -> None:
    store = Store(directory)
    key = store.keep_shared("machines", machine or MACHINE)
    for one in records:
        store.keep(replace(one, machine=key))


def asked(directory: Path, records: Sequence[Record], text: str, target: str = "") -> Costs:
    stored(directory, records)
    (directory / "systems.toml").write_text(text)
    (directory / "prices.toml").write_text(PRICES)
    files = str(directory / "systems.toml"), [str(directory / "prices.toml")]
    return report.compared((), target, *files, "", str(directory))


def test_the_verdict_is_on_work_per_price_though_work_alone_is_inconclusive(tmp_path: Path) -> None:
    """At 1.5 times the cost, 0.5 to 1.4 times the work is surely less work per price."""
    records = [*runs(OLD, (11000, 13500, 16500)), *runs(NEW, (11200, 11600, 12000))]
    found = asked(tmp_path, records, systems("old", "new"))
    head, separately = report.advice(found)
    said = re.fullmatch(
        r"old machine gives more work per USD than new machine: ([\d.]+)% more \(95% CI ([\d.]+)% to ([\d.]+)%\)\.",
        head,
    )
    assert said and float(said[2]) < float(said[1]) < float(said[3])
    assert "new machine costs 50% more than old machine. Work compared with old machine: " in separately
    assert separately.endswith("inconclusive.")
    fields = json.loads(formats.of_page("json")(report.page(found)))["systems"]
    assert [one["rank_per_1000"] for one in fields] == [1, 2]
    low, high = fields[1]["ratio_per_1000"]
    assert low < fields[1]["ratio_per_1000_value"] < high < 1
    text = unfolded(report.page(found))
    assert text.index("gives more work per USD") < text.index("costs 50% more")


def test_cost_and_lead_name_the_same_ratio_of_work(tmp_path: Path) -> None:
    old, new = runs(OLD, (11000, 13500, 16500)), runs(NEW, (11200, 11600, 15000))
    found = asked(tmp_path, [*old, *new], systems("old", "new"))
    ratio = found.rows[1].work_over(found.rows[0])
    (work,) = leads("old", old, "new", new, EMPTY, 0.05).works
    row = work.peaks and work.peaks.row("throughput")
    assert ratio and row and row.means
    assert (ratio.centre, ratio.low, ratio.high) == (row.means.ratio, row.means.low, row.means.high)
    scores = [row.score.centre for row in found.rows if row.score and row.score.centre]
    assert ratio.centre == pytest.approx(scores[1] / scores[0]), "the table shows the values of the ratio"


SCORED = """
unit = "orders"
[system.A]
sockets = 1
cores = 2
buy = ["old server"]
score = 1000
source = "a list"
[system.B]
sockets = 1
cores = 2
buy = ["new server"]
share_of = "A"
share = [0.9, 1.3]
source = "a guess"
[system.C]
sockets = 1
cores = 2
buy = ["new server"]
share_of = "A"
share = [1.1, 1.7]
source = "a guess"
"""


def test_a_system_is_inconclusive_only_if_its_work_per_price_may_be_more_or_less() -> None:
    """A: 500 per 1,000 USD. B: 300 to 433, surely less. C: 367 to 567, inconclusive. By work alone, B is inconclusive
    and C is not."""
    found = costs(offers.read(SCORED, "o"), prices.read(PRICES, "p"), StoredTrials())
    assert {one.row.name: one.rank for one in found.ranking} == {"A": 1, "B": 2, "C": 1}
    head, b, *separately = report.advice(found)
    assert head == (
        "No difference shown: A and C are tied for the most work per USD. Compared with A, C gives −27% to +13% by "
        "estimate."
    )
    assert b == "B gives less work per USD than A: 13% to 40% less by estimate."
    assert [line.endswith("inconclusive.") for line in separately] == [True, False], "B by work alone is open, C is not"
    text = unfolded(report.page(found))
    assert text.count("1 (tied)") == 2


def test_systems_of_equal_work_per_price_are_tied_whatever_the_rounding() -> None:
    even = SCORED.replace("share = [0.9, 1.3]", "share = 1.5").replace("share = [1.1, 1.7]", "share = 1.5")
    found = costs(offers.read(even, "o"), prices.read(PRICES, "p"), StoredTrials())
    assert [one.rank for one in found.ranking] == [1, 1, 1]


def test_records_of_other_hardware_give_no_figure_at_all(tmp_path: Path) -> None:
    pinned = replace(OLD, server_cpus=(0,))
    records = [*runs(pinned, (1000, 1010, 1020)), *runs(NEW, (900, 910, 920))]
    text = systems("old", cores=16) + systems("new")
    found = asked(tmp_path, records, text)
    assert (found.rows[0].score, found.rows[0].per_core, found.rows[0].per_thousand) == (None, None, None)
    assert found.rows[1].score is not None
    assert report.advice(found) == [
        "No verdict on work per USD. Not ranked: old machine (the hardware in the records differs from the "
        "hardware in the systems file).",
        "new machine costs 50% more than old machine.",
    ]
    assert "so the records are not used" in unfolded(report.page(found))


LIMIT = "p99 < 10ms at 5000 tps"
TAKEN = note("cpu-taken", programs=0.9, steal=0.04, share=0.94)


def rated(side: System, p99s: Sequence[float], **fields: object) -> list[Record]:
    load = Load(rate=5000.0, duration_s=30.0)
    return [
        record(side, 16, 5000.0, block=block, load=load, metrics={"response_time_p99_s": p99},
               id=f"{side.label}-{block}", **fields)  # type: ignore[arg-type]
        for block, p99 in enumerate(p99s)
    ]  # fmt: skip


GOOD, OPEN, BAD = (0.005, 0.0051, 0.0052), (0.006, 0.009, 0.012), (0.030, 0.031, 0.032)


def test_records_of_other_hardware_meet_no_target(tmp_path: Path) -> None:
    found = asked(tmp_path, rated(OLD, GOOD), systems("old", cores=16), LIMIT)
    assert found.cheapest is None
    assert found.rows[0].target is not None and found.rows[0].target.why.code == "target-of-other-hardware"


@pytest.mark.parametrize(
    ("old", "same", "code", "said"),
    [
        (OPEN, None, SUSPECT, "old machine (inconclusive) and same machine (not measured)"),
        (BAD, None, SUSPECT, "same machine (not measured)"),
        (OPEN, BAD, SUSPECT, "old machine (inconclusive)"),
        (BAD, BAD, 0, ""),
        (GOOD, None, 0, ""),
    ],
)
def test_cheaper_systems_that_may_meet_the_target_are_in_the_headline_and_the_exit_code(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    old: Sequence[float],
    same: Sequence[float] | None,
    code: int,
    said: str,
) -> None:
    records = [*rated(OLD, old), *rated(NEW, GOOD), *(rated(SAME, same) if same else ())]
    found = asked(tmp_path, records, systems("old", "new", "same"), LIMIT)
    head = report.advice(found)[0]
    if said:
        assert head == (
            f"Inconclusive, because cheaper systems may also meet the target: {said}. Cheapest system that was shown "
            "to meet the target: new machine, 3,000 USD."
        )
    else:
        assert head.startswith("Cheapest system that meets the target: ")
    files = {"systems": str(tmp_path / "systems.toml"), "prices": [str(tmp_path / "prices.toml")]}
    assert command(target=LIMIT, results=str(tmp_path), **files) == code
    shown = capsys.readouterr().err
    assert (
        f"exit code {SUSPECT}: inconclusive: cheaper systems may also meet the target {LIMIT}: {said}" in shown
    ) is bool(said)


def test_a_target_met_by_flagged_trials_ends_with_exit_code_3_as_a_run_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked(tmp_path, rated(OLD, GOOD, status=Status.SUSPECT, warnings=(TAKEN,)), systems("old"), LIMIT)
    files = {"systems": str(tmp_path / "systems.toml"), "prices": [str(tmp_path / "prices.toml")]}
    assert command(target=LIMIT, results=str(tmp_path), **files) == SUSPECT
    assert capsys.readouterr().err.endswith(f"exit code {SUSPECT}: old machine (3 of 3 trials flagged)\n")
    assert REFUTED != SUSPECT


def blocks(page: str) -> list[str]:
    return re.findall(r"```toml\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def test_the_systems_file_of_the_page_on_two_machines_runs_as_written(tmp_path: Path) -> None:
    text = next(block for block in blocks("machines-side-by-side.md") if "[system." in block)
    sheet = next(block for block in blocks("machines-side-by-side.md") if "[price]" in block)
    for side, cores, levels in ((OLD, 16, (1000, 1010, 1020)), (NEW, 32, (2000, 2020, 2040))):
        machine = {**MACHINE, "cpu": {**MACHINE["cpu"], "cores": cores, "sockets": 1}}
        stored(tmp_path, runs(side, levels), machine)
    for name, content in (("systems.toml", text), ("my-prices.toml", sheet)):
        (tmp_path / name).write_text(content)
    files = str(tmp_path / "systems.toml"), [str(tmp_path / "my-prices.toml")]
    found = report.compared((), "", *files, "", str(tmp_path))
    assert report.advice(found)[0].startswith("new machine gives more work per USD than old machine: 51% more (95% CI ")


def test_the_files_of_the_page_on_cost_run_as_written(tmp_path: Path) -> None:
    text = next(block for block in blocks("cost.md") if "[system." in block)
    sheet = next(block for block in blocks("cost.md") if "[price." in block)
    for name, content in (("my-systems.toml", text), ("my-prices.toml", sheet)):
        (tmp_path / name).write_text(content)
    files = str(tmp_path / "my-systems.toml"), [str(tmp_path / "my-prices.toml")]
    found = report.compared((), "", *files, "", str(tmp_path))
    assert found.rows[0].bill is not None and found.rows[0].bill.total > 0
