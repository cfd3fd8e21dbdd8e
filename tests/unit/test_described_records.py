"""A record contains what readers need to know about its trial's workload and engine."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from factories import DISK, record

from ironbench import workloads
from ironbench.model.described import Described
from ironbench.model.system import Choice
from ironbench.records.decoded import decoded
from ironbench.records.described import describe, described
from ironbench.study.rate import starts_at_recorded_times
from ironbench.study.subjects import counted_in, leading, on_bare_machine, streams

FRAMES = Described(
    units=("frame", "frames"), leading=("frames_per_s",), streams=(3, "3 cameras"), paced=True, bare_machine=True
)


def test_records_of_unknown_workloads_and_engines_are_read_by_their_own_facts() -> None:
    one = record(replace(DISK, engine="of-tomorrow"), choice=Choice("cinema", {"film": "long"}), described=FRAMES)
    read = decoded(msgspec.json.encode(one))
    assert read == one
    assert (counted_in([read]), leading(read), streams(read)) == (("frame", "frames"), FRAMES.leading, (3, "3 cameras"))
    assert starts_at_recorded_times(read) and on_bare_machine(read)


@pytest.mark.parametrize("name", workloads.names())
def test_facts_of_every_workload_survive_its_record(name: str) -> None:
    choice = Choice(name, workloads.get(name).validated({}))
    facts = describe(choice, "postgres", 8)
    assert facts.units == workloads.get(name).counts
    assert decoded(msgspec.json.encode(record(choice=choice, described=facts))).described == facts


def test_older_records_have_the_facts_of_this_version() -> None:
    one = record(choice=Choice("tpch", {"sf": "1", "test": "both"}))
    assert one.described is None
    assert described(one) == describe(one.choice, one.system.engine, one.cell.load.clients)
    assert described(record(choice=Choice("cinema", {}))).units == ("transaction", "transactions")
