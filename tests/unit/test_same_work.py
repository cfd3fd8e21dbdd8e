"""Work is the same wherever its files are stored: two checkouts of a lab, and records of every version, compare."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from factories import Shelf, evidence, record

from ironbench import workloads
from ironbench.errors import InputError
from ironbench.fields.run import RunFile
from ironbench.lab import run_plan
from ironbench.model.own_data import OwnData
from ironbench.model.plan import Plan
from ironbench.model.record import Record
from ironbench.model.secrets import Secrets
from ironbench.model.system import Choice
from ironbench.plan import run_file, sweep
from ironbench.printer import Printer
from ironbench.records import Store
from ironbench.records.index import short
from ironbench.records.work import same_work, work_of_noise
from ironbench.study.comparability import other_work, unlike
from ironbench.study.history import histories
from ironbench.study.subjects import by_work


def of(workload: str, **given: str) -> Record:
    usual = {option.name: option.default for option in workloads.get(workload).options}
    return record(choice=Choice(workload, usual | given))


def same(a: Record, b: Record) -> bool:
    """Compares two records in every way; all ways must agree."""
    ways = {
        same_work(a.choice, b.choice),
        len(by_work([a, b])) == 1,
        other_work([a], [b]) == (),
        short(a).alike == short(b).alike,
    }
    assert len(ways) == 1, "one says so, another does not"
    return ways.pop()


@pytest.mark.parametrize(
    ("workload", "option"),
    [("access-log", "log"), ("directory", "filters"), ("directory", "ldif"), ("igen-cpu", "png")],
)
@pytest.mark.parametrize("other", ["/one/in/of.txt", "/two/of.txt", "of.txt"])
def test_a_file_of_one_name_is_the_same_work_wherever_it_lies(workload: str, option: str, other: str) -> None:
    assert same(of(workload, **{option: "in/of.txt"}), of(workload, **{option: other}))


def test_a_file_of_another_name_or_with_other_contents_is_other_work() -> None:
    here = of("access-log", log="/one/access.log", digest="a")
    assert not same(here, of("access-log", log="/one/other.log", digest="a"))
    assert not same(here, of("access-log", log="/two/access.log", digest="b"))
    assert not same(here, of("access-log", log="", digest="a"))


def test_a_backup_to_another_directory_is_other_work() -> None:
    """The other directory may be on another device."""
    assert not same(of("backup", to="/fast/backups"), of("backup", to="/slow/backups"))


@pytest.mark.parametrize(
    ("scripts", "digests"),
    [
        (("/two/x.sql", "/two/y.sql@3"), ("a", "b")),
        (("/one/y.sql@3", "/one/x.sql@1"), ("b", "a")),
        (("renamed.sql", "too.sql@3"), ("a", "b")),
    ],
)
def test_scripts_of_the_same_contents_are_the_same_work_in_any_directory_and_order(
    scripts: tuple[str, ...], digests: tuple[str, ...]
) -> None:
    one = record(choice=Choice("script", scripts=("/one/x.sql", "/one/y.sql@3"), digests=("a", "b")))
    other = record(choice=Choice("script", scripts=scripts, digests=digests))
    assert same(one, other) and unlike([one], [other]) == ()
    (history,) = histories([one, replace(other, id="2", series="2")], Shelf()).all
    assert len(history.lines) == 1
    weighted = record(choice=Choice("script", scripts=("/one/x.sql@2", "/one/y.sql@3"), digests=("a", "b")))
    assert not same(one, weighted)


def test_noise_of_scripts_is_that_of_their_contents_in_any_directory_and_order() -> None:
    def named(*scripts: str, digests: tuple[str, ...] = ("a", "b")) -> str:
        return work_of_noise(Choice("script", scripts=scripts, digests=digests))

    one = named("/one/x.sql", "/one/y.sql@3")
    assert one == named("/two/x.sql", "/two/y.sql@3") == named("/one/y.sql@3", "/one/x.sql", digests=("b", "a"))
    assert one != named("/one/x.sql", "/one/y.sql@3", digests=("a", "c"))


def test_own_data_count_by_their_contents_and_not_by_the_place_of_the_dump() -> None:
    here, there, changed = (
        record(choice=Choice("script", scripts=("x.sql",), digests=("a",), data=OwnData(dump=dump, digests=(digest,))))
        for dump, digest in (("/one/shop.dump", "d"), ("/two/shop.dump", "d"), ("/one/shop.dump", "e"))
    )
    assert same(here, there)
    assert not same(here, changed)
    (apart,) = other_work([here], [changed])
    assert apart.code == "data-differ" and apart.values["a"][0].startswith("shop.dump (own-")


def test_what_leaves_the_work_as_it_is_makes_nothing_else_of_it() -> None:
    assert same(of("tpch", answers="/one/answers"), of("tpch"))


def test_a_run_is_resumed_by_its_own_command_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files with one name may have different contents, and a picture may be requested elsewhere."""
    before, store = of("igen-cpu", png="one/set.png"), Store(tmp_path, Printer.silent())
    store.keep(before, **evidence())
    asked = before

    def planned(_: RunFile) -> tuple[Plan, Secrets]:
        return sweep.plan(asked.system, asked.choice, [asked.cell]), Secrets()

    monkeypatch.setattr(run_plan, "planned", planned)
    monkeypatch.setattr(run_plan, "fingerprint", dict)
    monkeypatch.setattr(run_plan, "content_key", lambda _: before.machine)
    assert run_plan.resumed(run_file.read("igen-cpu"), store)[0].series == before.series
    asked = of("igen-cpu", png="two/set.png")
    with pytest.raises(InputError, match="no run of this command"):
        run_plan.resumed(run_file.read("igen-cpu"), store)
