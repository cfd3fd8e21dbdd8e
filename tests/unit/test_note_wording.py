"""Every note has a wording for all values, and notes of one code are merged with ranges."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from factories import record
from hypothesis import given
from hypothesis import strategies as st

from ironbench.model.cost import CostRange
from ironbench.model.finding import Conclusion, Finding, Noise
from ironbench.model.lab import NOTHING_ELSE, Configuration, Factor
from ironbench.model.note import Note, NoteRange, merged, note, text_note
from ironbench.model.observer import CONCURRENCY
from ironbench.model.record import SUSPICIOUS, Status
from ironbench.records import Store
from ironbench.report import wording
from ironbench.report.as_json import plain_value
from ironbench.report.wording.answers import (
    compare_answer,
    cost_answer,
    foreign,
    gate_answer,
    history_answer,
    lead_answer,
    report_notes,
    run_answer,
    screening,
    zero_latency,
)
from ironbench.report.wording.registry import WORDING, UnwordedNoteWarning
from ironbench.stats.change_points import CORRELATED, INDEPENDENT
from ironbench.study.bottleneck import Gain, LimitingResource, TimeSpent
from ironbench.study.ceiling import Ceiling, PartVerdict
from ironbench.study.comparability import causes, merged_notes, trial_warnings
from ironbench.study.compare import MeanRatio
from ironbench.study.differences import Difference
from ironbench.study.gate import GatedComparison, GateVerdict, Slowdown
from ironbench.study.slower import NewStatement, OtherPlanSteps, RepeatedStatement, SlowerStatement
from ironbench.study.summarise import Summary

NUMBERS = (
    0.0,
    0,
    1,
    0.97,
    12.5,
    1e15,
    1e-9,
    -0.2,
    NoteRange(0.05, 0.12),
    NoteRange(0, 3),
    NoteRange(-0.2, 0.3),
    NoteRange(2, 2),
)
STRINGS = ("", "one", ("one", "two"), ("a", "b", "c", "d", "e"), "x" * 4096, ())
PAIRS = ((), (("q09", "out of memory"),), (("q09", "no"), ("q21", "no")))
AT_RISK = (
    (),
    (("fsync", "off", "a crash may damage everything"),),
    (("fsync", "off", "crash", "database"), ("sync", "0", "unheard-of", "other")),
)
GAPS = ((), ((1.0, 2.0),), ((1.0, 2.0), (3.0, 4.5)))
WAL = Configuration("log=disk", ((Factor("log", ("disk",), (("layout.log",),)), "disk"),), emulated=True)
OWN = Configuration("small, at night")
INNER = note("samples-dropped", samples=40)
FINDING = Finding(
    1.26, 1.18, 1.35, "throughput", "fast", "slow", tuple((block, 1.26) for block in range(6)), 0.95,
    Conclusion.FASTER, 0.02, 0.064, 0.001, note("paired"),
)  # fmt: skip
UNDECIDED = replace(
    FINDING, ratio=0.98, low=0.9, high=1.07, conclusion=Conclusion.CANNOT_TELL, advice=note("least-blocks", least=6)
)
CEILINGS = (
    *(Ceiling(("log",), 1.26, 1.18, 1.35, one, None, FINDING, ("log",), {"log": 0.06}) for one in PartVerdict),
    Ceiling(
        ("log", "temp", "data"), 3.1, 2.8, 3.4, PartVerdict.BOTTLENECK, True, FINDING, ("log", "temp"),
        {"log": 0.1, "temp": 0.3}, 0.0, predicted=Gain(1.2, 1.5),
        besides=tuple(Difference("engine", f"knob_{at}", ("on", "off")) for at in range(5)),
    ),
    *(
        Ceiling(
            ("log",), 1.26, 1.18, 1.35, PartVerdict.BOTTLENECK, True, FINDING, ("log",), {}, on_device=True, left=left
        )
        for left in (None, 0.0, 0.13)
    ),
    Ceiling(
        ("client",), 0.98, 0.9, 1.07, PartVerdict.INCONCLUSIVE, None, UNDECIDED, (), {}, 12.0, 0.003,
        added_bytes=1 << 30,
    ),
)  # fmt: skip
GATED = tuple(
    GatedComparison(
        replace(UNDECIDED, sides=(WAL, OWN)),
        GateVerdict.CANNOT_TELL,
        note("perhaps-slower", least=least, most=0.3, margin=0.05, higher_is_better=higher, advice=None),
        Slowdown(least, 0.1, 0.3, 0.25),
    )
    for least, higher in ((-0.08, True), (-0.08, False), (0.02, True))
)
SUMMARIES = (Summary(1, 940.0, 940.0, 940.0, 940.0, 0.0), Summary(3, 0.012, 0.012, 0.011, 0.013, 0.001))
GAINS = (None, Gain(1.2, 1.2), Gain(1.2, 1.5), Gain(2.5, 4.0), Gain(3.0, math.inf))
OF_A_STUDY: dict[str, tuple[Any, ...]] = {
    "int": (0, 1, 36),
    "int | None": (None, 0, 3),
    "float": (0.0, 1.0, 0.97, 12.5, 1e15, 1e-9, -0.2),
    "float | None": (None, 0.0, 0.5, 1e9),
    "bool": (False, True),
    "str": ("one", "pgbench tpcb-like", "x" * 400),
    "Note": (INNER, text_note("busy.")),
    "Note | None": (None, INNER),
    "Sequence[Note]": ((), (INNER,), (INNER, text_note("busy."))),
    "Sequence[str]": (("one",), ("one", "two")),
    "Sequence[int]": ((1,), (20, 40)),
    "Sequence[float]": ((1.0,), (1.0, 2.0)),
    "Sequence[Sequence[float]]": (((0.99, 299),), ((0.5, 5), (0.999, 2995))),
    "Sequence[tuple[str, int]]": ((("Sort", 1),), (("Sort", 1), ("Hash", 2))),
    "Sequence[tuple[Configuration, int]]": (((WAL, 1),), ((WAL, 1), (OWN, 2))),
    "Sequence[Configuration]": ((WAL, OWN), (OWN, WAL)),
    "Configuration": (WAL, OWN),
    "Configurations": (*STRINGS, WAL, (WAL, OWN)),
    "Sequence[tuple[str, float]]": ((("server", 0.4),), (("server", 0.4), ("steal", 0.1))),
    "Sequence[tuple[Configuration, Configuration, Configuration]]": ((), ((WAL, OWN, NOTHING_ELSE), (OWN, WAL, WAL))),
    "Bounds": ((31.2, 30.0, 33.0), (-0.02, -0.03, -0.01), (1e9, 2.5, None), (4.0, 1.0, 1e7)),
    "Bounds | None": (None, (31.2, 30.0, 33.0), (1e9, 2.5, None)),
    "tuple[Configuration, int, int] | None": (None, (WAL, 2, 6)),
    "bool | None": (None, False, True),
    "tuple[int | None, int | None] | None": (None, (None, 8), (8, 1), (8, 16)),
    "tuple[int, int] | None": (None, (8, 64)),
    "tuple[float, float] | None": (None, (1.0, 1.0), (1.18, 1.35), (0.9, 1.07)),
    "Sequence[tuple[str, float, Note]]": ((("A", 500.0, INNER),), (("A", 500.0, INNER), ("B", 250.0, INNER))),
    "Sequence[tuple[str, str, str]]": ((("work_mem", "4MB", "64MB"),), (("jit", "on", "off"), ("a", "b", "c"))),
    "Summary": SUMMARIES,
    "Limits": ((), (("response_time_p99_s", 0.05),), (("response_time_p99_s", 0.05), ("failed_fraction", 0.01))),
    "Refusals": ((), ((381, "rate", 350.0),), ((381, "response_time_p99_s", 0.183), (200, "failed", 0.5))),
    "tuple[float, float]": ((1.0, 1.0), (10_000.0, 12_600.0)),
    "MeanRatio": (
        MeanRatio(1.0, 0.0, math.inf, (10.0, 10.0), (1, 1), True),
        MeanRatio(0.85, 0.58, 1.26, (13_600.0, 11_600.0), (9, 9)),
        MeanRatio(2.8, 2.6, 3.0, (0.01, 0.028), (3, 3)),
    ),
    "CostRange": (
        *(CostRange(0.0, math.inf, 1.2), CostRange(1.5, 1.5), CostRange(0.6, 0.8), CostRange(0.7, 1.1)),
        *(CostRange(2.5, 4.0), CostRange(0.58, 1.26, 0.85), CostRange(1.0, 1.0, 1.0), CostRange(2.6, 3.0, 2.8)),
    ),
    "Mapping[str, Sequence[str]]": ({"only one trial": ("one",)}, {"only one trial": ("one",), "x": ("a", "b")}),
    "FalseAlarms": (INDEPENDENT, CORRELATED),
    "Finding": (FINDING, UNDECIDED, replace(FINDING, ratios=())),
    "Noise | None": (None, Noise("m", "tpcb-like", "throughput", 6, 0.01, 0.02, "2026-11-21T01:00:00")),
    "GatedComparison": GATED,
    "GatedComparison | None": (None, *GATED),
    "Cause": (
        SlowerStatement("select 1", 0.003, 0.009, "server", "select 2"),
        RepeatedStatement("select 1", 1.0, 12.0, 0.001, "server"),
        NewStatement("select 1", 1.0, 0.001, "server"),
        OtherPlanSteps("select 1", ("Seq Scan on a",), ("Index Scan on a",)),
        OtherPlanSteps("select 1", (), ("Index Scan on a",)),
    ),
    "Ceiling": CEILINGS,
    "Sequence[Ceiling]": ((), CEILINGS),
    "TimeSpent": tuple(
        TimeSpent(
            "slow",
            6,
            6,
            0.008,
            (),
            LimitingResource(resource, 0.68, gain, note("limit", resource="wal", share=0.68)),
            {},
            {},
        )
        for resource in ("wal", CONCURRENCY)
        for gain in GAINS
    ),
}
"""Example values of each parameter type of the notes about a whole study. These notes are never merged."""


ANSWERS = (
    compare_answer,
    cost_answer,
    foreign,
    gate_answer,
    history_answer,
    lead_answer,
    report_notes,
    run_answer,
    screening,
    zero_latency,
)
"""Modules of words for answers, whose functions have no code."""
FUNCTIONS: dict[str, Callable[..., str]] = {
    **WORDING,
    **{
        f"{module.__name__.rpartition('.')[2]}.{name}": function
        for module in ANSWERS
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    },
}


def values_of(code: str, parameter: inspect.Parameter) -> tuple[Any, ...]:
    """Returns the typical and extreme values of one parameter of a wording function, by its type."""
    kind = str(parameter.annotation)
    if parameter.name == "gaps":
        return GAPS
    if "Sequence[Sequence[str]]" in kind:
        return AT_RISK if code == "can-lose-data" else PAIRS
    if code == "can-lose-data":
        return AT_RISK
    if parameter.name == "program":
        return tuple(foreign.PROGRAMS)
    if parameter.name == "metric" and kind == "str":
        return ("throughput", "response_time_p99_s")
    if kind in OF_A_STUDY:
        return OF_A_STUDY[kind]
    if "Strings" in kind:
        return STRINGS
    return (*NUMBERS, None) if "None" in kind else NUMBERS


def made(code: str) -> Iterator[str]:
    """Yields the words of a code or an answer, with each parameter taking all its values, in step with the others."""
    function = FUNCTIONS[code]
    parameters = inspect.signature(function).parameters
    known = {name: values_of(code, parameter) for name, parameter in parameters.items()}
    for step in range(max((len(values) for values in known.values()), default=1)):
        yield function(**{name: values[step % len(values)] for name, values in known.items()})
        yield function(
            **{name: values[(step * 5 + at) % len(values)] for at, (name, values) in enumerate(known.items())}
        )


@pytest.mark.parametrize("code", FUNCTIONS)
def test_every_code_and_answer_has_words_for_typical_and_extreme_values(code: str) -> None:
    for text in made(code):
        assert text or "empty" in (FUNCTIONS[code].__doc__ or "")
        assert text == text.strip()
        assert not re.search(r"None|\bnan\b|\binf\b|  |Range\(|Note\(|\(\)", text), text


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in WORDING])
def test_every_answer_has_an_example(name: str) -> None:
    assert re.search(r"`[^`]+ [^`]+`", FUNCTIONS[name].__doc__ or "")


def test_every_code_that_flags_a_trial_has_words() -> None:
    assert WORDING.keys() >= SUSPICIOUS


CUT_OFF: dict[str, Any] = {"longest_wait_s": 9.0, "share": 0.03, "one": "event", "many": "events"}
BEHIND: dict[str, Any] = {"rate": 500.0, "finished": 0.9, "longest_wait_s": 0.0, "warmup_s": 0.0}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (note("clients-cut-off", cut_off=1, **CUT_OFF), "1 event was still running at the end of the measured window"),
        (note("clients-cut-off", cut_off=1, **CUT_OFF), "the finished events; it took 3% of the clients' time"),
        (
            note("clients-cut-off", cut_off=3, **CUT_OFF),
            "3 events were still running at the end of the measured window",
        ),
        (note("clients-cut-off", cut_off=3, **CUT_OFF), "the finished events; they took 3% of the clients' time"),
        (note("clients-cut-off", cut_off=NoteRange(1, 3), **CUT_OFF), "1 to 3 events were still running"),
        (note("clients-cut-off", cut_off=NoteRange(1, 1), **CUT_OFF), "1 event was still running"),
        (note("rate-not-kept", waiting=1, **BEHIND), ", and 1 was still waiting at the end"),
        (note("rate-not-kept", waiting=2, **BEHIND), ", and 2 were still waiting at the end"),
        (note("clients-lost", lost=1, clients=8, first=""), "1 of 8 clients lost its connection and stopped"),
        (note("clients-lost", lost=3, clients=8, first=""), "3 of 8 clients lost their connection and stopped"),
        (note("connections-lost", lost=1, first=""), "1 client connection was lost"),
        (note("samples-dropped", samples=1), "1 observer sample was dropped"),
        (note("replay-skipped", statements=1, share=0.01), "1 statement (1%) was skipped"),
        (note("replay-skipped", statements=12, share=0.01), "12 statements (1%) were skipped"),
        (note("capture-durations-alone", count=1), "1 duration belongs to statements"),
        (note("capture-durations-alone", count=12), "12 durations belong to statements"),
        (note("statements-not-counted", count=1, by="", setting=""), "no space for 1 statement, which is missing"),
    ],
)
def test_verbs_agree_with_the_number_before_them(found: Note, expected: str) -> None:
    assert expected in wording.text(found)


def test_a_note_of_another_version_is_shown_as_code_and_values() -> None:
    assert (
        wording.text(note("from-the-future", share=0.5, names=("a", "b"))) == "from-the-future: share 0.5, names (a, b)"
    )
    for other, text in (
        (note("cache-not-cold", reason="new"), "cache-not-cold: reason new"),
        (note("cache-not-cold", cause="new"), "cache-not-cold: cause new"),
        (note("emulation-limit", load="much", late=0.1), "emulation-limit: load much, late 0.1"),
    ):
        with pytest.warns(UnwordedNoteWarning):
            assert wording.text(other) == text


def test_a_wording_that_fails_is_an_error_in_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WORDING, "of-this-test", lambda reason: {"known": "words"}[reason])
    assert wording.text(note("of-this-test", reason="known")) == "words"
    with pytest.raises(UnwordedNoteWarning, match="KeyError"):
        wording.text(note("of-this-test", reason="unknown"))


def test_a_sentence_of_an_older_record_is_shown_as_it_is() -> None:
    assert wording.text(Note("cpu-taken", {"text": "12 % was taken"})) == "12 % was taken"


def test_a_search_result_of_an_earlier_build_is_worded_as_one_of_today() -> None:
    result = {"of": "clients", "tried": (1,), "limit": "response_time_p99_s"}
    for exceeds in (True, False):
        code = "search-none-within-limit"
        assert wording.text(note(code, **result, surely=exceeds)) == wording.text(
            note(code, **result, exceeds_limit=exceeds)
        )


def test_notes_of_one_code_become_one_with_the_range_of_each_number() -> None:
    taken = [note("cpu-taken", share=share, programs=share, steal=0.0) for share in (0.12, 0.05, 0.08)]
    (one,) = merged(taken)
    assert one == note("cpu-taken", share=NoteRange(0.05, 0.12), programs=NoteRange(0.05, 0.12), steal=0.0)


def test_notes_whose_values_have_different_names_stay_apart() -> None:
    threads = note("client-saturated", busy=0.95, threads=1, clients=8)
    driver = note("client-saturated", cores=0.97)
    assert list(merged([threads, driver, threads])) == [threads, driver]


def test_strings_of_merged_notes_are_each_named_once() -> None:
    first, second = (note("over-limit", queries=queries) for queries in (("q09", "q21"), ("q21", "q13")))
    assert next(merged([first, second])).values == {"queries": ("q09", "q21", "q13")}


NUMERIC = st.floats(-1e9, 1e9, allow_nan=False)


@given(st.lists(st.tuples(NUMERIC, st.sampled_from(["a", "b"])), min_size=1, max_size=8))
def test_merging_in_any_grouping_gives_the_same_note(values: list[tuple[float, str]]) -> None:
    notes = [note("x", number=number, name=name) for number, name in values]
    (whole,) = merged(notes)
    (halves,) = merged([*merged(notes[: len(notes) // 2]), *merged(notes[len(notes) // 2 :])])
    assert whole == halves


def test_a_note_counts_trials_and_not_how_often_a_trial_has_it() -> None:
    slow = note("response-limit-missed", script="a", p90_s=4.0, limit_s=3.0)
    records = [record(warnings=(slow, replace(slow, values={**slow.values, "script": "b"}))), record(block=1)]
    (one,) = trial_warnings(records)
    assert (one.values["trials"], one.values["of"]) == (1, 2)
    assert one.values["note"].values["script"] == ("a", "b")
    assert merged_notes(records) == [one.values["note"]]


def test_causes_of_flagged_trials_begin_with_the_most_frequent() -> None:
    behind = note("rate-not-kept", rate=500.0, finished=0.9, waiting=10, longest_wait_s=1.0, warmup_s=0.0)
    taken = note("cpu-taken", share=0.1, programs=0.1, steal=0.0)
    trials = [record(status=Status.SUSPECT, warnings=(one,)) for one in (behind, taken, taken)]
    assert [one.code for one in causes(trials)] == ["cpu-taken", "rate-not-kept"]


def test_a_record_keeps_its_notes_as_values(tmp_path: Path) -> None:
    notes = (note("cpu-taken", share=0.1, programs=0.1, steal=0.0), note("query-failed", queries=(("q09", "no"),)))
    store = Store(tmp_path)
    store.keep(record(id="one", warnings=notes))
    (read,) = store.all()
    assert read.warnings == notes
    assert hash(read.warnings) == hash(notes)


def test_warnings_of_records_before_notes_are_read_as_their_texts(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.keep(record(id="one"))
    path = tmp_path / "trials" / "one" / "record.json"
    document = msgspec.json.decode(path.read_bytes())
    document |= {"schema": 3, "warnings": [{"code": "cpu-taken", "text": "12 % was taken"}]}
    path.write_bytes(msgspec.json.encode(document))
    (read,) = store.all()
    assert read.warnings == (Note("cpu-taken", {"text": "12 % was taken"}),)


def test_json_has_code_values_and_words() -> None:
    assert plain_value((note("samples-dropped", samples=NoteRange(1, 40)),)) == [
        {
            "code": "samples-dropped",
            "values": {"samples": {"low": 1, "high": 40}},
            "text": "1 to 40 observer samples were dropped",
        }
    ]
