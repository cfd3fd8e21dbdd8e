"""The relevant machine is the server's, wherever it runs; unknown facts are shown as unknown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from factories import Shelf, codes, evidence, record
from labfactory import lab

from ironbench.catalogue.prices import Sheet
from ironbench.errors import InputError
from ironbench.lab import freeze, server_watch
from ironbench.model.record import Record, machine_of
from ironbench.model.system import Choice, System
from ironbench.printer import Printer
from ironbench.records import Store
from ironbench.records.index import short
from ironbench.records.labs import FrozenPlan, LabDirectory
from ironbench.report import formats, trial_text
from ironbench.study.comparability import unlike
from ironbench.study.cost import StoredTrials, costs
from ironbench.study.differences import facts
from ironbench.study.history import histories
from ironbench.study.lead import leads
from ironbench.study.leaderboard import rankings_of_records
from ironbench.study.runstudy import studies
from ironbench.study.subjects import subjects

CLIENT = {"cpu": {"model": "client's processor", "cores": 4, "sockets": 1}, "memory_bytes": 8 << 30}
SERVER = {"cpu": {"model": "server's processor", "cores": 64, "sockets": 2}, "memory_bytes": 512 << 30}
SMALL = {"cpu": {"model": "server's processor", "cores": 8, "sockets": 2}, "memory_bytes": 512 << 30}
MACHINES = {"c": CLIENT, "s64": SERVER, "s8": SMALL}
GIVEN = System("postgres", "given", dsn="postgresql://db.example/bench", server="ssh://db.example")
BROKERAGE = Choice("brokerage", {})


def there(server: str = "s64", **fields: object) -> Record:
    return replace(record(GIVEN), machine="c", server_machine=server, **fields)


def test_the_machine_is_the_servers_or_unknown_but_never_the_clients() -> None:
    assert machine_of(there()) == "s64"
    assert machine_of(there("")) == ""
    assert machine_of(replace(record(), machine="c")) == "c"
    seen_here = there("", metrics={**there().metrics, "engine_cpu_cores": 0.4})
    assert machine_of(seen_here) == "c"


def test_facts_are_those_of_the_servers_machine_and_of_the_client_apart() -> None:
    known = facts(there(), Shelf(machines=MACHINES))
    assert (known["machine.cpu.cores"], known["client.cpu.cores"]) == ("64", "4")
    unknown = facts(there(""), Shelf(machines=MACHINES))
    assert [name for name in unknown if name.startswith("machine.")] == ["machine.fingerprint"]
    assert unknown["machine.fingerprint"] == "unknown"


@pytest.mark.parametrize(("server", "cores"), [("s64", 64), ("", None)])
def test_every_place_that_divides_by_cores_takes_the_servers(server: str, cores: int | None) -> None:
    trials = [there(server, block=block, id=f"{block}") for block in range(3)]
    archive = Shelf(trials, machines=MACHINES)
    (study,) = studies(trials, archive)
    assert study.parts[0].cores == cores
    sheet = {entry.name.code: entry.value for entry in study.parts[0].balance}
    assert sheet["balance-clients"] == (None if cores is None else pytest.approx(8 / cores))
    assert costs(None, Sheet({}), StoredTrials({"given": trials}, MACHINES)).rows[0].cores == cores
    (place,) = rankings_of_records(trials, archive, "score", Sheet({}), "")[0].places
    assert (place.cores, place.processor) == (cores, "server's processor" if cores else "")
    local = System("postgres", "here")
    here = [replace(one, system=local, id=f"h{one.id}", series="h", server_machine="") for one in trials]
    assert leads("here", here, "given", trials, archive, 0.05).cores == (4, cores)


@pytest.mark.parametrize(("server", "shown"), [("s64", "64"), ("", "not known")])
def test_a_brokerage_divides_its_score_by_the_cores_of_the_server(server: str, shown: str) -> None:
    from ironbench.report.sections import brokerage

    trials = [
        there(server, choice=BROKERAGE, id=f"{n}", metrics={**record().metrics, brokerage.SCORE: 640.0})
        for n in range(3)
    ]
    (study,) = studies(trials, Shelf(trials, machines=MACHINES))
    (section,) = brokerage.sections(study)
    rows = {row[0]: row[1] for row in section.tables[0][1].texts}
    assert rows["server cores"] == shown
    assert rows["Trade-Results per second and core"].startswith("10" if server else "not known")


def test_pages_show_the_servers_processor_or_that_it_is_unknown() -> None:
    for server, seen, unseen in (("s64", "server's processor", "client's processor"), ("", "unknown", "4 cores")):
        one = there(server)
        archive = Shelf([one], machines=MACHINES)
        page = formats.get("text")(studies([one], archive)).decode()
        head = page[: page.index("given ", 40)]
        assert seen in head and unseen not in head
    assert "client.cpu.model" not in facts(record(), Shelf(machines=MACHINES))


def test_a_server_that_was_resized_is_another_subject_and_another_line() -> None:
    small, large = there("s8", series="1", id="1"), there("s64", series="2", id="2")
    assert len(subjects([small, large])) == 2
    assert short(small).alike != short(large).alike
    assert short(large).machine == "s64"
    assert "machines-differ" in codes(*unlike([small], [large]))
    assert "server-machine-unknown" in codes(*unlike([there("", series="1")], [large]))
    (history,) = histories([small, large], Shelf(machines=MACHINES)).all
    assert len(history.lines) == 2
    with pytest.raises(InputError, match="of two machines"):
        leads("a", [small, large], "b", [record(series="3")], Shelf(machines=MACHINES), 0.05)


def test_a_trial_that_could_not_be_watched_is_of_the_machine_of_its_run() -> None:
    trials = [there(block=0, id="0"), there("", block=1, id="1"), there(block=2, id="2")]
    assert len(subjects(trials)) == 1
    other = [record(series="3", id="3", machine="c")]
    assert leads("a", trials, "b", other, Shelf(machines=MACHINES), 0.05).cores == (64, 4)
    assert len(costs(None, Sheet({}), StoredTrials({"given": trials}, MACHINES)).rows) == 1
    assert len(subjects([*trials, there("", series="other", id="4")])) == 2, "of another run nobody knows"


def test_show_prints_the_machine_of_the_server(tmp_path: Path) -> None:
    from ironbench.study.differences import machine_facts

    store = Store(tmp_path, Printer.silent())
    key = store.keep_shared("machines", SERVER)
    one = there(key)
    store.keep(one, **evidence())
    text = trial_text.one(one, machine_facts(one, store), {})
    assert "server's processor" in text and "client's processor" not in text


def test_a_lab_does_not_go_on_when_the_server_was_resized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = lab({"log": ("disk", "memory")}, blocks=2)
    directory = LabDirectory(tmp_path / "lab")
    key = directory.store.keep_shared("machines", SMALL)
    frozen = FrozenPlan(plan, directory.store.keep_shared("machines", {}), {}, {}, {"ssh://db.example": key})
    monkeypatch.setattr(freeze, "_engines", lambda *_: {})
    monkeypatch.setattr(freeze, "software", dict)
    monkeypatch.setattr(freeze, "fingerprint", dict)
    monkeypatch.setattr(server_watch, "machines", lambda _: {"ssh://db.example": SERVER})
    found = freeze.changes(frozen, {}, directory, plan.source)
    assert found == ["machine of ssh://db.example.cpu.cores: was 8, is 64"]
    monkeypatch.setattr(server_watch, "machines", lambda _: {"ssh://db.example": SMALL})
    assert freeze.changes(frozen, {}, directory, plan.source) == []


def test_plans_of_labs_without_servers_stay_readable() -> None:
    text = msgspec.json.encode(FrozenPlan(lab({"log": ("disk", "memory")}, blocks=2), "m1", {}, {}))
    older = msgspec.json.decode(text)
    del older["servers"]
    assert msgspec.convert(older, FrozenPlan).servers == {}
